"""Traits of a picture that every eye sees first, such as its color, noise and sharpness, and the words for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from finc_eval.extractors.networks import motion
from finc_eval.naming.texture import BLANK, Array, Pixels, flat, residual, streaks, texture
from finc_eval.numerics.courses import Loop, Stretch, find_loop, find_still
from finc_eval.samples.whole.course import COURSE_SIDE, ClipCourse

SIDE = 64  # side of the thumbnails in which color and light are measured, in pixels
TOGETHER = 2**16  # pixels that are measured at a time: they stay in the cache
CROP = 256  # side of the middle of a picture in which texture is measured, in pixels, a multiple of 8
SQUARES = 8  # squares along each side whose mean color counts for that

UNSEEN_COLOR = 2 / 255
"""Difference of channels of a square that nobody sees. On black, noise is else as saturated as paint: with squares, all
of 300 digits and 300 gray photographs stay gray under noise of 4/255, and without squares none; of photographs in color
1.7 % are gray either way."""

ONE_TONE = 0.012
"""Mean distance of the colors of squares from a curve of their brightness, relative to it, up to which pictures are
toned. Of 600 photographs of 64 pixels, 3 % have less, 88 % in sepia that is cut off at white, and 48 % of these as JPEG
of quality 50; all but 0.3 % in a tint that is not cut off. With 0.005, 39 % in sepia have less, and 0.8 % in color."""

FRAME = 4 / 255  # mean deviation of edge pixels from their middle up to which two opposite edges are a frame or bars

BAR = SIDE // 8  # least lines of one color that are a bar at a single edge; a picture may be half black

BAR_ENDS = 16 / 255
"""Mean deviation of the second line behind a bar from its color, from which the bar ends in a straight line.

