"""Measures of the pairs of tonight, and what each shows by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finc_eval.golden.nights import MEASURES, Array
from finc_eval.golden.pictures import Matched, Shot
from finc_eval.same_ids.pairs import measure_pictures
from finc_eval.same_ids.shown import TURNS, best_turn, lights, liken, make_thumbnails, red_blues, steps, tell_shown

Pixels = NDArray[np.uint8]

BROKEN = (
    "another picture",
    "another id",
    "turned",
    "blank",
    "gray",
    "transparent",
    "other size",
    "not numbers",
    "unreadable",
)
"""Words for what is red from the first night on."""

PICTURE_OF = "shows the picture of "  # first words of the phrase of a pair whose picture is that of another id

UNSEEN_NOISE = (0.3 / 255) ** 2  # mean squared difference that is added, so that equal pictures have a PSNR: 58.6 dB

COLORFUL, COLORLESS = 6.0, 0.5
"""Mean of the largest less the smallest channel, in steps of 1/255, from which a picture has colors, and up to which it
is gray. Of 500 photographs, 474 have colors; each had less than 0.01 once it was gray, also as a JPEG."""


@dataclass(frozen=True, eq=False)
class MeasuredPair:
    """A pair of tonight.

    Attributes:
        id: id of the golden picture.
        shows: what it shows: "same", "unclear", or a word of `BROKEN`.
        phrase: the same as the end of a sentence about the pair, such as "shows the picture of p03".
        values: measures in the order of `MEASURES`; None for pictures that cannot be compared.
        gen: tonight's picture.
        ref: golden picture.
        other: id whose golden picture it shows instead; "" where it does not.
    """

    id: str
    shows: str
    phrase: str
    values: Array | None
    gen: Shot
    ref: Shot
    other: str = ""

    @property
    def is_broken(self) -> bool:
        """True for a pair that is red by itself."""
        return self.shows in BROKEN


def measure_night(found: Matched) -> list[MeasuredPair]:
    """Measure all pairs of a night."""
    told = [_cannot_compare(gen, ref) for gen, ref in zip(found.gen, found.ref, strict=True)]
    able = [place for place, one in enumerate(told) if one is None]
    gen = [pixels for place in able if (pixels := found.gen[place].pixels) is not None]
    ref = [pixels for place in able if (pixels := found.ref[place].pixels) is not None]
    names = [found.ids[place] for place in able]
    values, shown = _measure(gen, ref, names) if able else (np.empty((0, len(MEASURES))), [])
    known = dict(zip(able, zip(shown, values, strict=True), strict=True))
    rows = []
    for place, (name, first, second) in enumerate(zip(found.ids, found.gen, found.ref, strict=True)):
        if place not in known:
            rows.append(MeasuredPair(name, *(told[place] or ("unreadable", "")), None, first, second))
            continue
        (shows, phrase), numbers = known[place]
        if first.is_clear and not second.is_clear and shows not in BROKEN:
            shows, phrase = "transparent", "is partly transparent"
        other = phrase.removeprefix(PICTURE_OF) if shows == "another id" else ""
        rows.append(MeasuredPair(name, shows, phrase, numbers, first, second, other))
    return rows


def _cannot_compare(gen: Shot, ref: Shot) -> tuple[str, str] | None:
    """Return what a pair shows whose pictures cannot be compared, and its phrase; None if they can."""
    if gen.pixels is None:
        return ("unreadable" if gen.problem.startswith("cannot") else "not numbers"), gen.problem
    assert ref.pixels is not None  # golden pictures were read
    (height, width), (high, wide) = gen.pixels.shape[:2], ref.pixels.shape[:2]
    if (height, width) == (high, wide):
        return None
    return "other size", f"is {width} × {height} pixels, and was {wide} × {high}"


def _measure(gen: list[Pixels], ref: list[Pixels], names: list[str]) -> tuple[Array, list[tuple[str, str]]]:
    """Return the measures of pairs of equal sizes, (n, 7), and what each shows with its phrase."""
    both = measure_pictures(gen, ref)
    first, second = make_thumbnails(gen), make_thumbnails(ref)
    found = liken(first, second)
    shown = tell_shown(found, both["structure"], both["mse"], both["blank"] > 0)
    shown[_lost_colors(first, second) & np.isin(shown, ("same", "unclear"))] = "gray"
    turns, told = best_turn(found), []
    for row, shows in enumerate(shown.tolist()):
        phrases = {
            "same": "shows the same",
            "unclear": "cannot be recognized",
            "another id": f"{PICTURE_OF}{names[int(found.other[row])]}",
            "turned": _turned(TURNS[int(turns[row])].name),
            "blank": "shows nothing",
            "gray": "has lost its colors",
        }
        told.append((shows, phrases.get(shows, f"shows {shows}")))
    psnr = -10 * np.log10(both["mse"] + UNSEEN_NOISE)
    moved = [lights(first) - lights(second), red_blues(first) - red_blues(second)]
    detail = np.log((steps(gen) + 0.5) / (steps(ref) + 0.5))
    thumb = np.clip(found.own, -1, 1)
    return np.column_stack([psnr, both["ssim"].clip(-1, 1), both["structure"].clip(0, 1), thumb, *moved, detail]), told


def _turned(name: str) -> str:
    """Return the name of a turn as the end of a sentence: "is mirrored", "has red and blue exchanged"."""
    return f"has {name.removeprefix('with ')}" if name.startswith("with ") else f"is {name}"


def _lost_colors(first: Pixels, second: Pixels) -> NDArray[np.bool_]:
    """Return which pictures of tonight are gray where the golden ones have colors, by thumbnails, (n, 16, 16, 3)."""
    spread = [np.asarray((one.max(3) - one.min(3)).mean((1, 2))) for one in (first, second)]
    return np.asarray((spread[0] <= COLORLESS) & (spread[1] >= COLORFUL))
