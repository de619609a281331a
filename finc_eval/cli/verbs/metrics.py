"""The verb that scores: metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from finc_eval.cli.options import Device, Extractor, Gen, Json, Ref, Strict, running
from finc_eval.cli.sets import embed_all
from finc_eval.core.errors import FincEvalError

if TYPE_CHECKING:
    from finc_eval.metrics.evaluate import Scores


def metrics(
    gen: Gen,
    ref: Ref,
    names: Annotated[
        str, typer.Option("--metrics", metavar="NAME,NAME,…", help="Which: fid, kid, vendi …; a wrong name shows all.")
    ] = "fd,kid,vendi",
    test: Annotated[
        str | None,
        typer.Option(
            help="For fld and authpct: real samples that the generator has not seen; --ref is then what it has."
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
    from finc_eval.metrics.evaluate import Scores, evaluate
    from finc_eval.metrics.reference_statistics import holds_statistics
    from finc_eval.metrics.registry import metric_named
    from finc_eval.report.tables import print_scores

    sources = {"gen": gen, "ref": ref} | ({} if test is None else {"test": test})
    samples = {label: source for label, source in sources.items() if not holds_statistics(source)}
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    groups: dict[str | None, list[str]] = {}
    for name in wanted:
        groups.setdefault(metric_named(name).extractor if extractor is None else extractor, []).append(name)
    parts: list[Scores] = []
    with running(device) as run:
        for space, group in groups.items():
            try:
                sets = sources | embed_all(samples, space, strict, run)
            except FincEvalError as error:
                if len(groups) == 1:
                    raise
                parts.append(Scores(gen, ref, (), dict.fromkeys(group, str(error))))
                continue
            parts.append(evaluate(**sets, metrics=group, device=device, progress=run.progress))
    scores = tuple(score for part in parts for score in part.scores)
    failures = {name: why for part in parts for name, why in part.failures.items()}
    result = Scores(parts[0].gen, parts[0].ref, scores, failures)
    print(result.to_json()) if as_json else print_scores(result)
    if failures:
        raise FincEvalError("; ".join(f"{name}: {why}" for name, why in failures.items()))
