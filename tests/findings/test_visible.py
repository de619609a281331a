"""Nothing was found: the shares of faults that would have been found are found, and half of each needs more samples."""

from functools import cache

import numpy as np
import pytest
from PIL import Image, ImageFilter
from scipy.stats import binom

import finc_eval as fe
from finc_eval.findings.copies import hold_copies
from finc_eval.findings.visible import Visible, find_visible, smallest_copied, visible_blur
from finc_eval.naming.looks import look_at
from finc_eval.naming.measured import measure_sets

SIDE = 32
SENTENCES = [  # shares of blur, of a class and of copies, times, sizes, and what is said
    (
        (0.1, 0.09, 0.08, 4.0),
        (150, 150),
        "A blurred tenth, a lost class of 9 % or copies of 8 % would have been seen; 600 samples show half.",
    ),
    (
        (0.273, 0.401, 0.0175, 2.2),
        (100, 400),
        "A blurred 28 %, a lost class of 41 % or copies of 1.8 % would have been seen; "
        "220 against 880 samples show half.",
    ),
    ((0.1, None, 0.2, None), (60, 60), "A blurred tenth or copies of 20 % would have been seen."),
    ((None, 0.05, None, 2.2), (1234, 1234), "A lost class of 5 % would have been seen; 2,800 samples show half."),
    ((None, None, None, 2.2), (60, 60), ""),
]


@pytest.mark.parametrize(("numbers", "sizes", "sentence"), SENTENCES)
def test_what_would_have_been_seen_is_said_in_at_most_25_words(numbers, sizes, sentence):
    assert Visible(*numbers).sentence(sizes) == sentence
    assert len(sentence.split()) <= 25


@pytest.mark.parametrize(("n", "m"), [(60, 60), (150, 150), (40, 300), (300, 40), (2000, 2000)])
def test_copies_of_the_share_that_is_said_are_found_and_fewer_are_not(n, m):
    share = smallest_copied(n, m)
    rng = np.random.default_rng(0)
    for part, is_found in ((1.0, True), (0.5, False)):
        gen, ref = (rng.normal(size=(count, 4)).astype(np.float32) for count in (n, m))
        copied = round(part * share * n)
        gen[:copied] = ref[:copied]
        sets = {"gen": fe.EmbeddingSet(gen), "ref": fe.EmbeddingSet(ref)}
        assert bool(hold_copies(sets)) == is_found


def test_blur_and_copies_of_one_of_many_sets_must_be_larger_shares(share):
    sets = two_sets(0, 60, 60)
    among = [visible_blur(sets, measure_sets(sets), 0, among=number)[0] for number in (1, 5, 25)]
    assert among[0] == share < among[1] <= among[2] < 1
    assert smallest_copied(60, 60) <= smallest_copied(60, 60, 25) < smallest_copied(60, 60, 2500)


def test_sets_too_small_for_copies_have_no_such_share():
    assert smallest_copied(5, 5) is None


@cache
def picture(number):
    """A picture of spots of several sizes, as sharp as their mix."""
    rng = np.random.default_rng(number)
    layers = [
        np.asarray(Image.fromarray(rng.integers(0, 256, (side, side, 3), dtype=np.uint8)).resize((SIDE, SIDE)), float)
        for side in (2, 5, 12, 32)
    ]
    return Image.fromarray(np.tensordot(rng.dirichlet((4, 3, 2, 1.5)), layers, 1).astype(np.uint8))


def two_sets(seed, n, m, share=0.0, times=1):
    """Sets of pictures, of which a share of the generated ones is blurred; `times` each, as groups."""
    images = [picture(number) for number in np.random.default_rng(seed).permutation(2 * (n + m))[: n + m].tolist()]
    blurred = round(share * n)
    images[:blurred] = [image.filter(ImageFilter.GaussianBlur(SIDE / 40)) for image in images[:blurred]]
    sets = {}
    for label, part in (("gen", images[:n]), ("ref", images[n:])):
        repeated = [image for image in part for _ in range(times)]
        held = fe.EmbeddingSet(np.zeros((len(repeated), 2), np.float32), images=repeated)
        groups = np.repeat(np.arange(len(part), dtype=np.uint64), times)
        sets[label] = held.with_groups(groups, "group") if times > 1 else held
    return sets


def is_blur_found(sets):
    return any("blur" in look.name for look, _ in look_at(sets, 0, known=measure_sets(sets)))


def blur_of(sets):
    return visible_blur(sets, measure_sets(sets), 0)[0]


@pytest.fixture(scope="module")
def share():
    return blur_of(two_sets(0, 60, 60))


def test_a_visible_blur_is_found_and_a_quarter_of_it_is_not(share):
    assert 0.05 < share < 0.7
    assert is_blur_found(two_sets(1, 60, 60, share)) and not is_blur_found(two_sets(1, 60, 60, share / 4))


def test_samples_in_groups_of_three_equal_ones_show_no_rarer_blur_than_one_of_each_group(share):
    """As independent samples, they would show a little more than a half of the share."""
    assert blur_of(two_sets(0, 60, 60, times=3)) > 0.65 * share


def test_of_arrays_nothing_is_said_of_blur_and_of_equal_samples_nothing_of_copies():
    rows = np.random.default_rng(0).normal(size=(80, 4)).astype(np.float32)
    sets = {"gen": fe.EmbeddingSet(rows[:40]), "ref": fe.EmbeddingSet(rows[40:])}
    found = find_visible(sets, ((), {}), 0.2, 0)
    assert found.blurred is None and found.copies == smallest_copied(40, 40) and 0.2 < found.lost < 1
    assert find_visible(sets, ((), {}), 0.9, 0).lost is None
    assert find_visible(sets, ((), {}), 0.2, 0, equal=1).copies is None


@pytest.mark.long
@pytest.mark.parametrize(("n", "m"), [(60, 60), (150, 150), (60, 240)])
def test_visible_blurs_are_found_in_most_sets(n, m):
    """With 20 draws, fewer than 11 are found with probability .01 if 70 % are."""
    found = [is_blur_found(two_sets(seed, n, m, blur_of(two_sets(seed + 100, n, m)))) for seed in range(20)]
    assert binom.cdf(sum(found), len(found), 0.7) >= 0.01
