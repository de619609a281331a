"""Effect of a lower precision of the network on embeddings: float32 against autocast, on 500 photographs.

Needs the test assets (FINC_EVAL_ASSETS). On a GPU it also shows the gain in speed.
"""

import time

import numpy as np
import torch
from _real import asset
from _record import record

import finc_eval as fe

PRECISIONS = ("float32", "bfloat16", "float16")
EXTRACTOR = "efficientnet-lite0"


def main():
    archive = asset("photos", "imagenet_500.zip")
    if archive is None:
        return
    # Autocast to float16 is for GPUs: on CPUs most of its convolutions fall back.
    precisions = PRECISIONS if torch.cuda.is_available() else PRECISIONS[:2]
    rows, exact = [], None
    for precision in precisions:
        started = time.perf_counter()
        cache = fe.extract(archive, EXTRACTOR, precision=precision)
        seconds, found = time.perf_counter() - started, np.asarray(cache)
        exact = found if exact is None else exact
        error = np.linalg.norm(found - exact, axis=1) / np.linalg.norm(exact, axis=1)
        logits = np.asarray(cache.output("logits"))
        truth = np.array([int(name.rsplit("/", 1)[-1][:4]) for name in cache.ids])
        rows.append(
            {
                "precision": precision,
                "relative error, median": f"{np.median(error):.1e}",
                "largest": f"{error.max():.1e}",
                "same nearest neighbor": f"{(neighbors(found) == neighbors(exact)).mean():.3f}",
                "top-1": f"{(logits.argmax(1) == truth).mean():.3f}",
            }
        )
        print(rows[-1], f"{seconds:.1f} s", flush=True)
    record("network_precision", rows, f"{EXTRACTOR} on 500 photographs")


def neighbors(rows):
    distances = torch.cdist(torch.from_numpy(rows), torch.from_numpy(rows)).fill_diagonal_(float("inf"))
    return distances.argmin(1).numpy()


if __name__ == "__main__":
    main()
