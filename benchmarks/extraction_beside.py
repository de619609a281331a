"""CPU time of reading and embedding the same sets by this code and by another commit of it, in turns, in one run.

    git worktree add --detach ../other COMMIT
    python benchmarks/extraction_beside.py ../other

Each tree has its own process of one thread. Every piece of work runs in both, one after the other, the first one
changing in each round; the cache is a new one each time. Needs the test assets (FINC_EVAL_ASSETS).
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from statistics import median

import numpy as np

ROUNDS = 5
HERE = Path(__file__).resolve().parents[1]


def make_sets(folder):
    """Write all sets below a folder."""
    from _real import asset
    from PIL import Image

    rng = np.random.default_rng(0)
    for name, n, side in (("small", 300, 28), ("large", 20, 256)):
        (folder / name).mkdir()
        for number in range(n):
            coarse = rng.integers(0, 256, (side // 4, side // 4, 3)).astype(np.uint8)
            Image.fromarray(coarse).resize((side, side), 3).save(folder / name / f"{number:04d}.png")
    (folder / "photos").mkdir()
    with zipfile.ZipFile(asset("photos", "imagenet_500.zip")) as photos:
        for name in [name for name in photos.namelist() if name.lower().endswith((".jpg", ".jpeg"))][:20]:
            (folder / "photos" / Path(name).name).write_bytes(photos.read(name))
    np.savez(folder / "images.npz", rng.integers(0, 256, (1000, 32, 32, 3)).astype(np.uint8))
    for name in ("gen.npy", "ref.npy"):
        np.save(folder / name, rng.standard_normal((2000, 64)).astype(np.float32))
    np.savez(folder / "gen.npz", np.load(folder / "gen.npy"))
    (folder / "clips").mkdir()
    clips = asset("clips")
    for path in sorted(clips.iterdir())[:3]:
        (folder / "clips" / path.name).write_bytes(path.read_bytes())


def serve(folder):
    """Do the pieces of work that standard input names, and print the CPU seconds of each."""
    import torch

    import finc_eval as fe
    from finc_eval.samples import open_source
    from finc_eval.samples.clips import Clip

    torch.set_num_threads(1)
    images = np.load(folder / "images.npz")["arr_0"]
    fd = fe.metrics if callable(getattr(fe, "metrics", None)) else fe.evaluate  # the name now, and before

    def embed(source, extractor):
        return lambda: fe.extract(source, extractor, run=fe.Run(batch_size=50))

    works = {
        "300 PNGs of 28 px, pixels": embed(folder / "small", "pixels"),
        "20 PNGs of 256 px, EfficientNet-Lite0": embed(folder / "large", "efficientnet-lite0"),
        "20 photographs (JPEG), EfficientNet-Lite0": embed(folder / "photos", "efficientnet-lite0"),
        "20 photographs, decoded": lambda: sum(1 for _ in open_source(folder / "photos").samples()),
        "array of 1 000 images, pixels": embed(images, "pixels"),
        "npz of 1 000 images, pixels": embed(folder / "images.npz", "pixels"),
        "npy of 2 000 embeddings, FD": lambda: fd(folder / "gen.npy", folder / "ref.npy", ["fd"]),
        "npz of 2 000 embeddings, FD": lambda: fd(folder / "gen.npz", folder / "ref.npy", ["fd"]),
        "3 clips, 16 frames each, decoded": lambda: sum(
            1 for _ in open_source(folder / "clips", clip=Clip(frames=16, stride=1, windows=1, short="loop")).samples()
        ),
    }
    print(json.dumps([*works]), flush=True)
    for line in sys.stdin:
        with tempfile.TemporaryDirectory() as cache:
            os.environ["FINC_EVAL_CACHE"] = cache
            started = time.process_time()
            works[line.strip()]()
            print(time.process_time() - started, flush=True)


def started(tree, folder):
    """Start the process of one tree."""
    command = [sys.executable, __file__, "serve", str(folder)]
    environment = os.environ | {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder
    )


def seconds(process, work):
    process.stdin.write(f"{work}\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def row(work, pairs):
    ratios = sorted(now / before for before, now in pairs)
    return {
        "work": work,
        "CPU s before": f"{median(before for before, _ in pairs):.3f}",
        "CPU s now": f"{median(now for _, now in pairs):.3f}",
        "ratio": f"{median(ratios):.3f}",
        "range": f"{ratios[0]:.3f} to {ratios[-1]:.3f}",
    }


def main(other):
    from _record import record

    commit = subprocess.run(["git", "-C", other, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    with tempfile.TemporaryDirectory() as name:
        make_sets(Path(name))
        trees = [started(Path(tree).resolve(), name) for tree in (other, HERE)]
        spent = {work: [] for tree in trees for work in json.loads(tree.stdout.readline())}
        for turn in range(ROUNDS + 1):
            for work in spent:
                order = (0, 1) if turn % 2 else (1, 0)
                both = {tree: seconds(trees[tree], work) for tree in order}
                if turn:  # what is first in a process takes longer
                    spent[work].append((both[0], both[1]))
                print(turn, work, f"{both[1] / both[0]:.3f}", flush=True)
        for tree in trees:
            tree.stdin.close()
            tree.wait()
    record(
        "extraction_beside",
        [row(work, pairs) for work, pairs in spent.items()],
        f"before: {commit.stdout.strip()}; medians of {ROUNDS} turns, one thread",
    )


if __name__ == "__main__":
    serve(Path(sys.argv[2])) if sys.argv[1] == "serve" else main(sys.argv[1])
