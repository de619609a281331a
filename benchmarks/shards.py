"""Time and memory of `merge`, by the number of shards and of samples: does either grow with what is merged?

Each merge runs in a process of its own, which reports its largest memory beyond that of the modules that it needs.
"""

import os
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path

import numpy as np
from _record import record

import finc_eval as fe

MERGE = """
import time
from pathlib import Path
import h5py
import finc_eval as fe

def memory(what):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith(what))

merge = fe.merge
Path("/proc/self/clear_refs").write_text("5")  # the largest memory is counted from here on
before, started = memory("VmRSS"), time.perf_counter()
merge(sorted(Path().glob("part.*")), "whole.h5", progress=lambda *_: None).close()
print(time.perf_counter() - started, memory("VmHWM") - before)
"""
"""Needs Linux, which alone tells the largest memory of a part of a run."""

SIZES = ((10, 10), (10, 100), (10, 1000), (10, 10_000), (100, 10), (1000, 10), (10_000, 10))
"""Numbers of shards, and of samples in each."""


def main():
    pixels = (resources.files("finc_eval.extractors.cards") / "pixels.toml").read_text()
    small = pixels[: pixels.index("[golden]")].replace("[28, 28]", "[16, 16]").replace("2352", "768")
    rows = []
    for shards, each in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            Path("small.toml").write_text(small)
            images = np.random.default_rng(0).integers(0, 256, (shards * each, 8, 8), dtype=np.uint8)
            np.savez("set.npz", images)
            for number in range(1, shards + 1):
                fe.extract("set.npz", "small.toml", "part.h5", shard=f"{number}/{shards}").close()
            run = subprocess.run([sys.executable, "-c", MERGE], capture_output=True, text=True, check=True)
            seconds, memory = map(float, run.stdout.split())
            size = Path("whole.h5").stat().st_size / 1e6
            os.chdir("/")
        rows.append(
            {
                "shards": f"{shards:,}",
                "samples in each": f"{each:,}",
                "merged file, MB": f"{size:,.1f}",
                "seconds": f"{seconds:.2f}",
                "memory beyond the modules, MB": f"{memory:.0f}",
            }
        )
        print(rows[-1], flush=True)
    record("shards", rows, "embeddings of 768 entries; each merge in a process of its own")


if __name__ == "__main__":
    main()
