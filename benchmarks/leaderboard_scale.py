"""The largest board: time and memory of 100 models with 50 000 samples each, added one by one and rendered.

Models are mixtures of 30 normals in 64 dimensions, each with its own shares. *sketch*: a model comes as a sketch, of
which the 2 000 embeddings that it holds are counted. *embeddings*: all 50 000 are. Peak memory is that of the process,
with Python and its libraries (about 450 MB).

    python benchmarks/leaderboard_scale.py
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from _record import record

import finc_eval as fe

N, DIM, KINDS = 50_000, 64, 30
DISTINCT = 10
"""Sets that are made; a larger board has each of them several times, under other names."""

CASES = (("sketch", 10), ("sketch", 100))


def rows_of(seed):
    """Return a model's samples, or with seed 0 those of the reference; some models are farther from it than others."""
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(0).normal(0, 2, (KINDS, DIM))
    own = seed % 10 / 10
    law = (1 - own) / KINDS + own * rng.dirichlet(np.full(KINDS, 5.0))
    return (centers[rng.choice(KINDS, N, p=law)] + rng.normal(size=(N, DIM))).astype(np.float32)


def one(source, models):
    """Build a board in this process, and return its figures."""
    torch.set_num_threads(1)
    run = fe.Run("cpu")
    with tempfile.TemporaryDirectory() as folder:
        ref, adding = fe.Sketch.reference(rows_of(0), features=100), 0.0
        board = fe.Board(Path(folder) / "board")
        against = ref if source == "sketch" else rows_of(0)
        sets = [rows_of(1 + number) for number in range(min(models, DISTINCT))]
        sets = [fe.Sketch.of(rows, ref.feature_map) for rows in sets] if source == "sketch" else sets
        for number in range(models):
            model = sets[number % DISTINCT]
            start = time.perf_counter()
            board.add({f"model {number}": model}, against, run=run, metrics=("fd",))
            adding += time.perf_counter() - start
        start = time.perf_counter()
        ranked = board.leaderboard()
        ranking = time.perf_counter() - start
        page = ranked.to_html(Path(folder) / "board.html")
        files = sum(path.stat().st_size for path in board.folder.rglob("*") if path.is_file())
        return {
            "a model is": source,
            "models": models,
            "to add one, s": f"{adding / models:.2f}",
            "to rank all, s": f"{ranking:.1f}",
            "to draw the page, s": f"{time.perf_counter() - start - ranking:.1f}",
            "peak memory, MB": f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f}",
            "files of the board, MB": f"{files / 1e6:.1f}",
            "page, MB": f"{page.stat().st_size / 1e6:.1f}",
            "pairs told apart by fd": f"{ranked.criterion('fd').separable_pairs} of {models * (models - 1) // 2}",
        }


def main():
    rows = []
    for source, models in CASES:
        done = subprocess.run(
            [sys.executable, __file__, source, str(models)], capture_output=True, text=True, check=True
        )
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(rows[-1], flush=True)
    record("leaderboard_scale", rows, f"{N:,} samples a model in {DIM} dimensions, one thread")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(one(sys.argv[1], int(sys.argv[2]))))
    else:
        main()
