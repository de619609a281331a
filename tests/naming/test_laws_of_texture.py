"""Laws of what is measured of a picture: each trait by a direct formula on small pictures, and both sides of limits."""

import io

import numpy as np
import pytest
from PIL import Image, ImageFilter
from scipy.ndimage import convolve, uniform_filter

from finc_eval.extractors.networks.motion import LUMA
from finc_eval.naming.questions import HUES, MEASURED, measure
from finc_eval.naming.texture import (
    FEW_SPECKS,
    LEAST_RISE,
    PEAK,
    STEP,
    UNEVEN,
    at_multiples,
    blocks,
    marks,
    periodicity,
    residual,
    resizing,
    shades,
    streaks,
    texture,
)
from finc_eval.naming.traits import TRAITS, color, has_frame, has_no_color, has_one_tone, measure_looks, tone

RNG = np.random.default_rng(0)
GRAY = np.float32(RNG.uniform(0.2, 0.8, (2, 50, 44)))


def test_noise_and_sharpness_are_of_the_masks_of_the_papers():
    found = texture(GRAY)
    mask = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]])
    laplacian = np.array([[0, 1, 0], [1, -4, 1], [0, 1, 0]])
    for row, one in enumerate(GRAY.astype(float)):
        passed = np.abs(convolve(one, mask))[1:-1, 2:-2][:48, :36]
        parts = passed.reshape(8, 6, 6, 6).mean((1, 3))
        assert found["noise"][row] == pytest.approx(np.log(np.quantile(parts, 0.03) + STEP), rel=1e-4)
        second = convolve(one, laplacian)[1:-1, 1:-1].var()
        assert found["sharpness"][row] == pytest.approx(np.log((second + 1e-6) / (one.var() + 1e-4)), rel=1e-4)


@pytest.mark.parametrize(
    ("height", "around", "is_speck"), [(0.31, 0, True), (0.29, 0, False), (0.9, 0.1, True), (0.9, 0.2, False)]
)
def test_a_speck_stands_out_from_neighbors_that_are_alike(height, around, is_speck):
    gray = np.zeros((1, 20, 20), np.float32)
    for sign, base in ((1, 0.0), (-1, 1.0)):
        gray[0] = base
        gray[0, 9, 9], gray[0, 9, 10] = base + sign * height, base + sign * around
        share = max(is_speck / 18**2, FEW_SPECKS)
        assert texture(gray)["specks"][0] == pytest.approx(np.log(share), rel=1e-5)


@pytest.mark.parametrize("side", [15, 16])
def test_pictures_of_fewer_than_16_pixels_have_no_texture(side):
    found = texture(np.float32(RNG.uniform(size=(3, side, 30))))
    assert (found["noise"] != 0).any() == (side == 16)


def test_steps_at_multiples_are_against_all_others_without_the_largest_and_smallest():
    places = np.arange(1, 64)
    assert at_multiples([np.full((1, 63), 0.1)] * 2, 2, apart=8) == pytest.approx(0)
    halves = np.where(places % 2 == 0, 0.3, 0.1)[None]
    halves[0, places % 8 == 0] = 99.0
    assert at_multiples([halves, halves], 2, apart=8) == pytest.approx(np.log((0.6 + STEP) / (0.2 + STEP)))
    halves[0, [1, 9, 17, 61, 59, 57]] = 9.0, 9.0, 9.0, 0.0, 0.0, 0.0  # of 24 places
    assert at_multiples([halves, halves], 2, apart=8) == pytest.approx(np.log((0.6 + STEP) / (0.2 + STEP)))


