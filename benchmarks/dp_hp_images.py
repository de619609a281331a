"""The DP-HP paper's images to the end: its kernels of pixels, its network and its steps, on digits.

Table 9 has order 100 for the sum and 20 for the products of two pixels, l² = 0.005, γ = 20 on the sum, ε 80 : 20; the
published code a network of 500 500, batches of 200 and ten epochs of Adam at 0.01, whose rate falls. Ten epochs of
60 000 digits are 3 000 steps. Here are 10 000 digits. A loss is the mean of 50 steps, relative to what noise alone
makes of it (§H.2: that of products plus γ times that of the sum); it contains the variance of a batch.

    python benchmarks/dp_hp_images.py --minutes 30        the rows that are missing
"""

import time
import warnings

import numpy as np
import torch
from _real import mnist
from _rows import record_rows
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from finc_eval.privacy import DpHpPaper, Guarantee
from finc_eval.private.synthesis.dp_hp import draw_labels, fit, release_embedding
from finc_eval.private.synthesis.generators import Bounded, FullyConnected, Network
from finc_eval.private.synthesis.released_features import image_statistics

MEMBERS, BATCH, RATE, TRAIN, SEED, SHOWN = 10_000, 20, 0.01, 2000, 0, 50
SETTINGS = [{"ε": epsilon, "steps": steps} for epsilon, steps in ((1, 250), ("∞", 250), (1, 3000))]


def row(epsilon, steps):
    """Return the loss over the steps, and what classifiers learn from the digits that are made."""
    begun = time.process_time()
    statistics = image_statistics(DpHpPaper(gamma=20), (28, 28, 1), SEED)
    guarantee = None if epsilon == "∞" else Guarantee.of(epsilon, 1e-5)
    target = release_embedding(members, labels, statistics, guarantee, ledger=None, classes=10, bound="paper")
    generator = Network(FullyConnected(10, (500, 500), 784), Bounded(784), 10, BATCH, SEED)
    course = np.array(fit(generator, target, steps=steps, rate=RATE, until=0.0))
    classes = draw_labels(torch.ones(10) / 10, TRAIN, SEED)
    made = generator.sample(classes, SEED).numpy()
    found = {
        f"loss at {part:.0%}": f"{course[max(int(part * steps) - SHOWN, 0) : int(part * steps)].mean():.3f}"
        for part in (0.1, 0.25, 0.5, 0.75, 1)
    }
    for name, model in (
        ("logistic regression", LogisticRegression(max_iter=1000)),
        ("random forest", RandomForestClassifier(random_state=SEED)),
    ):
        found[name] = f"{model.fit(made, classes.numpy()).score(others, truth):.3f}"
    return found | {"s": f"{time.process_time() - begun:.0f}"}


if __name__ == "__main__" and (data := mnist()) is not None:
    warnings.simplefilter("ignore")  # a classifier that has not converged is what the paper has as well
    torch.set_num_threads(1)
    others, members = np.split(data[0].astype(np.float32), [len(data[0]) - MEMBERS])
    truth, labels = np.split(data[1], [len(data[1]) - MEMBERS])
    members, labels = torch.from_numpy(members), torch.from_numpy(labels)
    record_rows(
        "dp_hp_images",
        SETTINGS,
        row,
        f"10 000 private digits, δ = 1e-5, Δ = 2/m, γ = 20; accuracy on 10 000 others of {TRAIN:,} synthetic digits",
    )
