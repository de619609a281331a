"""The verdict on a night: what its pairs show, and how they and their mean stand against the nights before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.digest import sha256_of
from finc_eval.golden.floor import Floor, PairRow, PastNight
from finc_eval.golden.measured import MeasuredPair
from finc_eval.golden.nights import (
    BEYOND_ALL,
    BEYOND_PAIR,
    LEAST_PAST,
    LONG_ROW,
    MAX_BAG,
    MEASURES,
    SURE_PAST,
    SURE_ROW,
    Array,
    Gone,
    beyond,
    coordinates,
    gone_among,
    gone_states,
    log_evidence,
    needed_evidence,
    p_value,
)

UNUSUAL = 0.22
"""Rank up to which a night is itself a part of a change that bets have found. A bet gains up to 0.217, so that none is
won on another night; above, the change has ended."""

ALL = "all"  # name of the mean of all pairs, by which its places in ranks are drawn
PAIRED_PAST = 0.5  # half of the longest history of a pair, which the pairs of the mean have at least


@dataclass(frozen=True, eq=False)
class PastOf:
    """Nights of one pair, or of the mean of several, that showed the pictures: those of one machine, in order.

    Attributes:
        place: number of each night in the floor, (t,).
        values: measures, (t, 7).
        p, beyond: what was found on each night, (t,).
        is_red, is_accepted: whether each night was red, and whether a person accepted it, (t,).
        begin: first night of the accepted state, by its place in this history; 0 without one.
    """

    place: NDArray[np.int64]
    values: Array
    p: Array
    beyond: NDArray[np.bool_]
    is_red: NDArray[np.bool_]
    is_accepted: NDArray[np.bool_]
    begin: int

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Nights that count as usual: not red, or accepted."""
        return ~self.is_red | self.is_accepted


@dataclass(frozen=True, eq=False)
class AgainstPast:
    """Standing of tonight against the past, for a pair or the mean of all pairs.

    Attributes:
        verdict: "green", "amber" or "red".
        known: number of known nights; of a night beyond them, of those before the first such night in a row.
        p: rank as a p-value; NaN without a night before.
        beyond: measures in which tonight lies beyond all known nights.
        row: nights in a row that do, tonight included.
        by_bets: whether bets on ranks found a change.
        psnr: PSNR of tonight.
        usual: least and largest PSNR of the known nights; None without one.
    """

    verdict: str
    known: int
    p: float
    beyond: tuple[str, ...]
    row: int
    by_bets: bool
    psnr: float
    usual: tuple[float, float] | None


@dataclass(frozen=True, eq=False)
class JudgedNight:
    """A night that was judged.

    Attributes:
        pairs: standing of each pair, in their order; None for all pairs of a night with a broken pair.
        mean: standing of the mean of all pairs; None for a single pair and on such a night.
        gone: states that are gone: the nights' numbers in the floor, and the nights since.
        machines: machines that are gone, with the nights since.
        renewed: ids whose golden picture is not that of the last night with the id.
    """

    verdict: str
    pairs: list[AgainstPast | None]
    mean: AgainstPast | None
    gone: list[Gone]
    machines: dict[str, int]
    renewed: tuple[str, ...]


def judge_night(floor: Floor, tonight: Sequence[MeasuredPair], machine: str | None) -> JudgedNight:
    """Judge a night against the nights of a floor."""
    renewed = tuple(_renewed(floor.nights, tonight))
    if any(pair.is_broken for pair in tonight):
        return JudgedNight("red", [None] * len(tonight), None, [], {}, renewed)
    begin = floor.begins.get(machine, 0)
    of_machine = [
        (number, night) for number, night in enumerate(floor.nights) if night.machine == machine and not night.is_broken
    ]
    histories = [_history(of_machine, [pair], begin) for pair in tonight]
    things = max(len({night.machine for night in floor.nights} | {machine}), 1)
    is_alone = len(tonight) == 1
    pairs: list[AgainstPast | None] = [
        _stand(past, _values([pair]), pair.id, things * (1 if is_alone else 2 * len(tonight)), BEYOND_PAIR)
        for past, pair in zip(histories, tonight, strict=True)
    ]
    most = max(len(history.place) for history in histories)
    chosen = [pair for pair, past in zip(tonight, histories, strict=True) if len(past.place) >= PAIRED_PAST * most]
    together = _history(of_machine, chosen, begin)
    mean = None if is_alone else _stand(together, _values(chosen), ALL, 2 * things, BEYOND_ALL)
    verdicts = [standing.verdict for standing in (*pairs, mean) if standing is not None]
    verdict = next((light for light in ("red", "amber") if light in verdicts), "green")
    gone = [
        Gone(together.place[known[gone.nights]], gone.since)
        for known in [np.flatnonzero(together.is_known)[np.flatnonzero(together.is_known) >= together.begin]]
        for gone in gone_states(coordinates(np.vstack([together.values[known], _values(chosen)])))
    ]
    return JudgedNight(verdict, pairs, mean, gone, dict(_gone_machines(floor, machine)), renewed)