PLACES = np.arange(1, 64)
STEPS = {  # steps from pixel to pixel along a side of 64 pixels, and how far blocks of 8 stand out
    "blocks": (np.where(PLACES % 8 == 0, 3.0, 1.0), np.log(3)),
    "blocks, and softer edges": (np.where(PLACES % 8 == 0, 3.0, 1.0) * np.exp(-np.abs(PLACES - 32) / 8), np.log(3)),
    "softer edges": (np.exp(-np.abs(PLACES - 32) / 8), 0.0),
    "a seam": (np.where(PLACES == 32, 20.0, 1.0), 0.0),
    "squares of 2": (np.where(PLACES % 2 == 0, 3.0, 1.0), 0.0),
    "squares of 4": (np.where(PLACES % 4 == 0, 3.0, 1.0), 0.0),
    "five of eight": (1 + np.cos(2 * np.pi * 5 / 8 * PLACES) / 2, 0.0),
    "nothing": (np.ones(63), 0.0),
}


@pytest.mark.parametrize("name", STEPS)
def test_blocks_stand_out_from_the_places_around_as_no_other_place_does(name):
    steps, expected = STEPS[name]
    assert blocks([steps[None]] * 2)[0] == pytest.approx(expected, abs=0.1 * (expected > 0) + 1e-9)


def resized_noise(size, side, count=30):
    """Pictures of noise, made with a number of pixels and resized to another."""
    noise = np.random.default_rng(1).integers(90, 166, (count, size, size), np.uint8)
    images = [Image.fromarray(one).resize((side, side), Image.Resampling.BICUBIC) for one in noise]
    return np.stack([np.asarray(one) for one in images]) / np.float32(255)


@pytest.mark.parametrize("side", [64, 96])
@pytest.mark.parametrize(("part", "is_seen"), [(5 / 8, True), (0.7, True), (4 / 5, True), (1, False), (1 / 2, False)])
def test_resized_pictures_have_differences_that_repeat(part, is_seen, side):
    untouched, found = resizing(resized_noise(side, side)), resizing(resized_noise(round(part * side), side))
    clear = (found > np.quantile(untouched, 0.95)).mean()
    assert clear > 0.9 if is_seen else clear < 0.2


@pytest.mark.parametrize(("radius", "quality"), [(1.2, 92), (1.6, 92), (1.6, 75), (2.5, 92)])
def test_what_jpeg_leaves_in_blurred_pictures_is_not_resizing(radius, quality):
    def coded(pixels, radius):
        file = io.BytesIO()
        image = Image.fromarray((255 * pixels).astype(np.uint8)).filter(ImageFilter.GaussianBlur(radius))
        image.save(file, "JPEG", quality=quality)
        return np.asarray(Image.open(file)) / np.float32(255)

    pictures = resized_noise(64, 64)
    untouched, blurred = (resizing(np.stack([coded(one, by) for one in pictures])) for by in (0, radius))
    assert (blurred > max(2.0, np.quantile(untouched, 0.95))).mean() < 0.15


def test_blocks_of_jpeg_are_not_resized_pictures_and_small_pictures_are_not_measured():
    untouched = resizing(resized_noise(64, 64))
    steps = np.float32(np.kron(RNG.uniform(-0.1, 0.1, (30, 8, 8)), np.ones((1, 8, 8))))
    assert (resizing(resized_noise(64, 64) + steps) > np.quantile(untouched, 0.95)).mean() < 0.2
    assert {*resizing(resized_noise(20, 31))} == {LEAST_RISE} and resizing(resized_noise(20, 32)).max() > LEAST_RISE


