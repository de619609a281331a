"""Kinds that looks explain: without the samples of a look, the sets hardly differ in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from finc_eval.naming.evidence import MOST
from finc_eval.naming.explained import Has
from finc_eval.naming.questions import enrichment_p
from finc_eval.numerics.inference import ALPHA

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


def kinds_of_looks(looks: Sequence[Has], kinds: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the kinds that each look explains, in the order of the looks; no kind is of two looks.

    Looks explain a kind that differs if, among the samples without any of them, at most half of its difference is left,
    or less than all of it and not significantly. Such a kind has the look, as most of 25 blurred butterflies, or has
    less room, as all that is not gray. Of several looks, a kind is of the look without which it differs least.

    Args:
        looks: which samples have each look, by set.
        kinds: kind that differs of each of these samples, by set; "" for none.
    """
    names = [name for name in dict.fromkeys(np.concatenate([*map(np.asarray, kinds.values())]).tolist()) if name]
    place = {label: np.array([names.index(one) if one else -1 for one in mine], int) for label, mine in kinds.items()}
    if not names or any(len(place[label]) != len(mask) for has in looks for label, mask in has.items()):
        return [() for _ in looks]  # the comparison has no kinds

    def without(*left_out: Has) -> tuple[Floats, Floats]:
        rest = {
            one: np.logical_and.reduce([mine >= -1, *(~has[one] for has in left_out)]) for one, mine in place.items()
        }
        return _differences(place, rest, len(names))

    whole, _ = without()
    left, p_left = without(*looks)
    less = np.abs(left) < np.abs(whole)
    hardly = (np.abs(left) <= MOST * np.abs(whole)) | (less & (p_left > ALPHA))
    alone = np.abs([without(one)[0] for one in looks])
    clearest = alone.argmin(0)
    explained = hardly & (alone.min(0) < np.abs(whole))
    return [
        tuple(name for name, own, mine in zip(names, explained, clearest, strict=True) if own and mine == number)
        for number in range(len(looks))
    ]


def _differences(
    place: Mapping[str, Counts], rest: Mapping[str, NDArray[np.bool_]], kinds: int
) -> tuple[Floats, Floats]:
    """Return the difference of both shares of each kind among some samples, and its two-sided p-value by Fisher."""
    sizes = [np.array(max(int(rest[label].sum()), 1)) for label in ("gen", "ref")]
    counts = [np.bincount(place[label][rest[label] & (place[label] >= 0)], minlength=kinds) for label in ("gen", "ref")]
    difference = counts[0] / sizes[0] - counts[1] / sizes[1]
    more = enrichment_p(counts[0], sizes[0], counts[1], sizes[1])
    less = enrichment_p(counts[1], sizes[1], counts[0], sizes[0])
    return difference, 2 * np.minimum(more, less)
