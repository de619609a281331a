"""Traits of a picture that every eye sees first, such as its color, noise and sharpness, and the words for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from finc_eval.extractors.networks import motion

Array = NDArray[np.float64]
Pixels = NDArray[np.floating[Any]]

SIDE = 64  # side of the thumbnails in which color and light are measured, in pixels
CROP = 256  # side of the middle of a picture in which texture is measured, in pixels, a multiple of 8
COLORLESS = 0.03  # mean saturation below which a picture counts as gray
FRAME = 4 / 255  # mean deviation of edge pixels from their middle up to which two opposite edges are a frame or bars
MOSAIC = (2, 3, 4, 5, 6)  # sides of the squares, in pixels, that pictures may consist of
STEP = 0.5 / 255  # half a step of brightness: smaller differences are rounding


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
    Trait("specks", None, "noisy, with specks", None, "noisier, with specks", brings=TEXTURE),
    Trait("noise", None, "noisy", None, "noisier", brings=(*TEXTURE, *COLOR)),
    Trait("mosaic", None, "pixelated or upscaled", None, "pixelated or upscaled", brings=TEXTURE),
    Trait("blocks", None, "in blocks of 8 × 8 pixels, as JPEG makes them", None, "blockier, as JPEG makes pictures",
          brings=(*TEXTURE, *COLOR)),
    Trait("pattern", None, "with a periodic pattern", None, "covered by a periodic pattern",
          brings=(*TEXTURE, *TONE)),
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


def measure_looks(image: Image.Image) -> tuple[Array, NDArray[np.int8]]:
    """Measure the traits of a picture, in the order of `TRAITS`, and the residual in which `marks` looks for marks."""
    width, height = image.size
    image = image.convert("RGB")
    left, top = (max(0, (side - CROP) // 2) // 8 * 8 for side in (width, height))
    middle = image.convert("L").crop((left, top, min(width, left + CROP), min(height, top + CROP)))
    small = np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BOX), np.float32) / 255
    light = small @ np.array([0.299, 0.587, 0.114], np.float32)
    known = color(small) | tone(light) | texture(np.asarray(middle, np.float32) / np.float32(255))
    known |= {"blank": light.std() < 2 / 255, "gray": known["saturation"] < COLORLESS}
    known |= {"frame": has_frame(small, float(light.std())), "streaks": streaks(light)}
    known |= {"pixels": np.log(width * height), "shape": np.log(width / height), "mark": 0.0}  # marks are of many
    return np.array([known[trait.name] for trait in TRAITS], np.float64), residual(light)


def color(pixels: Pixels) -> dict[str, float]:
    """Measure color, relative to brightness, of pixels in [0, 1], shape (h, w, 3)."""
    largest, smallest = (how(how(pixels[..., 0], pixels[..., 1]), pixels[..., 2]) for how in (np.maximum, np.minimum))
    red, green, blue = pixels.reshape(-1, 3).mean(0, dtype=float)
    total = max(red + green + blue, 1 / 255)
    return {
        "saturation": float(((largest - smallest) / np.maximum(largest, 1 / 255)).mean()),
        "warmth": (red - blue) / total,
        "green": (2 * green - red - blue) / total,
    }


def tone(light: Pixels) -> dict[str, float]:
    """Measure brightness in [0, 1], shape (SIDE, SIDE), its contrast, and where it is."""
    mean, quarter, half = max(float(light.mean()), 1 / 255), SIDE // 4, SIDE // 2
    inner = float(light[quarter:-quarter, quarter:-quarter].mean())
    outer = float(np.concatenate([light[:4], light[-4:], light[:, :4].T, light[:, -4:].T]).mean())
    return {
        "brightness": float(light.mean()),
        "contrast": float(light.std()) / mean,
        "edges": (outer - inner) / mean,
        "top": float(light[:half].mean() - light[half:].mean()) / mean,
    }


def has_frame(pixels: Pixels, deviation: float) -> bool:
    """Return whether two opposite edges of a picture, (h, w, 3) in [0, 1], have one color and the rest has not."""
    for one, other in ((pixels[0], pixels[-1]), (pixels[:, 0], pixels[:, -1])):
        both = np.concatenate([one, other])
        if np.abs(both - np.median(both, axis=0)).mean() <= FRAME < deviation:
            return True
    return False


TEXTURES = ("specks", "noise", "mosaic", "blocks", "pattern", "sharpness", "shades")


def texture(gray: Pixels) -> dict[str, float]:
    """Measure specks, noise, mosaic, blocks, pattern, sharpness and shades of brightness in [0, 1], shape (h, w)."""
    if min(gray.shape) < 16:
        return dict.fromkeys(TEXTURES, 0.0)
    rows, columns = np.diff(gray, axis=0), np.diff(gray, axis=1)
    across, down = np.diff(columns, axis=1)[1:-1], np.diff(rows, axis=0)[:, 1:-1]
    second = across + down
    around = [rows[1:, 1:-1], -rows[:-1, 1:-1], columns[1:-1, 1:], -columns[1:-1, :-1]]
    least, most = np.minimum.reduce(around), np.maximum.reduce(around)
    specks = np.log(((np.maximum(least, -most) > 0.3) & (most - least < 0.15)).mean() + 1 / gray.size)
    # Immerkær (1996): the mask that planes and edges along the axes do not pass, in the flattest parts of the picture.
    mask = np.abs(np.diff(down, n=2, axis=1)) if down.shape[1] > 2 else np.abs(down)
    height, width = (side // 6 for side in mask.shape)
    parts = mask[: height * 6, : width * 6].reshape(height, 6, width, 6).mean((1, 3))
    noise = np.log(np.quantile(parts, 0.03) + STEP)
    sharpness = np.log((second.var() + 1e-6) / (gray.var() + 1e-4))
    steps = [np.abs(rows).mean(1), np.abs(columns).mean(0)]
    mosaic = max(at_multiples(steps, side, apart=8) for side in MOSAIC)  # apart from what JPEG makes
    counts = np.bincount((gray * 255 + 0.5).astype(np.uint8).ravel(), minlength=256)
    counts = counts[8:-8]  # without the ends, where light is clipped
    smooth = np.convolve(counts, np.full(9, 1 / 9), "same")
    shades = np.log(((counts - smooth) ** 2 / np.maximum(smooth, 1)).mean() + 0.1)
    found = (specks, noise, mosaic, at_multiples(steps, 8), periodicity(gray), sharpness, shades)
    return dict(zip(TEXTURES, map(float, found), strict=True))


def at_multiples(steps: list[Pixels], side: int, apart: int | None = None) -> float:
    """Return the logarithm of mean steps from pixel to pixel at multiples of a number, against all other steps.

    Steps at multiples of `apart` are left out.
    """
    inside, beside = 0.0, 0.0
    for one in steps:
        place = np.arange(1, len(one) + 1)
        counted = place % apart > 0 if apart else place > 0
        there = counted & (place % side == 0)
        inside += float(one[there].mean()) if there.any() else 0.0
        beside += float(one[counted & ~there].mean())
    return float(np.log((inside + STEP) / (beside + STEP)))


def streaks(light: Pixels) -> float:
    """Return the logarithm of steps between rows, against steps between columns: streaks sideways have few of these."""
    down, across = (np.abs(np.diff(light, axis=axis)).mean() for axis in (0, 1))
    return float(np.log((down + STEP) / (across + STEP)))


def periodicity(gray: Pixels) -> float:
    """Return the logarithm of the highest peak of the spectrum against its surroundings."""
    window = np.hanning(gray.shape[0])[:, None] * np.hanning(gray.shape[1])
    power = np.abs(np.fft.rfft2((gray - gray.mean()) * window)) ** 2
    power = np.fft.fftshift(power, axes=0)
    middle = len(power) // 2
    around = np.stack([np.roll(power, (i, j), (0, 1)) for i in (-4, 0, 4) for j in (-4, 0, 4) if i or j])
    rounding = (window**2).sum() * (3 / 255) ** 2  # an error of three steps of brightness
    ratio = power / (np.median(around, axis=0) + rounding)
    # Slow changes of brightness are content.
    far = np.hypot((np.arange(len(power)) - middle)[:, None], np.arange(power.shape[1])) > min(gray.shape) / 8
    return float(np.log(max(ratio[far].max(), 1e-3)))


RESIDUAL = 127  # steps of a residual from none to the whole


def residual(light: Pixels) -> NDArray[np.int8]:
    """Return what sets each pixel apart from its neighbors, relative to the contrast around it, shape (SIDE²,)."""
    wide = np.pad(light, 1, mode="edge")
    sums = wide[:-2] + wide[1:-1] + wide[2:]
    apart = light - (sums[:, :-2] + sums[:, 1:-1] + sums[:, 2:]) / 9
    scale = np.abs(apart).mean() + 2 * STEP
    return np.asarray(np.clip(apart / (3 * scale), -1, 1) * RESIDUAL, np.int8).ravel()


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
