"""Independent or orthogonal frequencies, and how many? The error of the kernel on real embeddings.

The table has the root mean square and the largest error over all pairs of 1 000 samples, with σ = 0.5 and 1 × the
median distance, and the error of the ten leading eigenvalues of a difference. The script also prints what
`features="auto"` chooses, whose bound is 0.01.
"""

from functools import partial

import numpy as np
import torch
from _real import tiny_imagenet, ucf101
from _record import record
from precision import digits, halves

import finc_eval as fe
from finc_eval.baselines.ken import ken
from finc_eval.feature_maps.approximation import AUTO_BOUND, AUTO_FEATURES, approximation_error
from finc_eval.numerics.eigen import top_eigenpairs
from finc_eval.numerics.kernels import gaussian_kernel, median_distance

NUMBERS = (500, 1000, 2000, 4000)
SEEDS = 5
PAIRS_OF = 1000


def eigenvalue_error(gen, ref, phi, exact):
    """Return the mean relative error of the ten leading eigenvalues of C_gen − C_ref."""
    first, second = (phi(rows) for rows in (gen, ref))
    found, _ = top_eigenpairs(first.T @ first / len(gen) - second.T @ second / len(ref), len(exact))
    return float((found / exact - 1).abs().mean())


def main():
    rows = []
    for name, load in {"digits": digits, "UCF101, VGG-16": ucf101, "photographs, EfficientNet": tiny_imagenet}.items():
        data = load()
        if data is None:
            continue
        gen, ref = (torch.from_numpy(part[:PAIRS_OF]) for part in halves(*data, 0))
        median, center = median_distance(ref), ref.mean(0)
        for factor in (0.5, 1.0):
            sigma = factor * median
            exact = ken(gen, ref, partial(gaussian_kernel, sigma=sigma), count=10).eigenvalues.float()
            for features in NUMBERS:
                row = {"set": name, "sigma / median": factor, "r": features}
                for orthogonal, label in ((False, "iid"), (True, "orthogonal")):
                    maps = [
                        fe.RandomFourierFeatures(
                            ref.shape[1], features, sigma=sigma, seed=seed, orthogonal=orthogonal, center=center
                        )
                        for seed in range(SEEDS)
                    ]
                    errors = [approximation_error(phi, ref) for phi in maps]
                    row[f"rms error, {label}"] = round(float(np.mean([error.rms for error in errors])), 4)
                    row[f"largest, {label}"] = round(float(np.mean([error.max for error in errors])), 3)
                    relative = np.mean([eigenvalue_error(gen, ref, phi, exact) for phi in maps])
                    row[f"eigenvalues, {label}"] = f"{100 * relative:.1f} %"
                rows.append(row)
                print(rows[-1], flush=True)
            chosen = fe.Sketch.reference(ref, features="auto", sigma=sigma).feature_map
            print(f"auto (rms ≤ {AUTO_BOUND}, of {AUTO_FEATURES}): r = {chosen.features}")
    record("features", rows, notes=f"mean of {SEEDS} seeds; {PAIRS_OF} + {PAIRS_OF} samples at most")


if __name__ == "__main__":
    main()
