"""Designs of comparisons of two sets: p-values of the sets, of kinds and of directions.

Intervals of shares have no design here yet: their promises say so.
"""

from functools import partial

import numpy as np
from _law import Design, Drawn, NoClaim, PValue

import finc_eval as fe

NO_DESIGN = "no design yet"

PROMISES = {
    "Comparison.sets_p_value": PValue(),
    "Comparison.difference_p_value": PValue(),
    "Kind.p_value": PValue(together=True),
    "Direction.p_value": PValue(together=True),
    **dict.fromkeys(("Kind.interval", "KindShare.interval"), NoClaim(NO_DESIGN)),
    **dict.fromkeys(("Comparison.difference_interval", "Difference.interval", "Whole.interval"), NoClaim(NO_DESIGN)),
    **dict.fromkeys(("Difference.p_value", "Kinds.sets_p_values", "Changes.sets_p_value"), NoClaim(NO_DESIGN)),
    "Mix.interval": NoClaim(NO_DESIGN),
    "Comparison.detectable": NoClaim("a share that is found with probability .8, no interval"),
    "Kinds.detectable": NoClaim("a share that is found with probability .8, no interval"),
    "Changes.alpha": NoClaim("the level that was asked for"),
    "AppearanceLimits.whole": NoClaim("a limit that a policy sets"),
    "KindPlaces.xy": NoClaim("a place on a map"),
}


def two_sets(rng, n, m, dim, rare, shift):
    """Sets of eight kinds; the share of the last kind is larger in gen by a shift."""
    shares = np.append(np.full(7, (1 - rare) / 7), rare)
    centers = np.random.default_rng(7).normal(size=(8, dim)) * 3

    def drawn(count, raised):
        law = np.append(shares[:7] * (1 - rare - raised) / (1 - rare), rare + raised)
        return (centers[rng.choice(8, count, p=law)] + rng.normal(size=(count, dim))).astype(np.float32)

    found = fe.compare(drawn(n, shift), drawn(m, 0.0), features=40, seed=int(rng.integers(1000)))
    is_null = not shift
    yield Drawn("Comparison.sets_p_value", found.sets_p_value, is_null=is_null)
    yield Drawn("Comparison.difference_p_value", found.difference_p_value, is_null=is_null)
    kinds, directions = [one.p_value for one in found.kinds], [one.p_value for one in found.directions]
    yield Drawn("Kind.p_value", min(kinds, default=1.0), is_null=is_null)
    yield Drawn("Direction.p_value", min(directions, default=1.0), is_null=is_null)


NUMBERS = ("Comparison.sets_p_value", "Comparison.difference_p_value", "Kind.p_value", "Direction.p_value")


def _design(name, regime, runs, quick, **options):
    return Design(name, regime, NUMBERS, partial(two_sets, dim=6, **options), runs, quick)


DESIGNS = (
    _design("sets of 100 and 120", "small", 100, 8, n=100, m=120, rare=0.1, shift=0.0),
    _design("sets of 80 and 600", "rare", 100, 0, n=80, m=600, rare=0.02, shift=0.0),
    _design("sets of 300, a kind more", "large", 20, 6, n=300, m=300, rare=0.05, shift=0.2),
)
