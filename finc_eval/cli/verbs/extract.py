"""The verb that embeds: extract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finc_eval.cli.options import Count, Device, Extractor, Json, NetworkPrecisionName, Strict, SubsetSeed
from finc_eval.core.progress import terminal
from finc_eval.extractors.catalog import DEFAULT_EXTRACTOR

if TYPE_CHECKING:
    from finc_eval.embeddings.cache import EmbeddingCache


def extract(
    samples: Annotated[
        str,
        typer.Argument(
            help="Images: a folder, .zip, .npz, .tar shards, or a folder that Hugging Face datasets saved. Videos, for "
            "an extractor of clips: a folder or .zip of them, or of folders of frames."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The .h5 file to write; by default one in ~/.cache/finc-eval.")
    ] = None,
    extractor: Extractor = None,
    n: Count = None,
    seed: SubsetSeed = 0,
    strict: Strict = False,
    batch_size: Annotated[
        int | None,
        typer.Option(help="Samples per pass through the network; halved by itself where memory does not suffice."),
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Threads that decode; as many as cores when left out.")] = None,
    precision: NetworkPrecisionName = "float32",
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Embed a set of samples, once. Killed or interrupted, the same command goes on where it stopped."""
    from finc_eval.embeddings.extract import WORKERS
    from finc_eval.embeddings.extract import extract as run

    with terminal() as progress:
        cache = run(
            samples,
            extractor or DEFAULT_EXTRACTOR,
            out,
            n=n,
            seed=seed,
            strict=strict,
            batch_size=batch_size,
            workers=WORKERS if workers is None else workers,
            precision=precision,
            device=device,
            progress=progress,
        )
    record = {
        "path": str(cache.path),
        "n": cache.n,
        "dim": cache.dim,
        "extractor": cache.extractor,
        "outputs": list(cache.outputs),
        "key": cache.key,
        "unreadable": dict(cache.failures),
        "ignored": cache.ignored,
    }
    if as_json:
        print(json.dumps(record, indent=1))
        return
    print(f"{cache.path}: {cache.n} embeddings of dimension {cache.dim} by {cache.extractor}")
    _note_losses(cache)


def _note_losses(cache: EmbeddingCache) -> None:
    for name, reason in cache.failures[:10]:
        print(f"  unreadable: {name}: {reason}")
    if len(cache.failures) > 10:
        print(f"  … and {len(cache.failures) - 10} more unreadable samples")
    if cache.ignored:
        print("  ignored, no samples: " + ", ".join(f"{count} × {suffix}" for suffix, count in cache.ignored.items()))
