"""Parts of the arithmetic of docs/scale_engines.md that no other record has.

- `scaling_ranges`: the list of shards that `merge` makes of their files, checks and reads in order, for up to as many
  shards as a set can have; no file is read.
- `scaling_stages`: what a sample costs before and after its network: listing a folder, and a sketch of embeddings.

Each row is measured in a process of its own, which reports processor time, and its largest memory beyond that of the
modules it needs.
"""

import json
import subprocess
import sys

from _record import record

MEASURED = """
import json, sys, tempfile, time
from dataclasses import replace
from pathlib import Path
import numpy as np
from PIL import Image
import finc_eval as fe
from finc_eval.samples.shards import Shard
from finc_eval.shards.merging import ShardList

def memory(what):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith(what))

def ranges(n):
    shard, files = Shard("0" * 64, None, n, n, 1, 1, 0, 1, ("finc-eval", "extract", "images/")), ShardList()
    for number in range(n):
        own = replace(shard, first=number + 1, last=number + 1, start=number, stop=number + 1)
        files.add(Path(f"/shards/images.{number + 1:07d}-of-{n}.h5"), own)
    files.check()
    for path in files:
        pass

def listing(folder):
    return fe.open_source(folder).ids

def sketching(given):
    return fe.Sketch.of(*given)

what, n = sys.argv[1], int(sys.argv[2])
with tempfile.TemporaryDirectory() as folder:
    given = {"ranges": n, "listing": folder, "sketching": None}[what]
    if what == "listing":
        for number in range(n):
            Image.fromarray(np.full((8, 8), number % 256, np.uint8)).save(f"{folder}/{number:07d}.png")
    if what == "sketching":
        rows = np.random.default_rng(0).normal(size=(n, 768)).astype(np.float32)
        given = rows, fe.Sketch.reference(rows[:2000]).feature_map
    fe.open_source  # its modules are loaded here
    Path("/proc/self/clear_refs").write_text("5")  # the largest memory is counted from here on
    before, started = memory("VmRSS"), time.process_time()
    held = {"ranges": ranges, "listing": listing, "sketching": sketching}[what](given)
    print(json.dumps([time.process_time() - started, memory("VmHWM") - before]))
"""
"""Needs Linux, which alone tells the largest memory of a part of a run."""

RANGES = (1000, 100_000, 1_000_000)

STAGES = (("listing", "list a folder", (2000, 20_000)), ("sketching", "sketch, 768 entries, r = 2000", (5000, 25_000)))


def measured(what, n):
    """Return seconds of one core, and MB."""
    run = subprocess.run([sys.executable, "-c", MEASURED, what, str(n)], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def main():
    rows = []
    for n in RANGES:
        seconds, memory = measured("ranges", n)
        rows.append({"shards": f"{n:,}", "seconds of a core": f"{seconds:.2f}", "memory, MB": f"{memory:.1f}"})
        print(rows[-1], flush=True)
    record("scaling_ranges", rows, "the list of shards alone, as merge makes and checks it of an iterator")
    rows = []
    for what, name, sizes in STAGES:
        for n in sizes:
            seconds, memory = measured(what, n)
            held = f"{memory / n * 1e6:.0f}" if what == "listing" else ""  # of a sketch, the array that it is given
            rate = f"{n / seconds:,.0f}"
            rows.append({"stage": name, "samples": f"{n:,}", "samples/s of a core": rate, "bytes a sample": held})
            print(rows[-1], flush=True)
    record("scaling_stages", rows, "each in a process of its own, one thread")


if __name__ == "__main__":
    main()
