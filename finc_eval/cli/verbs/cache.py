"""`finc-eval cache`: what is cached, from what, whether it still holds, and how large it is."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated

import typer

from finc_eval.cli.options import Count, Extractor, Json, NetworkPrecisionName, SubsetSeed
from finc_eval.core.errors import FincEvalError
from finc_eval.core.progress import terminal

app = typer.Typer(
    no_args_is_help=True,
    help="The caches of embeddings: what is there, from what, is it still valid, how large. They lie in "
    "$FINC_EVAL_CACHE, or else in ~/.cache/finc-eval/embeddings.",
)

Cache = Annotated[str, typer.Argument(help="The path of a cache, or the beginning of its key.")]


@app.command()
def ls(as_json: Json = False) -> None:
    """List the caches, the latest first."""
    from finc_eval.embeddings.folder import cache_folder, entries
    from finc_eval.report.tables import print_caches

    found = entries()
    if as_json:
        print(json.dumps([dataclasses.asdict(entry) | {"path": str(entry.path)} for entry in found], indent=1))
        return
    if not found:
        print(f"{cache_folder()} holds no caches")
        return
    print_caches(found)


@app.command()
def explain(
    cache: Cache,
    samples: Annotated[
        str | None, typer.Option(help="The set to ask about; where the cached samples came from when left out.")
    ] = None,
    extractor: Extractor = None,
    n: Count = None,
    seed: SubsetSeed = 0,
    precision: NetworkPrecisionName = "float32",
) -> None:
    """Say which part of the key has changed since the cache was made: why it would not be used again."""
    from finc_eval.cli.sets import card_again
    from finc_eval.embeddings.cache import EmbeddingCache
    from finc_eval.embeddings.folder import explain as run
    from finc_eval.embeddings.folder import find
    from finc_eval.embeddings.recipe import recipe_of
    from finc_eval.extractors.catalog import load_card

    with EmbeddingCache(find(cache)) as found, terminal() as progress:
        card = load_card(extractor or card_again(found.extractor))
        lines = run(found, samples, card, recipe_of(card, precision), n=n, seed=seed, progress=progress)
        name = f"{found.path}: {found.n} samples of {found.source} by {found.extractor}"
    print(name)
    for line in lines:
        print(f"  changed: {line}")
    print("  it would be made anew" if lines else "  nothing has changed: it would be used as it is")


@app.command()
def verify(
    caches: Annotated[list[str] | None, typer.Argument(help="Paths or beginnings of keys; all when left out.")] = None,
) -> None:
    """Read every row, and check that it is what was written."""
    from finc_eval.embeddings.folder import entries, find
    from finc_eval.embeddings.folder import verify as run

    paths = [find(name) for name in caches] if caches else [e.path for e in entries() if e.state != "unfinished"]
    damaged = 0
    for path in paths:
        problem = run(path)
        damaged += problem is not None
        print(f"{path}: {problem or 'whole'}")
    if damaged:
        raise FincEvalError(f"{damaged} of {len(paths)} caches are damaged: finc-eval cache rm them, and extract again")


@app.command()
def rm(
    caches: Annotated[list[str] | None, typer.Argument(help="Paths, or beginnings of keys.")] = None,
    unfinished: Annotated[bool, typer.Option("--unfinished", help="Whatever was begun and not finished.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Everything in the folder of caches.")] = False,
) -> None:
    """Delete caches. What another process is writing stays."""
    from finc_eval.embeddings.folder import entries, entry_of, find, remove

    if sum((bool(caches), unfinished, everything)) != 1:
        raise FincEvalError("name the caches to delete, or pass --unfinished or --all, and only one of these")
    if caches:
        wanted = [entry_of(find(name)) for name in caches]
    else:
        wanted = [entry for entry in entries() if everything or entry.state == "unfinished"]
    freed: list[int] = []
    kept: list[FincEvalError] = []
    for entry in wanted:
        try:
            freed.append(remove(entry))
        except FincEvalError as error:
            kept.append(error)
    print(f"deleted {len(freed)} caches, {sum(freed) / 1e6:,.1f} MB")
    if kept:
        raise kept[0]
