"""What does low precision cost? Covariances and modes in each precision against float64, on real embeddings.

Half of each set is compared with the other half, and a class is left out of one of them. tf32 and bfloat16 round the
features before the product, in the same way on every device. The time is the one of accumulating both sketches here.
"""

import time

import numpy as np
import torch
from _real import tiny_imagenet, ucf101
from _record import record

import finc_eval as fe
from finc_eval.demo.planted import shipped_digits

PRECISIONS = ("float64", "float32", "tf32", "bfloat16")
REPORTED = 10


def digits():
    images, labels = shipped_digits()
    return images.reshape(len(images), -1).astype(np.float32) / 255, labels


def halves(embeddings, labels):
    """Return two halves, the second without the first class."""
    order = np.random.default_rng(0).permutation(len(labels))
    first, second = order[: len(order) // 2], order[len(order) // 2 :]
    return embeddings[first], embeddings[second[labels[second] != labels[0]]]


def sketches(gen, ref, phi, precision):
    start = time.perf_counter()
    made = [fe.Sketch.of(rows, phi, precision=precision) for rows in (gen, ref)]
    return made, time.perf_counter() - start


def main():
    rows = []
    for name, load in {"digits": digits, "UCF101, VGG-16": ucf101, "photographs, EfficientNet": tiny_imagenet}.items():
        data = load()
        if data is None:
            continue
        gen, ref = halves(*data)
        phi = fe.Sketch.reference(ref).feature_map
        for precision in PRECISIONS:
            made, seconds = sketches(gen, ref, phi, precision)
            found = fe.compare(*made, modes=REPORTED)
            if precision == PRECISIONS[0]:
                exact, reference = [sketch.covariance for sketch in made], found
            errors = [
                float((sketch.covariance.double() - c).abs().max()) for sketch, c in zip(made, exact, strict=True)
            ]
            pairs = list(zip(found.modes, reference.modes, strict=True))
            values = np.array([mode.fitted_excess for mode, _ in pairs]) - [mode.fitted_excess for _, mode in pairs]
            overlaps = [float(mode.direction @ other.direction) ** 2 for mode, other in pairs]
            rows.append(
                {
                    "set": name,
                    "precision": precision,
                    "largest error in C": f"{max(errors):.1e}",
                    "largest error of an excess": f"{np.abs(values).max():.1e}",
                    "smallest overlap of a mode": f"{min(overlaps):.6f}",
                    "largest change of a p-value": f"{max(abs(a.p_value - b.p_value) for a, b in pairs):.1e}",
                    "sketches, s": round(seconds, 1),
                }
            )
            print(rows[-1], flush=True)
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "two CPU cores"
    record("precision", rows, notes=f"r = 2000, {2 * REPORTED} modes, sketches on {device}")


if __name__ == "__main__":
    main()
