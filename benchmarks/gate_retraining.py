"""False regressions of the gate under the noise of training, from counts alone: laws that no constant was chosen on.

Shares of kinds move from training to training by `noise` times what sampling moves them, by several laws. Limits allow
next to nothing (1 % of a share, or one in 10⁹ of all samples), so that every significant loss or gain counts. *normal*
is cut off at a fiftieth of the share; *unlike*: a lognormal law of which the noise differs between kinds (a factor of 2
up and down). Shares are in ratios of 1 to 3, or drawn at random (*uneven*).
"""

import numpy as np
from _record import record
from _runs import counted

from finc_eval.gates.retraining import between_shares
from finc_eval.gates.shares import GainedShare, LostShare, TwoCounts
from finc_eval.numerics.inference import ALPHA

RUNS = 200
DESIGNS = (
    ("lognormal", 20, 2000, 3, 3.0, False),
    ("lognormal", 20, 2000, 3, 1.0, True),
    ("gamma", 10, 2000, 3, 3.0, False),
    ("gamma", 20, 2000, 5, 5.0, True),
    ("normal", 50, 5000, 3, 3.0, False),
    ("t5", 5, 500, 3, 3.0, False),
    ("t5", 100, 10_000, 4, 3.0, True),
    ("unlike", 20, 2000, 3, 3.0, False),
    ("unlike", 50, 5000, 3, 3.0, True),
)


def false_regressions(rng, law, kinds, n, replicates, noise, uneven):
    shares = rng.dirichlet(np.ones(kinds)) + 0.2 / kinds if uneven else np.linspace(1, 3, kinds)
    shares = shares / shares.sum()
    unlike = np.exp(0.7 * rng.normal(size=kinds))

    def members():
        spread = noise * np.sqrt((1 - shares) / (n * shares))
        factor = {
            "lognormal": lambda: np.exp(spread * rng.normal(size=kinds)),
            "gamma": lambda: rng.gamma(1 / spread**2) * spread**2,
            "normal": lambda: np.maximum(1 + spread * rng.normal(size=kinds), 1 / 50),
            "t5": lambda: np.exp(np.clip(spread * rng.standard_t(5, size=kinds) * np.sqrt(0.6), -3, 3)),
            "unlike": lambda: np.exp(spread * unlike * rng.normal(size=kinds)),
        }[law]()
        moved = shares * factor
        return rng.multinomial(n, moved / moved.sum()).astype(float)

    before, now = np.array([members() for _ in range(replicates)]), members()
    noisy, old, size = between_shares(before, np.full_like(before, n)), before.sum(0), float(n)
    losses, gains = [], []
    for kind in range(kinds):
        counts = TwoCounts(
            now[kind],
            size,
            old[kind],
            size * replicates,
            noisy.spread[kind],
            noisy.degrees,
            noisy.plain[kind],
            noisy.plain_degrees,
            noisy.sampling[kind],
        )
        lost = LostShare.value_of(counts.share, counts.old_share, 0.005)
        losses.append(LostShare(name=str(kind), value=lost, margin=0.01, least=0.005, counts=counts))
        gains.append(GainedShare(name=str(kind), value=counts.share - counts.old_share, margin=1e-9, counts=counts))
    # The first step of Holm's method decides whether there is any.
    return [any(one.bound("low", ALPHA / kinds) > one.margin for one in limits) for limits in (losses, gains)]


def main():
    rows = []
    for design in DESIGNS:
        rng = np.random.default_rng(0)
        lost, gained = np.sum([false_regressions(rng, *design) for _ in range(RUNS)], axis=0).tolist()
        names = ("law", "kinds", "samples", "replicates", "noise")
        uneven = " uneven" * design[5]
        told = {"false losses": counted(lost, RUNS), "false gains": counted(gained, RUNS)}
        rows.append(dict(zip(names, (design[0] + uneven, *design[1:5]), strict=True)) | told)
        print(rows[-1], flush=True)
    record("gate_retraining", rows, "α = 0.05; 95 % intervals of Clopper and Pearson; counts alone")


if __name__ == "__main__":
    main()
