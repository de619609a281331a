"""Measurements of the texture of pictures: specks, noise, blocks, resizing, patterns, sharpness, shades and marks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

Array = NDArray[np.float64]
Pixels = NDArray[np.floating[Any]]

MOSAIC = (2, 3, 4, 5, 6)  # sides of the squares, in pixels, that pictures may consist of
BLANK = 2 / 255  # standard deviation of light below which a picture shows nothing
STEP = 0.5 / 255  # half a step of brightness: smaller differences are rounding

ENDS, NEARLY_ONE, AROUND = 16, 3, 25
"""Codes at each end of a picture's range that do not count as shades, those of nearly one shade, and those around it.
Single empty codes, which a change of contrast leaves, are not seen: 95 % of photographs of 64 pixels with 1.2 times the
contrast are at most 0.07 uneven, untouched ones 0.08."""

UNEVEN = 0.25
"""Unevenness of shades up to which pictures blend them. 95 % of photographs of 28, 64 and 256 pixels have at most 0.13;
95 % of those that have four shades left, saved as JPEG, have at least 0.27."""

BESIDE_PEAK = 3  # places from a peak of a spectrum to its surroundings: the window spreads a peak over two
LONGEST_PERIOD = 6  # pixels of the longest period of a pattern: with 8, blurred digits have one

PEAK = 2.5
"""Rise of a peak up to which pictures have no pattern: white noise of 28 to 256 pixels has 2.0 to 2.8."""


FEW_SPECKS = 0.003
"""Part of the pixels that stand out from all their neighbors up to which pictures have no specks: of photographs of 64
pixels, 93 % have fewer. Smooth pictures lack them, which nobody sees."""


def flat(pixels: Pixels) -> Pixels:
    """Return the pixels of each picture in a row of its own."""
    return pixels.reshape(len(pixels), -1)


TEXTURES = ("specks", "noise", "mosaic", "blocks", "resizing", "pattern", "sharpness", "shades")


def texture(gray: Pixels) -> dict[str, Pixels]:
    """Measure the `TEXTURES` of brightness in [0, 1], shape (n, h, w)."""
    n, *sides = gray.shape
    if min(sides) < 16:
        return dict.fromkeys(TEXTURES, np.zeros(n)) | {"resizing": np.full(n, LEAST_RISE)}
    rows, columns = np.diff(gray, axis=1), np.diff(gray, axis=2)
    across, down = np.diff(columns, axis=2)[:, 1:-1], np.diff(rows, axis=1)[:, :, 1:-1]
    second = across + down
    around = [rows[:, 1:, 1:-1], -rows[:, :-1, 1:-1], columns[:, 1:-1, 1:], -columns[:, 1:-1, :-1]]
    least, most = np.minimum.reduce(around), np.maximum.reduce(around)
    lonely = (np.maximum(least, -most) > 0.3) & (most - least < 0.15)
    # Immerkær (1996): the mask that planes and edges along the axes do not pass, in the flattest parts of the picture.
    mask = np.abs(np.diff(down, n=2, axis=2)) if down.shape[2] > 2 else np.abs(down)
    height, width = (side // 6 for side in mask.shape[1:])
    parts = mask[:, : height * 6, : width * 6].reshape(n, height, 6, width, 6).mean((2, 4))
    steps = [np.abs(rows).mean(2), np.abs(columns).mean(1)]
    return {
        "specks": np.log(np.maximum(lonely.mean((1, 2)), FEW_SPECKS)),
        "noise": np.log(np.quantile(flat(parts), 0.03, axis=1) + STEP),
        "mosaic": np.max([at_multiples(steps, side, apart=8) for side in MOSAIC], 0),  # apart from what JPEG makes
        "blocks": blocks(steps),
        "resizing": resizing(gray),
        "pattern": periodicity(gray),
        "sharpness": np.log((flat(second).var(1) + 1e-6) / (flat(gray).var(1) + 1e-4)),
        "shades": shades(gray),
    }


def shades(gray: Pixels) -> Array:
    """Return the logarithm of how unevenly pictures use shades that lie side by side.

    That is the mean, over pixels, of the squared relative difference between the number of pixels of nearly one shade
    and that around it, beyond chance: 0 where shades blend, 1.7 where one in eight is used. Pixels count that differ
    from those above and on the left: flat areas and large pixels do not. The ends of each picture's own range do
    not count either: light is clipped there.
    """
    codes = (gray * 255 + 0.5).astype(np.int64)
    fresh = np.ones(codes.shape, bool)
    fresh[:, 1:] &= codes[:, 1:] != codes[:, :-1]
    fresh[:, :, 1:] &= codes[:, :, 1:] != codes[:, :, :-1]
    numbered = (codes + 256 * np.arange(len(codes))[:, None, None])[fresh]
    counts = np.bincount(numbered, minlength=256 * len(codes)).reshape(-1, 256)
    low, high = codes.min((1, 2))[:, None] + ENDS, codes.max((1, 2))[:, None] - ENDS
    inside = (np.arange(256) >= low) & (np.arange(256) <= high)
    counts = counts * inside
    near, wide = (_moving_mean(counts, inside, side) for side in (NEARLY_ONE, AROUND))
    uneven = np.where(inside, (near - wide) ** 2, 0) / np.where(wide > 0, wide, 1)
    # Independent pixels have this mean in each code, and 4.2 times its square as variance: the three codes overlap.
    chance, codes_used = 1 / NEARLY_ONE - 1 / AROUND, inside.sum(1)
    beyond = uneven.sum(1) - chance * (codes_used + 3 * np.sqrt(4.2 * codes_used))
    return np.asarray(np.log(np.maximum(beyond / np.maximum(counts.sum(1), 1), UNEVEN)), np.float64)


def _moving_mean(counts: NDArray[np.int64], inside: NDArray[np.bool_], side: int) -> Array:
    """Return the means of counts, (n, 256), over a number of codes around each, of those inside."""
    total, number = (
        np.cumsum(np.pad(codes.astype(np.int64), ((0, 0), (side // 2 + 1, side // 2))), 1) for codes in (counts, inside)
    )
    found: Array = (total[:, side:] - total[:, :-side]) / np.maximum(number[:, side:] - number[:, :-side], 1)
    return found


LARGEST_STEPS = 0.15
"""Share of the places, the largest and smallest steps, that does not count: one of the seven at multiples of 8 in a
picture of 64 pixels, such as the seam of a collage. Of photographs of 64 pixels that are collages of 2 × 2, 6 % are as
blocky as the blockiest 5 %, and 53 % if all places count."""


def at_multiples(steps: list[Pixels], side: int, apart: int) -> Array:
    """Return the logarithm of mean steps from pixel to pixel at multiples of a number, against all other steps.

    Steps have the shape (n, places). Steps at multiples of `apart` are left out. The means leave out as large a part of
    both, so that one seam, such as that of a collage, does not count.
    """
    inside, beside = np.zeros((2, len(steps[0])))
    for step in steps:
        place = np.arange(1, step.shape[1] + 1)
        counted = place % apart > 0
        there = counted & (place % side == 0)
        count = max(1, there.sum())
        left_out = int(LARGEST_STEPS * count) / count
        inside += _trimmed_mean(step[:, there], left_out) if there.any() else 0.0
        beside += _trimmed_mean(step[:, counted & ~there], left_out)
    return np.asarray(np.log((inside + STEP) / (beside + STEP)), np.float64)


BLOCK = 8  # side of the blocks of JPEG, in pixels

OTHER_PLACES = 2.0
"""Standard deviations of the other places in a block, and their largest, that steps at its border must exceed, beyond
their mean: other places are alike after JPEG, and differ after resizing.

