"""`first_policy`: a policy for a baseline, with the noise that was measured at its number of samples as comments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, floor, log10

from scipy.special import gammaincinv

from finc_eval.core.run import Run
from finc_eval.core.words import counted
from finc_eval.embeddings.base import CachedEmbeddings
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.gates.evidence import Normal, upper_quantile
from finc_eval.gates.kinds import finest_level, kind_evidence
from finc_eval.gates.policy import NOISE, KindLimits, MetricLimit
from finc_eval.gates.retraining import MIN_REPLICATES, SAMPLING_ONLY
from finc_eval.gates.scores import score_evidence
from finc_eval.gates.sets import GateSets
from finc_eval.gates.shares import TwoShares
from finc_eval.numerics.inference import ALPHA

LOSE, NEW = 0.5, 0.02
"""Limits on kinds that are proposed: half of a share, and 2 % of the samples."""

METRICS = ("fd", "kid")
"""Metrics of which the first that has an interval is proposed."""


def first_policy(
    baselines: Sequence[object], ref: object, *, extractor: AnyExtractor = None, run: Run | None = None
) -> str:
    """Return a policy as TOML, with the floor of each limit: what an unchanged release keeps with probability 0.95.

    Args:
        baselines: the baseline, or its replicates.
        ref: the reference.
        extractor: how to embed samples.
        run: device, portions and progress.
    """
    run = run or Run()
    # The baseline stands for a new release without a change.
    sets = GateSets.open(baselines[0], baselines, ref, None, run, extractor=extractor)
    n, m = sets.gen.n, sets.ref.n
    lines = [
        f"# For {counted(n, 'sample')} of a release and {m:,} of the reference; floors are what an unchanged release "
        "keeps with probability 0.95.",
    ]
    if len(baselines) < MIN_REPLICATES:
        lines.append(f"# They cover {SAMPLING_ONLY}.")
    # A new kind of less than the finest kinds' mean share would be hidden in one of them.
    new = max(NEW, 1 / finest_level(sets))
    limits = KindLimits(lose=LOSE, new=new)
    found, division = kind_evidence(sets, limits, 0, run)
    told = {
        "lose": (LOSE, "part of its share that no kind of at least 1 % of the reference may lose"),
        "new": (new, "share by which no kind may grow that the reference lacks"),
    }
    for rule, (margin, about) in told.items():
        kinds = [one.evidence for one in found if one.evidence.name.startswith(f"kinds.{rule}")]
        floors = [_floor(one, len(kinds)) for one in kinds if isinstance(one, TwoShares)]
        if floors:
            chosen = _chosen(margin, max(floors))
            if rule == "lose" and chosen < 1:
                lines += [f"# {one[0].upper()}{one[1:]}." for one in division.hidden(chosen, limits.min_share)]
            lines.append(_line(f"kinds.{rule}", margin, max(floors), about))
    lines += _metric_line(sets, run)
    lines.append("basics.duplicates = 0.01  # share of samples that may repeat another")
    if isinstance(sets.gen, CachedEmbeddings):
        lines.append("basics.unreadable = 0.0  # share of samples that may be unreadable")
    return "\n".join(lines) + "\n"


def _floor(one: TwoShares, family: int) -> float:
    """Return the margin that an unchanged release keeps, with probability 0.95 for all kinds together."""
    mean = max(one.counts.old_share * one.counts.size, 0.5)
    worst = {
        "kinds.lose": float(gammaincinv(mean, ALPHA / family)),
        "kinds.new": float(gammaincinv(mean + 1, 1 - ALPHA / family)),
    }
    unlucky = replace(one.counts, members=worst[one.name.split(" ")[0]])
    return replace(one, counts=unlucky).bound("high", ALPHA)


def _metric_line(sets: GateSets, run: Run) -> list[str]:
    limit = MetricLimit(worse=NOISE, difference=NOISE)
    for metric in METRICS:
        found = score_evidence(sets, {metric: limit}, ALPHA, run)
        for one, rule, what in zip(found, ("worse", "difference"), ("part", "amount"), strict=True):
            if isinstance(one, Normal):
                least = 2 * upper_quantile(ALPHA, one.degrees) * one.error
                return [_line(f"metrics.{metric}.{rule}", 0.0, least, f"{what} by which it may be worse")]
    return []


def _line(key: str, margin: float, least: float, about: str) -> str:
    """Return a line of the policy."""
    chosen = _chosen(margin, least)
    share = not key.endswith("difference")
    told = [f"{100 * value:.2g} %" if share else f"{value:.2g}" for value in (least, chosen)]
    if key == "kinds.lose" and chosen >= 1:
        return f"# {key} needs more samples: the floor is {told[0]} of a share"
    return f"{key} = {chosen:g}  # {about}: floor {told[0]} at this n; your limit {told[1]}"


def _chosen(margin: float, least: float) -> float:
    """Return the margin, or the floor if it is larger, rounded up to two digits."""
    unit = 10.0 ** (floor(log10(least)) - 1)
    return max(margin, round(ceil(least / unit) * unit, 12))
