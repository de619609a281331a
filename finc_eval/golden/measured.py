"""Measures of the pairs of tonight, and what each shows by itself."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from finc_eval.golden.nights import Array, as_kept
from finc_eval.golden.pictures import Matched, Shot
from finc_eval.same_ids.pairs import PairTable, measure_pictures
from finc_eval.same_ids.result import PICTURE_OF
from finc_eval.same_ids.seen import OTHER_ID, SAME, UNCLEAR
from finc_eval.same_ids.shown import correlate, lights, make_thumbnails, red_blues, steps
from finc_eval.same_ids.verdict import judge_run

Pixels = NDArray[np.uint8]

SOUND = (SAME, UNCLEAR)  # words for pairs that are not red by themselves; all else is, from the first night on

TRANSPARENT, NOT_NUMBERS, UNREADABLE = "partly transparent", "not numbers", "unreadable"

UNSEEN_NOISE = (0.3 / 255) ** 2  # mean squared difference that is added, so that equal pictures have a PSNR: 58.6 dB


@dataclass(frozen=True, eq=False)
class MeasuredPair:
    """A pair of tonight.

    Attributes:
        id: id of the golden picture.
        shows: what it shows: "same", "unclear", or what is wrong, such as "mirrored" or "the picture of p03".
        values: measures in the order of `nights.MEASURES`; None for pictures that cannot be compared.
        gen: tonight's picture.
        ref: golden picture.
    """

    id: str
    shows: str
    values: Array | None
    gen: Shot
    ref: Shot

    @property
    def is_broken(self) -> bool:
        """True for a pair that is red by itself."""
        return self.shows not in SOUND

    @property
    def phrase(self) -> str:
        """Phrase on what it shows, as the end of a sentence about the pair: "shows the same", "is mirrored"."""
        return say_shown(self.shows, self.gen.problem)


def say_shown(shows: str, problem: str = "") -> str:
    """Return what a pair shows as the end of a sentence about it; `problem` is why a picture cannot be used."""
    if shows in (NOT_NUMBERS, UNREADABLE):
        return problem or f"is {shows}"
    if shows in SOUND:
        return "shows the same" if shows == SAME else "cannot be recognized"
    if shows.startswith("with "):
        return f"has {shows.removeprefix('with ')}"
    if shows.startswith("turned gray"):
        return f"has {shows}"
    return f"shows {shows}" if shows.startswith((PICTURE_OF, "another", "noise")) else f"is {shows}"


def measure_night(matched: Matched) -> tuple[list[MeasuredPair], str]:
    """Measure all pairs of a night; return them, and one name for what is wrong with most, or ""."""
    able = [number for number, picture in enumerate(matched.gen) if picture.pixels is not None]
    known: dict[int, tuple[str, Array | None]] = {}
    name = ""
    if able:
        shown, values, name = _measure(matched, able)
        known = dict(zip(able, zip(shown, values, strict=True), strict=True))
    rows = []
    for number, (picture_id, gen, ref) in enumerate(zip(matched.ids, matched.gen, matched.ref, strict=True)):
        unusable = UNREADABLE if gen.problem.startswith("cannot") else NOT_NUMBERS
        shows, numbers = known.get(number, (unusable, None))
        pair = MeasuredPair(picture_id, shows, numbers, gen, ref)
        if gen.is_clear and not ref.is_clear and not pair.is_broken:
            pair = replace(pair, shows=TRANSPARENT)
        rows.append(pair)
    return rows, name if len(able) == len(matched.ids) else ""


def _measure(matched: Matched, able: list[int]) -> tuple[list[str], list[Array | None], str]:
    """Return what some pairs show, their measures, and one name for what is wrong."""
    gen = [pixels for number in able if (pixels := matched.gen[number].pixels) is not None]
    ref = [pixels for number in able if (pixels := matched.ref[number].pixels) is not None]
    names = [matched.ids[number] for number in able]
    both, thumbs = measure_pictures(gen, ref), (make_thumbnails(gen), make_thumbnails(ref))
    none = np.zeros(len(able))
    # Nights know their own tails: none is drawn from the bulk of tonight's pairs (rate 0), and no space is needed.
    values = both | {"distance": none, "coarse": correlate(*thumbs)}
    judged = judge_run(PairTable(values, none, None, thumbs), None, names, rate=0.0)
    shown = []
    for row, cause in enumerate(judged.causes.tolist()):
        other = f"{PICTURE_OF}{names[int(judged.other[row])]}" if cause == OTHER_ID else cause
        shown.append(other if judged.broken[row] else UNCLEAR if judged.unclear[row] else SAME)
    psnr = -10 * np.log10(both["mse"] + UNSEEN_NOISE)
    moved = [change(thumbs[0]) - change(thumbs[1]) for change in (lights, red_blues)]
    detail = np.log((steps(gen) + 0.5) / (steps(ref) + 0.5))
    alike = [both["ssim"].clip(-1, 1), both["structure"].clip(0, 1), values["coarse"].clip(-1, 1)]
    numbers = as_kept(np.column_stack([psnr, *alike, *moved, detail]))
    sized = [pixels.shape == other.shape for pixels, other in zip(gen, ref, strict=True)]
    return shown, [row if is_same else None for row, is_same in zip(numbers, sized, strict=True)], judged.run
