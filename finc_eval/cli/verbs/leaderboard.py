"""`finc-eval leaderboard`: models ranked against one reference."""

from __future__ import annotations

from typing import Annotated

import typer

import finc_eval as fe
from finc_eval.cli.options import Device, Extractor, Json, Ref, Strict, running, takes
from finc_eval.cli.output import Force, Out, emit, output_folder
from finc_eval.cli.sets import check_given, embed_all, named_sets
from finc_eval.comparison.settings import REFERENCE
from finc_eval.core.errors import UsageError
from finc_eval.leaderboards.settings import LeaderboardSettings


@takes(LeaderboardSettings, "settings")
def leaderboard(
    sets: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=PATH...",
            help="Models, each a name and its samples: images, or an .h5 file that extract or sketch wrote.",
        ),
    ],
    ref: Ref,
    settings: LeaderboardSettings,
    out: Out = None,
    force: Force = False,
    extractor: Extractor = None,
    strict: Strict = False,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Rank models against one reference, and say which of them cannot be told apart.

    A rank is the set of ranks that a model may have; all of them hold together with probability 0.95.
    """
    sources = named_sets(sets)
    if REFERENCE in sources:
        raise UsageError(f'a model cannot be called "{REFERENCE}": pass the reference as --ref, or rename the model')
    if len(sources) < 2:
        raise UsageError(f"at least two models are needed to rank, got {len(sources)}")
    sources[REFERENCE] = ref
    check_given(sources.values(), extractor)
    output = output_folder("leaderboard", "leaderboard", sources, out, force, titles=list(sources))
    with running(device) as run:
        found = embed_all(sources, extractor, strict, run)
        result = fe.leaderboard(found, found.pop(REFERENCE), settings, run=run)
    emit(result, output, as_json)
