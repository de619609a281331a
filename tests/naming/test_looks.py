"""Looks of whole sets: what was done to pictures is named, with its share, and nothing is said of equal sets."""

import re
from functools import cache

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

import finc_eval as fe
from finc_eval.core.words import predicate
from finc_eval.naming import looks as looks_of_sets
from finc_eval.naming.looks import REPEAT, find_looks, look_at
from finc_eval.naming.measured import BINS, Measured, TraitSpread, measure_pictures, measure_sets
from finc_eval.naming.traits import TRAITS
from finc_eval.numerics.inference import BESIDE_ALPHA

N, SIDE = 160, 48
LAST = N - N // 4
"""Pictures a set, their side in pixels, and the first of a quarter of a set."""


@cache
def made(seed, n):
    """Pictures of colored stripes and spots of many sizes, all with a sky and a ground."""
    rng, images = np.random.default_rng(seed), []
    for _ in range(n):
        layers = [
            Image.fromarray(rng.integers(0, 256, (side, side, 3), dtype=np.uint8)).resize((SIDE, SIDE), how)
            for side, how in ((2, 3), (5, 3), (12, 0), (24, 0))
        ]
        mixed = np.tensordot(rng.dirichlet((4, 3, 2, 1.5)), [np.asarray(one, float) for one in layers], 1)
        mixed = (mixed - 128) * rng.uniform(0.8, 1.6) + rng.uniform(100, 150) + rng.normal(size=mixed.shape) * 2
        images.append(Image.fromarray(mixed.clip(0, 255).astype(np.uint8)))
    return images


def pictures(seed, n=N):
    return [*made(seed, n)]


def noisy(image):
    rng = np.random.default_rng(int(np.asarray(image, int).sum()))
    return Image.fromarray((np.asarray(image, float) + 25 * rng.normal(size=(SIDE, SIDE, 3))).clip(0, 255).astype("u1"))


def gridded(image):
    pixels = np.asarray(image, float)
    pixels[::4] *= 0.8
    return Image.fromarray(pixels.astype(np.uint8))


CHANGES = {
    "gray": (lambda one: ImageOps.grayscale(one).convert("RGB"), "gray"),
    "blurred": (lambda one: one.filter(ImageFilter.GaussianBlur(2)), "blurred"),
    "noisy": (noisy, "noisy"),
    "framed": (lambda one: ImageOps.expand(one.crop((3, 3, 45, 45)), 3, "white"), "framed"),
    "blank": (lambda one: Image.new("RGB", (SIDE, SIDE), one.getpixel((0, 0))), "blank"),
    "wide": (lambda one: one.resize((64, 48)).crop((0, 6, 64, 42)), "wide"),
    "of a grid": (gridded, "pattern"),
}


def as_set(images, groups=None):
    return fe.EmbeddingSet(np.zeros((len(images), 2), np.float32), images=images, metadata=groups)


MEASURED = {}


def measured(images):
    """Measure pictures; those of one list, which `made` keeps, are measured once."""
    numbers = tuple(map(id, images))
    if numbers not in MEASURED:
        MEASURED[numbers] = measure_pictures(as_set(images)), images
    return MEASURED[numbers][0]


def looks(gen, ref, **options):
    sets = {"gen": as_set(gen), "ref": as_set(ref)}
    known = measure_sets(sets, {"gen": measured(gen), "ref": measured(ref)})
    return tuple(look for look, _ in look_at(sets, 0, known=known, **options))


@pytest.mark.one_of_each
@pytest.mark.parametrize("fault", CHANGES)
def test_a_fault_of_a_quarter_is_named_first_with_its_share(fault):
    change, word = CHANGES[fault]
    images = pictures(1)
    first, *_ = looks([*images[:LAST], *map(change, images[LAST:])], pictures(2))
    assert word in first.name and not first.whole and first.more_in == "gen"
    assert first.share_gen == pytest.approx(0.25, abs=0.08) and first.share_ref <= 0.08
    assert first.p_value <= BESIDE_ALPHA
    shown = {int(one) for one in first.examples["gen"]}
    assert len([one for one in shown if one >= LAST]) >= 0.75 * len(shown)


@pytest.mark.parametrize("count", range(40, 70, 5))
def test_a_look_that_one_trait_alone_shows_is_found_whatever_the_rounding(count, monkeypatch):
    """Columns that are summed alone, or with others, have other last digits."""
    rng, n = np.random.default_rng(count), 500
    traits = [one for one in TRAITS if one.name in ("gray", "sharpness", "brightness", "noise", "contrast")]
    place = [one.name for one in traits].index("gray")
    measured = {}
    for label, gray in (("gen", count), ("ref", 2)):
        values = rng.normal(size=(n, len(traits)))
        values[:, place] = rng.permutation(np.arange(n) < gray)
        measured[label] = Measured(np.arange(n), values)
    monkeypatch.setattr(looks_of_sets, "measure_sets", lambda sets: (tuple(traits), measured))
    sets = {label: fe.EmbeddingSet(rng.normal(size=(n, 2)).astype(np.float32)) for label in measured}
    assert [one.trait for one in find_looks(sets, 0, None)] == ["gray"]


@pytest.mark.one_of_each
@pytest.mark.parametrize("fault", ["gray", "blurred"])
def test_a_look_that_the_generated_set_lacks_is_a_fact_of_the_reference(fault):
    change, word = CHANGES[fault]
    images = pictures(1)
    first, *_ = looks(pictures(2), [*images[:LAST], *map(change, images[LAST:])])
    assert word in first.name and first.more_in == "ref" and first.share_gen < 0.1 < first.share_ref
    assert re.search(r"^\d+ % of the reference is .*, but (none|only .* %) of the generated set\.$", first.sentence)


