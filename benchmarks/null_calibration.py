"""How often does `compare` see a difference between two halves of one set? (It should in at most 5 % of the runs.)

Two random halves, or random parts, of the 4 000 digits in the package are compared again and again. Also: the
correlation between the two half-sample estimates of one direction, which the standard errors allow for.
"""

import numpy as np
from _record import record
from finc_eval.comparison.search import Search

import finc_eval as fe
from finc_eval.comparison.inputs import Side, Sketching
from finc_eval.demo.planted import shipped_digits
from finc_eval.embeddings.base import as_embeddings

SEEDS = 200


def half_estimates(one, other, phi):
    """z of every direction in each half, over-represented role, from the halves' own variances."""
    gen, ref = (Side.of(as_embeddings(rows), name, phi, Sketching()) for rows, name in ((one, "gen"), (other, "ref")))
    fit = Search.among([gen, ref], rho=1.0, modes=10, rotation="varimax").fit([(1.0, gen)], [(1.0, ref)])
    masses = [side.score([fit]).masses for side in (gen, ref)]
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
            found = fe.compare(gen=one, ref=other, features=features, seed=seed, rotation=rotation)
            false += bool(found.significant(0.05))
            covered += all(m.interval[0] <= 0 <= m.interval[1] for m in found.all_modes)
            if rotation:
                halves.append(half_estimates(one, other, found.feature_map))
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
    record("null_calibration", rows, notes="4 000 MNIST digits, pixels; family-wise level 0.05")


if __name__ == "__main__":
    main()
