"""The rule: from evidence against margins to the verdict of each limit, and of the release.

Two errors count, and each keeps α. A run *calls a regression* that is none, in any limit, with probability α at most:
the bound on the harmful side is step-down (Holm 1979) over all limits of the run. A run *passes* although a limit is
broken with probability α at most: a pass needs every limit to hold, so that each may be tested at α by itself (an
intersection–union test, Berger 1982).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, isnan
from typing import Literal

from finc_eval.core.words import plural
from finc_eval.gates.evidence import LimitEvidence, Side, round_up
from finc_eval.numerics.thresholds import smallest

Verb = Literal["improved", "held", "regressed", "undecided", "missing"]  # the verdict of one limit
Overall = Literal["pass", "regression", "undecided", "error"]  # the verdict of a release
MAX_FACTOR = 1000.0  # largest factor on the number of samples that is tried to decide a limit
FACTOR_HALVINGS = 12  # halvings of the number of samples that decides a limit: one in 4 000 of it is near enough


@dataclass(frozen=True)
class Judged:
    """A limit after the rule."""

    evidence: LimitEvidence
    verdict: Verb
    near: float  # level of the bound that decides about a regression
    far: float  # level of the bound that decides whether it holds

    @property
    def interval(self) -> tuple[float, float] | None:
        """Bounds of the value at one level: of a limit that held its own, else that of all limits together."""
        level = self.far if self.verdict in ("held", "improved") else self.near
        return None if self.verdict == "missing" else _bounds(self.evidence, level, level)

    @property
    def detectable(self) -> float | None:
        """True value that would have been called a regression with probability 0.8; None if none would."""
        return None if self.verdict == "missing" else self.evidence.seen(self.near)

    @property
    def needed(self) -> int | None:
        """Number of samples of each generated set that would decide it; None if it is decided, or none would."""
        evidence = self.evidence

        def decides(factor: float) -> bool:
            return _verdict(evidence, self.near, self.far, factor) != "undecided"

        factor = smallest(decides, MAX_FACTOR, FACTOR_HALVINGS) if self.verdict == "undecided" else None
        return None if factor is None else ceil(factor * evidence.n)


def decide(
    interval: tuple[float, float], margin: float, *, harm: Side = "high", unchanged: float | None = None
) -> Verb:
    """Return the verdict of one limit.

    *Regressed* needs the whole interval beyond the margin, *held* the whole interval within it. *Improved* is held with
    the whole interval also on the good side of no change. Everything else is undecided.

    The margin itself is allowed. `unchanged` is the value of a release like its baseline; if None, nothing is called
    improved.
    """
    low, high = interval if harm == "high" else (-interval[1], -interval[0])
    margin = margin if harm == "high" else -margin
    if isnan(low) or isnan(high) or isnan(margin):
        return "missing"
    if low > margin:
        return "regressed"
    if high > margin:
        return "undecided"
    zero = None if unchanged is None else unchanged if harm == "high" else -unchanged
    return "improved" if zero is not None and high < zero else "held"


def judge(evidence: Sequence[LimitEvidence], alpha: float = 0.05, interim: int = 1) -> tuple[Judged, ...]:
    """Judge all limits of a run, in the order in which they came; the order changes no verdict.

    α is for a false regression in any limit, and for a false pass; `interim` runs share it, each with more samples.
    """
    far, regressed = alpha / interim, frozenset[int]()
    uncertain = [place for place, limit in enumerate(evidence) if not limit.certain]
    while True:  # all limits of a run share the level of the bound that decides about a regression (Holm)
        near = far / max(len(uncertain) - len(regressed), 1)
        found = frozenset(place for place in uncertain if evidence[place].is_regression(near))
        if found == regressed:
            break
        regressed = found
    return tuple(Judged(limit, _verdict(limit, near, far), near, far) for limit in evidence)


def _verdict(evidence: LimitEvidence, near: float, far: float, factor: float = 1.0) -> Verb:
    """Return the verdict of one limit: what is surely there may be a regression before the margin is surely passed."""
    verdict = decide(
        _bounds(evidence, near, far, factor), evidence.margin, harm=evidence.harm, unchanged=evidence.unchanged
    )
    if verdict == "missing" or isnan(evidence.value):
        return "missing"
    if evidence.is_regression(near, factor):
        return "regressed"
    return "held" if evidence.is_search and verdict == "undecided" else verdict


def overall_of(verdicts: Sequence[Verb]) -> Overall:
    """Return the verdict of a release: a regression outweighs what is missing, and that what is undecided.

    Without a limit there is nothing that could pass: an error.
    """
    if "regressed" in verdicts:
        return "regression"
    if not verdicts or "missing" in verdicts:
        return "error"
    return "undecided" if "undecided" in verdicts else "pass"


def family_sentence(judged: Sequence[Judged], alpha: float, interim: int) -> str:
    """Say which error the run keeps, over which family, and at which level the ends of intervals hold."""
    facts = sum(limit.evidence.certain for limit in judged)
    family = len(judged) - facts
    if not family:
        return "Nothing that was judged is a matter of chance."
    plain = f", besides {plural(facts, 'plain fact')}" if facts else ""
    looks = any(limit.evidence.spends_own for limit in judged)
    added = f", and {alpha:g} more in each limit on looks if the release came to look like the reference" * looks
    near, far = (f"{100 * (1 - level):.4g} %" for level in (judged[0].near, judged[0].far))
    shared = f", and this run, 1 of {interim}, spends {alpha / interim:.2g} of it" if interim > 1 else ""
    return (
        f"Family of {plural(family, 'limit')}{plain}: a false regression in any of them has probability "
        f"{alpha:g} at most (Holm){added}{shared}; a pass needs all of them to hold, and is false with probability "
        f"{alpha:g} at most. Each end of an interval is a one-sided bound of {near}; for limits that held, of {far}."
    )


def too_fine(evidence: Sequence[LimitEvidence], alpha: float, interim: int) -> Iterator[str]:
    """Yield a sentence on each limit that so few samples cannot show to hold, even for a release without a change."""
    found: dict[str, list[LimitEvidence]] = {}
    for limit in evidence:
        same = limit.without_change()
        if same is not None and not _holds(same, alpha / interim):
            found.setdefault(limit.name.partition(" ")[0], []).append(same)
    for rule, every in found.items():
        needed = [smallest(partial(_holds, limit, alpha / interim), MAX_FACTOR, FACTOR_HALVINGS) for limit in every]
        ends = [limit.bound(limit.harm, alpha / interim) for limit in every]
        n, least = every[0].n, max(ends)
        kinds = f" for {plural(len(every), 'kind')}" if rule.startswith(("kinds.lose", "kinds.new")) else ""
        enough = [factor for factor in needed if factor is not None]
        more = f" or draw {ceil(max(enough) * n):,} samples" if len(enough) == len(every) else ""
        yield (
            f"the limit {rule} is finer than {plural(n, 'sample')} can show{kinds}: even a release without any change "
            f"would be undecided; allow at least {round_up(least):g}{more}"
        )


def _holds(evidence: LimitEvidence, level: float, factor: float = 1.0) -> bool:
    """Return whether the bound on the harmful side is within the margin."""
    bound = evidence.bound(evidence.harm, level, factor)
    return not (bound > evidence.margin if evidence.harm == "high" else bound < evidence.margin)


def _bounds(evidence: LimitEvidence, near: float, far: float, factor: float = 1.0) -> tuple[float, float]:
    """Return the interval: its near end decides a regression, its far end whether the limit holds."""
    levels = (near, far) if evidence.harm == "high" else (far, near)
    return evidence.bound("low", levels[0], factor), evidence.bound("high", levels[1], factor)
