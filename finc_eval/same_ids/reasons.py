"""Looks of broken pairs: blank, shifted, in other colors, the picture of another id, or another picture."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from finc_eval.embeddings.pictures import picture
from finc_eval.naming.texture import BLANK
from finc_eval.same_ids.broken import ALIKE, OTHER, UNLIKE_MOTION
from finc_eval.same_ids.crops import SHIFTED
from finc_eval.same_ids.pairs import Aligned, PairTable, measure_pictures, nearest_others
from finc_eval.same_ids.result import PICTURE_OF
from finc_eval.same_ids.seen import ANOTHER, OTHER_ID
from finc_eval.same_ids.verdict import RunVerdict

Array = NDArray[np.float64]

SHOWN = 100  # broken pairs whose pictures are looked at
DARK, LIGHT = 16 / 255, 239 / 255  # brightness of a black and of a white picture
LEFT = 0.5  # part of the squared difference that may be left when a shift is undone
SAME = 0.05  # part of the squared difference up to which the picture of another id is the same
VAGUE = ("", ANOTHER, SHIFTED)  # causes that the pictures themselves may tell more of
UNLIKE = 0.5  # correlation of thumbnails below which pictures are not of one scene


def reasons_of(pairs: Aligned, table: PairTable, judged: RunVerdict) -> dict[str, str]:
    """Say of each broken pair what it looks like; "further apart than other pairs" where nothing is known."""
    places = np.flatnonzero(judged.broken)
    found = {str(pairs.ids[place]): _cause(pairs, judged, place) for place in places.tolist()}
    vague = np.array([place for place in places if judged.causes[place] in VAGUE], np.int64)
    vague, pixels = pairs.read(vague[:SHOWN]) if "mse" in table.values else (vague, None)
    if pixels is None or not len(vague):
        return found
    pictures = ([picture(image) for image in side] for side in pixels)
    nearest, _ = nearest_others(pairs, vague)
    for place, other, first, second in zip(vague.tolist(), nearest.tolist(), *pictures, strict=True):
        if reason := _reason(first, second, pairs, table, (place, other)):
            found[str(pairs.ids[place])] = reason
    return found


def _cause(pairs: Aligned, judged: RunVerdict, place: int) -> str:
    """Return the cause of a broken pair by what it shows."""
    cause = str(judged.causes[place])
    if cause == OTHER_ID:
        return f"{PICTURE_OF}{pairs.ids[judged.other[place]]}"
    return cause or "further apart than other pairs"


def _reason(first: Image.Image, second: Image.Image, pairs: Aligned, table: PairTable, places: tuple[int, int]) -> str:
    """Return what is seen at second sight; "" for nothing more."""
    place, _ = places
    now, before = (_light(image, second.size) for image in (first, second))
    if now.std() < BLANK:
        return "black" if now.mean() < DARK else "white" if now.mean() > LIGHT else "blank"
    coarse = float(table.values["coarse"][place])
    if "motion" in table.values and table.values["motion"][place] > UNLIKE_MOTION and coarse >= UNLIKE:
        return "frozen" if table.values["speed"][place] < UNLIKE_MOTION else "moving otherwise"
    if (moved := _shift(now, before)) is not None:
        return f"shifted by {moved[1]:+d}, {moved[0]:+d} pixels"
    if table.values["structure"][place] >= ALIKE:
        return "in other colors or light"
    if table.others[place] > 0 and (name := _same_as(first, pairs, places)) is not None:
        return f"{PICTURE_OF}{name}"
    if table.others[place] >= OTHER or coarse < UNLIKE:
        return "another picture"
    return ""


def _light(image: Image.Image, size: tuple[int, int]) -> Array:
    return np.asarray(image.convert("L").resize(size), float) / 255


def _shift(now: Array, before: Array) -> tuple[int, int] | None:
    """Return by how many rows and columns a picture is shifted, by phase correlation; None if it is not."""
    window = np.hanning(now.shape[0])[:, None] * np.hanning(now.shape[1])
    product = np.fft.rfft2((now - now.mean()) * window) * np.conj(np.fft.rfft2((before - before.mean()) * window))
    peak = np.fft.irfft2(product / np.maximum(np.abs(product), 1e-12), now.shape)
    down, right = np.unravel_index(int(peak.argmax()), peak.shape)
    moved = [int(at) - (side if at > side // 2 else 0) for at, side in zip((down, right), now.shape, strict=True)]
    if moved == [0, 0] or any(abs(by) > side // 2 for by, side in zip(moved, now.shape, strict=True)):
        return None
    inner, outer = (
        tuple(slice(max(sign * by, 0), side + min(sign * by, 0)) for by, side in zip(moved, now.shape, strict=True))
        for sign in (1, -1)
    )
    left = float(((now[inner] - before[outer]) ** 2).mean())
    return (moved[0], moved[1]) if left <= LEFT * float(((now - before) ** 2).mean()) else None


def _same_as(first: Image.Image, pairs: Aligned, places: tuple[int, int]) -> str | None:
    """Return the id of the nearest other picture of the reference if it is the same; else None."""
    pictures = pairs.ref.images_at(pairs.rows[1][[*places]])
    if pictures is None:
        return None
    mine, other = (float(measure_pictures([first], [picture])["mse"][0]) for picture in pictures)
    return str(pairs.ids[places[1]]) if other <= SAME * mine else None
