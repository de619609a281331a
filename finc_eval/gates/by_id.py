"""Evidence on pairs of a release and its baseline with the same ids: what is broken, worse or changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from finc_eval.core.run import Run
from finc_eval.embeddings.same_names import ID
from finc_eval.gates.evidence import LimitEvidence, Side
from finc_eval.gates.kinds import compare_two
from finc_eval.gates.policy import ByIdLimits
from finc_eval.gates.sets import GEN, REF, GateSets
from finc_eval.gates.verdict import Cause, Limit
from finc_eval.partitions.answer import Answer, cells_of
from finc_eval.partitions.blocks import Pairing, pair
from finc_eval.prompts.text import fits_of
from finc_eval.same_ids.broken import RATE
from finc_eval.same_ids.compare_ids import MeasuredRuns
from finc_eval.same_ids.result import ById
from finc_eval.same_ids.worse import Margin

BROKEN, WORSE, CHANGED = "by_id.broken", "by_id.worse", "by_id.changed"  # rules of the limits on pairs


@dataclass(frozen=True, kw_only=True)
class SureCount(LimitEvidence):
    """The number of things that are surely there; nothing is said of others."""

    count: Callable[[float], int]
    is_open: bool = False  # whether there may be more, up to all samples: nothing holds

    def bound(self, side: Side, level: float, factor: float = 1.0) -> float:
        """Return the number that is sure at this level, or else how many there may be."""
        sure = float(self.count(level))
        return max(float(self.n), sure, self.margin + 1) if self.is_open and side == "high" else sure


@dataclass(frozen=True, kw_only=True)
class ChangedPairs(LimitEvidence):
    """The share of pairs that changed beyond runs of the baseline."""

    measured: MeasuredRuns

    def bound(self, side: Side, level: float, factor: float = 1.0) -> float:
        """Return the end of the interval."""
        return self.measured.changed(2 * level)[1][side == "high"]


def compare_runs(sets: GateSets, answer: Answer | None, seed: int, run: Run) -> tuple[MeasuredRuns, Answer]:
    """Measure the release and its baseline pair by pair, with further runs of it; return also their kinds."""
    (old,) = sets.baselines
    answer = answer or compare_two(sets, old, seed, run)
    two = {GEN: sets.gen, REF: sets.baselines[old]}
    pairing: Pairing | None = pair(two, ID)[0]
    assert pairing is not None
    kinds, _, divided = answer.described(two)
    cells = replace(answer, cells=cells_of(pairing, answer.kinds, run)).cells_of_names(kinds, divided)
    fits = fits_of(pairing.sets, None, run)
    return MeasuredRuns.of(pairing, sets.again, cells, run, fits), answer


def by_id_evidence(measured: MeasuredRuns, found: ById, limits: ByIdLimits) -> Iterator[LimitEvidence]:
    """Yield the evidence on each limit."""
    n, clauses = found.n, found.clauses
    counts: dict[str, tuple[int | None, int, Callable[[float], int], bool]] = {
        BROKEN: (
            limits.broken,
            len(found.broken),
            lambda level: int(measured.judge(min(level, RATE)).broken.sum()),
            found.verdict == "undecided" or measured.absent > 0,
        ),
        WORSE: (limits.worse, len(found.worse), measured.count_worse, not measured.is_sure_of_rest),
    }
    for name, (margin, value, count, is_open) in counts.items():
        if margin is not None:
            note = (name == BROKEN and found.doubt) or clauses[name.partition(".")[2]]
            yield SureCount(
                name=name, value=float(value), margin=float(margin), n=n, note=note, count=count, is_open=is_open
            )
    if limits.changed is not None:
        yield ChangedPairs(name=CHANGED, value=found.changed, margin=limits.changed, n=n, measured=measured)


def find_pair_causes(
    limits: Sequence[Limit], found: ById | None, baselines: Sequence[str]
) -> list[tuple[float, Cause]]:
    """Return what limits on pairs failed for, each with the share of the pairs that it is about."""
    causes = []
    for limit in limits:
        if found is None or limit.verdict != "regressed" or limit.rule not in (BROKEN, WORSE):
            continue
        is_broken = limit.rule == BROKEN
        share = len(found.broken) / found.n if is_broken else max(map(share_of, found.worse))
        shown = tuple(found.broken if is_broken else found.furthest)
        words = found.clauses[limit.rule.partition(".")[2]] + (f" (allowed {limit.margin:g})" if limit.margin else "")
        words = f"{found.run}: {words}" if is_broken and found.run else words
        causes.append(
            (share, Cause(words, words, share, None, limit.margin, limit.name, dict.fromkeys((GEN, *baselines), shown)))
        )
    return causes


def share_of(one: Margin) -> float:
    """Return the share of the pairs that something is about: a look is about all."""
    return one.difference if one.is_share else 1.0
