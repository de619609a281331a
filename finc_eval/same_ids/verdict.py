"""The verdict of a run by what each of its pairs shows: clean, broken or undecided, and one name for what is wrong.

The first that holds: all are of another size; a symmetry or an exchange of channels of all; a floor that shows the
same; the tail of the bulk, where few pairs are at fault; any pair at fault; too many pairs that are unclear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from finc_eval.same_ids.broken import RATE, find_broken
from finc_eval.same_ids.crops import crop_names
from finc_eval.same_ids.pairs import PairTable
from finc_eval.same_ids.run_names import FEW, NEARLY_ALL, name_run, name_sizes, name_turn
from finc_eval.same_ids.seen import SeenPairs, see
from finc_eval.same_ids.shown import EXCHANGED, EXCHANGES, MANY_ALIKE, NEAR, OTHER_OWN, TURNS, Likeness, margins

Array = NDArray[np.float64]
Overall = Literal["clean", "broken", "undecided"]

LEAST_TAIL = 20  # pairs from which a bulk has a tail

TELLING, GAINED = 0.03, 0.05
"""Difference of correlations from which a pair can tell a symmetry, as gray and symmetric pictures cannot; and the mean
gain of the symmetry of all."""

SURE = 0.025
"""Probability of so many pairs at fault, where runs of the baseline have as many, below which they are a fault: half of
5 %. tests/same_ids/test_usual_faults.py measures the rate."""


@dataclass(frozen=True, eq=False)
class RunVerdict:
    """Answer to whether a run is broken.

    Attributes:
        verdict: "clean", "broken" or "undecided".
        run: one name for what is wrong with the run; "" if there is none.
        broken: pairs that are broken, (n,).
        causes: what each broken pair is called, by what it shows; "" where only its tail speaks, (n,).
        other: pair whose reference each first sample shows; -1 where unknown, (n,).
        unclear: pairs that cannot be recognized, (n,); also those at fault, if runs of the baseline have as many.
        is_resized: whether all samples are of another size.
        is_usual: whether runs of the baseline have as many pairs at fault.
    """

    verdict: Overall
    run: str
    broken: NDArray[np.bool_]
    causes: NDArray[np.str_]
    other: NDArray[np.int64]
    unclear: NDArray[np.bool_]
    is_resized: bool = False
    is_usual: bool = False

    @property
    def is_sure_of_rest(self) -> bool:
        """True if the run is decided, and few pairs are broken or unclear, so that the others stand for the run."""
        return self.verdict != "undecided" and int((self.broken | self.unclear).sum()) <= FEW * len(self.broken)


def judge_run(
    table: PairTable, floor: PairTable | None, ids: Sequence[str], rate: float = RATE, seen: SeenPairs | None = None
) -> RunVerdict:
    """Judge a run by its pairs, and the pairs of runs of the baseline.

    Args:
        table: the pairs.
        floor: pairs of runs of the baseline; None without these.
        ids: the id of each pair.
        rate: false discovery rate at which the tail lists pairs.
        seen: what each pair shows, if it is known.
    """
    seen = see(table) if seen is None else seen
    n = len(table)
    if (seen.shown == "size").mean() >= NEARLY_ALL:
        return _broken(seen, seen.is_bad, name_sizes(table), is_resized=True)
    if turn := 0 if seen.likeness is None else turn_of_all(seen.likeness, _least_gain(table)):
        assert seen.likeness is not None
        tells = seen.likeness.turned[:, turn] > seen.likeness.own + TELLING
        if turn < EXCHANGES:
            tells |= seen.likeness.colors[:, turn] > seen.likeness.colors[:, 0] + EXCHANGED
        causes = np.where(tells, TURNS[turn].name, seen.causes)
        whole = SeenPairs(np.where(tells, "turned", seen.shown), causes, seen.other)
        return _broken(whole, whole.is_bad, name_turn(turn, n))
    if floor is not None and _is_usual(seen, see(floor), floor.owner):
        none = np.zeros(n, bool)
        return RunVerdict(
            "undecided", "", none, np.full(n, ""), seen.other, seen.is_bad | seen.is_unclear, is_usual=True
        )
    is_broken, unclear = seen.is_bad, seen.is_unclear
    if n >= LEAST_TAIL and (is_broken | unclear).sum() <= FEW * n:
        is_broken = is_broken | find_broken(table, floor, rate)
    if is_broken.any():
        name = crop_of_all(seen, n) or name_run(table, seen, is_broken, ids)
        return _broken(seen, is_broken, name)
    is_clean = unclear.sum() <= (FEW * n if n >= LEAST_TAIL else 0)
    return RunVerdict("clean" if is_clean else "undecided", "", is_broken, seen.causes, seen.other, unclear)


def _broken(seen: SeenPairs, is_broken: NDArray[np.bool_], name: str, *, is_resized: bool = False) -> RunVerdict:
    causes = np.where(is_broken, seen.causes, "")
    return RunVerdict("broken", name, is_broken, causes, seen.other, seen.is_unclear & ~is_broken, is_resized)


def _is_usual(seen: SeenPairs, floor: SeenPairs, owner: NDArray[np.int64] | None) -> bool:
    """Return whether a run of the baseline has pairs at fault, too, and the run has no more than chance adds.

    The run stands against the worst run of the baseline, by Fisher's exact test: both numbers are drawn. A baseline
    without any says that none is usual. `owner` is the run of each pair of the floor; None if it is of one.
    """
    bad, n = int(seen.is_bad.sum()), len(seen.shown)
    runs = np.zeros(len(floor.shown), np.int64) if owner is None else owner
    counts = np.bincount(runs, floor.is_bad)
    if not bad or not counts.any():
        return False
    from scipy.stats import hypergeom  # slow to import

    worst = int(counts.argmax())
    usual, size = int(counts[worst]), int((runs == worst).sum())
    return float(hypergeom.sf(bad - 1, n + size, bad + usual, n)) > SURE


def _least_gain(table: PairTable) -> float:
    """Return the mean gain that a symmetry of all needs: small pictures that move are often more alike when turned."""
    sides = np.minimum(table.values["height before"], table.values["width before"])
    return max(GAINED, float(margins(sides, len(table)).mean()))


def turn_of_all(likeness: Likeness, least: float = GAINED) -> int:
    """Return the symmetry or exchange of channels that all pairs show, by its number in `TURNS`; 0 for none.

    `least` is the least mean gain of correlation.
    """
    gains = likeness.turned - likeness.own[:, None]
    # Many pairs tell a symmetry together, also where another sampler has made other details.
    near = NEAR if len(gains) < MANY_ALIKE else OTHER_OWN
    holds = [turn for turn in range(1, len(TURNS)) if _is_of_all(likeness.turned[:, turn], gains[:, turn], least, near)]
    if not holds:
        gains = likeness.colors - likeness.colors[:, :1]
        gains[np.abs(gains) < EXCHANGED] = 0  # too little color to tell
        holds = [turn for turn in range(1, EXCHANGES) if _is_of_all(likeness.colors[:, turn], gains[:, turn])]
        return max(holds, key=lambda turn: float(likeness.colors[:, turn].mean()), default=0)
    # Of symmetries that fit as well, the simplest.
    return max(holds, key=lambda turn: likeness.turned[:, turn].mean() - 0.02 * TURNS[turn].parts, default=0)


def _is_of_all(values: Array, gains: Array, least: float = GAINED, near: float = NEAR) -> bool:
    tells = np.abs(gains) > TELLING
    if not tells.any():
        return False
    is_more = float((gains[tells] > 0).mean()) >= NEARLY_ALL
    return is_more and float(gains[tells].mean()) > least and float((values[tells] >= near).mean()) >= 0.5


def crop_of_all(seen: SeenPairs, n: int) -> str:
    """Return the name of a run all of which is cropped, shifted or within bars; "" for none."""
    if seen.crops is None or seen.likeness is None or len(seen.crops[1]) < NEARLY_ALL * min(n, len(seen.crops[1])):
        return ""
    found, asked = seen.crops
    if len(asked) < n / 2 or (seen.causes[asked] == "").all():
        return ""
    names, gains = np.array(crop_names()), found - seen.likeness.own[asked][:, None]
    holds = [crop for crop in range(len(names)) if _is_of_all(found[:, crop], gains[:, crop])]
    best = max(holds, key=lambda crop: float(found[:, crop].mean()), default=None)
    if best is None or names[best] not in seen.causes:
        return ""
    return f"all pictures are {names[best]}" if n > 1 else f"the picture is {names[best]}"
