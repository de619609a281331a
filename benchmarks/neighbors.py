"""Precision, recall, density, coverage and Rarity: time and memory against n, and those of the published ways.

Generated embeddings of 2 048 entries: 20 Gaussian clusters, 5 of them in the generated set only. Each run is a process
of its own, so that its peak memory can be measured; all read HDF5 caches. `prdc` is the package, which holds whole
distance matrices. `Rarity, n × n` is the published way of the Rarity score, written plainly: the distances within the
reference sorted in full, both matrices in float64, a loop over the samples. faiss (IndexFlatL2, one search of the
reference in itself) is the alternative to the blocked product. It finds neighbors, but not the balls that contain a
point, so PRDC would need two such searches and the product between the sets as well. All take several turns, and the
best time of each counts. Sizes that only finc-eval can handle run once.

    python benchmarks/neighbors.py [n …]        sizes; default: 10 000
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _record import record

import finc_eval as fe
from finc_eval.embeddings.recipe import Identity, recipe_of
from finc_eval.embeddings.writer import CacheWriter
from finc_eval.extractors.catalog import load_card
from finc_eval.samples.encoding import Encoding
from finc_eval.samples.source import Manifest

DIM, CHUNK = 2048, 5000
ENCODED = Encoding("array", "RGB", 32, 32, False)
RECIPE = recipe_of(load_card("pixels"), "float32")
OURS = ("PRDC", "Rarity")
OTHERS = {"prdc": "PRDC", "Rarity, n × n": "Rarity"}
"""The metric of ours that each alternative computes."""
OTHERS_UP_TO, ROUNDS = 10_000, 3
README = "published for N(0, I), 10 000 × 1 000, k = 5: P .477, R .471, D 1.056, C .974"


def write_cache(path, n, dim, clusters, seed):
    """Write clusters of spread 0.5 around centers of norm about √dim."""
    centers, rng = np.random.default_rng(0).standard_normal((20, dim), np.float32), np.random.default_rng(seed)
    identity = Identity("array", Manifest("folder", n, f"{seed:064}", {".png": n}), "pixels", RECIPE)
    ids = [f"{seed}/{i:06d}.png" for i in range(n)]
    with CacheWriter(path, identity.key, ids, {"embeddings": dim}, CHUNK) as writer:
        for start in range(0, n, CHUNK):
            size = min(CHUNK, n - start)
            rows = centers[rng.integers(0, clusters, size)] + rng.standard_normal((size, dim), np.float32) / 2
            writer.write(rows, np.arange(start, start + size, dtype=np.uint64), [None] * size, [ENCODED] * size)
        writer.finish(identity)


def peak_memory():
    """Return the peak resident bytes of this program; rusage would count what its parent held at the fork."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


def one(method, gen, ref):
    """Run one method in this process and print its figures as JSON."""
    start = time.perf_counter()
    found = METHODS[method](gen, ref)
    print(json.dumps({"seconds": time.perf_counter() - start, "peak": peak_memory(), "found": found}))


def prdc_of_ours(gen, ref):
    from finc_eval.measures.precision_recall import precision_recall

    found = precision_recall(gen, ref)
    return [found.precision, found.recall, found.density, found.coverage]


def rarity_of_ours(gen, ref):
    from finc_eval.baselines.rarity import rarity

    found = rarity(gen, ref)
    return [found.outside, float(np.nansum(found.scores))]


def prdc_of_theirs(gen, ref):
    from prdc import compute_prdc

    found = compute_prdc(fe.load(ref)[:], fe.load(gen)[:], 5)
    return [float(found[metric]) for metric in ("precision", "recall", "density", "coverage")]


def rarity_n_by_n(gen, ref, k=3):
    from sklearn.metrics import pairwise_distances

    x, y = (fe.load(path)[:].astype(np.float64) for path in (gen, ref))
    radii = np.sort(pairwise_distances(y, y), axis=1)[:, k]
    between = pairwise_distances(x, y)
    scores = np.zeros(len(x))
    for row, distances in enumerate(between):
        inside = distances < radii
        if inside.any():
            scores[row] = radii[inside].min()
    return [int((scores == 0).sum()), float(scores.sum())]


def faiss_search(gen, ref):
    import faiss

    rows = fe.load(ref)[:]
    index = faiss.IndexFlatL2(rows.shape[1])
    index.add(rows)
    distances, _ = index.search(rows, 6)
    return [float(np.sqrt(distances[:, 5].clip(0)).mean())]


METHODS = {
    "PRDC": prdc_of_ours,
    "Rarity": rarity_of_ours,
    "prdc": prdc_of_theirs,
    "Rarity, n × n": rarity_n_by_n,
    "faiss": faiss_search,
}


def measured(folder, n, dim=DIM, clusters=(20, 15)):
    paths = [str(Path(folder) / f"{name}-{n}-{dim}.h5") for name in ("gen", "ref")]
    for path, kinds, seed in zip(paths, clusters, (1, 2), strict=True):
        write_cache(Path(path), n, dim, kinds, seed)
    small = n <= OTHERS_UP_TO
    figures = {}
    for _ in range(ROUNDS if small else 1):
        for method in METHODS if small else OURS:
            child = subprocess.run([sys.executable, __file__, method, *paths], capture_output=True, text=True)
            if child.returncode:
                raise SystemExit(child.stderr)
            found = json.loads(child.stdout.splitlines()[-1])
            print(n, method, found, flush=True)
            figures[method] = min(figures.get(method, found), found, key=lambda one: one["seconds"])
    row = {"d": dim, "n = m": n}
    for method in METHODS:
        row[f"{method}, s"] = round(figures[method]["seconds"], 1) if method in figures else ""
        row[f"{method}, peak GB"] = round(figures[method]["peak"] / 1e9, 2) if method in figures else ""
    for other, mine in OTHERS.items():
        row[f"{other} / {mine}"] = ""
        if small:  # they compare distances in float32: single samples may differ
            np.testing.assert_allclose(figures[mine]["found"], figures[other]["found"], rtol=1e-3)
            row[f"{other} / {mine}"] = round(figures[other]["seconds"] / figures[mine]["seconds"], 1)
    return row


def published():
    """Repeat the experiment in the README of prdc."""
    from finc_eval.measures.precision_recall import precision_recall

    gen, ref = (np.random.default_rng(seed).standard_normal((10_000, 1000), np.float32) for seed in (0, 1))
    found = precision_recall(gen, ref)
    return ", ".join(f"{name} {getattr(found, name):.3f}" for name in ("precision", "recall", "density", "coverage"))


def main(sizes):
    rows = []
    for n in sizes:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measured(folder, n))
    record(
        "neighbors",
        rows,
        notes=f"up to n = {OTHERS_UP_TO} the best of {ROUNDS} rounds; equal results where both ran, asserted to 1e-3, "
        f"a few samples; {README}, here: {published()}",
    )


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in METHODS:
        one(*sys.argv[1:])
    else:
        main([int(n) for n in sys.argv[1:]] or [10_000])
