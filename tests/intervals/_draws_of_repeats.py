"""Designs of the repeats of sets whose samples are all counted, or those of some values, as sketches count them."""

from functools import partial

import numpy as np
from _law import Design, Drawn

from finc_eval.naming.share_repeated import AllRepeats
from finc_eval.numerics.hash_counts import HashCounts

PROMISES = {}  # of looks, as in _draws_of_directions.py


def repeats_of_sets(rng, n, m, most, share, times=2, values=None):
    """Two sets whose samples come once, or are of one law of few values; of gen a share comes several times."""
    hashes = rng.integers(0, 2**64, n + m + (values or 0), dtype=np.uint64, endpoint=False)
    drawn = [np.arange(n), n + np.arange(m)]
    if values:
        chosen = [rng.random(len(one)) < 0.4 for one in drawn]
        law = rng.dirichlet(np.ones(values))
        for one, some in zip(drawn, chosen, strict=True):
            one[some] = n + m + rng.choice(values, some.sum(), p=law)
    repeated = round(share * n / times)
    drawn[0][: repeated * times] = np.arange(repeated).repeat(times)
    counts = [HashCounts.of(hashes[one], most) for one in drawn]
    found = AllRepeats.of(*counts)
    p_value = found.p_value(int(rng.integers(1000)), exchanges=99)
    yield Drawn("Look.p_value", p_value, is_null=not share, of="repeats")
    if share:
        yield Drawn("Look.interval", found.share, found.interval, share, of="repeats")


def _repeats(name, regime, runs, quick, **options):
    numbers = ("Look.p_value", *["Look.interval"] * bool(options["share"]))
    return Design(name, regime, numbers, partial(repeats_of_sets, **options), runs, quick)


DESIGNS = (
    _repeats("repeats of 80 and 120 samples of one law", "small", 400, 30, n=80, m=120, most=None, share=0, values=40),
    _repeats("repeats of one law, of some values", "rare", 400, 0, n=900, m=600, most=150, share=0, values=300),
    _repeats("a fifth of a set comes twice, some values", "large", 400, 30, n=2000, m=900, most=300, share=0.2),
    _repeats("a tenth of a set comes five times", "rare", 400, 0, n=4000, m=900, most=500, share=0.1, times=5),
)
