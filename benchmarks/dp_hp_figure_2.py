"""The DP-HP paper's Fig. 2: 25 Gaussians by Hermite or Fourier features, fitted to the end.

Kernels are the published code's: order 20, l² = 0.5 for the products, l² = 10 for the sum with the weight 10; that code
adds no noise. The paper's text has 30 000 features for DP-MERF. A mixture's means are exact, so that its fit, which
takes all steps, reaches the noise, a discrepancy of 1. The paper's network (batches of 500, Adam at 0.01, a falling
rate) meets the means of a batch, which vary: here its discrepancy is that of 200 000 points, which add 0.4.

    python benchmarks/dp_hp_figure_2.py --minutes 30        the rows that are missing
"""

import time

import numpy as np
import torch
from _papers import published
from _rows import record_rows
from dp_hp_gaussians import HIGH, LEVELS, LOW, centers_found, drawn, negative_log_likelihood

from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.privacy import Guarantee
from finc_eval.private.hermite.coordinate_kernels import CoordinateProduct, CoordinateSum
from finc_eval.private.synthesis.columns import Category, Number
from finc_eval.private.synthesis.dp_hp import draw_labels, fit, release_embedding
from finc_eval.private.synthesis.generators import Bounded, FullyConnected, Network, ProductMixture
from finc_eval.private.synthesis.released_features import Statistic
from finc_eval.private.synthesis.tabular import Table

PAPER, DRAWN, COMPONENTS = published("dp_hp")["figure_2"], 200_000, 100
SMALL = (("DP-HP", 483), ("DP-MERF", 482))
ORDER, SUM_SCALE, PRODUCT_SCALE = PAPER["order"], PAPER["l² of the sum"] ** 0.5, PAPER["l² of the products"] ** 0.5
MIDDLE, HALF = (LOW + HIGH) / 2, (HIGH - LOW) / 2
TABLE = Table(tuple(Number.between(name, LOW, HIGH, LEVELS) for name in "xy"), Category("class", tuple("01234")))
SETTINGS = [
    {"generator": generator, "method": method, "features": features, "steps": steps, "seed": seed}
    for generator, method, features, steps, seed in (
        *(("mixture", method, features, 300, seed) for seed in range(3) for method, features in SMALL),
        *(("mixture", method, features, 600, 0) for method, features in SMALL),
        ("mixture", "DP-MERF", 30_000, 300, 0),
        ("network", "DP-HP", 483, 2000, 0),
        ("network", "DP-HP", 483, 8000, 0),
        ("network", "DP-MERF", 482, 8000, 0),
    )
]


def maps(method, features, seed):
    """Return feature maps of two coordinates, and their weights in the fit."""
    if method == "DP-MERF":
        return [(RandomFourierFeatures(2, features // 2, sigma=PRODUCT_SCALE, seed=seed, orthogonal=False), 1.0)]
    sums = CoordinateSum(2, ORDER, length_scale=SUM_SCALE), PAPER["weight of the sum"]
    return [sums, (CoordinateProduct(2, ORDER, length_scale=PRODUCT_SCALE), 1.0)]


def row(kind, method, features, steps, seed):
    """Return what the generator's points are worth."""
    begun = time.process_time()
    points, labels = drawn(seed)
    given, guarantee = torch.from_numpy(labels), Guarantee.of(1, 1e-5)
    if kind == "mixture":
        records, _ = TABLE.encoded({"x": points[:, 0], "y": points[:, 1], "class": labels})
        edges = torch.tensor(TABLE.columns[0].edges, dtype=torch.float32) - MIDDLE
        middles = (edges[1:] + edges[:-1])[:, None] / 2
        view, generator = torch.block_diag(middles, middles), ProductMixture(TABLE, COMPONENTS, seed)
    else:
        records, view = torch.from_numpy(points - MIDDLE).float(), None
        body = FullyConnected(5, PAPER["hidden"], 2)
        generator = Network(body, Bounded(2, -HALF, HALF), 5, PAPER["batch"] // 5, seed)
    statistics = [Statistic(phi, view, weight=weight) for phi, weight in maps(method, features, seed)]
    target = release_embedding(records, given, statistics, guarantee, ledger=None, classes=5)
    course = fit(generator, target, steps=steps, rate=0.2 if kind == "mixture" else PAPER["rate"], until=0.0)
    classes = draw_labels(target.shares, DRAWN, seed)
    made = generator.sample(classes, seed)
    if kind == "mixture":
        values, discrepancy = TABLE.decoded(made, classes, seed), course[-1]
        found = np.stack([values["x"], values["y"]], 1)
    else:
        counts = torch.bincount(classes, minlength=5)[:, None]
        means = [sum_of(statistic, made, classes) / counts for statistic in target.statistics]
        found, discrepancy = made.numpy() + MIDDLE, float(target.discrepancy(means))
    return {
        "NLL": f"{negative_log_likelihood(found, classes.numpy()):.3f}",
        "NLL of the real data": f"{negative_log_likelihood(points, labels):.3f}",
        "centers found": centers_found(found, classes.numpy()),
        "discrepancy": f"{discrepancy:.2f}",
        "s": f"{time.process_time() - begun:.0f}",
    }


def sum_of(statistic, made, classes):
    """Sum the features of many points by class, some at a time."""
    parts = zip(torch.split(made, 1000), torch.split(classes, 1000), strict=True)
    return sum(statistic.class_sums(rows, labels, 5) for rows, labels in parts)


if __name__ == "__main__":
    torch.set_num_threads(1)
    record_rows(
        "dp_hp_figure_2",
        SETTINGS,
        row,
        "(1, 1e-5)-DP, replacement, 90 000 points; l² = 0.5, and 10 for the sum with the weight 10, as in the "
        "published code; a mixture of 100 components a class, or the paper's network",
    )
