"""Encodings of samples, which may differ between two sets of the same content."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

# Luminance table of the Independent JPEG Group (ITU-T T.81, table K.1), in natural order. The table of each quality is
# this table times a factor.
IJG_LUMINANCE = np.array(
    [
        [16, 11, 10, 16, 24, 40, 51, 61],
        [12, 12, 14, 19, 26, 58, 60, 55],
        [14, 13, 16, 24, 40, 57, 69, 56],
        [14, 17, 22, 29, 51, 87, 80, 62],
        [18, 22, 37, 56, 68, 109, 103, 77],
        [24, 35, 55, 64, 81, 104, 113, 92],
        [49, 64, 78, 87, 103, 121, 120, 101],
        [72, 92, 95, 98, 112, 100, 103, 99],
    ]
).ravel()

QUALITIES = np.arange(1, 101)
IJG_TABLES: npt.NDArray[np.int64] = np.clip(
    (IJG_LUMINANCE * np.where(QUALITIES < 50, 5000 // QUALITIES, 200 - 2 * QUALITIES)[:, None] + 50) // 100, 1, 255
)
"""Luminance tables of the qualities 1 to 100, (100, 64), as libjpeg's jpeg_set_quality makes them."""


GRAY_GRID = 64  # pixels a side that are looked at to find out whether an image is gray

MAX_MODE_LENGTH = 12

ENCODING_BYTES = 96  # bytes of a sample's encoding in a file, at most

CMYK = "CMYK"  # space of an image in inks that has no color profile
UNREADABLE = "unreadable-profile"  # space of an image whose profile is damaged, or for pixels of another mode

SHALLOW_VALUES = 16  # values of a pixel that are not seen on a screen

OPAQUE = {
    "yuva": "yuv",
    "gbrap": "gbrp",
    "ya": "gray",
    "rgbaf": "rgbf",
    "rgba64": "rgb48",
    "rgba128": "rgb96",
    "bgra64": "bgr48",
    "rgba": "rgb0",
    "bgra": "bgr0",
    "argb": "0rgb",
    "abgr": "0bgr",
    "ayuv": "xyuv",
    "vuya": "vuyx",
    "uyva": "uyvx",
}
"""Beginnings of FFmpeg's names of formats with an alpha channel, and without it; the first that fits counts."""

PALE = "/pale"
"""Mark of a mode whose pixels are all in the upper half, as numbers of 0 to 1 are that are taken for -1 to 1."""


OVERVIEW = re.compile(r"(?<![a-z])(?:grids?|(?:contact|proof)[-_ ]?sheets?|montages?|mosaics?)(?![a-z])", re.IGNORECASE)
"""Words in the names that programs give to pictures of many samples: grid-0000.png, contact_sheet.jpg."""

MAX_GRID_PADDING = 16
"""Pixels between the samples of a grid that are thought possible: torchvision's `save_image` has 2, and galleries 4 to
10."""


@dataclass(frozen=True)
class GridShape:
    """Rows and columns of the cells of a grid, with padding between them."""

    columns: int
    rows: int
    width: int  # of a cell
    height: int  # of a cell
    padding: int  # pixels between two cells
    is_framed: bool  # whether there is as much padding around all cells

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.columns * self.rows


def grid_shape(size: tuple[int, int], sample: tuple[int, int]) -> GridShape | None:
    """Return how samples would lie in a picture, both by width and height; None if the sides are not multiples."""
    for padding in range(MAX_GRID_PADDING + 1) if min(sample) > 0 else ():
        for is_framed in (True, False):
            around = padding if is_framed else -padding  # a row of n samples has n + 1 paddings, or n − 1
            columns, rows = (
                (side - around) // (width + padding) if (side - around) % (width + padding) == 0 else 0
                for side, width in zip(size, sample, strict=True)
            )
            if min(columns, rows) >= 1 and 1 < max(columns, rows) <= 64:  # few samples are drawn side by side
                return GridShape(columns, rows, *sample, padding, is_framed)
    return None


def opaque(mode: str) -> str:
    """Return the name of FFmpeg's format without its alpha channel; of other formats, the same name."""
    return next((plain + mode[len(alpha) :] for alpha, plain in OPAQUE.items() if mode.startswith(alpha)), mode)


def has_alpha(mode: str) -> bool:
    """Return whether pixels of a mode have an alpha channel, by Pillow's or FFmpeg's name."""
    return opaque(mode) != mode or re.split("[;/]", mode)[0] in ("RGBA", "RGBa", "LA", "La", "PA")