@pytest.mark.one_of_each
@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda one: ImageEnhance.Brightness(one).enhance(0.75), "darker"),
        (lambda one: ImageEnhance.Brightness(one).enhance(1.3), "brighter"),
        (lambda one: ImageEnhance.Contrast(one).enhance(0.6), "flatter"),
        (lambda one: ImageEnhance.Color(one).enhance(0.5), "paler"),
    ],
)
def test_a_change_of_every_picture_is_one_of_the_whole_set(change, word):
    found = looks([*map(change, pictures(1))], pictures(2))
    assert word in " ".join(one.sentence for one in found if one.whole)
    assert found[0].whole and " is on average " in found[0].sentence


@pytest.mark.one_of_each
@pytest.mark.parametrize("seed", [3, 4, 5, 6])
def test_nothing_is_said_of_sets_of_one_law(seed):
    assert looks(pictures(seed), pictures(10 + seed)) == ()


def test_what_a_look_brings_with_it_is_not_a_second_look():
    images = pictures(1)
    gray = CHANGES["gray"][0]
    (only,) = looks([*images[:LAST], *map(gray, images[LAST:])], pictures(2))  # not "pale", too
    assert only.trait == "gray"


def test_two_faults_are_two_looks():
    images = pictures(1)
    gray, blurred = (CHANGES[fault][0] for fault in ("gray", "blurred"))
    found = looks([*map(gray, images[:40]), *images[40:LAST], *map(blurred, images[LAST:])], pictures(2))
    assert sorted(one.trait for one in found) == ["gray", "sharpness"]


def test_a_look_knows_how_its_trait_is_spread_in_both_sets():
    """The darkened quarter is the lowest part of both sets together, which the other set has hardly any of."""
    images = pictures(1)
    darkened = [ImageEnhance.Brightness(one).enhance(0.3) for one in images[LAST:]]
    first, *_ = looks([*images[:LAST], *darkened], pictures(2))
    assert first.trait == "brightness" and first.spread.starts == tuple(sorted(first.spread.starts))
    own, other = (np.cumsum(first.spread.shares[label]) for label in ("gen", "ref"))
    assert own[-1] == pytest.approx(1, abs=1e-3) and other[-1] == pytest.approx(1, abs=1e-3)
    assert max(own - other) == pytest.approx(0.25, abs=0.08) and len(own) <= BINS


def test_equal_values_are_one_bin_and_unknown_values_are_left_out():
    both = TraitSpread.of({"gen": np.array([0.0, 1, 1, np.nan]), "ref": np.zeros(5)})
    assert both.starts == (0, 1) and both.shares == {"gen": (0.3333, 0.6667), "ref": (1, 0)}
    assert TraitSpread.of({"gen": np.zeros(3), "ref": np.zeros(3)}) is None
    assert TraitSpread.of({"gen": np.full(3, np.nan), "ref": np.arange(3.0)}) is None


@pytest.mark.parametrize(("times", "said"), [(20, True), (3, False)])
def test_a_picture_that_is_repeated_is_said_with_its_share(times, said):
    images = pictures(1)
    found = [one for one in looks([*images[times:], *[images[0]] * times], pictures(2)) if one.trait == REPEAT]
    assert [one.share_gen for one in found] == [pytest.approx(times / N)] * said
    if said:
        assert found[0].sentence == "12 % of the generated set is one picture, 20 times (reference 0 %)."


def test_a_picture_that_both_sets_repeat_is_not_a_look():
    images, others = pictures(1), pictures(2)
    assert looks([*images[20:], *[images[0]] * 20], [*others[20:], *[images[0]] * 20]) == ()


def test_samples_of_one_group_are_not_twenty_findings():
    gray, groups = CHANGES["gray"][0], {"video": [place // 20 for place in range(N)]}
    images = pictures(1)
    sets = {"gen": as_set([*map(gray, images[:20]), *images[20:]], groups), "ref": as_set(pictures(2), groups)}
    assert [one.trait for one in find_looks(sets, 0)] == ["gray"]
    assert find_looks({label: one.grouped("video") for label, one in sets.items()}, 0) == ()


def test_images_of_a_prompt_are_compared_with_those_of_the_same_prompt():
    images, blocks = pictures(1, 60), np.arange(60)
    paired = {"gen": blocks, "ref": blocks}
    darker = [ImageEnhance.Brightness(one).enhance(0.96) for one in images]
    assert looks(darker, images) == ()  # independent sets of 60 cannot show as little
    found = looks(darker, images, blocks=paired)
    assert found and "darker" in " ".join(one.sentence for one in found)
    assert looks(images, pictures(2, 60), blocks={"gen": blocks, "ref": blocks + 60}) == ()  # no prompt in common


def test_sets_without_pictures_have_no_looks():
    plain = fe.EmbeddingSet(np.zeros((50, 2), np.float32))
    assert find_looks({"gen": plain, "ref": as_set(pictures(1, 50))}, 0) == ()


@pytest.mark.parametrize(
    ("name", "said"),
    [("darker", "is darker"), ("noisier, with specks", "is noisier, with specks"), ("with a cut", "has a cut")],
)
def test_a_look_is_said_with_its_verb(name, said):
    assert predicate(name) == said