Parts, in percent, that exceed the 95 % point of untouched photographs of 64 (128, 256) pixels; after the stroke where
steps at borders are compared with all others. Untouched: 4 (9, 8) | 4 (9, 7). JPEG 20: 95 (100, 100) | 92 (100, 100).
JPEG 30: 61 (100, 100) | 51 (100, 100). JPEG 50: 7 (100, 100) | 5 (98, 99). JPEG 75: 4 (88, 86) | 4 (71, 75). Resized by
5/8 and back: 0 (16, 1) | 19 (92, 87), by 9/16: 0 (2, 0) | 1 (6, 0), by 3/4: 1 (29, 2) | 12 (84, 74), by 1/2: 0 (1, 0) |
32 (94, 95). Blurred edges: 0 (7, 0) | 2 (17, 1)."""


def blocks(steps: list[Pixels]) -> Array:
    """Return how far steps at the borders of blocks of JPEG exceed those at other places in a block, shape (n,).

    Steps have the shape (n, places). Each counts by its logarithm, less the mean over the places around it: what is
    smoother at the edges of pictures has no blocks. The result is 0 where other places stand out as far.
    """
    parts, places = [], []
    for step in steps:
        level = np.log(step + STEP)
        sums = np.cumsum(np.pad(level, ((0, 0), (1, 0))), 1)
        means = (sums[:, BLOCK:] - sums[:, :-BLOCK]) / BLOCK
        around = (means[:, 1:] + means[:, :-1]) / 2  # of four places on either side; the farthest count half
        place = np.arange(BLOCK // 2 + 1, BLOCK // 2 + 1 + around.shape[1])
        parts.append(level[:, place - 1] - around)
        places.append(place % BLOCK)
    above, at = np.concatenate(parts, 1), np.concatenate(places)
    border, *others = (_trimmed_mean(above[:, at == place], LARGEST_STEPS) for place in np.unique(at))
    inside = np.stack(others)
    least = np.maximum(inside.max(0), inside.mean(0) + OTHER_PLACES * inside.std(0))
    return np.asarray(np.maximum(border - least, 0), np.float64)


def _trimmed_mean(values: Pixels, share: float) -> Pixels:
    """Return the means of values, (n, m), without a share of them at each end, shape (n,)."""
    count = int(share * values.shape[1] + 1e-9)  # 1/7 of 7 may be a little less than 1
    return np.asarray(np.sort(values, axis=1)[:, count : values.shape[1] - count].mean(1))


def streaks(light: Pixels) -> Pixels:
    """Return the logarithm of steps between rows, against steps between columns: streaks sideways have few of these."""
    down, across = (np.abs(np.diff(light, axis=axis)).mean((1, 2)) for axis in (1, 2))
    return np.asarray(np.log((down + STEP) / (across + STEP)))


def periodicity(gray: Pixels) -> Array:
    """Return how far the highest peak of each spectrum rises above its surroundings, as a logarithm.

    A peak rises from all sides: each pair of opposite neighbors is lower. So the slopes of
    blurred pictures are not peaks, nor are the ridges that edges make. Differences of neighbors count up to their mean:
    a faint pattern is seen where a picture is flat, and edges hide little of it.
    """
    height, width = gray.shape[1:]
    apart = _apart(gray)
    most = np.abs(apart).mean((1, 2), keepdims=True) + 2 * STEP
    window = np.hanning(height)[:, None] * np.hanning(width)
    power = np.abs(np.fft.fft2(np.clip(apart, -most, most) * window)) ** 2
    level = np.log(power + (window**2).sum() * (6 * STEP) ** 2)  # an error of three steps of brightness
    sides = [(0, BESIDE_PEAK), (BESIDE_PEAK, 0), (BESIDE_PEAK, BESIDE_PEAK), (BESIDE_PEAK, -BESIDE_PEAK)]
    pairs = [(np.roll(level, (i, j), (1, 2)) + np.roll(level, (-i, -j), (1, 2))) / 2 for i, j in sides]
    rises = level - np.maximum.reduce(pairs)
    # Slow changes of brightness are content.
    times = np.hypot(np.fft.fftfreq(height, 1 / height)[:, None], np.fft.fftfreq(width, 1 / width))
    often = times > min(height, width) / LONGEST_PERIOD
    return np.asarray(np.maximum(rises[:, often].max(1), PEAK), np.float64)


FREQUENCIES = 256  # length of the Fourier transforms of `resizing`; pictures are cropped to as many pixels

LOWEST_FREQUENCY = 0.18
"""Cycles per pixel from which a repetition may be of resizing, by factors of 1.22 to 5.6. Below lies the content."""

LEAST_RISE = 1.5
"""Rise of a peak up to which pictures show no resizing: of untouched photographs, 95 % have at most 1.5 (64 pixels), or
1.9 (128 pixels)."""

WEAK = 0.28
"""Amplitude of a repetition in eighths, in logarithms, up to which JPEG makes it.

