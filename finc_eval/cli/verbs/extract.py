"""`finc-eval extract`: embed a set of samples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import finc_eval as fe
from finc_eval.cli.launch import describe, launched
from finc_eval.cli.options import Json, Work, takes, works
from finc_eval.cli.output import Force, check_suffix, print_json
from finc_eval.cli.sets import check_given
from finc_eval.core.words import counted
from finc_eval.extractors.catalog import DEFAULT_EXTRACTOR
from finc_eval.extractors.settings import Extraction
from finc_eval.samples.files import in_short

MAX_FAILURES_SHOWN = 10


@takes(Extraction, "extraction")
@works
def extract(
    samples: Annotated[
        str,
        typer.Argument(
            metavar="SAMPLES",
            help="Images: a folder, .zip, .npz, .tar shards, or a folder that Hugging Face datasets saved. Videos, for "
            "an extractor of clips: a folder or .zip of them, or of folders of frames. Or the URL of any of these "
            "(s3://, gs://, https:// …).",
        ),
    ],
    extraction: Extraction,
    work: Work,
    out: Annotated[Path | None, typer.Option(help="Path or URL of the .h5 file; default: one in ~/.cache.")] = None,
    metadata: Annotated[
        Path | None,
        typer.Option(
            help="Table to keep with the samples (.csv, .jsonl or .parquet): labels, prompts, groups, anything. Its "
            "column file_name or id names the samples, or the video of all its windows. Samples that are embedded "
            "already get its columns without being embedded again."
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Embed a set of samples, once. Killed or interrupted, the same command goes on where it stopped.

    Several processes share the work by --shard 1/8, --shard 2/8 …, or by --shard rank if torchrun starts them: torchrun
    --nproc-per-node 8 -m finc_eval extract … --shard rank --out set.h5. Then finc-eval extract merge joins what they
    made.
    """
    extraction, work = launched(extraction, work, out)
    check_given([samples, metadata], extraction.extractor)
    if out is not None:
        check_suffix(out, ".h5")
    with work.running() as run:
        cache = fe.extract(
            samples,
            extraction.extractor or DEFAULT_EXTRACTOR,
            out,
            n=extraction.n,
            seed=extraction.seed,
            strict=extraction.strict,
            precision=extraction.precision,
            fps=extraction.fps,
            seconds=extraction.seconds,
            metadata=metadata,
            shard=extraction.shard,
            **extraction.reading.choices,
            force=force,
            run=run,
        )
    if as_json:
        print_json(cache.to_dict())
        return
    print(f"{cache.path}: {counted(cache.n, 'embedding')} of dimension {cache.dim} by {cache.extractor}")
    if cache.shard is not None:
        print(f"  {describe(cache.shard)}")
    if cache.columns:
        print(f"  metadata: {', '.join(cache.columns)}")
    for name, reason in cache.failures[:MAX_FAILURES_SHOWN]:
        print(f"  unreadable: {name}: {reason}")
    if len(cache.failures) > MAX_FAILURES_SHOWN:
        print(f"  … and {len(cache.failures) - MAX_FAILURES_SHOWN} more unreadable")
    if cache.ignored:
        print("  ignored, not samples: " + in_short(cache.ignored))
