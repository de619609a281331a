"""Looks that need more than color: marks, bars, pixels, shades, motion, and numbers of the metadata."""

import io

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageFilter, ImageOps
from test_looks import LAST, SIDE, N, looks, pictures
from test_motion_traits import FAULTS, clean, drawn, embed, embedded, long  # noqa: F401

import finc_eval as fe
from finc_eval.naming.explained import explain
from finc_eval.naming.looks import find_looks
from finc_eval.naming.texture import marks
from finc_eval.naming.traits import TRAITS, measure_looks


def as_jpeg(image, quality):
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=quality)
    return Image.open(stream).convert("RGB")


def with_mark(image):
    image = image.copy()
    draw = ImageDraw.Draw(image)
    draw.rectangle((28, 34, 44, 42), outline="white")
    draw.line((28, 34, 44, 42), fill="white")
    return image


def with_bars(image):
    return ImageOps.expand(image.crop((0, 6, SIDE, SIDE - 6)), (0, 6), "black")


def with_specks(image):
    pixels, rng = np.asarray(image.filter(ImageFilter.GaussianBlur(1))).copy(), np.random.default_rng(0)
    pixels[rng.random((SIDE, SIDE)) < 0.03] = 255
    return Image.fromarray(pixels)


def smaller(image, factor, how):
    side = int(SIDE / factor)
    return image.resize((side, side), Image.Resampling.BOX).resize((SIDE, SIDE), how)


MIDDLE = Image.new("L", (SIDE, SIDE))
MIDDLE.paste(255, (8, 8, SIDE - 8, SIDE - 8))

