"""The verb metrics: the metrics people know, of two sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from finc_eval.cli.fields import list_parser
from finc_eval.cli.options import Device, Extractor, Gen, Json, Ref, Strict, running
from finc_eval.cli.output import emit
from finc_eval.cli.sets import check_given, embed_all, titled
from finc_eval.core.errors import DataError, IncompatibleError
from finc_eval.core.provenance import Provenance
from finc_eval.metrics.score import Scores

if TYPE_CHECKING:
    from finc_eval.metrics.inputs import Metric


def metrics(
    gen: Gen,
    ref: Ref,
    names: Annotated[
        Any,
        typer.Option(
            "--metrics",
            metavar="NAME,NAME,…",
            parser=list_parser(str),
            help="Names, such as fid or kid; a wrong one lists all. Default: fd,kid,vendi, or fd for moments alone.",
        ),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(
            help="For fld and authpct: real samples that the generator has not seen; --ref is then its training set."
        ),
    ] = None,
    extractor: Extractor = None,
    strict: Strict = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Compute the metrics people know, each in the space its name means, with intervals, floors and signatures.

    --gen and --ref may also be an .npz of statistics (mu, sigma; mu_s, sigma_s for sfid), for Fréchet distances.
    """
    sources = {"gen": gen, "ref": ref} | ({} if test is None else {"test": test})
    check_given(sources.values(), extractor)
    # These load torch, which help and wrong options need not wait for.
    from finc_eval.embeddings.array_files import holds_statistics
    from finc_eval.metrics.evaluate import choose_metrics, computed_scores
    from finc_eval.metrics.inputs import refuse_private_sketch

    for label, source in sources.items():
        refuse_private_sketch(source, label)
    samples = {label: source for label, source in sources.items() if not holds_statistics(source)}
    by_extractor: dict[str | None, list[Metric]] = {}
    for metric in choose_metrics(names, sources):
        by_extractor.setdefault(extractor or metric.extractor, []).append(metric)
    parts: list[Scores] = []
    with running(device) as run:
        provenance = Provenance.here(device)
        for chosen, group in by_extractor.items():
            try:
                sets = sources | embed_all(samples, chosen, strict, run)
            except (DataError, IncompatibleError) as error:
                if len(by_extractor) == 1:
                    raise
                parts.append(
                    Scores(
                        titled(gen, "gen"),
                        titled(ref, "ref"),
                        (),
                        dict.fromkeys([one.name for one in group], str(error)),
                        provenance=provenance,
                    )
                )
            else:
                parts.append(computed_scores(sets, group, run))
    scores = tuple(score for part in parts for score in part.scores)
    failures = {name: reason for part in parts for name, reason in part.failures.items()}
    emit(Scores(parts[0].gen, parts[0].ref, scores, failures, provenance=provenance), None, as_json)
    if failures:
        raise DataError("; ".join(f"{name}: {reason}" for name, reason in failures.items()))
