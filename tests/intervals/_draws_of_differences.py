"""Designs of differences of two sets: the total variation of their shares of kinds, and its p-value, from counts."""

from functools import partial

import numpy as np
from _draws_of_kinds import counts_of, law_of, paired_images
from _law import Design, Drawn, Holds, PValue

from finc_eval.partitions.counts import tally_sets
from finc_eval.partitions.difference import paired_variation, total_variation

WIDE = Holds(width=(0.8, 3.0), why="the upper end holds whatever the law of the differences is")

PROMISES = {
    "Difference.interval": WIDE,
    "Difference.p_value": PValue(exact=True),
    "Comparison.difference_interval": WIDE,
    "Comparison.difference_p_value": PValue(exact=True),
}

NUMBERS = tuple(PROMISES)


def drawn_difference(found, truth):
    """Yield what a result of two sets, or of more, prints of a difference."""
    for name in ("Difference.", "Comparison.difference_"):
        yield Drawn(f"{name}interval", found.value, found.interval, truth)
        yield Drawn(f"{name}p_value", found.p_value, is_null=truth == 0)


def two_sets(rng, n, m, kinds, rare, more=0.0, moved=0.0, size=1, alike=1.0):
    """Two sets; the first may have more of the last kind, or a part of it has moved from each kind to the next."""
    base = law_of(kinds, rare)
    law = law_of(kinds, rare, more)
    law[: kinds // 2 * 2] += moved / kinds * np.tile([1, -1], kinds // 2)
    counts = {"gen": counts_of(rng, n, law, size, alike), "ref": counts_of(rng, m, base, size, alike)}
    gen, ref = (one.effective() for one in tally_sets(counts).values())
    yield from drawn_difference(total_variation(gen, ref, int(rng.integers(1000))), np.abs(law - base).sum() / 2)


def images_of_prompts(rng, **options):
    """Images of the same prompts; see `paired_images`."""
    drawn = paired_images(rng, **options)
    (found,) = paired_variation(drawn.within)
    yield from drawn_difference(found, float(np.abs(drawn.difference).sum()) / 2)


def _design(name, regime, draw=two_sets, runs=300, quick=12, **options):
    return Design(name, regime, NUMBERS, partial(draw, **options), runs, quick)


_pairs = partial(_design, draw=images_of_prompts, runs=200, quick=6)
MOVED = {"rare": 0.05, "moved": 0.7}

DESIGNS = (
    _design("differences of 400 and 600", "large", n=400, m=600, kinds=12, rare=0.1),
    _design("differences of 400 and 600, half of the kinds", "large", n=400, m=600, kinds=12, rare=0.1, moved=0.4),
    _design("differences of 40 and 60", "small", n=40, m=60, kinds=6, rare=0.1),
    _design("differences of 40 and 60, a kind more", "small", n=40, m=60, kinds=6, rare=0.1, more=0.4),
    _design("differences of 300 and 3000", "rare", n=300, m=3000, kinds=12, rare=0.01),
    _design("differences of 300 and 3000, a rare kind more", "rare", n=300, m=3000, kinds=12, rare=0.01, more=0.05),
    _design("differences in groups of four", "clustered", n=600, m=600, kinds=8, rare=0.1, size=4),
    _design(
        "differences in groups of four, moved",
        "clustered",
        n=800,
        m=800,
        kinds=8,
        rare=0.1,
        size=4,
        alike=0.7,
        moved=0.6,
    ),
    _pairs("differences of pairs", "paired", prompts=80, sizes=(1, 1), kinds=8, rare=0.1, moved=0.0),
    _pairs("differences of pairs, moved", "paired", prompts=120, sizes=(1, 1), kinds=4, **MOVED),
    _pairs("differences of two and three images", "paired", prompts=40, sizes=(2, 3), kinds=8, rare=0.1, moved=0.0),
    _pairs("differences of two and three images, moved", "paired", prompts=40, sizes=(2, 3), kinds=4, **MOVED),
)
