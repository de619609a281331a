"""The mixture of 25 Gaussians of the DP-HP paper's Fig. 2: do generated points lie where the density is high?

A 5 × 5 grid, σ = 0.2, five classes so that a class has five centers, no two in one row or column; 90 000 records. NLL
is −log p(x, y) of the true joint density, averaged over generated points. Points nearer to the centers than real ones
would make it lower than the NLL of real data, so the table also has the NLL of real data and the centers found.
"""

import time

import numpy as np
import torch
from _record import record

from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.privacy import Guarantee
from finc_eval.private.hermite.coordinate_kernels import CoordinateProduct
from finc_eval.private.hermite.hermite import best_rho
from finc_eval.private.synthesis.columns import Category, Number
from finc_eval.private.synthesis.dp_hp import draw_labels, fit, release_embedding
from finc_eval.private.synthesis.generators import Bounded, FullyConnected, Network, ProductMixture
from finc_eval.private.synthesis.released_features import Statistic
from finc_eval.private.synthesis.tabular import Table

SIGMA, RECORDS, DRAWN, SEEDS = 0.2, 90_000, 20_000, range(5)
LOW, HIGH, LEVELS = -0.8, 4.8, 112  # public: four deviations beyond the grid, in steps of a quarter of one
ORDER = 20  # 441 features; as many of Fourier's, rounded to an even number
ROW, COLUMN = np.divmod(np.arange(25), 5)
CENTERS, CLASSES = np.stack([ROW, COLUMN], 1), (COLUMN + 2 * ROW) % 5


def drawn(seed):
    rng = np.random.default_rng(seed)
    place = np.repeat(np.arange(25), RECORDS // 25)
    return CENTERS[place] + SIGMA * rng.standard_normal((RECORDS, 2)), CLASSES[place]


def negative_log_likelihood(points, labels):
    squares = np.square(points[:, None] - CENTERS).sum(2)
    exponents = np.where(labels[:, None] == CLASSES, -squares / (2 * SIGMA**2), -np.inf)
    return float(-(np.logaddexp.reduce(exponents, 1) - np.log(25 * 2 * np.pi * SIGMA**2)).mean())


def centers_found(points, labels):
    """Count the centers with at least a quarter of their share of points of the right class within three deviations."""
    near = np.square(points[:, None] - CENTERS).sum(2) < (3 * SIGMA) ** 2
    return int(((near & (labels[:, None] == CLASSES)).sum(0) > 0.25 * len(points) / 25).sum())


def main():
    torch.set_num_threads(1)
    table = Table(tuple(Number.between(name, LOW, HIGH, LEVELS) for name in "xy"), Category("class", tuple("01234")))
    edges = torch.tensor(table.columns[0].edges, dtype=torch.float32) - (LOW + HIGH) / 2
    middles = (edges[1:] + edges[:-1])[:, None] / 2
    view = torch.block_diag(middles, middles)

    def features(kind, scale, seed):
        if kind == "DP-HP":
            return CoordinateProduct(2, ORDER, length_scale=scale, rho=best_rho((HIGH - LOW) / 2, scale))
        count = (ORDER + 1) ** 2 // 2
        return RandomFourierFeatures(2, count, sigma=scale, seed=seed, orthogonal=False)

    rows = []
    settings = [("mixture", scale, range(5)) for scale in (0.3, 0.5, 0.7)] + [("network", 0.5, range(2))]
    for generator_kind, scale, seeds in settings:
        for kind in ("DP-HP", "DP-MERF"):
            found, seconds = [], []
            for seed in seeds:
                points, labels = drawn(seed)
                known = torch.from_numpy(labels)
                begun = time.perf_counter()
                if generator_kind == "mixture":
                    records, _ = table.encoded({"x": points[:, 0], "y": points[:, 1], "class": labels})
                    statistic = Statistic(features(kind, scale, seed), view)
                    generator = ProductMixture(table, 100, seed)
                    steps, rate = 300, 0.2
                else:
                    records = torch.from_numpy(points - (LOW + HIGH) / 2).float()
                    statistic = Statistic(features(kind, scale, seed))
                    half = (HIGH - LOW) / 2
                    head = Bounded(2, -half, half)
                    generator = Network(FullyConnected(5, (200, 500, 500, 200), 2), head, 5, 200, seed)
                    steps, rate = 500, 0.01
                target = release_embedding(records, known, [statistic], Guarantee.of(1, 1e-5), ledger=None, classes=5)
                course = fit(generator, target, steps=steps, rate=rate)
                classes = draw_labels(target.shares, DRAWN, seed)
                sample = generator.sample(classes, seed)
                if generator_kind == "mixture":
                    values = table.decoded(sample, classes, seed)
                    made = np.stack([values["x"], values["y"]], 1)
                else:
                    made = sample.numpy() + (LOW + HIGH) / 2
                seconds.append(time.perf_counter() - begun)
                found.append(
                    [
                        negative_log_likelihood(made, classes.numpy()),
                        negative_log_likelihood(points, labels),
                        centers_found(made, classes.numpy()),
                        course[-1],
                    ]
                )
            nll, real, centers, discrepancy = np.mean(found, 0)
            rows.append(
                {
                    "generator": generator_kind,
                    "length scale": scale,
                    "method": kind,
                    "features": statistic.phi.size,
                    "NLL": f"{nll:.3f} ± {np.std([one[0] for one in found], ddof=1):.3f}",
                    "NLL of the real data": f"{real:.3f}",
                    "centers found": f"{centers:.1f}",
                    "discrepancy": f"{discrepancy:.2f}",
                    "runs": len(found),
                    "s": f"{np.mean(seconds):.1f}",
                }
            )
            print(rows[-1], flush=True)
    record(
        "dp_hp_gaussians",
        rows,
        "(1, 1e-5)-DP, replacement; mean ± sd over runs; the network is the paper's, of 200 500 500 200",
    )


if __name__ == "__main__":
    main()
