"""The thing that each pair of two runs shows, and its name: from the measures of all pairs, or from their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finc_eval.naming.traits import TRAITS
from finc_eval.same_ids.clips import FROZEN_CLIP, moves_otherwise
from finc_eval.same_ids.crops import CROPPED, FRAMED, MOVED, SHIFTED, crop_names, liken_crops, liken_rest
from finc_eval.same_ids.pairs import SIZES, SIZES_BEFORE, PairTable
from finc_eval.same_ids.shown import (
    NEAR,
    RECOLORED,
    SAME_SMALL,
    SMALL,
    TURNS,
    Likeness,
    best_turn,
    exchange,
    liken,
    margins,
    tell_shown,
    usual_correlation,
)

Array = NDArray[np.float64]
Words = NDArray[np.str_]

ANOTHER, OTHER_ID, UNCLEAR, SAME = "another picture", "another id", "unclear", "same"
TURNED_GRAY = "turned gray"
GRAY_WORDS = next(trait.high or "" for trait in TRAITS if trait.name == "gray")
"""The word for gray pictures in all verbs."""

MAX_CROPS = 500  # pairs of unknown cause among which crops are looked for, in 1 s

CROPPED_MORE = 0.05  # margin by which a part must be more alike than the whole: there are 120 parts
MOVED_MORE = 0.03  # and more than pictures that are moved by up to 6 % of a side

GRAY, GRAYER, COLORED = 1.0, 0.15, 5.0
"""Mean difference of the largest and the least channel of a thumbnail, in steps of 1/255, or in parts of that of its
own, below which a picture is gray, and from which it has color. Noise of 3/255 makes 0.6 of gray at 128 pixels."""

STRUCTURE_MOVED = 0.75
"""Structure from which a small picture that is moved a little is the same. Of 600 digits moved by up to 0.7 pixels,
94 % then are, not 43 %; of as many pairs of other digits of one class 0.3 %, as before."""

DARK, LIGHT = 16, 239  # light of a black and of a white picture, in steps of 1/255
COARSE_GRAIN = (20 / 255) ** 2
"""Mean squared step from pixel to pixel of a picture of noise. White noise has half of it as its variance, and a
thumbnail of 28 pixels or more at most a third of that."""

FAR, CLOSE = 0.05, 0.6
"""Part of other ids as near as its own from which a vector is of another sample, and the distance from its own, in
parts of the distance of two ids, up to which it is of the same: 1 in 100 vectors of 16 normal values are as near to
another."""


@dataclass(frozen=True, eq=False)
class SeenPairs:
    """Answer of each pair.

    Attributes:
        shown: "same", "unclear", or the kind of fault, (n,).
        causes: what the sample is called where it is at fault, such as "mirrored"; "" elsewhere, (n,).
        other: number of the pair whose reference it shows; -1 where none is known, (n,).
        likeness: the correlations behind it; None without pictures.
        crops: correlations with parts of the own picture, (looked at, crops), and the pairs looked at; None if none.
    """

    shown: Words
    causes: Words
    other: NDArray[np.int64]
    likeness: Likeness | None = None
    crops: tuple[Array, NDArray[np.int64]] | None = None

    @property
    def is_bad(self) -> NDArray[np.bool_]:
        """True where a pair is at fault."""
        return ~np.isin(self.shown, (SAME, UNCLEAR))

    @property
    def is_unclear(self) -> NDArray[np.bool_]:
        """True where it is not known what a pair shows."""
        return np.asarray(self.shown == UNCLEAR)


def see(table: PairTable) -> SeenPairs:
    """Say what each pair shows."""
    if table.thumbs is None:
        return _see_vectors(table)
    values = table.values
    likeness = liken(*table.thumbs)
    is_blank = values["blank"] > 0.5  # of frames
    sides = np.minimum(values["height before"], values["width before"])
    shown = tell_shown(likeness, values["structure"], values["mse"], is_blank, sides).astype("<U30")
    causes = np.where(np.isin(shown, (SAME, UNCLEAR)), "", shown).astype("<U80")
    turns = best_turn(likeness, margins(sides, len(table)))
    turns = np.where(turns > 0, turns, exchange(likeness))
    is_turned = shown == "turned"
    causes[is_turned] = [TURNS[turn].name for turn in turns[is_turned]]
    crops = _add_crops(table, likeness, shown, causes)
    _add_noise(table, shown, causes)
    _add_gray(table, shown, causes)
    if "frames" in values and (values["frames"] > 1).any():
        moves = moves_otherwise(*table.thumbs)
        _mark(shown, causes, moves, (SAME, UNCLEAR))
        _mark(shown, causes, np.where(moves == FROZEN_CLIP, "", moves), (ANOTHER,))  # frames that match are its own
    causes[is_blank] = _blank_names(table, is_blank)
    _add_sizes(table, shown, causes)
    return SeenPairs(shown, causes, likeness.other, likeness, crops)


def _mark(shown: Words, causes: Words, found: Words, over: Sequence[str]) -> None:
    """Set the cause where one was found and what is shown so far is among `over`.

    `shown`, `causes` and `found` have a word for each pair, shape (n,); the first two are changed in place.
    """
    chosen = (found != "") & np.isin(shown, over)
    shown[chosen], causes[chosen] = found[chosen], found[chosen]


def _add_crops(
    table: PairTable, likeness: Likeness, shown: Words, causes: Words
) -> tuple[Array, NDArray[np.int64]] | None:
    """Look for parts of their own among pairs that show another picture or are unclear."""
    assert table.thumbs is not None
    asked = np.flatnonzero(np.isin(shown, (ANOTHER, UNCLEAR)) & (table.values["mse"] > 0))
    asked = asked[np.linspace(0, len(asked) - 1, min(len(asked), MAX_CROPS)).round().astype(int)]
    if not len(asked):
        return None
    first, second = (thumb[asked] for thumb in table.thumbs)
    names, found = np.array(crop_names()), liken_crops(first, second)
    most = np.maximum(likeness.own, likeness.near)[asked]
    moved = found[:, names == MOVED].max(1)
    is_repainted = liken_rest(first, second) >= NEAR
    of_kind = {name: found[:, names == name].max(1) for name in (CROPPED, FRAMED, SHIFTED)}
    best = np.array([*of_kind])[np.argmax([*of_kind.values()], axis=0)]
    value = np.max([*of_kind.values()], axis=0)
    is_part = (value >= NEAR) & (value > most + CROPPED_MORE)
    # Of another sampler, whose details are others, also what is less alike, by more.
    is_part |= (value >= usual_correlation(likeness.own)) & (value > most + RECOLORED)
    is_part &= value > moved + MOVED_MORE
    doubtful = asked[(is_repainted | (moved >= NEAR)) & (shown[asked] == ANOTHER)]
    shown[doubtful], causes[doubtful] = UNCLEAR, ""
    small = np.minimum(table.values["height before"], table.values["width before"])[asked] < SMALL
    is_own = small & (moved >= SAME_SMALL) & (table.values["structure"][asked] >= STRUCTURE_MOVED)
    is_own &= moved > np.maximum(likeness.near[asked], likeness.alike)
    shown[asked[is_own & (shown[asked] == UNCLEAR)]] = SAME
    shown[asked[is_part]], causes[asked[is_part]] = best[is_part], best[is_part]
    return found, asked


def _add_noise(table: PairTable, shown: Words, causes: Words) -> None:
    """Call pictures of noise so: they hardly differ from place to place, and much from pixel to pixel."""
    assert table.thumbs is not None
    grain, spread = table.values["grain"], (table.thumbs[0] / 255).var((1, 2, 3))
    causes[(shown == ANOTHER) & (grain > COARSE_GRAIN) & (spread < grain / 2)] = "noise"


def _add_gray(table: PairTable, shown: Words, causes: Words) -> None:
    """Flag pictures that lost all color; whatever else changed is not of the color."""
    assert table.thumbs is not None
    chroma = [np.ptp(thumb, axis=3).mean((1, 2)) for thumb in table.thumbs]
    is_gray = (chroma[0] < np.maximum(GRAY, GRAYER * chroma[1])) & (chroma[1] > COLORED)
    _mark(shown, causes, np.where(is_gray, TURNED_GRAY, ""), (SAME, UNCLEAR))


def _blank_names(table: PairTable, chosen: NDArray[np.bool_]) -> Words:
    assert table.thumbs is not None
    light = table.thumbs[0][chosen].mean((1, 2, 3))
    return np.select([light < DARK, light > LIGHT], ["black", "white"], "blank")


def _add_sizes(table: PairTable, shown: Words, causes: Words) -> None:
    """Mark pairs of unlike sizes, which are compared in one size."""
    now, before = (np.stack([table.values[name] for name in names], 1) for names in (SIZES, SIZES_BEFORE))
    for row in np.flatnonzero((now != before).any(1)):
        shown[row] = "size"
        causes[row] = f"of another {change_of_size(now[row], before[row])}"


def change_of_size(now: Array, before: Array) -> str:
    """Say how the size of a sample, (frames, height, width), changed: "length (8 frames, before 16 frames)"."""
    if (now[1:] == before[1:]).all():
        return f"length ({now[0]:.0f} frames, before {before[0]:.0f} frames)"
    return f"size ({size_name(now)}, before {size_name(before)})"


def size_name(size: Array) -> str:
    """Name the size of a sample, (frames, height, width), such as "64 × 48 pixels"."""
    frames, height, width = (int(extent) for extent in size)
    return f"{width} × {height} pixels" + (f", {frames} frames" if frames > 1 else "")


def _see_vectors(table: PairTable) -> SeenPairs:
    """Say what pairs of vectors show, by their distance and how many other ids are as near."""
    distance, others = table.values["distance"], table.others
    shown = np.full(len(table), UNCLEAR, dtype="<U30")
    shown[(distance <= CLOSE) & (others == 0)] = SAME
    shown[others >= FAR] = "another sample"
    shown[distance == 0] = SAME
    causes = np.where(np.isin(shown, (SAME, UNCLEAR)), "", shown).astype("<U80")
    if table.nearest_id is None:
        return SeenPairs(shown, causes, np.full(len(table), -1))
    place, near = table.nearest_id
    is_other = (shown == "another sample") & (near < distance / 2)
    shown[is_other] = causes[is_other] = OTHER_ID
    return SeenPairs(shown, causes, np.where(is_other, place, -1))