Of 1 440 photographs of 64 pixels, 1.1 % have such a bar. All have one after half of each was covered by black, white,
gray or red, and saved as JPEG of quality 92. With 32/255, .4 % have one, and 3 % after a fifth was covered by red."""


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
    ends: tuple[str, ...] = ()  # looks that samples no longer have with more of it: noise ends a frame of one color
    sort_of: tuple[str, ...] = ()  # looks of which it is a sort, and the closer name: motion blur blurs, too
    bad: int = 0  # 1 where more of it is worse, −1 where less is; 0 where neither is
    least_spread: float = 0.0  # standard deviation that a reference has at least; see `TRAITS`
    unseen: float = -np.inf  # value up to which no eye sees it
    is_length: bool = False  # whether its change is said in percent
    is_asked: bool = False  # whether a user registered it: it is said even where another look explains it
    measured: str = ""  # what is measured, where people say another word for it

    def leads_to(self, other: Trait, *, is_more: bool, other_is_more: bool) -> bool:
        """Return whether a change of another trait may follow from a change of this trait.

        A look that a sample has or has not brings others only where more samples have it.
        """
        if self is other or (self.least is not None and not is_more):
            return False
        return other.name in self.brings or (is_more and not other_is_more and other.name in self.ends)


UNSEEN_NOISE = np.log(9 / 255)  # noise of 4/255 in each channel of gray pictures of 64 to 512 pixels, which no eye sees

COLOR = ("toned", "saturation", "warmth", "green")
TONE = ("brightness", "contrast", "shades", "edges", "top")
TEXTURE = ("specks", "noise", "mosaic", "blocks", "resizing", "pattern", "sharpness", "streaks", "mark")
SHAPE = ("pixels", "shape")
UNIFORM = ("blank", "frame")
EVERYTHING = (*COLOR, *TONE, *TEXTURE)

# In the order in which they name a look that several traits show. The least standard deviation of a trait with a bad
# side is about half of that of 300 photographs: where a reference has none of a trait, rounding alone would else count
# as many standard deviations.
TRAITS = (
    Trait("blank", None, "blank", least=0.5, brings=EVERYTHING),
    Trait("gray", "in color", "gray, without color", least=0.5, brings=COLOR, bad=1),
    Trait("toned", None, "toned, in shades of one color", least=0.5, brings=COLOR, bad=1),
    Trait("frame", None, "framed, or with bars at its edges", least=0.5, brings=EVERYTHING, bad=1),
    Trait("pattern", None, "with a periodic pattern", None, "covered more by a periodic pattern",
          brings=(*TEXTURE, *TONE), ends=UNIFORM, bad=1, least_spread=0.05),
    Trait("specks", None, "noisy, with specks", None, "noisier, with specks",
          brings=TEXTURE, ends=(*UNIFORM, "gray", "toned"), bad=1, least_spread=0.4),
    Trait("noise", None, "noisy", None, "noisier",
          brings=(*TEXTURE, *COLOR), ends=(*UNIFORM, "gray", "toned"), bad=1, least_spread=0.4,
          unseen=UNSEEN_NOISE),
    Trait("mosaic", None, "pixelated or upscaled", None, "more pixelated or upscaled",
          brings=TEXTURE, bad=1, least_spread=0.03),
    Trait("resizing", None, "resampled, as by zoom or upscaling", None, "resampled more, as by zoom or upscaling",
          brings=TEXTURE, bad=1, least_spread=0.2,
          measured="differences between pixels that repeat at equal distances, as resizing leaves them"),
    Trait("blocks", None, "with JPEG artifacts", None, "with more JPEG artifacts",
          brings=(*TEXTURE, *COLOR), ends=UNIFORM, bad=1, least_spread=0.04,
          measured="steps between blocks of 8 × 8 pixels, as JPEG makes them"),
    Trait("edges", "dark at the edges", "bright at the edges", "darker at the edges", "brighter at the edges",
          brings=(*TONE, *TEXTURE)),
    Trait("mark", None, "watermarked", None, "more clearly watermarked",
          brings=(*TEXTURE, "brightness", "contrast", "shades", "top"),
          measured="the same pixels at one place, as of a watermark, a logo or a date"),
    Trait("streaks", "streaked up and down", "streaked sideways", "more streaked up and down", "more streaked sideways",
          brings=(*TEXTURE, "shades", "toned"), sort_of=("sharpness",),
          measured="steps between rows against steps between columns: few along motion, many across lines, as of rain"),
    Trait("sharpness", "blurred", "oversharpened", "blurrier", "sharper",
          brings=(*TEXTURE, "shades", "toned"), bad=-1, least_spread=0.4),
    Trait("brightness", "dark", "bright", "darker", "brighter", brings=(*TONE, *TEXTURE, *COLOR), is_length=True),
    Trait("contrast", "flat, with little contrast", "harsh, with much contrast", "flatter, with less contrast",
          "harsher, with more contrast", brings=(*TONE, *TEXTURE, *COLOR), bad=-1, least_spread=0.1, is_length=True),
    Trait("shades", None, "posterized, in few shades", None, "posterized more, in fewer shades",
          brings=(*TEXTURE, *TONE, *COLOR), bad=1, least_spread=0.1),
    Trait("warmth", "bluish, of a cold tint", "reddish, of a warm tint", "bluer, of a colder tint",
          "redder, of a warmer tint", brings=COLOR),
    Trait("green", "purplish", "greenish", "more purple", "greener", brings=COLOR),
    Trait("saturation", "pale", "vivid", "paler", "more vivid",
          brings=COLOR, bad=-1, least_spread=0.08, is_length=True),
    Trait("top", "brighter at the bottom than at the top", "brighter at the top than at the bottom",
          "brighter at the bottom", "brighter at the top"),
    Trait("shape", "tall", "wide", "taller", "wider", brings=(*SHAPE, *TEXTURE, *TONE)),
    Trait("pixels", "small", "large", "smaller", "larger", brings=(*SHAPE, *TEXTURE)),
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


def measured_words(trait: str) -> str:
    """Return what is measured of a built-in trait, where people say another word for it; else ""."""
    return next((known.measured for known in (*TRAITS, *LOOKS_OF_CLIPS) if known.name == trait), "")


def measure_clips(values: Array) -> Array:
    """Return the traits of clips, (n, traits), in the order of `LOOKS_OF_CLIPS`, from `motion.measurements`."""
    known = dict(zip(motion.MEASURED, values.T, strict=True))
    periods = [period for name, period in known.items() if name.startswith("flicker")]
    known |= {"still": known["repetition"] >= 0.95, "flicker": np.sum(periods, 0)}
    return np.column_stack([known[trait.name] for trait in LOOKS_OF_CLIPS]).astype(np.float64)


COURSE = ("brightness", "contrast", "saturation", "warmth", "green", "speed")
"""Traits whose course over a clip is measured: looks of its small frames, and its motion."""


@dataclass(frozen=True, eq=False)
class MeasuredCourse:
    """Course of a whole clip: its looks, and where it stands still or loops."""

    times: Array  # instants of its frames in seconds, (t,)
    values: NDArray[np.float32]  # the traits `COURSE` of each frame, (t, 6)
    still: Stretch  # frames that stand still
    loop: Loop | None  # frames that come again


def measure_course(course: ClipCourse) -> MeasuredCourse:
    """Measure the looks and the motion of each frame of a clip, where it stands still, and where it loops.

    Motion is the binary logarithm of the mean change of brightness to the next frame, in 1/255 and beyond 1/255.
    """
    small = course.frames.astype(np.float32)
    light = small.reshape(-1, 3) @ np.array(motion.LUMA, np.float32)  # in one product: a stack of small ones is slow
    light = light.reshape(len(small), -1)
    steps = np.abs(np.diff(light, axis=0)).mean(1)
    known = color(small[:, ::2, ::2] / np.float32(255)) | {"brightness": light.mean(1) / 255}
    known["contrast"] = light.std(1) / 255 / np.maximum(known["brightness"], 1 / 255)
    known["speed"] = np.log2(1 + np.append(steps, steps[-1:] if len(steps) else 0.0))
    values = np.column_stack([known[name] for name in COURSE]).astype(np.float32)
    lines = light.reshape(-1, COURSE_SIDE, COURSE_SIDE)
    lines = lines[:, ::2] + lines[:, 1::2]
    of_squares = (lines[..., ::2] + lines[..., 1::2]).reshape(len(light), -1) / 4
    return MeasuredCourse(course.times, values, find_still(light), find_loop(of_squares))


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
    light = small @ np.array(motion.LUMA, np.float32)
    known: dict[str, NDArray[Any]] = color(small) | tone(light) | texture(gray)
    deviation = flat(light).std(1)
    squares = _squares(small)
    known |= {"blank": deviation < BLANK, "gray": (gray_ones := has_no_color(squares))}
    known |= {"toned": has_one_tone(squares) & ~gray_ones}
    known |= {"frame": has_frame(small, deviation), "streaks": streaks(light)}
    shape = {"pixels": np.log(width * height), "shape": np.log(width / height), "mark": 0.0}  # marks are of many
    known |= {name: np.full(len(images), value) for name, value in shape.items()}
    return np.column_stack([known[trait.name] for trait in TRAITS]).astype(np.float64), residual(light)


def has_no_color(squares: Pixels) -> NDArray[np.bool_]:
    """Return whether pictures are gray: by the mean colors of their squares, (n, SQUARES², 3) in [0, 1]."""
    largest, smallest = squares.max(-1), squares.min(-1)
    seen = np.maximum(largest - smallest - UNSEEN_COLOR, 0) / np.maximum(largest, 1 / 255)
    return np.asarray(seen.mean(1) < 0.03)  # mean saturation of squares, beyond what nobody sees


def has_one_tone(squares: Pixels) -> NDArray[np.bool_]:
    """Return whether brightness alone decides the mean colors of squares, (n, SQUARES², 3), as in sepia."""
    squares = squares.astype(float)
    light = squares @ np.array(motion.LUMA)
    powers = (light - light.mean(1, keepdims=True))[..., None] ** np.arange(3)
    curve = powers @ np.linalg.pinv(powers) @ squares
    apart = np.abs(squares - curve).mean((1, 2))
    return np.asarray(apart < ONE_TONE * np.maximum(light.mean(1), 0.05))


def _squares(pixels: Pixels) -> Pixels:
    """Return the mean colors of the squares of pictures, (n, SQUARES², 3)."""
    side = SIDE // SQUARES
    # Whole lines first: a mean over both axes at once adds three numbers at a time, five times as slowly.
    lines: Pixels = pixels.reshape(len(pixels) * SQUARES, side, SIDE * 3).sum(1)
    means: Pixels = lines.reshape(len(pixels), SQUARES**2, side, 3).sum(2) / side**2
    return means


def color(pixels: Pixels) -> dict[str, Pixels]:
    """Measure color, relative to brightness, of pixels in [0, 1], shape (n, h, w, 3)."""
    largest, smallest = (how(how(pixels[..., 0], pixels[..., 1]), pixels[..., 2]) for how in (np.maximum, np.minimum))
    count, height, width, _ = pixels.shape
    lines = pixels.reshape(count, height, width * 3).sum(1, dtype=float)  # whole lines first, as in `_squares`
    red, green, blue = lines.reshape(count, width, 3).sum(1).T / (height * width)
    total = np.maximum(red + green + blue, 1 / 255)
    return {
        "saturation": flat((largest - smallest) / np.maximum(largest, 1 / 255)).mean(1),
        "warmth": (red - blue) / total,
        "green": (2 * green - red - blue) / total,
    }


def tone(light: Pixels) -> dict[str, Pixels]:
    """Measure brightness in [0, 1], shape (n, SIDE, SIDE), its contrast, and where it is."""
    mean, quarter, half = flat(light).mean(1), SIDE // 4, SIDE // 2
    inner = light[:, quarter:-quarter, quarter:-quarter].mean((1, 2))
    left, right = (light[..., at].swapaxes(1, 2) for at in np.s_[:4, -4:])
    outer = np.concatenate([light[:, :4], light[:, -4:], left, right], 1).mean((1, 2))
    positive = np.maximum(mean, 1 / 255)
    return {
        "brightness": mean,
        "contrast": flat(light).std(1) / positive,
        "edges": (outer - inner) / positive,
        "top": (light[:, :half].mean((1, 2)) - light[:, half:].mean((1, 2))) / positive,
    }


def has_frame(pixels: Pixels, deviation: Pixels) -> NDArray[np.bool_]:
    """Return whether pictures, (n, h, w, 3) in [0, 1], have a frame or bars, and are not of one color.

    Two opposite edges of one color are a frame, or bars. A bar at one edge has many lines and ends in a straight line.
    """
    found = np.zeros(len(pixels), bool)
    turned = pixels.swapaxes(1, 2)
    for edge, other in ((pixels[:, 0], pixels[:, -1]), (pixels[:, :, 0], pixels[:, :, -1])):
        both = np.concatenate([edge, other], 1)
        spread = np.abs(both - np.median(both, axis=1, keepdims=True)).mean((1, 2))
        found |= spread <= FRAME
    for lines in (pixels, pixels[:, ::-1], turned, turned[:, ::-1]):
        found |= _has_bar(lines)
    return np.asarray(found & (deviation > FRAME))


def _has_bar(lines: Pixels) -> NDArray[np.bool_]:
    """Return whether the first lines of pictures, (n, lines, pixels, 3), are of one color, and then end at once."""
    found = np.zeros(len(lines), bool)
    middle = lines[:, 0].mean(1)[:, None, None]
    some = np.flatnonzero(np.abs(lines[:, 0] - middle[:, 0]).mean((1, 2)) <= FRAME)
    spread = np.abs(lines[some] - middle[some]).mean((2, 3))
    bar = (spread > FRAME).argmax(1)  # 0 where all lines are of one color
    behind = np.minimum(bar + 1, spread.shape[1] - 1)  # the line between may be of both colors
    found[some] = (bar >= BAR) & (spread[np.arange(len(some)), behind] >= BAR_ENDS)
    return found
