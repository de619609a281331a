"""Time of a whole comparison against n, beside the published algorithm in the same run.

Generated embeddings: a mixture of 20 Gaussian clusters, 5 of them only in the generated set, d = 768, r = 2 000.
`compare` does all it does for a user: bandwidth, two sketches with two folds and the Fréchet moments, six
decompositions, rotations, a scoring pass. The published algorithm (FINC paper, Algorithm 1: one outer product a sample,
summed by batch, then the full decomposition of C_X − C_Y) gives eigenvectors only; it runs at the sizes it can bear.
"""

import time

import numpy as np
import torch
from _record import record

import finc_eval as fe

SIZES = (500, 1000, 2500, 5000, 10_000, 25_000, 50_000)
BEARABLE = 1000
DIM, FEATURES, OUTER_BATCH = 768, 2000, 16


def mixture(n, clusters, seed):
    """Embeddings (n, 768): clusters of unit spread around centres of norm 28."""
    centres = np.random.default_rng(0).standard_normal((20, DIM), np.float32)
    rng = np.random.default_rng(seed)
    return centres[rng.integers(0, clusters, n)] + rng.standard_normal((n, DIM), np.float32) / 2


def published(x, y, phi):
    """Algorithm 1 of the paper on batches, and the decomposition of the difference."""

    def covariance(rows):
        features = phi(rows)
        total = torch.zeros(phi.size, phi.size)
        for batch in features.split(OUTER_BATCH):
            total += torch.bmm(batch[:, :, None], batch[:, None, :]).sum(0)
        return total / len(rows)

    return torch.linalg.eigh(covariance(x) - covariance(y))


def main():
    fe.compare(gen=mixture(100, 20, 1), ref=mixture(100, 15, 2), features=100)  # the first call loads libraries
    rows = []
    for n in SIZES:
        gen, ref = mixture(n, 20, 1), mixture(n, 15, 2)
        stages = {}
        last = ["bandwidth", time.perf_counter()]

        def stage(name, done, total, stages=stages, last=last):
            now = time.perf_counter()
            stages[last[0]] = stages.get(last[0], 0.0) + now - last[1]
            last[:] = [name, now]

        start = time.perf_counter()
        result = fe.compare(gen=gen, ref=ref, features=FEATURES, device="cpu", progress=stage)
        ours = time.perf_counter() - start
        theirs = None
        if n <= BEARABLE:
            start = time.perf_counter()
            published(gen, ref, result.feature_map)
            theirs = time.perf_counter() - start
        rows.append(
            {
                "n = m": n,
                "compare, s": round(ours, 1),
                "sketches, s": round(sum(t for name, t in stages.items() if name.startswith("sketch")), 1),
                "decompose, s": round(stages["decompose"], 1),
                "score, s": round(sum(t for name, t in stages.items() if name.startswith("score")), 1),
                "published, s": "" if theirs is None else round(theirs, 1),
                "ratio": "" if theirs is None else round(theirs / ours, 1),
            }
        )
        print(rows[-1], flush=True)
    record("finc_scaling", rows, notes="d = 768, r = 2000, float32, embeddings in memory")


if __name__ == "__main__":
    main()
