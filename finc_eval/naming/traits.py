"""Traits of a picture that every eye sees first, such as its color, noise and sharpness, and the words for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from finc_eval.naming.questions import MEASURED, measure

Array = NDArray[np.float64]

CROP = 256  # side of the middle of a picture in which texture is measured, in pixels, a multiple of 8
COLORLESS = 0.03  # mean saturation below which a picture counts as gray
BLANK = 2 / 255  # standard deviation of brightness below which a picture counts as blank
FRAME = 4  # mean deviation of the outermost pixels from their middle, of 255, up to which a picture counts as framed
FLATTEST = 1e-3  # peak of the spectrum of a picture of one color, against rounding
PART, FLAT = 6, 0.1  # side of parts of a picture in pixels, and the share of the flattest of them, which show noise


@dataclass(frozen=True)
class Trait:
    """A measurement of a picture, and how pictures with little and with much of it are called."""

    name: str
    low: str | None  # adjective of pictures with little of it; None if that is not worth a word
    high: str | None
    less: str | None = None  # comparative of a whole set with less of it
    more: str | None = None
    least: float | None = None  # value from which a picture has the look; None if the other set decides
    brings: tuple[str, ...] = ()  # traits that change with it, which are then not worth a word


# In the order in which they name a look that several traits show.
TRAITS = (
    Trait("blank", None, "blank", least=0.5),
    Trait("gray", None, "gray, without color", least=0.5),
    Trait("frame", None, "framed", least=0.5),
    Trait("noise", None, "noisy", None, "noisier", brings=("sharpness", "pattern", "blocks", "saturation")),
    Trait("sharpness", "blurred", "oversharpened", "blurrier", "sharper", brings=("noise", "pattern", "blocks")),
    Trait("blocks", None, "in blocks of 8 × 8 pixels, as JPEG makes them", None, "blockier, as JPEG makes pictures",
          brings=("pattern", "sharpness", "noise")),
    Trait("pattern", None, "with a periodic pattern", None, "covered by a periodic pattern",
          brings=("blocks", "sharpness", "noise")),
    Trait("brightness", "dark", "bright", "darker", "brighter", brings=("contrast", "noise", "saturation")),
    Trait("contrast", "flat, with little contrast", "harsh, with much contrast", "flatter, with less contrast",
          "harsher, with more contrast", brings=("saturation", "noise")),
    Trait("saturation", "pale", "vivid", "paler", "more vivid"),
    Trait("warmth", "bluish", "reddish", "bluer", "redder", brings=("saturation", "green")),
    Trait("green", "purplish", "greenish", "more purple", "greener", brings=("saturation", "warmth")),
    Trait("pixels", "small", "large", "smaller", "larger"),
    Trait("shape", "tall", "wide", "taller", "wider"),
)  # fmt: skip


def measure_looks(image: Image.Image) -> Array:
    """Measure the traits of a picture, in the order of `TRAITS`."""
    known = dict(zip(MEASURED, measure(image), strict=True))
    width, height = image.size
    left, top = (max(0, (side - CROP) // 2) // 8 * 8 for side in (width, height))
    pixels = np.asarray(image.convert("RGB").crop((left, top, min(width, left + CROP), min(height, top + CROP))), float)
    gray = pixels @ np.array([0.299, 0.587, 0.114]) / 255
    red, green, blue = pixels.reshape(-1, 3).mean(0) / 255
    total = max(red + green + blue, 1 / 255)
    light = known["brightness"]
    return np.array(
        [
            known["contrast"] < BLANK,
            known["saturation"] < COLORLESS,
            has_frame(pixels),
            *texture(gray),
            light,
            known["contrast"] / max(light, 1 / 255),
            known["saturation"],
            (red - blue) / total,
            (2 * green - red - blue) / total,
            np.log(width * height),
            np.log(width / height),
        ]
    )


def has_frame(pixels: Array) -> bool:
    """Return whether the outermost pixels of a picture in 0 to 255, shape (h, w, 3), have one color and others not."""
    edges = [pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]]
    around = np.concatenate(edges)
    return bool(np.abs(around - np.median(around, axis=0)).mean() <= FRAME < pixels.std())


def texture(gray: Array) -> tuple[float, float, float, float]:
    """Measure noise, sharpness, blocks of JPEG and periodic patterns of brightness in [0, 1], shape (h, w)."""
    if min(gray.shape) < 16:
        return (0.0, 0.0, 0.0, 0.0)
    rows, columns = np.diff(gray, axis=0), np.diff(gray, axis=1)
    second = np.diff(rows, axis=0)[:, 1:-1] + np.diff(columns, axis=1)[1:-1]
    # Immerkær (1996): the mask that planes and edges along the axes do not pass, in the flattest parts of the picture.
    mask = np.abs(np.diff(np.diff(gray, n=2, axis=0), n=2, axis=1))
    height, width = (side // PART for side in mask.shape)
    parts = mask[: height * PART, : width * PART].reshape(height, PART, width, PART).mean((1, 3))
    noise = np.log(np.quantile(parts, FLAT) + 0.5 / 255)
    sharpness = np.log((second.var() + 1e-6) / (gray.var() + 1e-4))
    steps = [np.abs(rows).mean(1), np.abs(columns).mean(0)]
    at = [np.arange(len(one)) % 8 == 7 for one in steps]
    inside, beside = (
        np.mean([one[chosen].mean() for one, chosen in zip(steps, masks, strict=True)])
        for masks in (at, [~one for one in at])
    )
    blocks = np.log((inside + 0.5 / 255) / (beside + 0.5 / 255))
    return float(noise), float(sharpness), float(blocks), periodicity(gray)


def periodicity(gray: Array) -> float:
    """Return the logarithm of the highest peak of the spectrum against its surroundings."""
    window = np.hanning(gray.shape[0])[:, None] * np.hanning(gray.shape[1])
    power = np.abs(np.fft.rfft2((gray - gray.mean()) * window)) ** 2
    power = np.fft.fftshift(power, axes=0)
    middle = len(power) // 2
    around = np.stack([np.roll(power, (i, j), (0, 1)) for i in (-4, 0, 4) for j in (-4, 0, 4) if i or j])
    rounding = (window**2).sum() / 255**2  # power of an error of one step of brightness
    ratio = power / (np.median(around, axis=0) + rounding)
    # Slow changes of brightness are content.
    far = np.hypot((np.arange(len(power)) - middle)[:, None], np.arange(power.shape[1])) > min(gray.shape) / 8
    return float(np.log(max(ratio[far].max(), FLATTEST)))
