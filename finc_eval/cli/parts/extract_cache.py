"""`finc-eval extract cache`: list, explain, verify and delete cached embeddings."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from finc_eval.cli.group import Group
from finc_eval.cli.options import Json, Quiet, shown, takes
from finc_eval.cli.output import print_json
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.words import counted
from finc_eval.embeddings import folder
from finc_eval.embeddings.cache import EmbeddingCache
from finc_eval.embeddings.recipe import recipe_of
from finc_eval.extractors.catalog import card_again, load_card
from finc_eval.extractors.settings import Extraction
from finc_eval.report.terminal import print_table

app = typer.Typer(
    cls=Group,
    help="List, explain, verify and delete cached embeddings. They lie in $FINC_EVAL_CACHE, default: "
    "~/.cache/finc-eval/embeddings.",
)

Cache = Annotated[str, typer.Argument(help="Path of a cache, or the beginning of its key.")]
Caches = Annotated[list[str] | None, typer.Argument(help="Paths of caches, or the beginnings of their keys.")]


@app.command()
def ls(as_json: Json = False) -> None:
    """List the caches, the latest first."""
    found = folder.entries()
    if as_json:
        print_json(found)
    elif found:
        _print_entries(found)
    else:
        print(f"{folder.cache_folder()} holds no caches")


@app.command()
@takes(Extraction, "extraction", strict=None)
def explain(
    cache: Cache,
    extraction: Extraction,
    samples: Annotated[
        str | None, typer.Option(help="Set of samples to compare with; default: the set that was embedded.")
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Explain why a cache would not be used again: print the parts of its key that have changed."""
    with EmbeddingCache(folder.find(cache)) as found, shown(quiet) as progress:
        card = load_card(extraction.extractor or card_again(found.extractor))
        recipe = recipe_of(card, extraction.precision)
        lines = folder.explain(found, samples, card, recipe, n=extraction.n, seed=extraction.seed, progress=progress)
        name = f"{found.path}: {counted(found.n, 'sample')} of {found.source} by {found.extractor}"
        path = str(found.path)
    if as_json:
        print_json({"path": path, "used_again": not lines, "changed": lines})
        return
    print(name)
    for line in lines:
        print(f"  changed: {line}")
    print("  it would be made again" if lines else "  nothing has changed: it would be used as it is")


@app.command()
def verify(caches: Caches = None, as_json: Json = False) -> None:
    """Read every row, and compare it with its checksum. Default: all caches."""
    entries = [entry.path for entry in folder.entries() if entry.state != "unfinished"]
    paths = [folder.find(name) for name in caches] if caches else entries
    problems = {path: folder.verify(path) for path in paths}
    if as_json:
        print_json([{"path": str(path), "problem": problem} for path, problem in problems.items()])
    for path, problem in {} if as_json else problems.items():
        print(f"{path}: {problem or 'whole'}")
    damaged = [path for path, problem in problems.items() if problem]
    if damaged:
        raise DataError(
            f"{len(damaged)} of {counted(len(paths), 'cache')} damaged: finc-eval extract cache rm "
            f"{damaged[0].name[:12]}, "
            "and extract again"
        )


@app.command()
def rm(
    caches: Caches = None,
    unfinished: Annotated[bool, typer.Option("--unfinished", help="Delete every unfinished cache.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Delete all caches in the folder.")] = False,
    as_json: Json = False,
) -> None:
    """Delete caches, except those that another process is writing."""
    if sum((bool(caches), unfinished, everything)) != 1:
        raise UsageError("name the caches to delete, or pass --unfinished or --all, and only one of these")
    if caches:
        wanted = [folder.entry_of(folder.find(name)) for name in caches]
    else:
        wanted = [entry for entry in folder.entries() if everything or entry.state == "unfinished"]
    freed: dict[str, int] = {}
    kept: list[DataError] = []
    for entry in wanted:
        try:
            freed[str(entry.path)] = folder.remove(entry)
        except DataError as error:
            kept.append(error)
    if as_json:
        print_json({"deleted": list(freed), "bytes": sum(freed.values())})
    else:
        print(f"deleted {counted(len(freed), 'cache')}, {sum(freed.values()) / 1e6:,.1f} MB")
    if kept:
        raise kept[0]


def _print_entries(entries: list[folder.Entry]) -> None:
    rows = [
        [
            entry.path.name[:12],
            entry.state,
            "" if entry.n is None else f"{entry.n} x {entry.dim}",
            entry.extractor or "",
            f"{entry.size / 1e6:,.1f}",
            f"{datetime.fromtimestamp(entry.modified):%Y-%m-%d %H:%M}",
            entry.note or f"{entry.source or ''}{' (gone)' if entry.source_is_there is False else ''}",
        ]
        for entry in entries
    ]
    print_table("", ["key", "state", "embeddings", "extractor", "MB", "made", "samples"], rows)
    print(f"{sum(entry.size for entry in entries) / 1e6:,.1f} MB in {entries[0].path.parent}")
