"""How often does `compare` see a difference between two halves of one set? (It should in at most 5 % of the runs.)

Two random halves, or random parts, of the 4 000 digits in the package are compared again and again. The table also has
the correlation between the two half-sample estimates of one direction, for which the standard errors make allowance.
"""

import numpy as np
from _record import record

import finc_eval as fe
from finc_eval.comparison.finc_directions import FincFit
from finc_eval.comparison.inputs import open_sets
from finc_eval.comparison.score_pass import score_set
from finc_eval.comparison.settings import Finc, Settings
from finc_eval.core.run import Run
from finc_eval.demo.planted import shipped_digits

SEEDS = 200


def half_estimates(one, other, settings):
    """Return z of every direction in each half, over-represented role, from the halves' own variances."""
    opened = open_sets({"gen": one, "ref": other}, ["ref"], settings, Run())
    gen, ref = opened.sets.values()
    fit = FincFit.among([gen, ref], opened.settings)([(1.0, gen)], [(1.0, ref)])
    masses = [score_set(part, [fit], Run()).masses for part in (gen, ref)]
    excess = masses[0].mean - masses[1].mean
    error = sum(m.variance / m.n[:, None] for m in masses).sqrt()
    return (excess / error).numpy()


def main():
    images, _ = shipped_digits()
    x = images.reshape(len(images), -1).astype(np.float32) / 255
    rows = []
    for n, features, rotation in (
        (500, 200, "varimax"),
        (2000, 200, "varimax"),
        (2000, 500, "varimax"),
        (2000, 200, None),
    ):
        false, covered, halves = 0, 0, []
        for seed in range(SEEDS):
            order = np.random.default_rng(seed).permutation(len(x))
            one, other = x[order[:n]], x[order[n : 2 * n]]
            settings = Settings(method=Finc(rotation), features=features, seed=seed)
            found = fe.compare(one, other, settings)
            false += bool(found.significant(0.05))
            covered += all(m.interval[0] <= 0 <= m.interval[1] for m in found.modes)
            if rotation:
                halves.append(half_estimates(one, other, settings))
        z = np.concatenate(halves, axis=1) if halves else None
        rows.append(
            {
                "n + n": f"{n} + {n}",
                "r": features,
                "rotation": rotation or "none",
                "runs": SEEDS,
                "runs with a false discovery": round(false / SEEDS, 3),
                "all intervals cover 0": round(covered / SEEDS, 3),
                "correlation of halves": "" if z is None else round(float(np.corrcoef(z)[0, 1]), 3),
                "sd of z in a half": "" if z is None else round(float(z.std()), 3),
            }
        )
        print(rows[-1], flush=True)
    record("null_calibration", rows, notes="4 000 MNIST digits, pixels; family-wise α = 0.05")


if __name__ == "__main__":
    main()
