"""Causes: changes of followed things that follow from others, by what looks bring, or by shared samples."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finc_eval.findings.causes import left_of
from finc_eval.monitoring.evaluations import Evaluations
from finc_eval.monitoring.exchange import Array, Counts
from finc_eval.monitoring.followed import (
    COPIED,
    DIVERSITY,
    MARK,
    MOVED,
    PARTS,
    REPEATS,
    Alarm,
    is_share,
    looks_in_order,
    names_nothing,
)
from finc_eval.naming.evidence import MOST
from finc_eval.naming.explained import ALIKE, STRONG

LEAST = 0.1  # part of the samples below which too few are left without a thing: it is of the whole set


def count_shared(members: NDArray[np.bool_]) -> Counts:
    """Return how many samples each two things share, (k + 1, k + 1), from their members, (k, n); all come first."""
    every = np.concatenate([np.ones((1, members.shape[1]), bool), members]).astype(np.float64)
    return np.rint(every @ every.T).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Causes:
    """Relations of followed things: a thing follows from another.

    Attributes:
        history: all evaluations so far.
        names: names of all followed things, in their order.
        overlap: whether two things are kinds with samples in common, by their names.
        scored: names of columns of the user that are scores.
    """

    history: Evaluations
    names: Sequence[str]
    overlap: Callable[[str, str], bool]
    scored: Collection[str] = ()

    def choose(
        self, new: Sequence[Alarm], told: Sequence[Alarm], known: Collection[str]
    ) -> tuple[list[tuple[Alarm, Alarm]], list[tuple[Alarm, Alarm]]]:
        """Return the new alarms, and the alarms before that follow from these, each with its cause; see `choose`.

        Args:
            new: alarms whose evidence suffices, the largest first.
            told: alarms that were raised, the first first.
            known: names of things that follow from an alarm already.
        """
        chosen = choose(new, told, self.follows)
        causes = [alarm for alarm, cause in chosen if alarm is cause]
        left = [alarm for alarm in told if alarm.name not in known]
        return chosen, [(alarm, cause) for cause in causes for alarm in left if self.precedes(cause, alarm)]

    def follows(self, new: Alarm, told: Alarm) -> bool:
        """Return whether an alarm follows from another, which names the same cause, or a better one.

        A look follows from a look that brings it (`Trait.leads_to`), or that nearly all samples have and that has moved
        much more. The distance to the reference follows from any look, and from repeats. So does diversity, if the look
        has moved about as much: a generator that collapses changes its looks, too, and its diversity more. Anything
        else follows from what explains it, by the samples of both. Both have changed at one time. Repeats
        follow from nothing, and copies from repeats alone.
        """
        if new.name == told.name or self.overlap(new.name, told.name):
            return True
        if not self._at_one_time(new, told) or (names_nothing(told) and not names_nothing(new)):
            return False
        looks = [*looks_in_order()]
        if new.name in looks and told.name in looks:
            is_first = looks.index(new.name) < looks.index(told.name) and not names_nothing(new)
            is_led = not is_first and _leads(told, new) and self._is_strong(told, new)
            return self._outweighs(told, new) or is_led
        if told.name in (REPEATS, COPIED) and new.name in (*MOVED, MARK):  # equal pictures share all pixels
            return True
        if names_nothing(new) and told.name in looks and new.name != PARTS:
            return new.name != DIVERSITY or self._is_strong(told, new)
        if new.name == REPEATS or (new.name == COPIED and told.name != REPEATS) or not self._explains(told, new):
            return False
        return not (self._explains(new, told) and self._purity(new) > self._purity(told))

    def precedes(self, new: Alarm, told: Alarm) -> bool:
        """Return whether an alarm that was raised before follows from a new one, which has more evidence only now."""
        looks = looks_in_order()
        if told.name in looks and new.name in looks and not names_nothing(told):
            is_cause = self._outweighs(new, told) or self._brings_alone(new, told)
            return self._at_one_time(new, told) and not names_nothing(new) and is_cause
        is_purer = names_nothing(told) or self._is_of_nearly_all(new) or self._purity(new) >= self._purity(told)
        return is_purer and self.follows(told, new) and not self.follows(new, told)

    def _brings_alone(self, new: Alarm, told: Alarm) -> bool:
        """Return whether a look brings another, which does not bring it, and moved half as much: flat is pale, too."""
        is_strong = self._is_share(told) or self._spreads(new) >= STRONG * self._spreads(told)
        return _leads(new, told) and not _leads(told, new) and is_strong

    def _outweighs(self, told: Alarm, new: Alarm) -> bool:
        """Return whether nearly all samples have a look, and an average has moved by less than half as many spreads."""
        if self._is_share(new):
            return False
        return self._is_of_nearly_all(told) and self._spreads(new) < STRONG * self._spreads(told)

    def _is_of_nearly_all(self, alarm: Alarm) -> bool:
        _, after = self._tables(alarm, alarm)
        place = self._place(alarm)
        return bool(after[place, place] > (1 - LEAST) * after[0, 0])

    def _is_strong(self, told: Alarm, new: Alarm) -> bool:
        """Return whether a look has moved enough, by spreads, for another thing to follow from it.

        For another look it has moved about as much; half as much is enough for what names nothing, such as diversity.
        """
        is_look = new.name in looks_in_order() and not names_nothing(new)
        least = ALIKE if is_look else STRONG
        return self._is_share(new) or self._spreads(told) >= least * self._spreads(new)

    def _spreads(self, alarm: Alarm) -> float:
        """Return by how many standard deviations of the reference a score has moved; ∞ of a share."""
        return (
            np.inf
            if self._is_share(alarm)
            else abs(alarm.after - alarm.before) / self.history.spread_of(self._place(alarm) - 1)
        )

    def _at_one_time(self, one: Alarm, other: Alarm) -> bool:
        """Return whether two changes may have begun at one evaluation, or at the next to it."""
        first, second = (self._starts(alarm) for alarm in (one, other))
        return bool((np.abs(first[:, None] - second) <= 1).any())

    def _starts(self, alarm: Alarm) -> NDArray[np.int64]:
        """Return the evaluations at which a change may have begun, by their number."""
        first, last = np.searchsorted(self.history.steps, alarm.began)
        return np.arange(first, last + 1)

    def _explains(self, cause: Alarm, other: Alarm) -> bool:
        """Return whether hardly anything of a change is left among the samples without another thing.

        Where most samples have the other thing, such as a look of all, nothing is left.
        """
        before, after = self._tables(cause, other)
        i, j = (self._place(alarm) for alarm in (cause, other))
        if not (before[0, 0] and after[0, 0] and before[i, i] + after[i, i] and before[j, j] + after[j, j]):
            return False  # no samples, or a thing without samples of its own, as diversity
        every = np.array([(table[j, j], table[0, 0]) for table in (after, before)])
        shared = np.array([(table[i, j], table[i, i]) for table in (after, before)])
        return left_of(every, every - shared, fewest=LEAST)[1]

    def _purity(self, alarm: Alarm) -> float:
        """Return which part of the samples of a thing have come, or are gone: 1 for a kind that is lost whole."""
        before, after = self._tables(alarm, alarm)
        place = self._place(alarm)
        shares = [table[place, place] / max(table[0, 0], 1) for table in (before, after)]
        return float(abs(shares[1] - shares[0]) / max(*shares, 1e-12))

    def _tables(self, one: Alarm, other: Alarm) -> tuple[Array, Array]:
        """Return what all things share before both changes, and since both; of things that fewer have, the rest counts.

        That is where less of a score, or fewer of what most samples had, is what is new.
        """
        steps = self.history.steps.tolist()
        starts = sorted(steps.index(alarm.since) for alarm in (one, other))
        before, after = (table.astype(np.float64) for table in self.history.shared_before_and_after(*starts))
        turn = np.eye(len(before))
        for alarm in (one, other):
            place = self._place(alarm)
            is_turned = alarm.after < alarm.before and (not self._is_share(alarm) or alarm.before > MOST)
            if (
                is_turned and before[place, place] + after[place, place]
            ):  # what no sample has, as diversity, has no rest
                turn[place, 0], turn[place, place] = 1, -1
        return turn @ before @ turn.T, turn @ after @ turn.T

    def _is_share(self, alarm: Alarm) -> bool:
        return is_share(alarm.name) and alarm.name not in self.scored

    def _place(self, alarm: Alarm) -> int:
        return self.names.index(alarm.name) + 1


def _leads(told: Alarm, new: Alarm) -> bool:
    looks = looks_in_order()
    return looks[told.name].leads_to(
        looks[new.name], is_more=told.after > told.before, other_is_more=new.after > new.before
    )


def choose(
    new: Sequence[Alarm], told: Sequence[Alarm], follows: Callable[[Alarm, Alarm], bool]
) -> list[tuple[Alarm, Alarm]]:
    """Return each new alarm with the alarm that it follows from; a cause, which has an alarm of its own, with itself.

    Args:
        new: alarms whose evidence suffices, the largest first.
        told: alarms that were raised, the first first.
        follows: whether an alarm follows from another.
    """
    left = sorted(
        (candidate for candidate in new if all(candidate.name != other.name for other in told)), key=names_nothing
    )
    found: list[tuple[Alarm, Alarm]] = []
    for alarm in left:
        cause = next((earlier for earlier in told if follows(alarm, earlier)), None)
        found += [] if cause is None else [(alarm, cause)]
    left = [candidate for candidate in left if all(candidate is not alarm for alarm, _ in found)]
    while left:
        first = next(
            (
                candidate
                for candidate in left
                if not any(follows(candidate, other) and not follows(other, candidate) for other in left)
            ),
            left[0],
        )
        found += [(candidate, first) for candidate in left if candidate is first or follows(candidate, first)]
        left = [candidate for candidate in left if candidate is not first and not follows(candidate, first)]
    return found
