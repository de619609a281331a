"""Traits of a picture that every eye sees first, such as its color, noise and sharpness, and the words for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from finc_eval.extractors.networks import motion

Array = NDArray[np.float64]
Pixels = NDArray[np.floating[Any]]

SIDE = 64  # side of the thumbnails in which color and light are measured, in pixels
TOGETHER = 2**16  # pixels that are measured at a time: they stay in the cache
CROP = 256  # side of the middle of a picture in which texture is measured, in pixels, a multiple of 8
SQUARES = 8  # squares along each side whose mean color counts for that

UNSEEN_COLOR = 2 / 255
"""Difference of channels of a square that nobody sees. On black, noise is else as saturated as paint: with squares, all
of 300 digits and 300 gray photographs stay gray under noise of 4/255, and without squares none; of photographs in color
1.7 % are gray either way."""

FRAME = 4 / 255  # mean deviation of edge pixels from their middle up to which two opposite edges are a frame or bars
MOSAIC = (2, 3, 4, 5, 6)  # sides of the squares, in pixels, that pictures may consist of
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


@dataclass(frozen=True)
class Trait:
    """A measurement of a sample, and how samples with little and with much of it are called."""

    name: str
    low: str | None  # adjective of samples with little of it; None if that is not worth a word
    high: str | None
    less: str | None = None  # comparative of a whole set with less of it
    more: str | None = None
    least: float | None = None  # value from which a sample has the look; None if the other set decides
    brings: tuple[str, ...] = ()  # traits that change with it: of a whole set that has moved, they are not worth a word


COLOR = ("saturation", "warmth", "green")
TONE = ("brightness", "contrast", "shades", "edges", "top")
TEXTURE = ("specks", "noise", "mosaic", "blocks", "pattern", "sharpness", "streaks", "mark")
SHAPE = ("pixels", "shape")
EVERYTHING = (*COLOR, *TONE, *TEXTURE)

# In the order in which they name a look that several traits show.
TRAITS = (
    Trait("blank", None, "blank", least=0.5, brings=EVERYTHING),
    Trait("gray", "in color", "gray, without color", least=0.5, brings=COLOR),
    Trait("frame", None, "framed, or with bars at its edges", least=0.5, brings=EVERYTHING),
    Trait("pattern", None, "with a periodic pattern", None, "covered by a periodic pattern",
          brings=(*TEXTURE, *TONE)),
    Trait("specks", None, "noisy, with specks", None, "noisier, with specks", brings=TEXTURE),
    Trait("noise", None, "noisy", None, "noisier", brings=(*TEXTURE, *COLOR)),
    Trait("mosaic", None, "pixelated or upscaled", None, "pixelated or upscaled", brings=TEXTURE),
    Trait("blocks", None, "in blocks of 8 × 8 pixels, as JPEG makes them", None, "blockier, as JPEG makes pictures",
          brings=(*TEXTURE, *COLOR)),
    Trait("mark", None, "marked with the same pixels at one place", None, "marked with the same pixels at one place",
          brings=(*TEXTURE, *TONE)),
    Trait("sharpness", "blurred", "oversharpened", "blurrier", "sharper", brings=(*TEXTURE, "shades")),
    Trait("brightness", "dark", "bright", "darker", "brighter", brings=(*TONE, *TEXTURE, *COLOR)),
    Trait("contrast", "flat, with little contrast", "harsh, with much contrast", "flatter, with less contrast",
          "harsher, with more contrast", brings=(*TONE, *TEXTURE, *COLOR)),
    Trait("shades", None, "posterized, in few shades", None, "posterized, in fewer shades",
          brings=(*TEXTURE, *TONE, *COLOR)),
    Trait("saturation", "pale", "vivid", "paler", "more vivid", brings=COLOR),
    Trait("warmth", "bluish, of a cold tint", "reddish, of a warm tint", "bluer, of a colder tint",
          "redder, of a warmer tint", brings=COLOR),
    Trait("green", "purplish", "greenish", "more purple", "greener", brings=COLOR),
    Trait("edges", "dark at the edges", "bright at the edges", "darker at the edges", "brighter at the edges",
          brings=TONE),
    Trait("top", "brighter at the bottom than at the top", "brighter at the top than at the bottom",
          "brighter at the bottom", "brighter at the top"),
    Trait("shape", "tall", "wide", "taller", "wider", brings=(*SHAPE, *TEXTURE, *TONE)),
    Trait("pixels", "small", "large", "smaller", "larger", brings=(*SHAPE, *TEXTURE)),
    Trait("streaks", "streaked up and down", "streaked sideways", "more streaked up and down",
          "more streaked sideways"),
)  # fmt: skip


# Of clips, by the measurements of the extractor `motion`.
LOOKS_OF_CLIPS = (
    Trait("still", None, "still, without motion", least=0.5),
    Trait("repetition", None, "with repeated frames", None, "with more repeated frames",
          brings=("speed", "unevenness", "jump", "skipping", "judder", "loop")),
    Trait("loop", None, "looping: their frames come again", None, "looping more", brings=("turning", "unevenness")),
    Trait("cut", None, "with a cut", None, "with more cuts", brings=("jump", "unevenness", "speeding up")),
    Trait("turning", None, "shaking", None, "shaking more", brings=("unevenness", "speed", "jump", "loop")),
    Trait("flicker", None, "flickering", None, "flickering more", brings=("unevenness", "jump", "alternation")),
    Trait("alternation", None, "with alternating sharpness", None, "with more alternating sharpness"),
    Trait("judder", None, "juddering", None, "juddering more", brings=("unevenness", "skipping")),
    Trait("skipping", None, "with dropped frames", None, "with more dropped frames", brings=("unevenness", "jump")),
    Trait("jump", None, "with jumps between frames", None, "with larger jumps between frames",
          brings=("cut", "unevenness")),
    Trait("speed", "slow, with little motion", "fast, with much motion", "slower, with less motion",
          "faster, with more motion", brings=("unevenness", "jump", "outward", "turning")),
    Trait("speeding up", "slowing down", "speeding up", "slowing down more", "speeding up more"),
    Trait("sharpening", "blurring over time", "getting sharper", "blurring more over time", "getting sharper"),
    Trait("brightening", "getting darker", "getting brighter", "getting darker", "getting brighter"),
    Trait("right", "moving to the left", "moving to the right", "moving more to the left",
          "moving more to the right"),
    Trait("down", "moving up", "moving down", "moving more upwards", "moving more downwards"),
    Trait("outward", "moving inward", "moving outward", "moving more inward", "moving more outward"),
    Trait("unevenness", None, "with uneven motion", None, "with more uneven motion"),
)  # fmt: skip


def measure_clips(values: Array) -> Array:
    """Return the traits of clips, (n, traits), in the order of `LOOKS_OF_CLIPS`, from `motion.measurements`."""
    known = dict(zip(motion.MEASURED, values.T, strict=True))
    periods = [one for name, one in known.items() if name.startswith("flicker")]
    known |= {"still": known["repetition"] >= 0.95, "flicker": np.sum(periods, 0)}
    return np.column_stack([known[trait.name] for trait in LOOKS_OF_CLIPS]).astype(np.float64)


def measure_looks(images: Sequence[Image.Image]) -> tuple[Array, NDArray[np.int8]]:
    """Measure the traits of pictures, (n, traits), in the order of `TRAITS`.

    Also return the residuals, (n, SIDE²), in which `marks` looks for marks.
    """
    alike: dict[tuple[int, int], list[int]] = {}  # pictures of one size are measured together
    for place, image in enumerate(images):
        alike.setdefault(image.size, []).append(place)
    values, residuals = np.empty((len(images), len(TRAITS))), np.empty((len(images), SIDE * SIDE), np.int8)
    for (width, height), places in alike.items():
        count = max(1, TOGETHER // (min(width, CROP) * min(height, CROP)))
        for start in range(0, len(places), count):
            some = places[start : start + count]
            values[some], residuals[some] = _measure_of_one_size([images[place] for place in some])
    return values, residuals


def _measure_of_one_size(images: Sequence[Image.Image]) -> tuple[Array, NDArray[np.int8]]:
    width, height = images[0].size
    left, top = (max(0, (side - CROP) // 2) // 8 * 8 for side in (width, height))
    box = (left, top, min(width, left + CROP), min(height, top + CROP))
    colored = [image.convert("RGB") for image in images]
    gray = np.stack([np.asarray(image.convert("L").crop(box)) for image in colored]) / np.float32(255)
    thumbnails = [np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BOX)) for image in colored]
    small = np.stack(thumbnails) / np.float32(255)
    light = small @ np.array([0.299, 0.587, 0.114], np.float32)
    known: dict[str, NDArray[Any]] = color(small) | tone(light) | texture(gray)
    deviation = _flat(light).std(1)
    known |= {"blank": deviation < 2 / 255, "gray": has_no_color(small)}
    known |= {"frame": has_frame(small, deviation), "streaks": streaks(light)}
    shape = {"pixels": np.log(width * height), "shape": np.log(width / height), "mark": 0.0}  # marks are of many
    known |= {name: np.full(len(images), value) for name, value in shape.items()}
    return np.column_stack([known[trait.name] for trait in TRAITS]).astype(np.float64), residual(light)


def _flat(pixels: Pixels) -> Pixels:
    """Return the pixels of each picture in a row of its own."""
    return pixels.reshape(len(pixels), -1)


def has_no_color(pixels: Pixels) -> NDArray[np.bool_]:
    """Return whether pictures, (n, SIDE, SIDE, 3) in [0, 1], are gray: by the mean colors of their squares."""
    side = SIDE // SQUARES
    squares = pixels.reshape(len(pixels), SQUARES, side, SQUARES, side, 3).mean((2, 4))
    largest, smallest = squares.max(-1), squares.min(-1)
    seen = np.maximum(largest - smallest - UNSEEN_COLOR, 0) / np.maximum(largest, 1 / 255)
    return np.asarray(_flat(seen).mean(1) < 0.03)  # mean saturation of squares, beyond what nobody sees


def color(pixels: Pixels) -> dict[str, Pixels]:
    """Measure color, relative to brightness, of pixels in [0, 1], shape (n, h, w, 3)."""
    largest, smallest = (how(how(pixels[..., 0], pixels[..., 1]), pixels[..., 2]) for how in (np.maximum, np.minimum))
    red, green, blue = pixels.reshape(len(pixels), -1, 3).mean(1, dtype=float).T
    total = np.maximum(red + green + blue, 1 / 255)
    return {
        "saturation": _flat((largest - smallest) / np.maximum(largest, 1 / 255)).mean(1),
        "warmth": (red - blue) / total,
        "green": (2 * green - red - blue) / total,
    }


def tone(light: Pixels) -> dict[str, Pixels]:
    """Measure brightness in [0, 1], shape (n, SIDE, SIDE), its contrast, and where it is."""
    mean, quarter, half = _flat(light).mean(1), SIDE // 4, SIDE // 2
    inner = light[:, quarter:-quarter, quarter:-quarter].mean((1, 2))
    outer = np.concatenate([light[:, :4], light[:, -4:], *(light[..., at].mT for at in np.s_[:4, -4:])], 1).mean((1, 2))
    positive = np.maximum(mean, 1 / 255)
    return {
        "brightness": mean,
        "contrast": _flat(light).std(1) / positive,
        "edges": (outer - inner) / positive,
        "top": (light[:, :half].mean((1, 2)) - light[:, half:].mean((1, 2))) / positive,
    }


def has_frame(pixels: Pixels, deviation: Pixels) -> NDArray[np.bool_]:
    """Return whether two opposite edges of pictures, (n, h, w, 3) in [0, 1], have one color and the rest has not."""
    found = np.zeros(len(pixels), bool)
    for one, other in ((pixels[:, 0], pixels[:, -1]), (pixels[:, :, 0], pixels[:, :, -1])):
        both = np.concatenate([one, other], 1)
        spread = np.abs(both - np.median(both, axis=1, keepdims=True)).mean((1, 2))
        found |= (spread <= FRAME) & (deviation > FRAME)
    return found


TEXTURES = ("specks", "noise", "mosaic", "blocks", "pattern", "sharpness", "shades")


def texture(gray: Pixels) -> dict[str, Pixels]:
    """Measure specks, noise, mosaic, blocks, pattern, sharpness and shades of brightness in [0, 1], (n, h, w)."""
    n, *sides = gray.shape
    if min(sides) < 16:
        return dict.fromkeys(TEXTURES, np.zeros(n))
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
        "specks": np.log(lonely.mean((1, 2)) + 1 / gray[0].size),
        "noise": np.log(np.quantile(_flat(parts), 0.03, axis=1) + STEP),
        "mosaic": np.max([at_multiples(steps, side, apart=8) for side in MOSAIC], 0),  # apart from what JPEG makes
        "blocks": at_multiples(steps, 8),
        "pattern": periodicity(gray),
        "sharpness": np.log((_flat(second).var(1) + 1e-6) / (_flat(gray).var(1) + 1e-4)),
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
        np.cumsum(np.pad(one.astype(np.int64), ((0, 0), (side // 2 + 1, side // 2))), 1) for one in (counts, inside)
    )
    found: Array = (total[:, side:] - total[:, :-side]) / np.maximum(number[:, side:] - number[:, :-side], 1)
    return found


def at_multiples(steps: list[Pixels], side: int, apart: int | None = None) -> Array:
    """Return the logarithm of mean steps from pixel to pixel at multiples of a number, against all other steps.

    Steps have the shape (n, places). Steps at multiples of `apart` are left out.
    """
    inside, beside = np.zeros((2, len(steps[0])))
    for one in steps:
        place = np.arange(1, one.shape[1] + 1)
        counted = place % apart > 0 if apart else place > 0
        there = counted & (place % side == 0)
        inside += one[:, there].mean(1) if there.any() else 0.0
        beside += one[:, counted & ~there].mean(1)
    return np.asarray(np.log((inside + STEP) / (beside + STEP)), np.float64)


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
    """Return the mean residual, 0 where it is not significant."""
    mean = residuals.mean(0, dtype=np.float64)
    error = np.sqrt((residuals.astype(np.float32) ** 2).mean(0) / len(residuals)) + 1e-9
    return np.asarray(np.where(np.abs(mean) > LEAST_MARK * error, mean, 0.0) / RESIDUAL, np.float64)


def _products(residuals: NDArray[np.int8]) -> Array:
    n, own = len(residuals), residuals.astype(np.float32) / RESIDUAL
    total, squares = own.sum(0), (own**2).sum(0)
    others = (total - own) / (n - 1)
    error = np.sqrt((squares - own**2) / (n - 1) ** 2) + 1e-9
    return np.asarray((own * np.where(np.abs(others) > LEAST_MARK * error, others, 0)).sum(1), np.float64)
