"""Rates of what findings say by chance: copies of a law that repeats its values, and labels that differ."""

import numpy as np
import pytest
from scipy.stats import binom

from finc_eval.findings.causes import Held, are_left_beside_look
from finc_eval.findings.copies import COPIED, p_of_copies
from finc_eval.findings.finding import Finding
from finc_eval.numerics.hash_counts import HashCounts
from finc_eval.numerics.inference import ALPHA

RARE = 0.001  # probability with which a rate that is kept is refused

LAWS = {
    "20 values": np.full(20, 1 / 20),
    "500 values": np.full(500, 1 / 500),
    "3 000 values": np.full(3000, 1 / 3000),
    "some of 5 000 values more often": 1 / np.arange(1, 5001) / (1 / np.arange(1, 5001)).sum(),
}
SIZES = [(100, 100), (300, 60), (60, 300)]


def is_kept(count, of, rate):
    """Whether a count of draws is one of a rate that is at most this one."""
    return binom.sf(count - 1, of, rate) >= RARE


def p_of_digests(mine, theirs):
    """p-value of copies by the digest of each sample."""
    return p_of_copies(HashCounts.of(mine, most=None), HashCounts.of(theirs, most=None))


def p_values(law, sizes, seeds):
    for seed in range(seeds):
        drawn = np.random.default_rng(seed).choice(len(law), sum(sizes), p=law).astype(np.uint64)
        yield p_of_digests(drawn[: sizes[0]], drawn[sizes[0] :])


@pytest.mark.long
@pytest.mark.by_turns(3)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_sets_of_one_law_are_rarely_called_copies(law, sizes):
    """By Fisher's test of the shares, 88 of 3 000 draws of 1 000 and 100 samples were, at a level of .001."""
    found = np.array([*p_values(law, sizes, 400)])
    for level in (COPIED, 0.01, 0.05, 0.2):
        assert is_kept((found <= level).sum(), len(found), level), level


@pytest.mark.parametrize(("gen", "ref", "copies"), [(100, 100, 12), (300, 100, 12), (100, 300, 12), (120, 120, 120)])
def test_copies_are_found(gen, ref, copies):
    theirs = np.arange(ref, dtype=np.uint64)
    mine = np.arange(gen, dtype=np.uint64) + 1000
    mine[:copies] = np.random.default_rng(0).choice(theirs, copies, replace=copies > ref)
    assert p_of_digests(mine, theirs) <= COPIED
    assert p_of_digests(np.sort(mine)[::-1], np.roll(theirs, 7)) == p_of_digests(mine, theirs)
    mine[1:copies] = np.arange(copies - 1) + 5000
    assert p_of_digests(mine, theirs) > COPIED


def held_kinds(kinds, seed, law=None, n=150):
    """Kinds that a label names each, in two sets whose labels have one law, or two."""
    rng = np.random.default_rng(seed)
    laws = (np.full(kinds, 1 / kinds) if law is None else law, np.full(kinds, 1 / kinds))
    labels = {label: rng.choice(kinds, n, p=own) for label, own in zip(("gen", "ref"), laws, strict=True)}
    for kind in range(kinds):
        asked = {label: own == kind for label, own in labels.items()}
        yield Held(Finding(f"{kind}", "kind", False, 0.1, 0.2, 0.01), asked, f"k{kind}", None, asked)


@pytest.mark.long
@pytest.mark.parametrize("kinds", [1, 5, 20])
def test_labels_of_one_law_are_rarely_said_to_differ(kinds):
    """Each kind at 5 % would let one of twenty stand beside a look of the whole set in two of three pairs of sets."""
    said = [any(are_left_beside_look([*held_kinds(kinds, seed)])) for seed in range(600)]
    assert is_kept(sum(said), len(said), ALPHA)


def test_a_label_that_is_lost_is_said_to_differ():
    law = np.array([0.001, *np.full(9, 0.111)])
    found = are_left_beside_look([*held_kinds(10, 0, law / law.sum())])
    assert found == [True] + [False] * 9