def _values(chosen: Sequence[MeasuredPair]) -> Array:
    """Return the mean measures of some pairs, whose logarithms are of means."""
    return np.asarray(np.mean([pair.values for pair in chosen if pair.values is not None], axis=0))


def _history(nights: Sequence[tuple[int, PastNight]], chosen: Sequence[MeasuredPair], begin: int) -> PastOf:
    """Return the nights that have all of some pairs, with the golden pictures of tonight."""
    digests = {pair.id: pair.ref.digest for pair in chosen}
    nights_with: list[tuple[int, PastNight, list[PairRow]]] = []
    for number, night in nights:
        rows = [
            row for name, digest in digests.items() if (row := night.row_of(name)) is not None and row.ref == digest
        ]
        if len(rows) == len(digests):
            nights_with.append((number, night, rows))
    is_alone = len(chosen) == 1
    places = np.array([number for number, _, _ in nights_with], np.int64)
    every = np.array([[row.values for row in rows] for *_, rows in nights_with], np.float64)
    return PastOf(
        places,
        every.reshape(len(nights_with), -1, len(MEASURES)).mean(1) if nights_with else np.empty((0, len(MEASURES))),
        np.array([rows[0].p if is_alone else rows[0].all_p for *_, rows in nights_with]),
        np.array([rows[0].beyond if is_alone else rows[0].all_beyond for *_, rows in nights_with], bool),
        np.array([night.verdict == "red" for _, night, _ in nights_with], bool),
        np.array([night.is_accepted for _, night, _ in nights_with], bool),
        int(np.searchsorted(places, begin)),
    )


def _stand(past: PastOf, tonight: Array, name: str, things: int, times: float) -> AgainstPast:
    """Say how tonight's measures (7,) stand against a history; `things` share the error of the bets."""
    known = np.flatnonzero(past.is_known)
    values, night = coordinates(past.values), coordinates(tonight)
    bag = known[known >= past.begin]
    p = np.nan
    if len(bag):
        # The same file gives the same ranks.
        chance = np.random.default_rng(int(sha256_of(f"{name} {len(past.place)}")[:16], 16)).random()
        p = p_value(np.vstack([values[bag], night]), chance)
    by_bets = p <= UNUSUAL and log_evidence(np.append(_ranks(past), p)) >= needed_evidence(things)
    row, where, before = _beyond(past, values, night, times)
    verdict = "green"
    if where:
        known = before
        verdict = "red" if row >= (SURE_ROW if len(known) >= SURE_PAST else LONG_ROW) else "amber"
    seen = past.values[known, 0]
    usual = (float(seen.min()), float(seen.max())) if len(seen) else None
    return AgainstPast("red" if by_bets else verdict, len(known), p, where, row, by_bets, float(tonight[0]), usual)


def _ranks(past: PastOf) -> Array:
    """Return the ranks of the nights that bets count: since a state was accepted, and since the last change ended."""
    red = past.is_red[past.begin :] & ~past.is_accepted[past.begin :]
    p = np.where(past.is_accepted, np.nan, past.p)[past.begin :]
    ended = np.flatnonzero(red[:-1] & ~red[1:])
    return p[ended[-1] + 1 :] if len(ended) else p


def _beyond(past: PastOf, values: Array, night: Array, times: float) -> tuple[int, tuple[str, ...], NDArray[np.int64]]:
    """Return how many nights in a row lie beyond the same past, in which measures tonight does, and that past."""
    streak = 0
    while streak < len(past.place) and past.beyond[-1 - streak] and not past.is_accepted[-1 - streak]:
        streak += 1
    before = np.arange(len(past.place)) < len(past.place) - streak
    known = np.flatnonzero(past.is_known & before)
    if len(known) < LEAST_PAST:
        return 0, (), known
    is_beyond = beyond(values[known], night, times, past.is_accepted[known])
    return (streak + 1 if is_beyond.any() else 0), tuple(np.array(MEASURES)[is_beyond].tolist()), known


def _renewed(nights: Sequence[PastNight], tonight: Sequence[MeasuredPair]) -> Iterator[str]:
    """Yield ids whose golden picture is not that of the last night with the id."""
    for pair in tonight:
        last = next((row for night in reversed(nights) if (row := night.row_of(pair.id)) is not None), None)
        if last is not None and last.ref and last.ref != pair.ref.digest:
            yield pair.id


def _gone_machines(floor: Floor, machine: str | None) -> Iterator[tuple[str, int]]:
    """Yield machines that have not been seen for long, with the number of nights since."""
    start = max([*floor.begins.values(), len(floor.nights) + 1 - MAX_BAG, 0])
    names = [*(night.machine for night in floor.nights[start:]), machine]
    order = list(dict.fromkeys(names))
    states = np.array([order.index(name) for name in names])
    for gone in gone_among(states):
        if (name := names[int(gone.nights[0])]) is not None:
            yield name, gone.since
