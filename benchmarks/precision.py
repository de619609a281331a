"""Errors of covariances, modes, shares and p-values in float32, measured against float64.

Half of a real set is compared with its other half, from which a class is left out; ten seeds draw halves and class.
The time is the one of accumulating both sketches here.
"""

import time

import numpy as np
import torch
from _real import tiny_imagenet, ucf101
from _record import record

import finc_eval as fe
from finc_eval.demo.planted import shipped_digits

PRECISIONS = ("float64", "float32")
SEEDS = range(10)
REPORTED = 10
SAME = 0.5
"""Squared overlap of directions from which on two modes are the same one."""


def digits():
    images, labels = shipped_digits()
    return images.reshape(len(images), -1).astype(np.float32) / 255, labels


def halves(embeddings, labels, seed):
    """Return two halves, the second without a class."""
    rng = np.random.default_rng(seed)
    order, absent = rng.permutation(len(labels)), rng.choice(np.unique(labels))
    first, second = order[: len(order) // 2], order[len(order) // 2 :]
    return embeddings[first], embeddings[second[labels[second] != absent]]


def compared(gen, ref, precision):
    """Return both sketches in a precision, the comparison, and the seconds that the sketches took."""
    phi = fe.Sketch.reference(ref).feature_map
    start = time.perf_counter()
    sketches = [fe.Sketch.of(rows, phi, precision=precision) for rows in (gen, ref)]
    seconds = time.perf_counter() - start
    return sketches, fe.compare(gen, ref, modes=REPORTED, method=fe.Finc(), precision=precision), seconds


def against(exact, other):
    """Return the figures of a comparison in another precision than float64."""
    overlap = np.array(
        [[float(a.direction @ b.direction) ** 2 for b in other[1].directions] for a in exact[1].directions]
    )
    pairs = [(a, other[1].directions[row.argmax()]) for a, row in zip(exact[1].directions, overlap, strict=True)]
    pairs = [pair for pair, row in zip(pairs, overlap, strict=True) if row.max() >= SAME]
    told = [(a, b) for a, b in pairs if a.share_gen is not None and b.share_gen is not None]
    covariances = [(a.covariance, b.covariance.double()) for a, b in zip(exact[0], other[0], strict=True)]
    significant = [len(one.significant()) for one in (exact[1], other[1])]
    return {
        "C": max(float((a - b).abs().max()) for a, b in covariances),
        "overlap": float(overlap.max(1).min()),
        "share": max((abs(a.share_gen - b.share_gen) for a, b in told), default=0.0),
        "p": max(abs(a.p_value - b.p_value) for a, b in pairs),
        "same": significant[0] == significant[1],
        "seconds": other[2],
    }


def main():
    rows = []
    for name, load in {"digits": digits, "UCF101, VGG-16": ucf101, "photographs, EfficientNet": tiny_imagenet}.items():
        data = load()
        if data is None:
            continue
        found = {precision: [] for precision in PRECISIONS}
        for seed in SEEDS:
            sets = halves(*data, seed)
            exact = compared(*sets, "float64")
            for precision in PRECISIONS:
                other = exact if precision == "float64" else compared(*sets, precision)
                found[precision].append(against(exact, other))
        for precision, runs in found.items():
            most = {key: max(run[key] for run in runs) for key in ("C", "share", "p")}
            rows.append(
                {
                    "set": name,
                    "precision": precision,
                    "largest error in C": f"{most['C']:.1e}",
                    "smallest overlap of a direction": f"{min(run['overlap'] for run in runs):.6f}",
                    "largest change of a share": f"{most['share']:.4f}",
                    "largest change of a p-value": f"{most['p']:.1e}",
                    "as many significant kinds": f"{sum(run['same'] for run in runs)}/{len(runs)}",
                    "sketches, s": round(min(run["seconds"] for run in runs), 1),
                }
            )
            print(rows[-1], flush=True)
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "two CPU cores"
    record("precision", rows, notes=f"{len(SEEDS)} seeds, r = 2000, {2 * REPORTED} directions, sketches on {device}")


if __name__ == "__main__":
    main()
