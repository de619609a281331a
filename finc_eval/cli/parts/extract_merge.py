"""`finc-eval extract merge`: the shards of a set as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import finc_eval as fe
from finc_eval.cli.options import Json, Quiet, shown
from finc_eval.cli.output import Force, check_suffix, print_json
from finc_eval.cli.sets import check_given
from finc_eval.core.words import counted
from finc_eval.samples.shards import MissingShards


def merge(
    shards: Annotated[
        list[Path],
        typer.Argument(metavar="SHARDS", help="The files of all shards, in any order, such as set.*-of-8.h5."),
    ],
    out: Annotated[Path, typer.Option(help="HDF5 file to write.")],
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Join the shards of a set that several processes or machines made.

    The result is what one process would have made: embeddings from finc-eval extract --shard, or a sketch from
    finc-eval extract sketch --shard. Whole sketches of sets without common samples are added up as well.

    Missing shards are an error, and the commands that make them are printed on standard output, one a line. Shards that
    overlap, are damaged, or are of other samples or another extractor are refused.
    """
    check_given(shards)
    check_suffix(out, ".h5")
    try:
        with shown(quiet) as progress:
            made = fe.merge(shards, out, force=force, progress=progress)
    except MissingShards as error:
        print(*error.commands, sep="\n")
        raise
    if as_json:
        print_json({"path": str(out), **made.to_dict()})
    elif isinstance(made, fe.Sketch):
        print(f"{out}: sketch of {counted(made.n, 'sample')}, from {counted(len(shards), 'file')}")
    else:
        print(f"{out}: {counted(made.n, 'embedding')} by {made.extractor}, from {counted(len(shards), 'shard')}")
        if made.failures:
            print(f"  unreadable: {counted(len(made.failures), 'sample')}")
