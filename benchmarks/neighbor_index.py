"""Near-duplicate search in large sets: the inverted file against all pairs, in time, memory and recall.

Generated unit embeddings around 2 000 centers; one in a hundred of the queries is a near-copy of a sample of the base.
Exact search is timed on a part of the queries and extrapolated, as all of its pairs take equally long. Seconds are of
the processor, all threads together, so that they do not depend on what else runs.

    python benchmarks/neighbor_index.py [n] [d]      default: 1 000 000 × 512, ten minutes of one core
"""

import json
import sys
import time
from pathlib import Path

import faiss
import numpy as np
from _record import record

from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.embeddings.search import neighbors as inverted_file
from finc_eval.embeddings.search.neighbors import nearest

CENTERS, COPIES, K, EXACT_QUERIES = 2000, 0.01, 1, 4096


def unit(rows):
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def made(n, dim, seed):
    """Return samples around centers, in few steps of memory."""
    centers = np.random.default_rng(0).standard_normal((CENTERS, dim), np.float32)
    rng, parts = np.random.default_rng(seed), []
    for start in range(0, n, 1 << 16):
        size = min(1 << 16, n - start)
        parts.append(unit(centers[rng.integers(0, CENTERS, size)] + rng.standard_normal((size, dim), np.float32)))
    return np.concatenate(parts)


def peak_memory():
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


def main(n, dim):
    base, queries = made(n, dim, 1), made(n, dim, 2)
    rng = np.random.default_rng(3)
    copied = rng.choice(n, int(COPIES * n), replace=False)
    sources = rng.choice(n, len(copied), replace=False)
    noise = rng.standard_normal((len(copied), dim), np.float32) / np.sqrt(dim)
    queries[copied] = unit(base[sources] + 0.2 * noise.astype(np.float32))
    x, y = ArrayEmbeddings(queries), ArrayEmbeddings(base)
    start = time.process_time()
    few = nearest(queries[:EXACT_QUERIES], y, K)
    exact = (time.process_time() - start) * n / min(EXACT_QUERIES, n)
    inverted_file.EXACT_PAIRS = 0
    start = time.process_time()
    found = nearest(x, y, K, index="auto")
    seconds = time.process_time() - start
    same = found.indices[: len(few.indices)] == few.indices
    row = {
        "n = m": n,
        "d": dim,
        "exact, s (extrapolated)": round(exact, 1),
        "inverted file, s": round(seconds, 1),
        "times as fast": round(exact / seconds, 1),
        "recall, as told": round(found.recall, 3),
        "recall": round(float(same.mean()), 3),
        "copies found": round(float((found.indices[copied, 0] == sources).mean()), 4),
        "peak GB": round(peak_memory() / 1e9, 2),
    }
    print(json.dumps(row), flush=True)
    record(
        "neighbor_index",
        [row],
        notes=f"{faiss.omp_get_max_threads()} thread(s), base and queries in memory; seconds of the processor",
    )


if __name__ == "__main__":
    main(*([int(argument) for argument in sys.argv[1:]] or [1_000_000, 512]))