Of photographs of 64 pixels that are blurred by 1.6 pixels, 95 % have at most .18 after JPEG of quality 92, and .27
after 75; resized by 5/8 or 3/4 and saved with 92, a half have .31 or more."""

LEAST_RESIZED = 32  # pixels of the smaller side from which resizing is measured


def resizing(gray: Pixels) -> Array:
    """Return how clearly pixels depend on where they lie between the pixels that they were interpolated from, (n,).

    The variance of the second differences of interpolated signals repeats with the factor of the resizing (Gallagher
    2005). Their logarithms have a peak in the spectrum; it is measured above its surroundings on both sides. Peaks of
    blocks of JPEG are left out by that of 1/8 cycles per pixel, and by their strength. Twice as many pixels leave no
    peak, and turned pictures hardly any. Of photographs of 64 (128) pixels, parts above 2 when resized by 5/8 and back:
    .88 (.84), and .67 (.42) after JPEG of quality 92; by 9/16: 1.00 (1.00), .89 (.94); by 3/4: .68 (.57), .47 (.11); by
    1/2: .01 (.05), .00 (.00); cropped and upscaled by 1.4: .99 (.91), .89 (.42); turned by 12°: .02 (.07), .01 (.06);
    blurred by 1.6 pixels: .07 (.06), .05 (.02); untouched: .00 (.01), .00 (.01).
    """
    size = min(gray.shape[1:])
    if size < LEAST_RESIZED:
        return np.full(len(gray), LEAST_RISE)
    power, strength = np.zeros((len(gray), FREQUENCIES // 2 + 1)), np.zeros((len(gray), BLOCK // 2 + 1))
    for axis in (1, 2):
        second = np.log(np.abs(np.diff(gray, n=2, axis=axis)).mean(3 - axis, dtype=np.float64) + STEP)
        strength += _block_waves(second) / 2
        # Content is smooth; one line is not a repetition.
        rough = np.clip(second - uniform_filter1d(second, 9, axis=1, mode="mirror"), -1, 1)
        found = np.abs(np.fft.rfft(rough * np.hanning(second.shape[1]), FREQUENCIES, axis=1)) ** 2
        power += found / (found.mean(1, keepdims=True) + 1e-12)
    level = np.log(power + 2e-3)
    whole = np.concatenate([level, level[:, -2:0:-1]], 1)  # of negative frequencies, too
    apart = max(2, round(2.5 * FREQUENCIES / size))  # beyond the width of a peak under this window
    around = uniform_filter1d(whole, 2 * apart + 1, axis=1, mode="wrap")
    rise = (whole - np.maximum(np.roll(around, 2 * apart, 1), np.roll(around, -2 * apart, 1)))[:, : level.shape[1]]
    first, width = FREQUENCIES // BLOCK, max(1, round(2 * FREQUENCIES / size))
    of_blocks = np.maximum(rise[:, first - 1 : first + 2].max(1), 0)[:, None]
    for wave in range(2, BLOCK // 2 + 1):
        near = np.s_[:, wave * first - width : wave * first + width + 1]
        rise[near] = np.where(strength[:, wave, None] < WEAK, LEAST_RISE, rise[near] - of_blocks)
    highest = rise[:, round(LOWEST_FREQUENCY * FREQUENCIES) :].max(1)
    return np.asarray(np.maximum(highest, LEAST_RISE), np.float64)


def _block_waves(levels: Array) -> Array:
    """Return the amplitude of the waves of levels, (n, places), that come again in each block of JPEG, (n, waves)."""
    count = levels.shape[1] // BLOCK
    blocks = levels[:, : count * BLOCK].reshape(len(levels), count, BLOCK).mean(1)
    return np.asarray(2 / BLOCK * np.abs(np.fft.rfft(blocks, axis=1)))


RESIDUAL = 127  # steps of a residual from none to the whole


def residual(light: Pixels) -> NDArray[np.int8]:
    """Return what sets each pixel apart from its neighbors, relative to the contrast around it, shape (n, SIDE²)."""
    apart = _apart(light)
    scale = np.abs(apart).mean((1, 2), keepdims=True) + 2 * STEP
    return np.asarray(np.clip(apart / (3 * scale), -1, 1) * RESIDUAL, np.int8).reshape(len(light), -1)


def _apart(light: Pixels) -> Pixels:
    """Return the difference of each pixel from the mean of the 3 × 3 pixels around it."""
    wide = np.pad(light, ((0, 0), (1, 1), (1, 1)), mode="edge")
    sums = wide[:, :-2] + wide[:, 1:-1] + wide[:, 2:]
    return light - (sums[:, :, :-2] + sums[:, :, 1:-1] + sums[:, :, 2:]) / 9


LEAST_MARK = 3.0  # standard errors of the mean residual of all pictures from which a pixel may be part of a mark


def marks(residuals: NDArray[np.int8]) -> Array:
    """Return how far each picture has what all pictures together have at the same places, shape (n,).

    That is the product of its residual with the mean of all others', where that is significant. Aligned pictures, such
    as digits, are alike by their content: then all values are 0.
    """
    n = len(residuals)
    if n < 3:
        return np.zeros(n)
    found = _products(residuals)
    low = found <= np.median(found)
    whole, rest = _template(residuals), _template(residuals[low])
    shared = float(whole @ rest) / max(float(whole @ whole), 1e-12)
    return found if shared < 0.25 else np.zeros(n)


def _template(residuals: NDArray[np.int8]) -> Array:
    """Return the mean of the residuals of pictures, (n, pixels), by pixel; 0 where it is not significant."""
    mean = residuals.mean(0, dtype=np.float64)
    error = np.sqrt((residuals.astype(np.float32) ** 2).mean(0) / len(residuals)) + 1e-9
    return np.asarray(np.where(np.abs(mean) > LEAST_MARK * error, mean, 0.0) / RESIDUAL, np.float64)


def _products(residuals: NDArray[np.int8]) -> Array:
    n, own = len(residuals), residuals.astype(np.float32) / RESIDUAL
    total, squares = own.sum(0), (own**2).sum(0)
    others = (total - own) / (n - 1)
    error = np.sqrt((squares - own**2) / (n - 1) ** 2) + 1e-9
    return np.asarray((own * np.where(np.abs(others) > LEAST_MARK * error, others, 0)).sum(1), np.float64)


def shared_marks(residuals: NDArray[np.int8]) -> Array:
    """Return how far the pictures of each unit share pixels at the same places, (units,), of residuals (units, k, m).

    That is the mean product of two residuals of a unit: it needs no other pictures.
    """
    own, k = residuals.astype(np.float32) / RESIDUAL, residuals.shape[1]
    products = (own.sum(1) ** 2).sum(1) - (own**2).sum((1, 2))
    return np.asarray(products / (k * (k - 1)), np.float64)
