"""Designs of whole comparisons of two sets: p-values of the sets, of kinds and of directions."""

from functools import partial

import numpy as np
from _law import Design, Drawn, NoClaim, PValue

import finc_eval as fe

PROMISES = {
    "Direction.p_value": PValue(together=True),
    "Comparison.detectable": NoClaim("a share that is found with probability .8, no interval"),
    "Kinds.detectable": NoClaim("a share that is found with probability .8, no interval"),
    "Changes.alpha": NoClaim("the level that was asked for"),
    "AppearanceLimits.whole": NoClaim("a limit that a policy sets"),
    "KindPlaces.xy": NoClaim("a place on a map"),
    "Finding.interval": NoClaim("of the kind, direction or word that it is, which have promises of their own"),
    "Finding.share_interval": NoClaim("of the look that it is; see Look.interval"),
    "Finding.p_value": NoClaim(
        "of the look, kind, direction, word or test that it is, or of what follows from it; of broken pairs "
        "tests/same_ids/test_findings_of_pairs.py draws it, and of drifts benchmarks/clip_drift.py"
    ),
    "Finding.e_value": NoClaim("of the alarm that it is"),
}


def two_sets(rng, n, m, dim, rare, shift):
    """Sets of eight kinds; the share of the last kind is larger in gen by a shift."""
    shares = np.append(np.full(7, (1 - rare) / 7), rare)
    centers = np.random.default_rng(7).normal(size=(8, dim)) * 3

    def drawn(count, raised):
        law = np.append(shares[:7] * (1 - rare - raised) / (1 - rare), rare + raised)
        return (centers[rng.choice(8, count, p=law)] + rng.normal(size=(count, dim))).astype(np.float32)

    yield from compared(drawn(n, shift), drawn(m, 0.0), rng, not shift)


def grouped_sets(rng, groups, size, dim, is_paired=False, shift=0.0):
    """Sets of videos with several windows, or of the same prompts; all samples of the first may be shifted."""
    centers = 2 * rng.normal(size=(groups, dim))
    sets = []
    for one in range(2):
        own = centers if is_paired else 2 * rng.normal(size=(groups, dim))
        rows = own.repeat(size, 0) + 0.7 * rng.normal(size=(groups * size, dim)) + shift * (one == 0)
        names = [f"video {row // size}" for row in range(groups * size)]
        sets.append(fe.EmbeddingSet(rows.astype(np.float32), metadata={"video": names}))
    yield from compared(*sets, rng, not shift, **{"pairs" if is_paired else "groups": "video"})


def compared(gen, ref, rng, is_null, **options):
    found = fe.compare(gen, ref, features=40, seed=int(rng.integers(1000)), **options)
    yield Drawn("Comparison.sets_p_value", found.sets_p_value, is_null=is_null)
    yield Drawn("Comparison.difference_p_value", found.difference_p_value, is_null=is_null)
    for number, tested in (("Kind.p_value", found.kinds), ("Direction.p_value", found.directions)):
        yield Drawn(number, min((one.p_value for one in tested), default=1.0), is_null=is_null)


NUMBERS = ("Comparison.sets_p_value", "Comparison.difference_p_value", "Kind.p_value", "Direction.p_value")


def _design(name, regime, runs, quick, draw=two_sets, **options):
    return Design(name, regime, NUMBERS, partial(draw, dim=6, **options), runs, quick)


DESIGNS = (
    _design("sets of 100 and 120", "small", 40, 0, n=100, m=120, rare=0.1, shift=0.0),
    _design("sets of 80 and 600", "rare", 40, 0, n=80, m=600, rare=0.02, shift=0.0),
    _design("sets of 300, a kind more", "large", 10, 1, n=300, m=300, rare=0.05, shift=0.2),
    _design("sets of 60 videos", "clustered", 30, 0, grouped_sets, groups=60, size=3),
    _design("sets of 60 prompts", "paired", 30, 0, grouped_sets, groups=60, size=3, is_paired=True),
)
