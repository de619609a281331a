"""Rate at which a processor core decodes and resizes images, and the number of cores that keep a fast GPU busy.

Photographs, enlarged to three sizes and stored as JPEG of quality 90, are decoded and resized as the card of DINOv2
says. Rates are of seconds of the processor, so that they do not depend on what else runs. A GPU of `GPU_RATE` images
a second is an assumption, from which the cores and the bytes to read follow by division.

    python benchmarks/image_decoding.py      half a minute of one core; needs the test assets (FINC_EVAL_ASSETS)
"""

import tempfile
import time
import zipfile
from math import ceil
from pathlib import Path

from _real import asset
from _record import record
from PIL import Image

from finc_eval.embeddings.job import decode_batches
from finc_eval.extractors.catalog import load_card
from finc_eval.samples.opening import open_source

SIZES, COUNT, ROUNDS = ((224, 224), (500, 375), (1024, 1024)), 200, 3
GPU_RATE = 2000
"""Images a second that DINOv2 ViT-L/14 is supposed to embed on a fast GPU."""


def stored(folder, size):
    """Store some photographs in a size, and return their bytes."""
    with zipfile.ZipFile(asset("photos", "imagenet_500.zip")) as archive:
        for name in sorted(name for name in archive.namelist() if Path(name).suffix)[:COUNT]:
            with archive.open(name) as file, Image.open(file) as image:
                resized = image.convert("RGB").resize(size, Image.Resampling.LANCZOS)
            resized.save(folder / f"{Path(name).stem}.jpg", quality=90)
    return sum(path.stat().st_size for path in folder.iterdir())


def rate(folder):
    """Return images per second of the processor."""
    how, source, best = load_card("dinov2-vitl14").preprocessing, open_source(folder), float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        done = sum(len(batch.ids) for batch in decode_batches(source, 0, 50, how, workers=1))
        best = min(best, (time.process_time() - start) / done)
    return 1 / best


def main():
    rows = []
    for width, height in SIZES:
        with tempfile.TemporaryDirectory() as name:
            size = stored(Path(name), (width, height)) / COUNT
            images = rate(Path(name))
        rows.append(
            {
                "JPEG, pixels": f"{width} × {height}",
                "kB an image": f"{size / 1e3:.0f}",
                "images/s of a core": f"{images:.0f}",
                f"cores for {GPU_RATE}/s": ceil(GPU_RATE / images),
                f"MB/s to read for {GPU_RATE}/s": f"{GPU_RATE * size / 1e6:.0f}",
            }
        )
        print(rows[-1], flush=True)
    record("image_decoding", rows, notes=f"{COUNT} photographs, quality 90, to 224 × 224, the best of {ROUNDS} rounds")


if __name__ == "__main__":
    main()
