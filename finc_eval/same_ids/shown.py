"""The thing that a pair of pictures of one id shows: the same, another picture, a symmetry of its own, or nothing.

Pure mathematics on thumbnails: arrays in, arrays out. `make_thumbnails` shrinks pictures, and `liken` compares the
thumbnails of all pairs, from a single pair on, also with those of other ids. `tell_shown` joins this with the structure
and the mean squared difference of full pictures (`measures.measure_pairs`) to an answer for each pair. `lights`,
`red_blues` and `steps` describe a picture by a number each. Of clips, a thumbnail has the frames one under the other.

Of pair i, with u = (t - mean t) / sqrt(|t - mean t|^2 + (3/255)^2 * 768) of the thumbnail t:
own = u(g_i) . u(r_i); near = max over j != i of u(g_i) . u(r_j); turned_T = u(T g_i) . u(r_i).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from finc_eval.embeddings.pictures import picture
from finc_eval.extractors.networks.motion import LUMA

Array = NDArray[np.float64]
Thumbs = NDArray[np.uint8]
Units = NDArray[np.float32]

Shown = Literal["same", "another picture", "another id", "turned", "blank", "unclear"]

THUMB = 16  # side of a thumbnail, in pixels
FAINT = 3 / 255  # deviation of a thumbnail that counts as none

SAME_OWN, SAME_STRUCTURE = 0.85, 0.85
"""Own correlation and structure from which a pair shows the same. Of 3,000 photographs of 128 pixels under ten engines
the least had 0.91 and 0.91; of 200 pairs of other photographs the most had 0.65 and 0.41."""

SMALL, SAME_SMALL, MANY = 48, 0.95, 50
"""Pixels of the shorter side below which both must be larger, and number of pairs from which they need not: the other
ids of the run are then a better measure of what is alike. Of 1,500 digits of 28 pixels with another of the same digit,
55 had 0.85, and 6 had 0.95."""

OTHER_OWN, OTHER_STRUCTURE = 0.70, 0.50
"""Own correlation and structure below both of which pictures are others: of 200 pairs of photographs, all were."""

NEARER_SMALL = 0.1
"""The same for pictures that are small: a digit of 28 pixels that moves by 0.7 pixels has 0.81 with its own, and 0.93
with its turned self or with another of the same digit."""

MANY_ALIKE, LEAST_ALIKE = 20, 0.5
"""Pairs from which a run tells how alike its pictures are, and least correlation of half of them: of 200 pairs of other
photographs, the most had 0.65, and half of them 0.03."""

STRANGE, LEAST_OTHERS = 0.1, 10
"""Part of the other ids nearer than its own, of at least so many pairs, from which an unclear picture is another one:
of digits of 28 pixels, a tenth are of the same digit."""

NEAR, NEARER = 0.90, 0.03
"""Correlation from which a picture is that of another id, or a symmetry of its own, and by how much it must exceed the
correlation with its own."""

RECOLORED = 0.15
"""The same where channels are exchanged: a tint of 20/255 makes a gray picture a little like its own with other
channels, in one of 200 photographs."""

EXCHANGED = 0.3  # the same of colors alone
FAINT_COLOR = 1.5 / 255
"""Deviation of the colors of a thumbnail that counts as none. Of 200 photographs of 96 pixels with red and blue
exchanged, 176 have colors that tell (118 with the deviation of a whole thumbnail), and of 200 under 17 engines none."""

UNSEEN_SQUARES = (4 / 255) ** 2  # mean squared difference, of noise of 4/255, that no eye sees

NEAR_BLOCK = 1024  # thumbnails that are compared with as many others at once: 4 MB

_PLACES = np.arange(THUMB * THUMB).reshape(THUMB, THUMB)
# Where each value of the second picture comes from in the first: what undoes the turn of this name.
_TURNED = {
    "": _PLACES,
    "mirrored": _PLACES[:, ::-1],
    "upside down": _PLACES[::-1],
    "turned right by 90°": np.rot90(_PLACES),
    "turned by 180°": np.rot90(_PLACES, 2),
    "turned left by 90°": np.rot90(_PLACES, 3),
    "transposed": _PLACES.T,
    "transposed along the other diagonal": np.rot90(_PLACES, 2).T,
}
_CHANNELS = {
    (0, 1, 2): "",
    (2, 1, 0): "with red and blue exchanged",
    (1, 0, 2): "with red and green exchanged",
    (0, 2, 1): "with green and blue exchanged",
    (1, 2, 0): "with red, green and blue rotated",
    (2, 0, 1): "with red, green and blue rotated back",
}


@dataclass(frozen=True)
class Turn:
    """A symmetry of a picture, an exchange of its channels, its negative, or several of these.

    Attributes:
        name: such as "mirrored", or "upside down, with red and blue exchanged".
        parts: number of the things that are done.
        recolors: whether channels are exchanged.
    """

    name: str
    parts: int
    recolors: bool


def _turn(place: str, color: str, sign: str) -> Turn:
    parts = [part for part in (place, color, sign) if part]
    return Turn(", ".join(parts), len(parts), bool(color))


TURNS: tuple[Turn, ...] = tuple(
    _turn(place, _CHANNELS[color], sign)
    for sign, place, color in product(("", "in negative"), _TURNED, permutations(range(3)))
)
"""All turns, in the order of `Likeness.turned`; the first changes nothing."""


EXCHANGES = len(_CHANNELS)  # turns that exchange channels alone, the first of `TURNS` with what changes nothing


@dataclass(frozen=True, eq=False)
class Likeness:
    """Correlations of the thumbnails of pairs, (n,) each.

    Attributes:
        own: correlation of both thumbnails of a pair; what is flat correlates with nothing.
        near: largest correlation of the first with the second of another id; -1 without other ids. It is looked for
            where it can matter: where it could exceed `own` by `NEARER`.
        other: number of that pair; -1 without.
        nearer: part of the other ids whose second is as much more alike, and where that can matter.
        turned: correlation of the turned first with the second, (n, turns), in the order of `TURNS`.
        colors: correlation of what is not gray in both, with the channels of the first exchanged, (n, exchanges), as
            the first of `TURNS`. Light counts nothing; nor does a tint of all pixels.
        alike: correlation up to which 99 % of the second pictures of unlike ids are alike; -1 for a single pair.
    """

    own: Array
    near: Array
    other: NDArray[np.int64]
    nearer: Array
    turned: Array
    colors: Array
    alike: float


def make_thumbnails(pictures: Sequence[Image.Image | NDArray[np.uint8]]) -> Thumbs:
    """Return thumbnails of pictures of any sizes, (n, 16, 16, 3), by means of boxes.

    Example:
        >>> import numpy as np
        >>> make_thumbnails([np.full((40, 60, 3), 7, np.uint8)]).mean()
        np.float64(7.0)
    """
    small = [
        # From twice the size at least, which takes half the time.
        picture(image).convert("RGB").resize((THUMB, THUMB), Image.Resampling.BOX, reducing_gap=2)
        for image in pictures
    ]
    return (
        np.stack([np.asarray(thumbnail, np.uint8) for thumbnail in small])
        if small
        else np.empty((0, THUMB, THUMB, 3), np.uint8)
    )


def as_units(thumbs: Thumbs) -> Units:
    """Return thumbnails less their mean, over their norm with that of what is faint, (n, 768)."""
    rows = thumbs.reshape(len(thumbs), -1).astype(np.float32)
    rows /= 255
    return unit_rows(rows)


def unit_rows(rows: Units, faint: float = FAINT) -> Units:
    """Return rows of values in [0, 1], (n, values), less their mean, over their norm with that of what is faint."""
    rows = rows - rows.mean(1, keepdims=True)
    return np.asarray(rows / np.sqrt((rows * rows).sum(1, keepdims=True) + faint**2 * rows.shape[1]), np.float32)


def correlate(first: Thumbs, second: Thumbs) -> Array:
    """Return the correlation of both thumbnails of each pair, (n,); what is flat correlates with nothing."""
    return np.asarray(np.einsum("nk,nk->n", as_units(first), as_units(second)), np.float64)


def liken(first: Thumbs, second: Thumbs) -> Likeness:
    """Compare the thumbnails of all pairs: with their own, also turned, and with those of other ids.

    Args:
        first: thumbnails of the new pictures, (n, 16, 16, 3).
        second: thumbnails of the pictures of the reference with the same ids, (n, 16, 16, 3).

    Example:
        >>> import numpy as np
        >>> some = np.random.default_rng(0).integers(0, 256, (3, 16, 16, 3), dtype=np.uint8)
        >>> found = liken(some[:, :, ::-1], some)
        >>> TURNS[found.turned[0].argmax()].name
        'mirrored'
    """
    new, other = as_units(first), as_units(second)
    own = correlate(first, second)
    near, place, nearer = np.full(len(new), -1.0), np.full(len(new), -1), np.zeros(len(new))
    asked = np.flatnonzero(own < 1 - NEARER)
    for start in range(0, len(asked), NEAR_BLOCK):
        rows = asked[start : start + NEAR_BLOCK]
        near[rows], place[rows], nearer[rows] = _nearest(new[rows], other, rows, own[rows])
    colors = _turn_all(*(_colors(some) for some in (first, second)))[:, :EXCHANGES]
    return Likeness(own, near, place, nearer, _turn_all(new, other), colors, _alike(other))


def _colors(thumbs: Thumbs) -> Units:
    """Return thumbnails less their light and less the mean of each channel, as units, (n, 768)."""
    values = thumbs.reshape(len(thumbs), -1, 3).astype(np.float32) / np.float32(255)
    values -= values.mean(2, keepdims=True)
    return unit_rows((values - values.mean(1, keepdims=True)).reshape(len(thumbs), -1), FAINT_COLOR)


def _nearest(
    some: Units, others: Units, own: NDArray[np.int64], values_of_own: Array
) -> tuple[Array, NDArray[np.int64], Array]:
    """Return the largest correlation of some thumbnails with those of other ids, where it is, and how many are nearer.

    `some` and `others` are thumbnails as units, shapes (n, d) and (m, d). `own` has their numbers among the others, and
    `values_of_own` their correlation with these, shape (n,) each.
    """
    most, place, nearer = np.full(len(some), -1.0), np.full(len(some), -1), np.zeros(len(some))
    for start in range(0, len(others), NEAR_BLOCK):
        found = some @ others[start : start + NEAR_BLOCK].T
        found[own[:, None] == np.arange(start, start + found.shape[1])] = -2
        nearer += (found > values_of_own[:, None] + NEARER).sum(1)
        best = found.argmax(1)
        values = found[np.arange(len(found)), best]
        place = np.where(values > most, start + best, place)
        most = np.maximum(most, values)
    return most, place, nearer / max(len(others) - 1, 1)


def _turn_all(new: Units, other: Units) -> Array:
    """Return the correlations of all turns of the first thumbnails with the second, (n, turns)."""
    frames = new.shape[1] // (3 * THUMB * THUMB)
    starts = np.arange(frames)[:, None] * THUMB * THUMB
    orders = [(starts + order.ravel()).ravel() for order in _TURNED.values()]
    colors = [*permutations(range(3))]
    found = np.empty((len(new), len(orders), len(colors)))
    for start in range(0, len(new), NEAR_BLOCK):
        some = slice(start, start + NEAR_BLOCK)
        first, second = (units[some].reshape(-1, frames * THUMB * THUMB, 3) for units in (new, other))
        for number, order in enumerate(orders):
            # (n, 3, 3): the products of each channel of the turned picture with each channel of the other one.
            channels = first[:, order].transpose(0, 2, 1) @ second
            for place, color in enumerate(colors):
                found[some, number, place] = channels[:, color, range(3)].sum(1)
    flat = found.reshape(len(new), -1)
    return np.concatenate([flat, -flat], 1)


def _alike(units: Units) -> float:
    """Return the correlation up to which 99 % of the pictures of unlike ids are alike; equal pictures do not count."""
    drawn = np.random.default_rng(0).permutation(len(units))[:NEAR_BLOCK]  # a million pairs
    found = (units[drawn] @ units[drawn].T)[np.triu_indices(len(drawn), 1)]
    found = found[found < 1 - NEARER / 10]
    return float(np.quantile(found, 0.99, method="higher")) if len(found) else -1.0


def tell_shown(
    likeness: Likeness, structure: Array, squares: Array, is_blank: NDArray[np.bool_], sides: Array | None = None
) -> NDArray[np.str_]:
    """Say what each pair shows, (n,) of `Shown`, by the last row of a table that holds.

    Args:
        likeness: how alike the thumbnails are.
        structure: structure of each pair, in [0, 1] (`measure_pairs`).
        squares: mean squared difference of each pair, of values in [0, 1].
        is_blank: whether the first picture shows nothing while the second does.
        sides: shorter side of each second picture in pixels; default: none is small.
    """
    least = np.where(is_small(sides, len(likeness.own)), SAME_SMALL, min(SAME_OWN, SAME_STRUCTURE))
    answer = np.full(len(likeness.own), "unclear", dtype="<U15")
    is_same = (
        (likeness.own >= least) & (structure >= least) & (likeness.own > np.maximum(likeness.alike, likeness.near))
    )
    answer[is_same] = "same"
    is_far = (likeness.own < OTHER_OWN) & (structure < OTHER_STRUCTURE)
    is_strange = (answer == "unclear") & (likeness.nearer >= STRANGE) & (len(likeness.own) >= LEAST_OTHERS)
    answer[is_far | is_strange] = "another picture"
    more = margins(sides, len(likeness.own))
    answer[(likeness.near >= NEAR) & (likeness.near > likeness.own + more)] = "another id"
    answer[best_turn(likeness, more) > 0] = "turned"
    answer[(exchange(likeness) > 0) & (structure >= SAME_STRUCTURE)] = "turned"
    answer[squares <= UNSEEN_SQUARES] = "same"
    answer[is_blank] = "blank"
    return answer


def is_small(sides: Array | None, n: int) -> NDArray[np.bool_]:
    """Return which pairs are of pictures too small, and too few, for the usual bounds, (n,)."""
    return np.zeros(n, bool) if sides is None or n >= MANY else sides < SMALL


def usual_correlation(own: Array) -> float:
    """Return the correlation from which a turned or cropped picture is its own: less in runs of another sampler.

    There, pictures of one prompt and seed are alike, and three of four of the pairs that are so say how much.
    """
    alike = own[own >= LEAST_ALIKE]
    if len(own) < MANY_ALIKE or len(alike) < len(own) / 2:
        return NEAR
    return min(NEAR, float(np.quantile(alike, 0.25)))


def exchange(likeness: Likeness) -> NDArray[np.int64]:
    """Return the exchange of channels that the colors of each pair show, by its number in `TURNS`; 0 where none."""
    best = likeness.colors[:, 1:].argmax(1) + 1
    value = likeness.colors[np.arange(len(best)), best]
    return np.where((value >= NEAR) & (value > likeness.colors[:, 0] + EXCHANGED), best, 0)


def margins(sides: Array | None, n: int) -> Array:
    """Return by how much each pair must be more alike otherwise than as it is, (n,), by its shorter side."""
    return np.full(n, NEARER) if sides is None else np.where(sides < SMALL, NEARER_SMALL, NEARER)


def best_turn(likeness: Likeness, more: Array | float = NEARER) -> NDArray[np.int64]:
    """Return the turn that each pair shows by so much more, by its number in `TURNS`; 0 where it shows none."""
    recolors = np.array([turn.recolors for turn in TURNS])
    parts = np.array([turn.parts for turn in TURNS])
    plain = np.where(recolors, -1, likeness.turned)
    most = np.maximum(likeness.own, likeness.near)
    # Of turns that fit as well, the simplest: symmetric pictures fit several.
    chosen = plain - 0.01 * parts
    best = chosen[:, 1:].argmax(1) + 1
    value = np.take_along_axis(likeness.turned, best[:, None], 1)[:, 0]
    least = usual_correlation(likeness.own)
    is_turned = (value >= least) & (value > most + (more if least == NEAR else RECOLORED))
    colored = np.where(recolors, likeness.turned - 0.01 * parts, -1)
    other = colored.argmax(1)
    beyond = np.take_along_axis(likeness.turned, other[:, None], 1)[:, 0]
    is_recolored = (beyond >= NEAR) & (beyond > np.maximum(most, plain.max(1)) + RECOLORED)
    return np.where(is_recolored, other, np.where(is_turned, best, 0))


def lights(thumbs: Thumbs) -> Array:
    """Return the mean light of each picture, in steps of 1/255."""
    return np.asarray(thumbs.reshape(len(thumbs), -1, 3).mean(1) @ np.array(LUMA))


def red_blues(thumbs: Thumbs) -> Array:
    """Return the mean of red less blue of each picture, in steps of 1/255."""
    means = thumbs.reshape(len(thumbs), -1, 3).mean(1)
    return np.asarray(means[:, 0] - means[:, 2])


def steps(pictures: Sequence[NDArray[np.uint8]]) -> Array:
    """Return the root of the mean squared step from pixel to pixel of pictures (h, w, 3), in steps of 1/255."""
    found = np.empty(len(pictures))
    for row, image in enumerate(pictures):
        squares = [float(np.square(np.diff(image.astype(np.float32), axis=axis)).mean()) for axis in (0, 1)]
        found[row] = np.sqrt(np.mean(squares))
    return found
