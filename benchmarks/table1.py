"""The FINC paper's Table 1 on this machine: FINC against KEN, Rarity and FLD, each at the sizes it can bear.

Rarity and FLD are followed by spectral clustering of the samples they find most novel, as in the paper, which says
neither threshold nor number of clusters: both are ours, a tenth, and ten. Embeddings are in memory, d = 768,
r = 2000. The last columns are the paper's seconds on 48 cores. `table1.py 5000` stops at 5 000 + 5 000.
"""

import sys
import time
from functools import partial

import numpy as np
import torch
from _record import record

import finc_eval as fe
from finc_eval.baselines.fld import sample_likelihoods
from finc_eval.baselines.ken import ken_spectrum
from finc_eval.baselines.rarity import rarity
from finc_eval.baselines.spectral_clustering import spectral_clustering
from finc_eval.kernels import gaussian_kernel

DIM, KINDS, NOVEL, CLUSTERS = 768, 20, 5, 10
SIZES = (1000, 2500, 5000, 10_000, 25_000)
SHARE = 0.1
LARGEST = {
    "FINC": 25_000,
    "KEN, Cholesky": 5000,
    "KEN, eigen": 2500,
    "Rarity + clustering": 25_000,
    "FLD + clustering": 25_000,
}
PAPER = {
    "FINC": (13.1, 31.6, 62.8, 125.5, 311.2),
    "KEN, Cholesky": (2.6, 16.1, 61.7, 266, 2045),
    "KEN, eigen": (3.5, 26.3, 122.8, 1130, 14354),
    "Rarity + clustering": (1.4, 9.1, 37.6, 153.5, 1030),
    "FLD + clustering": (2.7, 14.3, 59.4, 224.5, 1408),
}


def sets(n):
    """A generated set with five kinds that the reference lacks."""
    rng = np.random.default_rng(0)
    centres = 4 * rng.normal(size=(KINDS + NOVEL, DIM)) / 4
    gen = centres[rng.integers(0, KINDS + NOVEL, n)] + rng.normal(size=(n, DIM))
    ref = centres[rng.integers(0, KINDS, n)] + rng.normal(size=(n, DIM))
    return gen.astype(np.float32), ref.astype(np.float32)


def finc(gen, ref):
    fe.compare(gen, ref)


def ken(form, gen, ref):
    x, y = torch.from_numpy(gen), torch.from_numpy(ref)
    ken_spectrum(x, y, partial(gaussian_kernel, sigma=20.0), form=form)


def rarity_clusters(gen, ref):
    spectral_clustering(gen, rarity(gen, ref).novel(share=SHARE), CLUSTERS)


def fld_clusters(gen, ref):
    half = len(ref) // 2
    spectral_clustering(gen, sample_likelihoods(gen, ref[:half], ref[half:]).novel(share=SHARE), CLUSTERS)


METHODS = {
    "FINC": finc,
    "KEN, Cholesky": partial(ken, "cholesky"),
    "KEN, eigen": partial(ken, "eigen"),
    "Rarity + clustering": rarity_clusters,
    "FLD + clustering": fld_clusters,
}


def main():
    largest = int(sys.argv[1]) if len(sys.argv) > 1 else max(SIZES)
    for method in METHODS.values():  # what is loaded and compiled at the first call is no part of a table
        method(*sets(500))
    rows = []
    for place, n in enumerate(size for size in SIZES if size <= largest):
        gen, ref = sets(n)
        row = {"n = m": f"{n:,}"}
        for name, method in METHODS.items():
            if n <= LARGEST[name]:
                started = time.perf_counter()
                method(gen, ref)
                row[name] = f"{time.perf_counter() - started:.1f}"
            else:
                row[name] = ""
        row |= {f"paper: {name}": PAPER[name][place] for name in METHODS}
        rows.append(row)
        print(row, flush=True)
    record("table1", rows, f"seconds; d = {DIM}, r = 2000, exact KEN in float64")


if __name__ == "__main__":
    main()
