"""One name for what is wrong with a run: "ids are shifted by 1", "every 4th pair from 2: another picture"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.words import percent
from finc_eval.same_ids.pairs import SIZES, SIZES_BEFORE, PairTable
from finc_eval.same_ids.seen import OTHER_ID, SeenPairs, change_of_size
from finc_eval.same_ids.shown import NEARER, TURNS, as_units

Places = NDArray[np.int64]

MOST = 0.8  # part of the broken pairs that a cause must explain to name the run
FEW = 1 / 8
"""Part of the pairs that may be at fault or unclear where the tail of the bulk is used, and unclear in a clean run: the
slopes of the tail are taken from the rest (`broken.SCALES`). So few pairs do not name a run."""

NEARLY_ALL = 7 / 8  # part of the pairs from which a cause is that of all
LEAST_NAMED = 3  # broken pairs from which a run has a name; a run of fewer pairs must be broken as a whole
MOST_APART = 8  # largest k of "every kth pair"
IN_PLACE = 0.9  # part of the broken pairs that lie in a pattern, and of the pattern that is broken
BLOCKS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 25, 32, 48, 50, 64, 96, 100, 128, 256)  # sizes of batches
ONE_PICTURE_NAME = "one and the same picture"  # name of a run whose broken pairs are all the same
EXCHANGED_IDS = "ids are exchanged"  # name of a run whose ids no rule tells
ONE_PICTURE = 0.98  # correlation from which pictures of unlike ids are one picture


def natural_order(ids: Sequence[str]) -> Places:
    """Return the places of ids in the order of the numbers in them: "2.png" before "10.png"."""
    keys = [[(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", id)] for id in ids]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)


def name_turn(turn: int, n: int) -> str:
    """Name a run in which all pictures have the same symmetry or exchange of channels."""
    name = TURNS[turn].name
    words = f"have {name.removeprefix('with ')}" if name.startswith("with ") else f"are {name}"
    if n == 1:
        words = words.replace("have", "has", 1) if words.startswith("have") else words.replace("are", "is", 1)
    return f"{'all pictures' if n > 1 else 'the picture'} {words}"


def name_sizes(table: PairTable) -> str:
    """Name a run in which all samples are of another size."""
    found = [np.unique(np.stack([table.values[name] for name in names], 1), axis=0) for names in (SIZES, SIZES_BEFORE)]
    if any(len(size) > 1 for size in found):
        return "all are of another size"
    return f"all are of another {change_of_size(found[0][0], found[1][0])}"


def name_run(table: PairTable, seen: SeenPairs, is_broken: NDArray[np.bool_], ids: Sequence[str]) -> str:
    """Name what is behind most of the broken pairs of a run; "" where no cause is, and for too few of them.

    `is_broken` marks pairs, shape (n,), in the order of `ids`.
    """
    order, n = natural_order(ids), len(ids)
    places = np.flatnonzero(is_broken[order])  # in the order of the ids
    if len(places) < min(LEAST_NAMED, n):
        return ""
    causes = Counter(seen.causes[order[places]].tolist())
    if _is_one_picture(table, is_broken):
        return _say(places, n, ONE_PICTURE_NAME)
    if name := _exchange(table, seen, order, places):
        return name
    cause, count = causes.most_common(1)[0]
    if cause == OTHER_ID and count >= MOST * len(places):
        return EXCHANGED_IDS if count > len(places) / 2 and len(places) > n / 8 else ""
    if count < MOST * len(places):
        cause = _joint(causes)
    if not cause:
        return ""
    return _say(places, n, "the picture of another id" if cause == OTHER_ID else cause)


def _joint(causes: Counter[str]) -> str:
    """Return a name for causes none of which is behind most: the largest two, or none."""
    if set(causes) <= {"another picture", OTHER_ID, "noise"}:
        return "another picture"
    return ""


def _say(places: Places, n: int, cause: str) -> str:
    """Say which pairs a cause is about: all, every kth, a range, or their share."""
    if len(places) == n == 1:
        return cause
    if len(places) >= NEARLY_ALL * n:
        return f"{'nearly ' * (len(places) < n)}all pairs: {cause}"
    for every in range(2, MOST_APART + 1):
        start = Counter((places % every).tolist()).most_common(1)[0][0]
        pattern = np.arange(start, n, every)
        if len(pattern) >= LEAST_NAMED and _fits(places, pattern):
            return f"every {_ordinal(every)} pair from {start + 1}: {cause}"
    low, high = int(places.min()), int(places.max())
    if _fits(places, np.arange(low, high + 1)):
        return f"pairs {low + 1} to {high + 1}: {cause}"
    return f"{percent(len(places) / n)} of the pairs: {cause}" if len(places) > FEW * n else ""


def _fits(places: Places, pattern: Places) -> bool:
    both = len(np.intersect1d(places, pattern))
    return both >= IN_PLACE * len(places) and both >= IN_PLACE * len(pattern)


def _ordinal(number: int) -> str:
    return f"{number}{ {2: 'nd', 3: 'rd'}.get(number, 'th') }"


def _exchange(table: PairTable, seen: SeenPairs, order: Places, places: Places) -> str:
    """Say how ids are exchanged, where a rule tells the other id of most of the broken pairs.

    `order` has the numbers of all pairs in the natural order of their ids, and `places` those of broken pairs there.
    """
    n, number = len(order), np.empty(len(order), np.int64)
    number[order] = np.arange(n)
    known = places[seen.other[order[places]] >= 0]
    is_other = known[np.isin(seen.shown[order[known]], (OTHER_ID,))]
    if len(is_other) < max(2, len(places) / 3):
        return ""
    other = number[seen.other[order[is_other]]]
    (by, _), *_ = Counter(((other - is_other) % n).tolist()).most_common(1)
    if _holds(table, seen, order, places, (places + by) % n):
        later = by <= n / 2
        way = (
            "the halves are exchanged" if 2 * by == n else f"each shows {'a later' if later else 'an earlier'} picture"
        )
        return f"ids are shifted by {min(by, n - by)}{_part(places, n)} ({way})"
    if len(places) > 2 and _holds(table, seen, order, places, n - 1 - places):
        return f"ids are reversed{_part(places, n)}"
    if len(is_other) < MOST * len(places):
        return ""
    block = next(
        (length for length in BLOCKS if length <= n / 2 and (is_other // length == other // length).all()), None
    )
    return f"ids are exchanged within blocks of {block}" if block else ""


def _part(places: Places, n: int) -> str:
    """Say which pairs a rule is about, unless these are nearly all."""
    return "" if len(places) >= NEARLY_ALL * n or n < MOST_APART else f" in {percent(len(places) / n)} of the pairs"


def _holds(table: PairTable, seen: SeenPairs, order: Places, places: Places, others: Places) -> bool:
    """Return whether most of the broken pairs show the picture of these other ids, or what is as like it.

    `order` has the numbers of all pairs in the natural order of their ids; `places` of broken pairs, and the places of
    the `others` that they may show, are in that order, shape (m,) each.
    """
    first, second = order[places], order[others]
    if table.thumbs is None or seen.likeness is None:
        return bool((seen.other[first] == second).mean() >= MOST)
    found = (as_units(table.thumbs[0][first]) * as_units(table.thumbs[1][second])).sum(1)
    near = np.maximum(seen.likeness.near[first], seen.likeness.own[first])
    return bool(((found >= near - NEARER) & (found > seen.likeness.own[first])).mean() >= MOST)


def _is_one_picture(table: PairTable, is_broken: NDArray[np.bool_]) -> bool:
    """Return whether all broken pairs show one picture, while the reference has several."""
    if table.thumbs is None or is_broken.sum() < LEAST_NAMED:
        return False
    first, second = (as_units(thumb[is_broken]) for thumb in table.thumbs)
    # A correlation with the first of them; nothing correlates with blank pictures.
    return bool((first @ first[0] >= ONE_PICTURE).mean() >= NEARLY_ALL > (second @ second[0] >= ONE_PICTURE).mean())
