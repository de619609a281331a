"""Time and memory of `extract` on very many small files in one folder, and of reading a large file of embeddings.

Each step runs in a process of its own, which reports its largest memory. The pictures are 1 000 different ones of 8 x 8
pixels, each under as many names as are needed. Needs Linux, 11 GB of disk and as many names for files.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from _record import record
from PIL import Image

import finc_eval  # noqa: F401  its code is part of the record

SIZES = (10_000, 100_000, 1_000_000)
PICTURES = 1000
STEPS = {
    "extract": 'fe.extract("set", "pixels", "set.h5", run=run).close()',
    "again": 'fe.extract("set", "pixels", "set.h5", run=run).close()',
    "verify": 'assert fe.EmbeddingCache("set.h5").damage() is None',
    "sketch": 'fe.Sketch.reference("set.h5", features=100, sigma=5.0, run=run)',
}
PROCESS = """
import sys, time
from pathlib import Path
import finc_eval as fe
run, begun = fe.Run(progress=lambda *_: None), time.perf_counter()
{step}
lines = Path("/proc/self/status").read_text().splitlines()
peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
print(time.perf_counter() - begun, peak / 1000)
"""


def make(folder, n):
    """Fill a folder with n small PNG files."""
    rng = np.random.default_rng(0)
    (folder / "pictures").mkdir()
    (folder / "set").mkdir()
    for number in range(PICTURES):
        Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(folder / "pictures" / f"{number}.png")
    for number in range(n):
        os.link(folder / "pictures" / f"{number % PICTURES}.png", folder / "set" / f"{number:07}.png")


def main():
    rows = []
    for n in map(int, sys.argv[1:] or SIZES):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            make(folder, n)
            row = {"files": f"{n:,}"}
            for step, code in STEPS.items():
                words = [sys.executable, "-c", PROCESS.format(step=code)]
                done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
                seconds, peak = map(float, done.stdout.split())
                row |= {f"{step}, s": f"{seconds:.1f}", f"{step}, peak MB": f"{peak:.0f}"}
            row["file of embeddings, GB"] = f"{(folder / 'set.h5').stat().st_size / 1e9:.2f}"
            rows.append(row)
            print(row, flush=True)
    record("many_files", rows, "2352 entries a sample; one process at a time, on a machine that others use, too")


if __name__ == "__main__":
    main()
