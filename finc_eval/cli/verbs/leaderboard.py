"""`finc-eval leaderboard`: models ranked against one reference."""

from __future__ import annotations

from typing import Annotated

import typer

import finc_eval as fe
from finc_eval.cli.options import Gens, Json, Ref, Work, embeds, takes
from finc_eval.cli.output import Force, Out, emit, output_folder
from finc_eval.cli.sets import check_given, named_sets
from finc_eval.core.errors import UsageError
from finc_eval.extractors.settings import Extraction
from finc_eval.leaderboards.settings import LeaderboardSettings


@takes(LeaderboardSettings, "settings")
@embeds
def leaderboard(
    ref: Ref,
    settings: LeaderboardSettings,
    extraction: Extraction,
    work: Work,
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME=PATH...", help="Models, each a name and its samples, as --gen takes them."),
    ] = None,
    gen: Gens = (),  # type: ignore[assignment]
    out: Out = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Rank models against one reference, and say which of them cannot be told apart.

    A rank is the set of ranks that a model may have; all of them hold together with probability 0.95.
    """
    given = [*(models or ()), *gen]
    sources = named_sets(given, ref)
    if len(given) < 2:
        raise UsageError(f"at least two models are needed to rank, got {len(given)}")
    check_given(sources.values(), extraction.extractor)
    output = output_folder("leaderboard", "leaderboard", sources, out, force, titles=list(sources))
    with work.running() as run:
        result = fe.leaderboard(named_sets(given), ref, settings, extractor=extraction, run=run)
    emit(result, output, as_json)
