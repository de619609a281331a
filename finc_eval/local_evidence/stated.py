"""Parts that are said: significant among all that was looked at, with shares, samples and a reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from finc_eval.local_evidence.inputs import Indices
from finc_eval.local_evidence.looked import Looked
from finc_eval.local_evidence.orientation import MOST_UPRIGHT
from finc_eval.local_evidence.pairs import COPIES, copies_of_reference, repeats_in
from finc_eval.local_evidence.parts import flag, share_of
from finc_eval.local_evidence.permutations import Array, fold_in_turn
from finc_eval.local_evidence.result import SHOWN, UPSIDE_DOWN, LocalPart, PartKind, Side
from finc_eval.local_evidence.statistics import Claim, LocalStatistic, adjusted_p
from finc_eval.naming.likeness import LIKENESS

SAID = 0.05  # p-value, adjusted for all statistics, up to which a part is said

AS_LARGE = 0.9
"""Part of the largest statistic from which another is as large. Of 3 made-up sets of 80 that all differ, 3 were said to
differ on average with it; without it, 0: chance decides whether the mean or the highest windows differ most."""

ALIKE = 0.5
"""Correlation of edges from which a picture is like itself. Of 400 photographs, 1.5 % are like their mirror image, 4 %
where they are blurred, and at least 99 % where a half was made from the other half."""

SIDES: tuple[Side, Side] = ("more", "less")


def state_parts(looked: Looked) -> list[LocalPart]:
    """Return the significant parts of both sets, the surest first; parts that may have no sample are left out."""
    parts = [*_patches(looked), *_likeness(looked), *_pairs(looked), *_orientation(looked)]
    return sorted(parts, key=lambda part: part.p_value)


def _leading(looked: Looked, kind: PartKind, claim: Claim) -> tuple[LocalStatistic, float] | None:
    """Return the largest statistic of a kind of parts that claims this, and its p-value; None if not significant."""
    own = [statistic for statistic in looked.statistics if (statistic.kind, statistic.claim) == (kind, claim)]
    if not own:
        return None
    p_value = adjusted_p(own, looked.statistics)
    return (max(own, key=lambda statistic: statistic.values[0]), p_value) if p_value <= SAID else None


def _patches(looked: Looked) -> Iterator[LocalPart]:
    """Yield parts that cells show; a change of all instead if the mean of all windows shows most."""
    if looked.cells is None:
        return
    if _is_of_all(looked):
        if (found := _leading(looked, "patches", "average")) is not None:
            yield _change_of_all(looked, found[1])
        return
    for side in SIDES:
        if (found := _leading(looked, "patches", side)) is None:
            continue
        score = looked.cells.high[0] if side == "more" else -looked.cells.low[0]
        windows = looked.cells.windows
        others = looked.others if side == "more" else ()
        further = [None if each.cells is None else windows.high_of(each.cells) for each in others]
        if (part := _flagged(looked, "patches", None, side, found[1], score, further)) is not None:
            yield part


def _is_of_all(looked: Looked) -> bool:
    """Return whether cells show a change of all: ranks differ most, and the mean of windows as much as the outer."""
    own = [statistic for statistic in looked.statistics if statistic.kind == "patches"]
    leading = max(own, key=lambda statistic: statistic.values[0])
    mean = next(statistic for statistic in own if statistic.claim == "average")
    return leading.is_rank and bool(mean.values[0] >= AS_LARGE * leading.values[0])


def _change_of_all(looked: Looked, p_value: float) -> LocalPart:
    """Return a change of all pictures, with the generated samples that show it most."""
    assert looked.cells is not None
    order = np.argsort(-looked.cells.mean[0], kind="stable")
    own = looked.permuted.is_gen[0][order]
    return LocalPart(
        "patches",
        "on average",
        "more",
        p_value,
        None,
        None,
        None,
        looked.rows(order[own][:SHOWN], of_gen=True),
        looked.rows(order[~own][:2], of_gen=False),
        _heats(looked, order[own], 1),
    )


def _likeness(looked: Looked) -> Iterator[LocalPart]:
    """Yield parts whose pictures are like themselves."""
    for side in SIDES:
        if looked.likeness is None or (found := _leading(looked, "likeness", side)) is None:
            continue
        leading, p_value = found
        name, score = LIKENESS[leading.source], np.maximum(looked.likeness[:, leading.source], ALIKE)
        further = [None if each.likeness is None else each.likeness[:, leading.source] for each in looked.others]
        if (part := _flagged(looked, "likeness", name, side, p_value, score, further)) is not None:
            yield part


def _pairs(looked: Looked) -> Iterator[LocalPart]:
    """Yield near copies of the reference, and near repeats inside either set."""
    if looked.pairs is None or looked.embeddings is None:
        return
    for side in SIDES:
        if (found := _leading(looked, "pairs", side)) is None:
            continue
        leading, p_value = found
        if leading.source == COPIES:
            has, least = copies_of_reference(looked.pairs, looked.embeddings, looked.apart)
            yield from _with_property(looked, "pairs", "nearly copy the reference", side, p_value, has, least)
        else:
            has = repeats_in(looked.pairs, looked.embeddings, of_gen=side == "more")
            yield from _with_property(looked, "pairs", "nearly repeat each other", side, p_value, has)


def _orientation(looked: Looked) -> Iterator[LocalPart]:
    """Yield pictures that are upside down, unless many of the other set look so: there "upright" means little."""
    for side in SIDES:
        if (oriented := looked.oriented) is None or (found := _leading(looked, "orientation", side)) is None:
            continue
        is_more = side == "more"
        surely, _ = share_of(oriented.is_flipped, oriented.permuted, is_more=is_more)
        flagged = flag(np.maximum(-oriented.scores, 0), oriented.permuted, is_more=is_more)
        if min(surely) <= MOST_UPRIGHT and flagged.at_least > 0:
            samples, others = (oriented.places[places] for places in (flagged.places, flagged.others))
            further = [
                None
                if each.embeddings is None or each.flipped is None
                else _above(np.maximum(-oriented.score(each.embeddings, each.flipped), 0), flagged.thresholds)
                for each in looked.others
            ]
            yield LocalPart(
                "orientation",
                UPSIDE_DOWN,
                side,
                found[1],
                *flagged.shares,
                flagged.at_least,
                looked.rows(samples, of_gen=is_more),
                looked.rows(others, of_gen=not is_more),
                elsewhere=tuple(further) if is_more else (),
            )


def _with_property(
    looked: Looked, kind: PartKind, name: str, side: Side, p_value: float, has: NDArray[np.bool_], least: float = 1.0
) -> Iterator[LocalPart]:
    """Yield the part of samples that have a property, (n,), if some surely have; at least is at most `least`."""
    is_more = side == "more"
    shares, at_least = share_of(has, looked.permuted, is_more=is_more)
    own = looked.permuted.is_gen[0] == is_more
    places = np.flatnonzero(has & own)
    if (at_least := min(at_least, least)) > 0:
        yield LocalPart(kind, name, side, p_value, *shares, at_least, looked.rows(places, of_gen=is_more))


def _flagged(
    looked: Looked,
    kind: PartKind,
    name: str | None,
    side: Side,
    p_value: float,
    score: NDArray[np.float32],
    further: Sequence[NDArray[np.floating] | None],
) -> LocalPart | None:
    """Return the part of samples with a high score; None if it may be none.

    `further` has the score of the samples of each further set, (m,) each, where it is known.
    """
    is_more = side == "more"
    flagged = flag(score.astype(np.float64), looked.permuted, is_more=is_more)
    if flagged.at_least == 0:
        return None
    return LocalPart(
        kind,
        name,
        side,
        p_value,
        *flagged.shares,
        flagged.at_least,
        looked.rows(flagged.places, of_gen=is_more),
        looked.rows(flagged.others, of_gen=not is_more),
        _heats(looked, flagged.places, 1 if is_more else -1) if kind == "patches" else (),
        tuple(None if each is None else _above(each, flagged.thresholds) for each in further) if is_more else (),
    )


def _above(score: NDArray[np.floating], thresholds: Array) -> tuple[int, ...]:
    """Return the rows of a further set whose score, (m,), is above the threshold of its fold."""
    return tuple(np.flatnonzero(score > thresholds[fold_in_turn(len(score))]).tolist())


def _heats(looked: Looked, places: Indices, sign: int) -> tuple[tuple[tuple[float, ...], ...], ...]:
    """Return heat maps of the first of some samples, to three digits."""
    assert looked.cells is not None
    heats = [np.round(looked.cells.windows.heat(int(place)) * sign, 3).tolist() for place in places[:SHOWN]]
    return tuple(tuple(tuple(row) for row in heat) for heat in heats)
