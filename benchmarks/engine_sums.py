"""Measure what a worker of a data engine costs: it makes a sketch of vectors in files, and states move and add up.

- `vectors_in_files`: a column of 10 000 000 vectors of 64 entries in Parquet or Lance files, read in batches and added
  to a `SketchSum`. The process reports its time, and its largest memory beyond that of the modules it needs.
- `states`: seconds to add, pickle and combine states, and their bytes.

`--files FOLDER` is where 2.6 GB of vectors are made, and kept for the next run; `--n` for fewer. Needs Linux,
which tells the largest memory.
"""

import argparse
import json
import pickle
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _record import record

import finc_eval as fe

DIM, FREQUENCIES, ROWS_A_FILE = 64, 100, 1_000_000

MEASURED = """
import json, sys, time
from pathlib import Path
import numpy as np
import pyarrow.dataset
import finc_eval as fe

def memory(what):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith(what))

form, folder, frequencies = sys.argv[1], sys.argv[2], int(sys.argv[3])
sums = fe.SketchSum(reference=np.random.default_rng(0).normal(size=(2000, 64)).astype("f4"), features=frequencies)
if form == "Lance":
    import lance
    files, ahead = lance.dataset(folder), {"batch_readahead": 1, "fragment_readahead": 1}
else:
    files, ahead = pyarrow.dataset.dataset(folder), {"fragment_readahead": 0}
fe.Sketch, fe.EmbeddingSet
Path("/proc/self/clear_refs").write_text("5")  # the largest memory is counted from here on
before, started, state = memory("VmRSS"), time.process_time(), sums.zero()
for batch in files.to_batches(columns=["id", "embedding"], batch_size=8192, **ahead):
    state = sums.add(state, batch["embedding"], ids=batch["id"])
sketch = sums.finish(state)
print(json.dumps([sketch.n, time.process_time() - started, memory("VmHWM") - before]))
"""


def batches(n):
    """Yield n vectors with ids, a file at a time."""
    rng = np.random.default_rng(0)
    for start in range(0, n, ROWS_A_FILE):
        count = min(ROWS_A_FILE, n - start)
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(count * DIM, np.float32)), DIM)
        yield pa.table({"id": [f"{row:09d}.png" for row in range(start, start + count)], "embedding": vectors})


def write(form, folder, n):
    """Write n vectors as Parquet or Lance files."""
    for number, table in enumerate(batches(n)):
        if form == "Parquet":
            folder.mkdir(exist_ok=True)
            pq.write_table(table, folder / f"{number:03d}.parquet", row_group_size=65_536)
        else:
            import lance

            lance.write_dataset(table, folder, mode="append" if number else "create")


def states():
    """Yield a row of what states cost for each number of samples."""
    for frequencies, n in ((2000, 200), (2000, 4000), (200, 4000)):
        rows = np.random.default_rng(0).normal(size=(n, 768)).astype(np.float32)
        sums = fe.SketchSum(reference=rows[:2000], features=frequencies)
        started, state = time.process_time(), sums.zero()
        for start in range(0, n, 500):
            state = sums.add(state, rows[start : start + 500])
        adding, started = time.process_time() - started, time.process_time()
        pickled = pickle.dumps(state)
        again = pickle.loads(pickled)
        moving, started = time.process_time() - started, time.process_time()
        sums.combine(state, again)
        yield {
            "frequencies": f"{frequencies:,}",
            "samples": f"{n:,}",
            "samples/s of a core": f"{n / adding:,.0f}",
            "bytes of a state, MB": f"{len(pickled) / 1e6:.1f}",
            "pickle and back, s": f"{moving:.2f}",
            "combine two, s": f"{time.process_time() - started:.2f}",
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=10_000_000)
    parser.add_argument("--files", type=Path)
    asked = parser.parse_args()
    rows = [*states()]
    record("states", rows, "embeddings of 768 entries, float64, batches of 500, one thread")
    rows = []
    for form in ("Parquet", "Lance"):
        with nullcontext(asked.files) if asked.files else tempfile.TemporaryDirectory() as folder:
            if not Path(folder, form).exists():
                write(form, Path(folder, form), asked.n)
            call = [sys.executable, "-c", MEASURED, form, f"{folder}/{form}", str(FREQUENCIES)]
            n, seconds, memory = json.loads(subprocess.run(call, capture_output=True, text=True, check=True).stdout)
        rate = f"{n / seconds:,.0f}"
        rows.append({"files": form, "vectors": f"{n:,}", "vectors/s of a core": rate, "memory, MB": f"{memory:,.0f}"})
        print(rows[-1], flush=True)
        record("vectors_in_files", rows, f"{DIM} entries, {FREQUENCIES} frequencies, float64, ids, one thread")


if __name__ == "__main__":
    main()
