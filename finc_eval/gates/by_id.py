"""Evidence on pairs of a release and its baseline with the same ids: what is broken, worse or changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from finc_eval.core.progress import silent
from finc_eval.core.run import Run
from finc_eval.core.words import percent, plural
from finc_eval.embeddings.same_names import ID
from finc_eval.findings.finding import Finding
from finc_eval.gates.evidence import LimitEvidence, Side
from finc_eval.gates.kinds import compare_two
from finc_eval.gates.policy import ByIdLimits
from finc_eval.gates.sets import GEN, REF, GateSets
from finc_eval.naming.looks import EXAMPLES
from finc_eval.partitions.answer import Answer, cells_of
from finc_eval.partitions.blocks import Pairing, pair
from finc_eval.prompts.text import fits_of
from finc_eval.same_ids.broken import RATE
from finc_eval.same_ids.compare_ids import MeasuredRuns
from finc_eval.same_ids.pairs import Aligned, PairTable, measure, measure_in_space
from finc_eval.same_ids.result import LEAST_SHARE, ById
from finc_eval.same_ids.seen import ANOTHER, FAR, OTHER_ID, see
from finc_eval.same_ids.worse import Margin

BROKEN, WORSE, CHANGED = "by_id.broken", "by_id.worse", "by_id.changed"  # rules of the limits on pairs
OTHERS = "most pictures are others than before"  # name of the finding
CHANGED_PICTURES = "most pictures have changed"  # its name where pictures are those of before, such as mirrored
SEEN_PAIRS = 200  # pairs whose pictures are read, where most embeddings are others: a share is known to .07


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


def by_id_evidence(measured: MeasuredRuns, by_id: ById, limits: ByIdLimits) -> Iterator[LimitEvidence]:
    """Yield the evidence on each limit."""
    n, clauses = by_id.n, by_id.clauses
    counts: dict[str, tuple[int | None, int, Callable[[float], int], bool]] = {
        BROKEN: (
            limits.broken,
            len(by_id.broken),
            lambda level: int(measured.judge(min(level, RATE)).broken.sum()),
            by_id.verdict == "undecided" or measured.absent > 0,
        ),
        WORSE: (limits.worse, len(by_id.worse), measured.count_worse, not measured.is_sure_of_rest),
    }
    for name, (margin, value, count, is_open) in counts.items():
        if margin is not None:
            note = (name == BROKEN and by_id.doubt) or clauses[name.partition(".")[2]]
            yield SureCount(
                name=name, value=float(value), margin=float(margin), n=n, note=note, count=count, is_open=is_open
            )
    if limits.changed is not None:
        yield ChangedPairs(name=CHANGED, value=by_id.changed, margin=limits.changed, n=n, measured=measured)


def find_pair_findings(by_id: ById) -> dict[str, tuple[float, Finding]]:
    """Return what is wrong with pairs by the rule that limits it, each with the share of pairs that it is about."""
    findings: dict[str, tuple[float, Finding]] = {}
    of_pairs = by_id.of_pairs or next(iter(by_id.findings), None)  # a look of all pairs is said once
    if by_id.verdict == "broken":
        words, told = (
            by_id.clauses["broken"],
            by_id.run if of_pairs is None or of_pairs.kind == "pair" else of_pairs.text,
        )
        text = f"{told}: {words}" if told and told not in words else words
        of_pairs = of_pairs or Finding(
            by_id.run or "broken pairs", "pair", False, None, None, None, ids=tuple(by_id.broken)
        )
        findings[BROKEN] = len(by_id.broken) / by_id.n, replace(of_pairs, text=text)
    if by_id.worse:
        worse = [finding for finding in by_id.findings if finding.is_worse and finding is not by_id.of_pairs]
        named = worse[0] if worse else Finding(by_id.worse[0].name, "pair", False, None, None, None)
        if of_pairs is not None and any(margin.name == of_pairs.name for margin in by_id.worse):
            named = of_pairs  # all pairs that are one picture are paler, too
        follows = (*named.explains, *(finding.name for finding in worse[1:]))
        findings[WORSE] = max(map(share_of, by_id.worse)), replace(named, text=by_id.clauses["worse"], explains=follows)
    return findings


def share_of(margin: Margin) -> float:
    """Return the share of the pairs that something is about: a look is about all."""
    return margin.difference if margin.is_share else 1.0


def find_other_pictures(sets: GateSets, run: Run) -> Finding | None:
    """Return that most pairs of a policy show other pictures than before; None where they do not, or nothing is paired.

    The embeddings alone show it: a sample that is as near to many other ids as to its own is another sample. Where
    pictures are at hand, some of them say whether they are others, or those of before in another form. Ids that no
    policy pairs may belong to other seeds, and say nothing.
    """
    for old, rows in sets.pairs.items():
        if old not in sets.baselines or len(rows) < LEAST_SHARE:
            continue
        ids = np.array(sets.gen.ids_between(0, sets.gen.n))
        pairs = Aligned(ids, sets.gen, sets.baselines[old], (np.arange(len(ids)), rows))
        distance, others = measure_in_space(pairs)
        is_other = see(PairTable({"distance": distance}, others, None)).is_bad
        share = min(1.0, float(is_other.mean()) / (1 - FAR))  # of others, so many are near by chance
        if share > 0.5:
            name, form = _name_pictures(pairs, run)
            text = f"{name}{form} ({percent(share)} of {plural(len(rows), 'pair')})"
            shown = sets.gen.ids_at(np.flatnonzero(is_other)[:EXAMPLES])
            return Finding(name, "pair", True, share, None, None, text=text, ids=tuple(shown))
    return None


def _name_pictures(pairs: Aligned, run: Run) -> tuple[str, str]:
    """Return what pictures are called whose embeddings are others, and the form that most of them have now."""
    drawn = np.sort(np.random.default_rng(0).permutation(len(pairs.ids))[:SEEN_PAIRS])
    table = measure(pairs.part(drawn), replace(run, progress=silent))
    if table.thumbs is None:
        return OTHERS, ""
    seen = see(table.part(~table.lost))
    if np.isin(seen.shown, (ANOTHER, OTHER_ID)).mean() > 0.5:
        return OTHERS, ""
    (form, count), *_ = Counter(seen.causes.tolist()).most_common(1)
    return CHANGED_PICTURES, f": {form}" * bool(form and count > len(seen.causes) / 2)