PLANTED = {
    "marked": with_mark,
    "bars": with_bars,
    "specks": with_specks,
    "pixelated": lambda one: smaller(one, 3, Image.Resampling.NEAREST),
    "upscaled": lambda one: smaller(one, 8 / 5, Image.Resampling.BICUBIC),
    "blurred": lambda one: smaller(one, 4, Image.Resampling.BICUBIC),
    "posterized": lambda one: ImageOps.posterize(one, 2),
    "JPEG": lambda one: as_jpeg(one, 8),
    "toned": lambda one: ImageOps.colorize(one.convert("L"), (40, 15, 0), (255, 235, 190)),
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("word", PLANTED)
def test_a_fault_of_a_quarter_is_said(word):
    images = pictures(1)
    found = looks([*images[:LAST], *map(PLANTED[word], images[LAST:])], pictures(2))
    assert word in found[0].name and found[0].more_in == "gen"
    assert found[0].share_gen == pytest.approx(0.25, abs=0.1) and found[0].share_ref <= 0.08


NEVER_CODED = {  # changes that no compression made
    "upscaled": lambda one: smaller(one, 16 / 9, Image.Resampling.BICUBIC),
    "blurred edges": lambda one: Image.composite(one, one.filter(ImageFilter.GaussianBlur(2)), MIDDLE),
    "turned": lambda one: one.rotate(6, Image.Resampling.BICUBIC).crop((6, 6, 42, 42)).resize((SIDE, SIDE)),
}


@pytest.mark.parametrize("change", NEVER_CODED)
def test_what_was_never_coded_has_no_jpeg_artifacts(change):
    found = looks([*map(NEVER_CODED[change], pictures(1))], pictures(2))
    assert found and "blocks" not in [one.trait for one in found]


def test_pictures_of_both_sets_show_with_and_without_the_look():
    images = pictures(1)
    (first, *_) = looks([*images[:LAST], *map(with_mark, images[LAST:])], pictures(2))
    assert all(int(one) >= LAST for one in first.examples["gen"])
    place = [trait.name for trait in TRAITS].index("mark")
    values, residuals = measure_looks([*images[:LAST], *map(with_mark, images[LAST:]), *pictures(2)])
    values[:, place] = marks(residuals)
    shown = [len(images) + int(name) for name in first.examples["ref"]]
    assert shown and values[shown, place].max() < values[LAST : len(images), place].min()


def test_aligned_pictures_are_not_marked():
    """Digits have strokes at the same places: that is their content."""
    from finc_eval.demo.planted import shipped_digits

    digits, labels = shipped_digits()
    _, residuals = measure_looks([Image.fromarray(one).resize((64, 64)) for one in digits[:300]])
    assert not marks(residuals).any()
    ones, others = digits[labels == 1], digits[labels != 1]
    gen = [Image.fromarray(one).convert("RGB") for one in np.concatenate([ones[:60], others[:100]])]
    ref = [Image.fromarray(one).convert("RGB") for one in others[100:260]]
    assert "mark" not in [one.trait for one in looks(gen, ref)]


def test_measurements_do_not_depend_on_the_other_pictures():
    sizes = ((1, 1), (3, 200), (15, 15), (17, 16), (17, 16), (600, 400), (600, 400))
    rng = np.random.default_rng(0)
    images = [Image.fromarray(rng.integers(0, 256, (height, width, 3), np.uint8)) for width, height in sizes]
    images += [*pictures(1)[:40], *(Image.new("RGB", size, "red") for size in sizes)]
    values, residuals = measure_looks(images)
    assert values.shape == (len(images), len(TRAITS)) and np.isfinite(values).all() and residuals.dtype == np.int8
    for place, image in enumerate(images):
        own, residual = measure_looks([image])
        assert np.array_equal(residual[0], residuals[place])
        assert np.allclose(own[0], values[place], rtol=0, atol=1e-6)


@pytest.mark.one_of_each
@pytest.mark.parametrize("fault", ["with repeated frames", "shaking", "with a cut", "looping", "flickering", "still"])
def test_clips_have_looks(embed, clean, embedded, fault):  # noqa: F811
    plant = FAULTS["with less motion" if fault == "still" else fault]
    rows = torch.cat([embed(np.stack([plant(one) for one in clean[:12]])), embedded[12:]])
    sets = {label: fe.EmbeddingSet(one.numpy()) for label, one in (("gen", rows), ("ref", embedded))}
    for one in sets.values():
        one.space = "motion@00000000"
    (first, *_) = find_looks(sets, 0)
    assert fault in first.name and first.share_gen == pytest.approx(1 / 3, abs=0.12)
    sets["gen"].space = "pixels@00000000"
    assert find_looks(sets, 0) == ()


def tables(**columns):
    """Two sets with columns of metadata, a pair of arrays each."""
    return {
        label: fe.EmbeddingSet(
            np.zeros((N, 2), np.float32),
            metadata={name: [str(v) for v in both[place]] for name, both in columns.items()},
        )
        for place, label in enumerate(("gen", "ref"))
    }


def test_numbers_of_the_metadata_are_looks():
    rng = np.random.default_rng(0)
    seconds, other = rng.gamma(3, size=N), rng.gamma(3, size=N)
    seconds[:40] += 12
    (found,) = find_looks(tables(seconds=(seconds, other), fps=(rng.normal(size=N), rng.normal(size=N))), 0)
    assert found.name == "high in “seconds”" and (found.share_gen, found.share_ref) == pytest.approx(
        (0.25, 0), abs=0.02
    )
    (moved,) = find_looks(tables(seconds=(rng.normal(1, 1, N), rng.normal(0, 1, N))), 0)
    assert moved.sentence == "The generated set is on average higher in “seconds”."


@pytest.mark.parametrize(
    "values",
    [
        (np.arange(N), np.arange(N) + N),  # ids
        (np.arange(N) % 7, np.arange(N) % 7 + 3),  # codes
        (["1"] * (N - 1) + [""], np.ones(N)),
        (["x"] * N, ["y"] * N),
        (["nan"] * N, ["1.5"] * N),
    ],
)
def test_ids_codes_and_texts_are_not_measurements(values):
    assert find_looks(tables(column=values, label=(np.zeros(N), np.linspace(0, 1, N))), 0) == ()


def test_a_part_is_not_said_whose_share_is_small_against_the_change_of_the_mean():
    """Half of the generated set is turned: its mean moves by 4.6 standard errors, its tail from 1.3 to 3.5 %."""
    rng = np.random.default_rng(4)
    ref, gen = rng.normal(0.3, 1, 400), rng.normal(0.3, 1, 400)
    gen[:200] *= -1
    streaks = next(one for one in TRAITS if one.name == "streaks")
    assert explain(streaks, 0, -4.58, 2.27, {"gen": gen, "ref": ref}).whole