@pytest.mark.parametrize("side", [2, 3, 4])
def test_large_pixels_are_a_mosaic_and_blocks_of_8_are_blocks(side):
    small = RNG.uniform(0.2, 0.8, (1, 60 // side, 60 // side))
    assert texture(np.float32(np.kron(small, np.ones((1, side, side)))))["mosaic"][0] > 2
    blocks = np.float32(np.kron(RNG.uniform(0.2, 0.8, (1, 8, 8)), np.ones((1, 8, 8))))
    found = texture(blocks)
    assert found["blocks"][0] > 4 and found["mosaic"][0] < 1
    assert abs(texture(GRAY)["blocks"][0]) < 0.3


def test_shades_are_even_or_used_one_in_so_many():
    light = np.float32(RNG.uniform(size=(1, 200, 200)))
    few = [np.floor(light * 255 / every) * every / 255 for every in (1, 4, 8)]
    found = [float(shades(np.float32(one))[0]) for one in few]
    assert found[0] == pytest.approx(np.log(UNEVEN)) and np.exp(found[2]) == pytest.approx(1.7, abs=0.1)
    assert found[0] < found[1] < found[2]
    assert shades(np.float32(few[2][:, :40, :40]))[0] == pytest.approx(found[2], abs=0.3)
    clipped = np.where(light < 0.3, 0.3, np.where(light > 0.7, 0.7, light))
    assert shades(clipped)[0] == pytest.approx(np.log(UNEVEN))  # light is clipped at the ends
    flat = np.float32(np.repeat(light[:, :, :25], 8, 2))
    assert shades(flat)[0] < found[1]
    both = shades(np.float32(np.concatenate(few)))
    assert both == pytest.approx(found)


def test_streaks_are_steps_between_rows_against_those_between_columns():
    light = np.float32(RNG.uniform(size=(2, 9, 9)))
    down, across = (np.abs(np.diff(light, axis=axis)).mean((1, 2)) for axis in (1, 2))
    assert streaks(light) == pytest.approx(np.log((down + STEP) / (across + STEP)))
    assert streaks(light.swapaxes(-1, -2)) == pytest.approx(-streaks(light), rel=1e-4)


def waves(period, strength, side=64):
    rows = np.arange(side)[:, None] * np.ones(side)
    noise = np.random.default_rng(1).normal(0, 0.03, (side, side))
    return np.float32(np.clip(0.5 + noise + strength * np.sin(2 * np.pi * rows / period), 0, 1))[None]


def test_a_periodic_pattern_rises_above_its_surroundings():
    plain, faint, clear = (periodicity(waves(5, one))[0] for one in (0, 0.03, 0.2))
    assert PEAK <= plain < faint < clear
    assert periodicity(waves(60, 0.3))[0] < faint  # slow changes are content
    assert periodicity(np.full((1, 64, 64), 0.5, np.float32))[0] == PEAK
    turned = periodicity(waves(5, 0.2).swapaxes(-1, -2))[0]
    assert turned == pytest.approx(clear, rel=1e-3)


def test_a_residual_is_what_sets_a_pixel_apart_from_the_nine_around():
    light = np.float32(RNG.uniform(0.4, 0.5, (2, 12, 12)))
    light[0, 5, 5] = 1.0
    apart = np.stack([one - uniform_filter(one.astype(float), 3, mode="nearest") for one in light])
    scale = np.abs(apart).mean((1, 2), keepdims=True) + 2 * STEP
    wanted = np.clip(apart / (3 * scale), -1, 1) * 127
    assert np.abs(residual(light) - wanted.reshape(2, -1)).max() <= 1
    assert wanted.max() == 127


def test_a_mark_is_what_all_other_pictures_have_at_the_same_places():
    rest = np.random.default_rng(2).integers(-60, 61, (40, 64)).astype(np.int8)
    rest[:12, :6] = 110
    found = marks(rest)
    own = rest / 127
    for row in (0, 5, 20, 39):
        others = np.delete(own, row, 0)
        mean, error = others.mean(0), np.sqrt((others**2).sum(0)) / 39
        assert found[row] == pytest.approx((own[row] * np.where(np.abs(mean) > 3 * error, mean, 0)).sum(), abs=1e-5)
    assert found[:12].min() > found[12:].max()
    assert not marks(rest[:2]).any()
    aligned = rest.copy()
    aligned[:, :20] = 90  # all have it: that is their content
    assert not marks(aligned).any()


PIXELS = np.float32(RNG.uniform(0.1, 0.9, (2, 64, 64, 3)))


def test_color_is_relative_to_brightness():
    found = color(PIXELS)
    red, green, blue = PIXELS.reshape(2, -1, 3).mean(1, dtype=float).T
    total = red + green + blue
    assert found["warmth"] == pytest.approx((red - blue) / total)
    assert found["green"] == pytest.approx((2 * green - red - blue) / total)
    spread = (PIXELS.max(3) - PIXELS.min(3)) / PIXELS.max(3)
    assert found["saturation"] == pytest.approx(spread.mean((1, 2)), rel=1e-4)
    black = color(np.zeros((1, 64, 64, 3), np.float32))
    assert [float(one[0]) for one in black.values()] == [0, 0, 0]


def test_tone_is_where_light_is():
    light = np.float32(RNG.uniform(0.1, 0.5, (2, 64, 64)))
    light[:, :32] += 0.2
    light[:, 20:40, 20:40] += 0.3
    found, mean = tone(light), light.mean((1, 2))
    assert found["brightness"] == pytest.approx(mean, rel=1e-5)
    assert found["contrast"] == pytest.approx(light.std((1, 2)) / mean, rel=1e-4)
    halves = light[:, :32].mean((1, 2)) - light[:, 32:].mean((1, 2))
    assert found["top"] == pytest.approx(halves / mean, rel=1e-3)
    edges = np.stack(
        [light[:, :4], light[:, -4:], light[:, :, :4].swapaxes(-1, -2), light[:, :, -4:].swapaxes(-1, -2)]
    ).mean((0, 2, 3))
    inner = light[:, 16:48, 16:48].mean((1, 2))
    assert found["edges"] == pytest.approx((edges - inner) / mean, rel=1e-3)


def shaded(channels, side=64):
    """Shades of gray from left to right, with so much more of each channel."""
    base = np.linspace(0.3, 0.7, side)[None, :, None] * np.ones((side, 1, 3))
    return np.float32(base * np.array(channels))[None]


def squares_of(pixels):
    """Mean colors of the squares of eight pixels a side, (n, 64, 3)."""
    return pixels.reshape(len(pixels), 8, 8, 8, 8, 3).mean((2, 4)).reshape(len(pixels), 64, 3)


@pytest.mark.parametrize(("red", "is_gray"), [(1.0, True), (1.04, True), (1.05, False), (1.5, False)])
def test_a_picture_is_gray_up_to_a_saturation_that_nobody_sees(red, is_gray):
    # (r − 1)/r − 2/255 over the light: 3 % at about 1.05
    squares = squares_of(shaded((red, 1, 1)))[0]
    seen = np.maximum(squares.max(1) - squares.min(1) - 2 / 255, 0) / squares.max(1)
    assert (seen.mean() < 0.03) == is_gray == has_no_color(squares[None])[0]


def test_a_picture_has_one_tone_if_a_curve_of_its_light_gives_its_colors():
    sepia = shaded((1.0, 0.9, 0.7))
    curved = sepia.copy()
    curved[..., 0] += 0.3 * (curved[..., 0] - 0.5) ** 2
    assert has_one_tone(squares_of(sepia))[0] and has_one_tone(squares_of(curved))[0]
    light = float((sepia @ np.array(LUMA)).mean())
    for size, is_toned in ((0.8, True), (1.25, False)):
        tinted = sepia.copy()
        tinted[:, :32, :, 0] += size * 0.036 * light  # up and down, which light does not tell
        tinted[:, 32:, :, 2] += size * 0.036 * light
        assert has_one_tone(squares_of(tinted))[0] == is_toned


@pytest.mark.parametrize("axis", [1, 2])
def test_two_opposite_edges_of_one_color_are_a_frame(axis):
    pixels = PIXELS[:1].copy()
    assert not has_frame(pixels, np.array([0.2]))[0]
    edge = np.moveaxis(pixels, axis, 1)
    edge[:, 0] = edge[:, -1] = 0.5
    assert has_frame(pixels, np.array([0.2]))[0] and not has_frame(pixels, np.array([0.015]))[0]
    for deviation, has in ((3.8, True), (4.2, False)):
        noise = np.where(np.arange(64) % 2 == 0, deviation, -deviation)[:, None] / 255
        edge[:, 0] = edge[:, -1] = 0.5 + noise
        assert has_frame(pixels, np.array([0.2]))[0] == has
    edge[:, -1] = 0.9
    assert not has_frame(pixels, np.array([0.2]))[0]


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("lines", [slice(None, 32), slice(-12, None)])
@pytest.mark.parametrize("color", [0.0, 0.5, 1.0])
def test_a_bar_at_one_edge_ends_in_a_line(axis, lines, color):
    pixels = PIXELS[:1].copy()
    along = np.moveaxis(pixels, axis, 1)
    along[:, lines] = color
    assert has_frame(pixels, np.array([0.2]))[0]
    along[:] = np.linspace(color, abs(color - 0.6), 64)[:, None, None] + 0.01 * np.random.default_rng(0).normal(
        size=(64, 64, 1)
    )
    assert not has_frame(pixels, np.array([0.2]))[0]  # a sky has no end
    pixels = PIXELS[:1].copy()
    np.moveaxis(pixels, axis, 1)[:, :6] = color
    assert not has_frame(pixels, np.array([0.2]))[0]


def test_pictures_have_a_size_a_shape_and_a_middle():
    place = {trait.name: number for number, trait in enumerate(TRAITS)}
    wide = np.uint8(RNG.integers(0, 256, (40, 120, 3)))
    large = np.uint8(RNG.integers(0, 256, (30, 700, 3)))
    large[:, :222] = large[:, -222:] = 128  # texture is that of 256 pixels in the middle
    found, _ = measure_looks([Image.fromarray(wide), Image.fromarray(large)])
    assert found[:, place["pixels"]] == pytest.approx(np.log([4800, 21000]))
    assert found[:, place["shape"]] == pytest.approx(np.log([3, 700 / 30]))
    middle, _ = measure_looks([Image.fromarray(large[:, 216:472])])
    assert found[1, place["sharpness"]] == pytest.approx(middle[0, place["sharpness"]])
    assert not found[:, place["blank"]].any() and found[0, place["gray"]] == 0
    for deviation, is_blank in ((1, True), (3, False)):
        flat = np.full((64, 64, 3), 100, np.uint8)
        flat[::2] += np.uint8(2 * deviation)
        values, _ = measure_looks([Image.fromarray(flat)])
        assert (values[0, place["blank"]] == 1) == is_blank


def test_what_marks_members_is_measured_by_its_definition():
    pixels = np.uint8(RNG.integers(20, 236, (64, 64, 3)))
    pixels[:5] = pixels[-5:] = pixels[:, :5] = pixels[:, -5:] = 128
    found = dict(zip(MEASURED, measure(Image.fromarray(pixels)), strict=True))
    values = pixels / 255
    gray = values @ np.array(LUMA)
    laplacian = convolve(gray, np.array([[0, -1, 0], [-1, 4, -1], [0, -1, 0]]))[1:-1, 1:-1]
    largest, smallest = values.max(2), values.min(2)
    saturation = (largest - smallest) / largest
    assert found["brightness"] == pytest.approx(gray.mean()) and found["contrast"] == pytest.approx(gray.std())
    assert found["sharpness"] == pytest.approx(laplacian.std() / gray.std())
    assert found["saturation"] == pytest.approx(saturation.mean())
    assert (found["border"], found["size"]) == (5 / 64, 64 * 64)
    hue = np.array(Image.fromarray(pixels).convert("HSV"))[..., 0].astype(float) * 360 / 255
    colored = (saturation > 0.25) & (largest > 0.25)
    for name, (low, high) in HUES.items():
        share = (((hue - low) % 360 < high - low) & colored).mean()
        assert found[name] == pytest.approx(share, abs=0.02)
    assert sum(found[name] for name in HUES) == pytest.approx(colored.mean())
    plain = dict(zip(MEASURED, measure(Image.new("RGB", (30, 20), (90, 90, 90))), strict=True))
    assert (plain["border"], plain["sharpness"], plain["saturation"], plain["size"]) == (0.25, 0, 0, 600)
