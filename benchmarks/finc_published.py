"""Time of FINC beside its published algorithm, in one thread, at the same frequencies: d = 256, r = 300.

    python benchmarks/finc_published.py

The published algorithm makes one outer product of (2r)² numbers for each sample, and sums them by batches: 16 is the
default of its function, and 128 of its evaluator. `finc_scaling.published` does the same, and returns eigenvectors.
`compare` adds p-values and intervals of its directions, and with kinds all that a user gets. Seconds are processor
time, the best of three.
"""

import time

import numpy as np
import torch
from _record import record
from finc_scaling import published

import finc_eval as fe

DIM, FEATURES, SIZES = 256, 300, (1000, 2000, 4000)


def seconds(function, *arguments, **named):
    """Return the processor time of a call, the best of three."""
    found = []
    for _ in range(3):
        start = time.process_time()
        function(*arguments, **named)
        found.append(time.process_time() - start)
    return min(found)


def row(n):
    """Return the times at n generated and n reference samples: of 20 clusters, and of 15 of these."""
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((20, DIM))
    gen, ref = (
        (centers[rng.integers(0, clusters, n)] + rng.standard_normal((n, DIM)) / 2).astype(np.float32)
        for clusters in (20, 15)
    )
    phi = fe.RandomFourierFeatures(DIM, FEATURES, sigma=10.0)
    rows = torch.from_numpy(gen), torch.from_numpy(ref)
    by_16, by_128 = (seconds(published, *rows, phi, batch) for batch in (16, 128))
    settings = {"features": FEATURES, "sigma": 10.0}
    directions = seconds(fe.compare, gen, ref, method=fe.Finc(clusters=False), **settings)
    whole = seconds(fe.compare, gen, ref, **settings)
    found = {
        "n = m": n,
        "published, batches of 16, s": round(by_16, 2),
        "published, batches of 128, s": round(by_128, 2),
        "directions with p-values, s": round(directions, 2),
        "with kinds, s": round(whole, 2),
        "ratio, directions": f"{by_16 / directions:.1f} to {by_128 / directions:.1f}",
        "ratio, with kinds": f"{by_16 / whole:.1f} to {by_128 / whole:.1f}",
    }
    print(found, flush=True)
    return found


def main():
    torch.set_num_threads(1)
    row(500)  # what loads on first use
    record("finc_published", [row(n) for n in SIZES], notes=f"d = {DIM}, r = {FEATURES}; processor time of one thread")


if __name__ == "__main__":
    main()
