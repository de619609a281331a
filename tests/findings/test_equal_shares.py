"""Looks at equal shares of kinds: what unlike shares make follows from the kinds, and any other look stands."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

import finc_eval as fe
from finc_eval.findings.causes import Held
from finc_eval.findings.equal_shares import is_made_by_kinds, left_within_kinds
from finc_eval.findings.finding import Finding
from finc_eval.findings.found import explained
from finc_eval.numerics.inference import ALPHA

RARE = 0.001  # probability with which a rate that is kept is refused

EVEN = np.full(8, 1 / 8)
UNEVEN = np.array([0.01, 0.01, 0.02, 0.11, 0.13, 0.24, 0.24, 0.24])


def drawn(rng, shares, shift=0.0, n=300, steps=0.5):
    """Draw kinds, and a trait that rises from kind to kind."""
    kinds = rng.choice(len(shares), n, p=shares)
    return kinds, steps * kinds + shift + rng.normal(size=n)


def sets_of(seed, shares, shift=0.0, **options):
    rng = np.random.default_rng(seed)
    both = {"gen": drawn(rng, shares, shift, **options), "ref": drawn(rng, EVEN, **options)}
    return {label: values for label, (_, values) in both.items()}, {
        label: kinds.astype(str) for label, (kinds, _) in both.items()
    }


CASES = {  # shares of kinds in the generated set, shift of all of it, whether kinds make the difference
    "unlike shares": (UNEVEN, 0.0, True),
    "a shift of all": (EVEN, 1.0, False),
    "a shift of all, with unlike shares": (UNEVEN, 3.0, False),
    "one kind alone": (np.eye(8)[7], 0.0, True),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_difference_is_made_by_kinds_if_it_is_gone_between_samples_of_one_kind(case, sign):
    shares, shift, is_made = CASES[case]
    for seed in range(5):
        values, kinds = sets_of(seed, shares, shift)
        turned = {label: sign * of_set for label, of_set in values.items()}
        assert is_made_by_kinds(turned, kinds) == is_made
        swapped = ({"gen": table["ref"], "ref": table["gen"]} for table in (turned, kinds))
        assert is_made_by_kinds(*swapped) == is_made


def test_kinds_of_one_set_each_say_nothing():
    values = {"gen": np.arange(9.0), "ref": np.arange(9.0) + 20}
    kinds = {"gen": np.full(9, "k0"), "ref": np.full(9, "k1")}
    assert left_within_kinds(values, kinds) == (1.0, float("inf")) and not is_made_by_kinds(values, kinds)


def rate(seeds):
    """Count how often kinds of equal shares are said to make a slight shift of all."""
    return sum(is_made_by_kinds(*sets_of(seed, EVEN, 0.4, steps=0.0)) for seed in range(seeds))


def test_a_shift_of_all_is_seldom_said_to_be_made_by_kinds_of_equal_shares():
    assert binom.sf(rate(100) - 1, 100, ALPHA) >= RARE


@pytest.mark.long
def test_the_error_is_that_of_the_part_that_is_left():
    """Unlike shares make all of the difference: what is left is 0 within two errors in 19 of 20 draws."""
    seeds = 1000
    found = np.array([left_within_kinds(*sets_of(seed, UNEVEN)) for seed in range(seeds)])
    beyond = int((np.abs(found[:, 0]) > 1.96 * found[:, 1]).sum())
    assert binom.sf(beyond - 1, seeds, 0.05) >= RARE and binom.cdf(beyond, seeds, 0.05) >= RARE
    assert binom.sf(rate(seeds) - 1, seeds, ALPHA) >= RARE


def held(kind, name, share, before, **others):
    whole = kind == "look"
    members = {label: np.arange(100) < 100 * own for label, own in (("gen", share), ("ref", before))}
    found = Finding(name, kind, whole, *((None, None) if whole else (share, before)), 0.001, () if whole else (name,))
    return Held(found, members, name, **others)


BLUER, DARKER = held("look", "bluer", 1, 0), held("look", "darker", 1, 0)
KIND, OTHER = held("kind", "k1", 0.3, 0.1), held("kind", "k2", 0.0, 0.1)
LABELS = {"gen": np.zeros(100, bool), "ref": np.arange(100) < 10}
LOST = replace(OTHER, asked=LABELS)
GRAY = replace(BLUER, finding=Finding("gray", "look", False, 0.97, 0.03, 0.001), key="gray")
GRAY = replace(GRAY, members={label: np.arange(100) < 100 * share for label, share in (("gen", 0.97), ("ref", 0.03))})

TOGETHER = {  # findings, what is said with what follows from it
    "no kind makes the look": ([BLUER, KIND], {"bluer": ("k1",)}),
    "a kind makes the look": ([replace(BLUER, made_by="k1"), KIND], {"k1": ("bluer",)}),
    "kinds make two looks": (
        [replace(BLUER, made_by="k1"), replace(DARKER, made_by="k1"), KIND], {"k1": ("bluer", "darker")},
    ),
    "kinds make one of two looks": (
        [replace(BLUER, made_by="k1"), DARKER, KIND], {"bluer": (), "darker": ("k1",)},
    ),
    "a look of nearly all, and the kind of its samples": (
        [replace(GRAY, made_by="k1"), held("kind", "k1", 0.97, 0.03)], {"gray": ("k1",)},
    ),
    "a kind that is lost makes one of two looks": (
        [replace(BLUER, made_by="k2"), DARKER, LOST], {"darker": (), "k2": ("bluer",)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TOGETHER)
def test_a_look_that_kinds_make_is_said_by_the_kinds(case):
    findings, said = TOGETHER[case]
    assert {each.finding.name: each.finding.explains for each in explained(findings)} == said


def pictures_of(seed, shares, shift=0, seen=0.0):
    """A set of pictures of kinds, brighter from kind to kind; embeddings have a part of the brightness."""
    rng = np.random.default_rng(seed)
    shown = rng.permutation(np.repeat(np.arange(8), np.round(120 * np.array(shares)).astype(int)))
    light = 70 + 12 * shown[:, None, None, None] + rng.normal(0, 30, (len(shown), 1, 1, 1)) + shift
    images = (light + rng.normal(0, 10, (len(shown), 16, 16, 3))).clip(0, 255).astype(np.uint8)
    rows = 4 * np.eye(8)[shown] + 0.2 * rng.normal(size=(len(shown), 8))
    rows = np.column_stack([rows, seen * light[:, 0, 0, 0]])
    return fe.EmbeddingSet(rows.astype(np.float32), images=images)


def test_kinds_stay_in_the_headline_where_they_make_the_look_and_when_it_is_read_again():
    found = fe.compare(pictures_of(3, UNEVEN), pictures_of(4, EVEN), features=50)
    assert "brighter" in {look.name for look in found.looks if look.whole}
    assert {finding.kind for finding in found.findings} == {"kind"}
    assert "brighter" in {name for finding in found.findings for name in finding.explains}
    again = fe.Comparison.from_dict(found.to_dict())
    assert again.headline == found.headline and again.findings == found.findings


def test_a_look_of_all_stands_and_brings_the_kinds_that_it_makes():
    found = fe.compare(pictures_of(1, EVEN, shift=60, seen=0.03), pictures_of(2, EVEN, seen=0.03), features=50)
    (brought,) = (finding.explains for finding in found.findings if finding.name == "brighter")
    assert brought and "kind" not in {finding.kind for finding in found.findings}
