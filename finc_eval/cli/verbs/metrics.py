"""The verb metrics: the metrics people know, of two sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer

import finc_eval as fe
from finc_eval.cli.fields import list_option
from finc_eval.cli.options import Gen, Json, Ref, Work, check_given, embeds
from finc_eval.cli.output import Force, OptionalOut, check_suffix, emit, output_folder, refuse_loss
from finc_eval.cli.verbs.explaining import explain_number
from finc_eval.core.errors import DataError, check_choice
from finc_eval.extractors.settings import Extraction
from finc_eval.numerics.names import INDEXES, SearchIndex


@embeds
def metrics(
    gen: Gen,
    ref: Ref,
    extraction: Extraction,
    work: Work,
    names: Annotated[
        Any,
        list_option(
            str,
            "Names, such as fid or kid; a wrong name lists all. fid embeds by inception-fid, whose weights doctor "
            "weights fetch brings; fd is the same distance by any extractor, and not FID. Default: fd,kid,vendi, or fd "
            "for moments alone.",
            "--metrics",
        ),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(
            help="For fld and authpct: real samples that the generator has not seen; --ref is then its training set."
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column of metadata, such as label: also compute each metric for each of its values."
        ),
    ] = None,
    save_statistics: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npz",
            help="Write mean, covariance and number of the reference's embeddings (mu, sigma, n), which --ref takes "
            "later, and other tools read.",
        ),
    ] = None,
    index: Annotated[
        str, typer.Option(help=f"How prdc, precision_recall, realism, rarity and authpct find neighbors: {INDEXES}.")
    ] = "exact",
    explain: Annotated[
        str | None,
        typer.Option(
            metavar="VALUE",
            help="A number that somebody printed for these samples, such as 28.09: find the conventions that give it "
            "(which samples, resizing, JPEG, crops, bias …), for the only metric in --metrics; default: fd.",
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Compute exactly the number of a published protocol, such as imagenet256-adm-50k, or of a card ending "
            "in .toml, or say which of its fields does not hold; a wrong name lists all. It chooses the metric.",
        ),
    ] = None,
    out: OptionalOut = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Compute the metrics people know, each in the space its name means, with intervals, floors and signatures.

    --gen and --ref may also be an .npz of statistics (mu, sigma; mu_s, sigma_s for sfid), for Fréchet distances.
    """
    check_choice("index", index, get_args(SearchIndex))
    if explain is not None:
        others = {
            "--test": test,
            "--by": by,
            "--save-statistics": save_statistics,
            "--protocol": protocol,
            "--out": out,
        }
        explain_number(explain, gen, ref, names, extraction, work, as_json, others)
        return
    sources = {"gen": gen, "ref": ref} | ({} if test is None else {"test": test})
    check_given(sources.values(), extraction.extractor)
    if save_statistics is not None:
        check_suffix(save_statistics, ".npz", option="--save-statistics")
        refuse_loss(save_statistics, partial(_is_own, ref=ref, names=names, how=extraction), force, "--save-statistics")
    output = None if out is None else output_folder("metrics", "scores", sources, out, force)
    with work.running() as run:
        scores = fe.metrics(
            gen,
            ref,
            names,
            protocol=protocol,
            test=test,
            by=by,
            save_statistics=save_statistics,
            extractor=extraction,
            index=cast(SearchIndex, index),
            run=run,
        )
    emit(scores, output, as_json)
    if scores.failures:
        raise DataError("; ".join(f"{name}: {reason}" for name, reason in scores.failures.items()))


def _is_own(path: Path, ref: str, names: Sequence[str] | None, how: Extraction) -> bool:
    """Return whether a file has the statistics of the reference, by the extractor of the first metric."""
    from finc_eval.embeddings.opening import digests_of  # they load torch: wrong options need not wait
    from finc_eval.measures.gaussians.reference_statistics import source_of
    from finc_eval.measures.metrics import choose_metrics

    defined = choose_metrics(names, {"gen": None, "ref": None, "test": None})[0].extractor
    made = source_of(path)
    return bool(made) and made == digests_of({"ref": ref}, replace(how, extractor=how.extractor or defined))["ref"]
