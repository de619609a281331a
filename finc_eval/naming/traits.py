"""Traits of what samples look like and how clips move: measurements of thumbnails and of motion, tested by ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.recipe import extractor_of
from finc_eval.extractors.networks import motion
from finc_eval.naming.evidence import TRAIT, Evidence
from finc_eval.naming.properties import Indices, Panel
from finc_eval.naming.questions import Question, larger_p

SIDE = 64
"""Side of the thumbnails in pixels."""

MEMBERS_SEEN, OTHERS_SEEN = 50, 300
"""Pictures of members of a mode, and of other samples, that are read."""

FEWEST = 10
"""Members from which ranks are tested: the normal approximation of the rank sum needs them."""

LARGE_AUC = 0.7
"""Chance that a member has more of a trait than another sample from which the trait describes the mode."""

MOST_DEVIATIONS = 1000.0
"""Standard deviations up to which distances from the others decide the order of traits."""

COLORED = 0.25
"""Saturation and brightness from which a pixel has a hue."""

HUES = {"red": (-15, 15), "yellow": (15, 70), "green": (70, 165), "blue": (165, 255), "purple": (255, 345)}
"""Hues of each color, in degrees."""

MEASURED = ("brightness", "contrast", "sharpness", "saturation", *HUES, "size", "border")
"""Measurements of a picture, in order."""

TRAITS = {
    "brighter": ("brightness", 1),
    "darker": ("brightness", -1),
    "with more contrast": ("contrast", 1),
    "with less contrast": ("contrast", -1),
    "sharper": ("sharpness", 1),
    "blurrier": ("sharpness", -1),
    "more colorful": ("saturation", 1),
    "grayer": ("saturation", -1),
    "redder": ("red", 1),
    "yellower": ("yellow", 1),
    "greener": ("green", 1),
    "bluer": ("blue", 1),
    "more purple": ("purple", 1),
    "larger": ("size", 1),
    "smaller": ("size", -1),
    "with borders": ("border", 1),
}
"""Measurement behind each trait, and whether more or less of it is meant."""


MOTION = "motion"
"""Extractor whose embeddings tell how a clip moves."""

MOTION_TRAITS = {
    "with repeated frames": ("repetition", 1),
    "with jumps between frames": ("jump", 1),
    "with a cut": ("cut", 1),
    "looping": ("loop", 1),
    "shaking": ("turning", 1),
    "flickering": ("flicker", 1),
    **{
        f"flickering at every {word} frame": (f"flicker of {period} frames", 1)
        for period, word in zip(motion.PERIODS, ("second", "third", "fourth", "fifth", "sixth"), strict=True)
    },
    "juddering": ("judder", 1),
    "with dropped frames": ("skipping", 1),
    "with alternating sharpness": ("alternation", 1),
    "blurring over time": ("sharpening", -1),
    "getting sharper": ("sharpening", 1),
    "slowing down": ("speeding up", -1),
    "speeding up": ("speeding up", 1),
    "getting brighter": ("brightening", 1),
    "getting darker": ("brightening", -1),
    "with less motion": ("speed", -1),
    "with more motion": ("speed", 1),
    "with uneven motion": ("unevenness", 1),
    "moving to the right": ("right", 1),
    "moving to the left": ("right", -1),
    "moving down": ("down", 1),
    "moving up": ("down", -1),
    "moving outward": ("outward", 1),
    "moving inward": ("outward", -1),
}
"""Measurement behind each trait of motion, and whether more or less of it is meant."""


def measure(image: Image.Image) -> NDArray[np.float64]:
    """Measure a picture: shares, in the order of `MEASURED`, and its size in pixels."""
    width, height = image.size
    pixels = np.asarray(image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BOX), np.float64) / 255
    gray = pixels @ np.array([0.299, 0.587, 0.114])
    laplacian = 4 * gray[1:-1, 1:-1] - gray[:-2, 1:-1] - gray[2:, 1:-1] - gray[1:-1, :-2] - gray[1:-1, 2:]
    channels = np.moveaxis(pixels, 2, 0)  # a reduction of so short an axis is slow
    largest, smallest = reduce(np.maximum, channels), reduce(np.minimum, channels)
    saturation = (largest - smallest) / np.maximum(largest, 1e-9)
    colored = (saturation > COLORED) & (largest > COLORED)
    red, green, blue = pixels[colored].T
    # The hue as an angle in the plane of opponent colors.
    angle = np.degrees(np.arctan2(np.sqrt(3) * (green - blue), 2 * red - green - blue))
    hues = [float(((angle - low) % 360 < high - low).sum() / colored.size) for low, high in HUES.values()]
    # The share of the side that is a uniform margin: the widest frame of one value.
    lines = np.concatenate([gray, gray[::-1], gray.T, gray.T[::-1]]).reshape(4, SIDE, SIDE)[:, : SIDE // 4]
    corner = gray[0, 0]
    uneven = np.maximum(lines.max((0, 2)), corner) - np.minimum(lines.min((0, 2)), corner) > 2 / 255
    border = float(uneven.argmax()) / SIDE if uneven.any() else 0.25
    return np.array(
        [
            gray.mean(),
            gray.std(),
            laplacian.std() / max(gray.std(), 1 / 255),  # relative to the contrast
            saturation.mean(),
            *hues,
            width * height,
            border,
        ]
    )


def trait_questions(panel: Panel) -> Iterator[Question]:
    """Yield the tests of all traits of all modes; nothing where no pictures are at hand.

    Members are compared with others of their own sets: what all pictures of a set look like, as by a brighter camera,
    does not mark a mode.
    """
    wanted = np.zeros(panel.members.shape[1], bool)
    members = [_some(mask, MEMBERS_SEEN) for mask in panel.members]
    others = [_some(mask, OTHERS_SEEN) for mask in panel.others & panel.same_sets]
    for chosen in (*members, *others):
        wanted[chosen] = True
    if all(extractor_of(one.space) == MOTION for one in panel.sets.values()):
        moving = _measure(panel, wanted, motion.MEASURED, _motion)
        yield from _ask(members, others, moving, motion.MEASURED, MOTION_TRAITS)
    yield from _ask(members, others, _measure(panel, wanted, MEASURED, _looks), MEASURED, TRAITS)


Read = Callable[[Embeddings, Indices], ArrayLike | None]
"""Function that measures samples of a set, which are given by their indices; None where there is nothing to read."""


def _ask(
    members: Sequence[NDArray[np.int64]],
    others: Sequence[NDArray[np.int64]],
    measured: NDArray[np.float64],
    names: Sequence[str],
    traits: Mapping[str, tuple[str, int]],
) -> Iterator[Question]:
    """Yield the tests of some traits of all modes, from measurements (samples, names)."""
    columns, signs = zip(*((names.index(name), sign) for name, sign in traits.values()), strict=True)
    for mode, (own, other) in enumerate(zip(members, others, strict=True)):
        mine, theirs = (rows[~np.isnan(rows[:, 0])] for rows in (measured[own], measured[other]))
        if len(mine) < FEWEST or len(theirs) < FEWEST:
            continue
        mine, theirs = (rows[:, columns] * signs for rows in (mine, theirs))
        p_values, auc = larger_p(mine, theirs)
        shares = ((rows > np.median(theirs, axis=0)).mean(0) for rows in (mine, theirs))
        # Traits that all members have come in the order of their distance from the others.
        further = np.clip((mine.mean(0) - theirs.mean(0)) / (theirs.std(0) + 1e-9), -MOST_DEVIATIONS, MOST_DEVIATIONS)
        strengths = auc + further / (MOST_DEVIATIONS * len(mine) * len(theirs))
        for name, p_value, area, strength, *both in zip(traits, p_values, auc, strengths, *shares, strict=True):
            evidence = Evidence(TRAIT, name, float(both[0]), float(both[1]), float(p_value))
            yield Question(mode, evidence, float(strength), bool(area >= LARGE_AUC))


def _some(mask: NDArray[np.bool_], count: int) -> NDArray[np.int64]:
    """Return at most `count` of the samples, spread evenly over the sets."""
    chosen = np.flatnonzero(mask)
    return chosen[np.linspace(0, len(chosen) - 1, min(count, len(chosen))).round().astype(np.int64)]


def _measure(panel: Panel, wanted: NDArray[np.bool_], names: Sequence[str], read: Read) -> NDArray[np.float64]:
    """Measure the wanted samples, shape (samples, names); NaN for others, and where there is nothing to read."""
    measured = np.full((len(wanted), len(names)), np.nan)
    for one, rows, place in panel.by_set():
        asked = np.flatnonzero(wanted[place])
        if len(asked) and (found := read(one, rows[asked])) is not None:
            measured[place.start + asked] = found
    return measured


def _looks(one: Embeddings, rows: Indices) -> list[NDArray[np.float64]] | None:
    images = one.images_at(rows)
    return None if images is None else [measure(image) for image in images]


def _motion(one: Embeddings, rows: Indices) -> NDArray[np.float64]:
    return np.asarray(motion.measurements(one.rows_at(rows)).cpu().numpy())
