"""Table 1 of the DP-HP paper by the settings of its published code: how far are marginals after each epoch?

The published code takes the levels of discretized Adult as numbers, length scales from the private data (of each
column, the median distance, or l² = 0.2 √median), a network of 6 000 and 1 500 units whose outputs it rounds, batches
of 1 % of the records, Adam at 0.0001, and a new product each epoch. The product is that of Table 8; γ = 1 is the code's
default. Distances are the published code's: its "3-way" joins four columns, and the two highest levels of each are one.

    python benchmarks/dp_hp_published.py --minutes 30        the rows that are missing
"""

import time

import numpy as np
import torch
from _marginals import published_distance
from _papers import published
from _real import discretized_adult
from _rows import record_rows

from finc_eval.privacy import Guarantee
from finc_eval.private.hermite.coordinate_kernels import CoordinateProduct, CoordinateSum
from finc_eval.private.synthesis.dp_hp import release_embedding
from finc_eval.private.synthesis.generators import FullyConnected, Network
from finc_eval.private.synthesis.released_features import Statistic

EPSILON, DELTA, EPOCHS, STEPS, RATE, SEED, SUBSETS = 0.3, 1e-5, 4, 100, 1e-4, 0, 100
SUM_ORDER, ORDER, COLUMNS, SUM_SHARE, GAMMA = 100, 5, 7, 0.6, 1.0
PAPER = next(one for one in published("dp_hp")["table_1"] if one["ε"] == EPSILON)["DP-HP"]
SETTINGS = [{"length scales": rule, "rate": rate} for rule, rate in (("median distance", RATE), ("0.2 √median", RATE))]


class Levels:
    """The published code's last layer: numbers of levels, not negative."""

    def __init__(self, width):
        self.width = width

    def __call__(self, outputs, chance):
        return outputs.relu()


def scales(rule):
    """Return the length scale of each column, from the private data."""
    if rule == "0.2 √median":
        median = np.median(real, 0)
        return np.sqrt(0.2 * np.sqrt(np.where(median == 0, 0.9, median))).tolist()
    some = real[np.random.default_rng(SEED).choice(len(real), 1000, replace=False)]
    apart = np.abs(some[:, None] - some)[np.triu_indices(len(some), 1)]
    return np.where(np.median(apart, 0) > 0, np.median(apart, 0), apart.mean(0)).tolist()


def far(made):
    """Return the published code's distances for α = 2 and α = 3, which join three and four columns."""
    rounded = np.clip(np.round(made), real.min(0), real.max(0)).astype(np.int64)
    return [published_distance(real, rounded, alpha, at_most=SUBSETS) for alpha in (2, 3)]


def row(rule, rate):
    """Return the distances of the marginals after the epochs."""
    begun, chance = time.process_time(), np.random.default_rng(SEED)
    length_scale, width = scales(rule), real.shape[1]
    products = [
        CoordinateProduct(width, ORDER, length_scale=length_scale, coordinates=sorted(places.tolist()))
        for places in (chance.choice(width, COLUMNS, replace=False) for _ in range(EPOCHS))
    ]
    statistics = [
        Statistic(CoordinateSum(width, SUM_ORDER, length_scale=length_scale), budget=SUM_SHARE * EPOCHS),
        *(Statistic(product, budget=1 - SUM_SHARE) for product in products),
    ]
    records = torch.from_numpy(real).float()
    target = release_embedding(records, None, statistics, Guarantee.of(EPSILON, DELTA), ledger=None, bound="paper")
    generator = Network(
        FullyConnected(1, (400 * width, 100 * width), width), Levels(width), 1, len(real) // STEPS, SEED
    )
    optimizer = torch.optim.Adam(generator.parameters(), lr=rate)
    found = {}
    for epoch in range(1, EPOCHS + 1):
        for _ in range(STEPS):
            parts = [0, epoch]
            means = generator.means([statistics[part] for part in parts])
            gaps = [(target.means[part] - mean).square().sum() for part, mean in zip(parts, means, strict=True)]
            loss = gaps[0] + GAMMA * gaps[1]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch in (1, 2, 4, EPOCHS):
            made = generator.sample(torch.zeros(len(real), dtype=torch.long), SEED).numpy()
            found[f"α = 2 / 3, epoch {epoch}"] = "{:.3f} / {:.3f}".format(*far(made))
            print(found, f"{time.process_time() - begun:.0f} s", flush=True)
    mixed = np.stack([chance.permutation(column) for column in real.T], 1)
    return found | {
        "columns permuted, α = 2 / 3": "{:.3f} / {:.3f}".format(*far(mixed)),
        "paper, α = 3 / 4": "{:.3f} / {:.3f}".format(*PAPER),
        "s": f"{time.process_time() - begun:.0f}",
    }


if __name__ == "__main__" and (real := discretized_adult()) is not None:
    torch.set_num_threads(1)
    record_rows(
        "dp_hp_published",
        SETTINGS,
        row,
        f"discretized Adult, ε = {EPSILON}, δ = {DELTA:g}, Δ = 2/m; products of {COLUMNS} columns to order {ORDER}; "
        f"{SUBSETS} choices of columns; one run",
    )
