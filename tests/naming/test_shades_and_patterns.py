"""Few shades and periodic patterns are named where they are, on pictures of any size, and nowhere else."""

from functools import cache

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageOps

import finc_eval as fe
from finc_eval.naming.looks import look_at
from finc_eval.naming.measured import measure_pictures, measure_sets
from finc_eval.naming.texture import periodicity, shades

N = 120
"""Pictures of each set."""


def strokes(rng, side):
    """A white sign on black, as written by a pen."""
    large = Image.new("L", (4 * side, 4 * side))
    points = [tuple(rng.uniform(0.8 * side, 3.2 * side, 2)) for _ in range(4)]
    ImageDraw.Draw(large).line(points, fill=int(rng.integers(225, 256)), width=int(side * rng.uniform(0.3, 0.45)))
    soft = large.filter(ImageFilter.GaussianBlur(side / 16))
    return soft.resize((side, side), Image.Resampling.BOX)


def leaves(rng, side):
    """Discs of all sizes that hide each other, each shaded: their spectrum and edges are those of photographs."""
    y, x = np.mgrid[:side, :side] + 0.5
    shown = np.full((side, side), rng.uniform(60, 200))
    for _ in range(60):
        center, radius = rng.uniform(0, side, 2), side * min(0.05 / rng.random(), 0.6)
        inside = np.hypot(y - center[0], x - center[1]) < radius
        slope = rng.normal(0, 0.3, 2) * 256 / side
        shown[inside] = (rng.uniform(0, 255) + slope[0] * (y - center[0]) + slope[1] * (x - center[1]))[inside]
    shown = np.asarray(Image.fromarray(shown.clip(0, 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(0.6)))
    return Image.fromarray((shown + rng.normal(0, 3, shown.shape)).clip(0, 255).astype(np.uint8))


PICTURES = {"signs of 28": (strokes, 28), "scenes of 28": (leaves, 28), "scenes of 64": (leaves, 64),
            "scenes of 160": (leaves, 160)}  # fmt: skip


@cache
def drawn(what, seed):
    draw, side = PICTURES[what]
    rng = np.random.default_rng([seed, side])
    images = [draw(rng, side) for _ in range(N)]
    return images, measured(images)


def as_set(images):
    return fe.EmbeddingSet(np.zeros((len(images), 2), np.float32), images=images)


def measured(images):
    return measure_pictures(as_set(images))


def looks_after(change, what):
    """Return the names of the looks of pictures after a change, against other pictures."""
    (before, _), (others, of_others) = drawn(what, 1), drawn(what, 2)
    changed = [change(one, np.random.default_rng(number)) for number, one in enumerate(before)]
    sets = {"gen": as_set(changed), "ref": as_set(others)}
    known = measure_sets(sets, {"gen": measured(changed), "ref": of_others})
    return " ".join(look.name for look, _ in look_at(sets, 0, known=known))


def of_values(change):
    def changed(image, rng):
        values = change(np.asarray(image, float), rng)
        return Image.fromarray((values + 0.5).clip(0, 255).astype(np.uint8))

    return changed


def lines(step, part, both=False):
    """Darker lines that begin elsewhere in each picture."""

    def change(values, rng):
        values, (row, column) = values.copy(), rng.integers(0, step, 2)
        values[row::step] *= 1 - part
        if both:
            values[:, column::step] *= 1 - part
        return values

    return of_values(change)


def waves(period, height, slope=0.0):
    """Waves that begin elsewhere in each picture."""

    def change(values, rng):
        y, x = np.mgrid[: values.shape[0], : values.shape[1]]
        return values + height * np.sin(2 * np.pi * ((x + slope * y) / period + rng.random()))

    return of_values(change)


def small_and_back(image, rng):
    return image.resize((image.width // 2, image.height // 2), Image.Resampling.BOX).resize(image.size, 3)


def zoomed(image, rng):
    part = (0.9, 0, 0.05 * image.width, 0, 0.9, 0.05 * image.height)
    return image.transform(image.size, Image.Transform.AFFINE, part, Image.Resampling.BICUBIC)


NEITHER = {
    "untouched": lambda image, rng: image,
    "darker": of_values(lambda values, rng: 0.9 * values),
    "much darker": of_values(lambda values, rng: 0.6 * values),
    "of gray blacks": of_values(lambda values, rng: 12 + 0.9 * values),
    "brighter, and clipped": of_values(lambda values, rng: 1.2 * values),
    "flatter": of_values(lambda values, rng: 128 + 0.8 * (values - 128)),
    "harsher": of_values(lambda values, rng: 128 + 1.3 * (values - 128)),
    "of another curve": of_values(lambda values, rng: 255 * (values / 255) ** 1.4),
    "blurred a little": lambda image, rng: image.filter(ImageFilter.GaussianBlur(0.7)),
    "blurred": lambda image, rng: image.filter(ImageFilter.GaussianBlur(1.5)),
    "blurred by a box": lambda image, rng: image.filter(ImageFilter.BoxBlur(1)),
    "small and back": small_and_back,
    "zoomed": zoomed,
    "noisy": of_values(lambda values, rng: values + rng.normal(0, 10, values.shape)),
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("what", PICTURES)
@pytest.mark.parametrize("change", NEITHER)
def test_no_other_change_is_called_few_shades_or_a_pattern(change, what):
    said = looks_after(NEITHER[change], what)
    assert "posterized" not in said and "pattern" not in said


FEW_SHADES = {
    "8 shades": lambda image, rng: ImageOps.posterize(image, 3),
    "5 shades": of_values(lambda values, rng: 63.75 * np.round(values / 63.75)),
    "6 shades, and darker": of_values(lambda values, rng: 0.9 * 51 * np.round(values / 51)),
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("what", PICTURES)
@pytest.mark.parametrize("change", FEW_SHADES)
def test_few_shades_are_named(change, what):
    assert "posterized" in looks_after(FEW_SHADES[change], what)


PATTERNS = {
    "a grid": lines(4, 0.25, both=True),
    "lines": lines(5, 0.3),
    "waves": waves(3.3, 14),
    "slanted waves": waves(4.7, 16, slope=0.6),
}


# On the smallest pictures, waves as fine and slanted as these are noise.
SCENES = [(what, change) for what in PICTURES for change in PATTERNS if what.startswith("scenes")]


@pytest.mark.one_of_each
@pytest.mark.parametrize(("what", "change"), [one for one in SCENES if one != ("scenes of 28", "slanted waves")])
def test_a_pattern_is_named(what, change):
    assert "pattern" in looks_after(PATTERNS[change], what)


def gray(*images):
    return np.stack([np.asarray(one, np.float32) / 255 for one in images])


@pytest.mark.parametrize("low", [0, 30, 90])
def test_the_ends_of_a_picture_are_no_shades_wherever_they_lie(low):
    """A dimmed white is as many pixels of one code as a white one."""
    rng = np.random.default_rng(0)
    noise = low + rng.integers(-1, 2, (64, 64)) + np.where(rng.random((64, 64)) < 0.5, 150, 1)
    noise[:20] = np.linspace(low, low + 150, 64) + rng.normal(0, 2, (20, 64))
    assert shades(gray(noise.clip(0, 255))) == shades(gray(np.linspace(0, 255, 64)[None].repeat(64, 0)))


def test_large_pixels_have_as_many_shades_as_small_ones():
    image = leaves(np.random.default_rng(3), 64)
    assert shades(gray(image)) == shades(gray(image.resize((128, 128), Image.Resampling.NEAREST)))


def test_white_noise_of_any_size_has_hardly_a_peak():
    rng = np.random.default_rng(0)
    for side in (28, 64, 256):
        peaks = periodicity(rng.normal(0.5, 0.1, (12, side, side)).astype(np.float32))
        assert np.median(peaks) < 3.0
        waved = rng.normal(0.5, 0.1, (12, side, side)) + 0.1 * np.sin(np.arange(side) * 2.1)
        assert np.median(periodicity(waved.astype(np.float32))) > 3.5
