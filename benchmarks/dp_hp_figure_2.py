"""The DP-HP paper's Fig. 2 with its numbers of features and its network: 25 Gaussians, 728 against 30 000 features.

The paper says 650 features for order 25; a sum and a product kernel of two coordinates have 52 + 676. A step's batch of
200 points a class adds its own variance to the discrepancy, so that this stays far above 1 however long the fit: with
728 features it falls slowly after a thousand steps. Both have as many steps, which take half an hour;
`dp_hp_gaussians.py` has the grid.
"""

import time

import torch
from _record import record
from dp_hp_gaussians import HIGH, LOW, centers_found, drawn, negative_log_likelihood

from finc_eval.feature_maps.coordinate_kernels import SumAndProduct
from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.feature_maps.hermite_series import best_rho
from finc_eval.privacy import Guarantee
from finc_eval.privacy.synthesis.dp_hp import draw_labels, fit, release_embedding
from finc_eval.privacy.synthesis.generators import Bounded, FullyConnected, Network
from finc_eval.privacy.synthesis.released_features import Statistic

STEPS, RATE, BATCH, SCALE, SEED, DRAWN = 3000, 0.01, 200, 0.5, 0, 20_000
MIDDLE, HALF = (LOW + HIGH) / 2, (HIGH - LOW) / 2


def main():
    torch.set_num_threads(1)
    points, labels = drawn(SEED)
    records = torch.from_numpy(points - MIDDLE).float()
    real = negative_log_likelihood(points, labels)
    rows = []
    for method, phi in (
        ("DP-HP", SumAndProduct(2, 25, length_scale=SCALE, rho=best_rho(HALF, SCALE))),
        ("DP-MERF", RandomFourierFeatures(2, 15_000, sigma=SCALE, seed=SEED, orthogonal=False)),
    ):
        begun = time.process_time()
        given = torch.from_numpy(labels)
        target = release_embedding(records, given, [Statistic(phi)], Guarantee.of(1, 1e-5), ledger=None, classes=5)
        generator = Network(FullyConnected(5, (200, 500, 500, 200), 2), Bounded(2, -HALF, HALF), 5, BATCH, SEED)
        course = fit(generator, target, steps=STEPS, rate=RATE)
        classes = draw_labels(target.shares, DRAWN, SEED)
        made = generator.sample(classes, SEED).numpy() + MIDDLE
        rows.append(
            {
                "method": method,
                "features": phi.size,
                "NLL": f"{negative_log_likelihood(made, classes.numpy()):.3f}",
                "NLL of the real data": f"{real:.3f}",
                "centers found": centers_found(made, classes.numpy()),
                "discrepancy halfway": f"{course[STEPS // 2]:.1f}",
                "at the end": f"{course[-1]:.1f}",
                "s": f"{time.process_time() - begun:.0f}",
            }
        )
        print(rows[-1], flush=True)
    record(
        "dp_hp_figure_2",
        rows,
        f"(1, 1e-5)-DP, replacement, 90 000 points, length scale {SCALE}; the paper's network of 200 500 500 200, "
        f"{STEPS} steps; one run",
    )


if __name__ == "__main__":
    main()
