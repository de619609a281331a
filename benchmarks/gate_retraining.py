"""False regressions and false passes of the gate under the noise of training, from counts alone.

Shares of kinds move from training to training by `noise` times what sampling moves them, by several laws: of the
logarithm of a share (lognormal, Laplace, Student's t5 and t3 cut off at a factor of 20, two *states*), or of the share
itself (gamma, *normal* and *uniform*, cut off at a fiftieth). *unlike*: a lognormal law of which the noise differs
between kinds (a factor of 2 up and down). Shares are in ratios of 1 to 3, or drawn at random (*uneven*).

*False losses*, *false gains*: a release without a change, at limits that allow next to nothing (1 % of a share, or one
in 10⁹ of all samples), so that every significant loss or gain in any kind counts. *False passes*: one kind has lost
exactly the half that is allowed, or gained exactly the 2 %, and holds.

The bound was chosen on other draws of all designs but the last three.
"""

import numpy as np
from _record import record
from _runs import counted

from finc_eval.estimates.retraining import between_shares
from finc_eval.gates.shares import GainedShare, LostShare, TwoCounts
from finc_eval.numerics.inference import ALPHA

RUNS = 1000
LOSE, NEW, LEAST = 0.5, 0.02, 0.005
DESIGNS = (
    ("lognormal", 20, 2000, 3, 3.0, False),
    ("lognormal", 20, 2000, 3, 1.0, True),
    ("lognormal", 20, 2000, 3, 0.0, True),
    ("gamma", 10, 2000, 3, 3.0, False),
    ("gamma", 20, 2000, 5, 5.0, True),
    ("normal", 50, 5000, 3, 3.0, False),
    ("uniform", 20, 2000, 3, 3.0, False),
    ("t5", 5, 500, 3, 3.0, False),
    ("t5", 100, 10_000, 4, 3.0, True),
    ("t5", 20, 2000, 8, 3.0, False),
    ("t3", 30, 3000, 3, 2.0, True),
    ("laplace", 20, 2000, 3, 3.0, True),
    ("laplace", 10, 1000, 4, 2.0, False),
    ("states", 20, 4000, 3, 3.0, False),
    ("unlike", 20, 2000, 3, 3.0, False),
    ("unlike", 50, 5000, 3, 3.0, True),
    ("lognormal", 50, 3000, 4, 4.0, True),
    ("t5", 15, 1000, 3, 2.0, True),
    ("laplace", 8, 4000, 6, 3.0, False),
)


class World:
    """A generator that is trained again and again: shares of its kinds, and how much training moves them."""

    def __init__(self, rng, law, kinds, noise, n, uneven):
        self.rng, self.law, self.kinds, self.noise, self.n = rng, law, kinds, noise, n
        shares = rng.dirichlet(np.ones(kinds)) + 0.2 / kinds if uneven else np.linspace(1, 3, kinds)
        self.shares = shares / shares.sum()
        self.unlike = np.exp(0.7 * rng.normal(size=kinds))

    def members(self, shares=None):
        """Members of each kind in a release of one more training."""
        shares = self.shares if shares is None else shares
        moved = shares * self.factor(self.noise * np.sqrt((1 - shares) / (self.n * shares)))
        return self.rng.multinomial(self.n, moved / moved.sum()).astype(float)

    def factor(self, spread):
        rng, size = self.rng, self.kinds
        if self.law == "gamma":
            return rng.gamma(1 / spread**2) * spread**2
        if self.law in ("normal", "uniform"):
            drawn = rng.normal(size=size) if self.law == "normal" else np.sqrt(12) * (rng.random(size) - 0.5)
            return np.maximum(1 + spread * drawn, 1 / 50)
        drawn = {
            "lognormal": lambda: rng.normal(size=size),
            "t5": lambda: rng.standard_t(5, size=size) * np.sqrt(0.6),
            "t3": lambda: rng.standard_t(3, size=size) * np.sqrt(1 / 3),
            "laplace": lambda: rng.laplace(size=size) / np.sqrt(2),
            "states": lambda: 2.0 * rng.integers(2, size=size) - 1,
            "unlike": lambda: self.unlike * rng.normal(size=size),
        }[self.law]()
        return np.exp(np.clip(spread * drawn, -3, 3))

    def with_share(self, kind, share):
        """The shares, with that of one kind replaced and all others scaled."""
        shares = self.shares * (1 - share) / (1 - self.shares[kind])
        shares[kind] = share
        return shares


def evidence(before, now, n):
    """The evidence on a loss and on a gain of each kind."""
    noise, old = between_shares(before, np.full_like(before, n)), before.sum(0)
    losses, gains = [], []
    for kind, members in enumerate(now):
        counts = TwoCounts(members, n, old[kind], n * len(before), noise.training[kind], noise.degrees)
        lost = LostShare.value_of(counts.share, counts.old_share, LEAST)
        losses.append(LostShare(name="", value=lost, margin=0.01, least=LEAST, counts=counts))
        gains.append(GainedShare(name="", value=counts.share - counts.old_share, margin=1e-9, counts=counts))
    return losses, gains


def false_ones(rng, law, kinds, n, replicates, noise, uneven):
    world = World(rng, law, kinds, noise, n, uneven)
    before, kind = np.array([world.members() for _ in range(replicates)]), kinds // 2
    share = world.shares[kind]
    # The first step of Holm's method decides whether there is any regression.
    found = [
        any(one.bound("low", ALPHA / kinds) > one.margin for one in limits)
        for limits in evidence(before, world.members(), float(n))
    ]
    losses, _ = evidence(before, world.members(world.with_share(kind, (1 - LOSE) * share)), float(n))
    _, gains = evidence(before, world.members(world.with_share(kind, share + NEW)), float(n))
    return [*found, losses[kind].bound("high", ALPHA) <= LOSE, gains[kind].bound("high", ALPHA) <= NEW]


def main():
    rows = []
    for design in DESIGNS:
        rng = np.random.default_rng(0)
        false = np.sum([false_ones(rng, *design) for _ in range(RUNS)], axis=0).tolist()
        names = ("law", "kinds", "samples", "replicates", "noise")
        kinds = ("false losses", "false gains", "false passes, lost", "false passes, gained")
        rows.append(dict(zip(names, (design[0] + " uneven" * design[5], *design[1:5]), strict=True)))
        rows[-1] |= {name: counted(count, RUNS) for name, count in zip(kinds, false, strict=True)}
        print(rows[-1], flush=True)
    record("gate_retraining", rows, "α = 0.05; 95 % intervals of Clopper and Pearson; counts alone")


if __name__ == "__main__":
    main()
