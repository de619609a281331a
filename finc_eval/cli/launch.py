"""The shard of a process: as the command line says, or as the launcher does that started several of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from finc_eval.cli.options import Work
from finc_eval.core.errors import UsageError
from finc_eval.extractors.settings import Extraction
from finc_eval.samples.shards import BY_RANK, Shard


def launch(extraction: Extraction, work: Work, out: Path | None) -> tuple[Extraction, Work]:
    """Return the settings of this process, one of several that torchrun started if its shard is "rank".

    The first of them shows its progress. They never wait for each other. A training job that calls the command has
    RANK and WORLD_SIZE in its environment, too, so these alone make no shard.

    Raises:
        UsageError: the shard is "rank" without a launcher, or the process has a shard and no file is named.
    """
    if extraction.shard == BY_RANK:
        shard = shard_of_rank(os.environ)
        if shard is None:
            raise UsageError(
                "--shard rank takes the shard from RANK and WORLD_SIZE, which torchrun sets to more than one process: "
                "start it with torchrun, or pass --shard i/N"
            )
        extraction = replace(extraction, shard=shard)
        work = replace(work, quiet=work.quiet or not shard.startswith("1/"))
    if extraction.shard is not None and out is None:
        raise UsageError(
            f"shard {extraction.shard} needs --out: name the file of the whole set, such as set.h5, and the shard is "
            "written beside it with its number in the name"
        )
    return extraction, work


def shard_of_rank(environment: Mapping[str, str]) -> str | None:
    """Return the shard "i/N" of the process RANK = i − 1 of WORLD_SIZE = N; None for a process that is alone."""
    rank, size = (environment.get(name, "") for name in ("RANK", "WORLD_SIZE"))
    alone = not (rank.isdecimal() and size.isdecimal()) or int(size) == 1
    return None if alone else f"{int(rank) + 1}/{int(size)}"


def describe(shard: Shard) -> str:
    """Return the line that says what a shard is."""
    samples = f"numbers {shard.start + 1:,} to {shard.stop:,}" if shard.size else "none"
    return f"shard {shard.name}: {samples} of {shard.n:,} samples; finc-eval extract merge joins all shards"