@dataclass(frozen=True)
class Encoding:
    """Encoding of a sample.

    Attributes:
        format: "JPEG", "PNG", "WEBP", "WEBP-lossless", "array", "h264" ….
        mode: mode of the stored pixels, by Pillow's or FFmpeg's name: "RGB", "L", "CMYK", "yuv420p" ….
        width: width of the upright image in pixels.
        height: height of the upright image in pixels.
        is_gray: whether the three channels are equal on a grid of pixels.
        quality: quality of a JPEG, 1 to 100, by its quantization table; None for other formats.
        fps: frames per second of a video, in the mean if they vary; None for an image.
        frames: number of frames of a video; of an animation, at its shortest delay. None for an image.
        seconds: duration of a video; None for an image, and where it is not known.
        color: marks of the color matrix and the transfer function of a video, by their numbers in ISO 23091-2 ("1/1" is
            BT.709, "9/16" is HDR PQ); None without marks. Of an image, the color space that its file states, such as
            "Display-P3"; None for sRGB, and without a statement.
        aspect: width of a pixel by its height.
    """

    format: str
    mode: str
    width: int
    height: int
    is_gray: bool
    quality: int | None = None
    fps: float | None = None
    frames: int | None = None
    seconds: float | None = None
    color: str | None = None
    aspect: float = 1.0

    @lru_cache(maxsize=1024)  # noqa: B019 (large sets have few distinct encodings)
    def encode(self) -> bytes:
        """Write the encoding in at most `ENCODING_BYTES` of ASCII, as "JPEG RGB 640x480 c 75 -" (c: color, g: gray).

        Of a video, "29.97 48 1.6 1/1 1" follows: rate, frames, seconds, color and shape of the pixels; of an image in
        another space than sRGB, the same with the name of the space. `decode` returns
        the same encoding unless a number has more than five digits or the names are too long; the name of the format is
        cut first.
        """
        gray = "g" if self.is_gray else "c"
        facts = [_digits(self.quality), _digits(self.fps)]
        if self.frames is not None or self.color is not None:
            facts += [_digits(self.frames), _digits(self.seconds), self.color or "-", _digits(self.aspect)]
        rest = f" {_name(self.mode)[:MAX_MODE_LENGTH]} {self.width}x{self.height} {gray} {' '.join(facts)}"
        return (_name(self.format)[: ENCODING_BYTES - len(rest)] + rest).encode("ascii")

    @classmethod
    @lru_cache(maxsize=1024)
    def decode(cls, text: bytes) -> Encoding:
        """Build the encoding from the text that `encode` wrote."""
        name, mode, size, gray, quality, fps, *rest = text.decode("ascii").split(" ")
        width, height = map(int, size.split("x"))
        known = [None if text == "-" else text for text in (quality, fps, *(rest or "----"))]
        return cls(
            *(name, mode, width, height, gray == "g"),
            quality=None if known[0] is None else int(known[0]),
            fps=None if known[1] is None else float(known[1]),
            frames=None if known[2] is None else int(known[2]),
            seconds=None if known[3] is None else float(known[3]),
            color=known[4],
            aspect=1.0 if known[5] is None else float(known[5]),
        )


def mark(mode: str, pixels: npt.NDArray[np.uint8]) -> str:
    """Return a mode, with a mark where no value of the pixels uses more than 1 or 4 of 8 bits, and some is not 0.

    Another mark is for pixels of the upper half alone, but for as many values as are not seen.
    """
    # The middle of most images says that they are deep.
    center = pixels[len(pixels) // 2, pixels.shape[1] // 2].tolist() if pixels.size else [0]
    middle, least = max(center), 128 - SHALLOW_VALUES
    if min(center) >= least and pixels.min() >= least:
        return f"{mode[: MAX_MODE_LENGTH - len(PALE)]}{PALE}"
    highest = middle if middle >= SHALLOW_VALUES else int(pixels.max(initial=0))
    return mode if not 0 < highest < SHALLOW_VALUES else f"{mode[: MAX_MODE_LENGTH - 5]}/{1 if highest == 1 else 4}bit"


def is_gray(pixels: npt.NDArray[np.uint8]) -> bool:
    """Return whether the channels of (height, width, 3) pixels are equal on a grid of at most 64 × 64 of them."""
    height, width, _ = pixels.shape
    seen = pixels[:: -(-height // GRAY_GRID), :: -(-width // GRAY_GRID)]
    if seen.size and len(set(seen[len(seen) // 2, seen.shape[1] // 2].tolist())) > 1:
        return False  # as the middle of most images in color says
    return bool((seen[..., 0] == seen[..., 1]).all() and (seen[..., 1] == seen[..., 2]).all())


@lru_cache(maxsize=256)
def jpeg_quality(table: tuple[int, ...]) -> int | None:
    """Estimate the quality, 1 to 100, at which libjpeg writes the luminance table `table` (natural order).

    None if no quality is close: cameras and some encoders have their own tables.
    """
    distances = np.abs(IJG_TABLES - np.array(table)).mean(axis=1)
    best = int(distances.argmin())
    # 0.1: largest mean deviation of a luminance table from the table of a quality, relative to its mean.
    return best + 1 if distances[best] <= 0.1 * np.mean(table) else None


def _digits(number: float | None) -> str:
    return "-" if number is None else str(number) if isinstance(number, int) else f"{number:.5g}"


@lru_cache(maxsize=64)
def _name(name: str) -> str:
    """Return a name in ASCII and without spaces."""
    return name.replace(" ", "-").encode("ascii", "replace").decode()
