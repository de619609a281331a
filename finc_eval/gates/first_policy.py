"""`first_policy`: a policy for a baseline, with the noise that was measured at its number of samples as comments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, log10

from scipy.special import gammaincinv

from finc_eval.core.run import Run
from finc_eval.core.words import counted, in_percent
from finc_eval.embeddings.base import CachedEmbeddings
from finc_eval.embeddings.space import ARRAY_SPACE
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.gates.divisions import AUTO_LEVELS, MOST_HIDDEN, fewest, finest_level, hidden_loss, scattered_share
from finc_eval.gates.evidence import Normal, upper_quantile
from finc_eval.gates.kinds import CUT, PARTS, KindEvidence, kind_evidence
from finc_eval.gates.moved import Moved, unchanged_bound
from finc_eval.gates.policy import NOISE, KindLimits, MetricLimit
from finc_eval.gates.retraining import MIN_REPLICATES, SAMPLING_ONLY
from finc_eval.gates.scores import score_evidence
from finc_eval.gates.sets import REF, GateSets
from finc_eval.gates.shares import GainedShare, LostShare
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.tally import EffectiveCounts

LOSE, NEW = 0.5, 0.02
"""Limits on kinds that are proposed: half of a share, and 2 % of the samples."""

USUAL_LOSE, MOST_LOSE = 0.75, 0.9
"""Largest part of its share that a kind may lose by a proposed limit: where it shows a lost class of at most
`MOST_HIDDEN`, and where only a larger one does."""

LEAST_PART, MOST_PART, STEP = 1.0, 4.0, 1.1
"""Smallest and largest class whose loss a limit may show, in parts of the mean share of a kind, so that a class is cut
into few of them; and the factor between those that are tried."""

MIN_SEEN = 0.001
"""Smallest share that kinds are counted from."""

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
    run = Run.of(run)
    # The baseline stands for a new release without a change.
    sets = GateSets.open(baselines[0], baselines, ref, None, run, extractor=extractor)
    n, m = sets.gen.n, sets.ref.n
    lines = [
        f"# For {counted(n, 'sample')} of a release and {m:,} of the reference; floors are what an unchanged release "
        "keeps with probability 0.95.",
    ]
    if len(baselines) < MIN_REPLICATES:
        lines.append(f"# They cover {SAMPLING_ONLY}.")
    if not sets.space.startswith(ARRAY_SPACE):
        lines.append(f'extractor = "{sets.space}"  # that the limits are for')
    lines += [*_lose_lines(sets, run), *_new_lines(sets, run)]
    lines += _metric_line(sets, run)
    lines.append("basics.duplicates = 0.01  # share of samples that may repeat another")
    if isinstance(sets.gen, CachedEmbeddings):
        lines.append("basics.unreadable = 0.0  # share of samples that may be unreadable")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class _Lose:
    """A limit on lost kinds that an unchanged release keeps: `lose`, `min_share` and `level` of a policy."""

    lose: float
    min_share: float
    level: int
    moved: float


def _lose_lines(sets: GateSets, run: Run) -> list[str]:
    """Return the limit on lost kinds: one half of their shares, or more of smaller kinds where few samples show less.

    With few samples only large kinds can be shown to keep half of their shares, and a lost class would be hidden in one
    of them. So of the limits that an unchanged release keeps, that one is proposed which shows the smallest lost class.
    """
    finest = finest_level(sets)
    every = [one for level in AUTO_LEVELS if level <= finest and (one := _keepable(sets, level, run)) is not None]
    if not every:
        return ["# kinds.lose needs more samples: with these, no kind can be shown to keep a part of its share"]
    usual = [one for one in every if one.lose <= USUAL_LOSE and one.min_share <= MOST_HIDDEN]
    found = min(usual or every, key=lambda one: one.min_share)
    if found.min_share > MOST_HIDDEN:
        # Without min_share and level, the gate is undecided until there are enough samples.
        return [
            f"# {counted(fewest(sets), 'sample')} cannot show that no class of {in_percent(MOST_HIDDEN, 2)} was lost: "
            "kinds.lose will be undecided,",
            "# and say how many samples decide. A column of labels shows more: kinds.column.",
            f"kinds.lose = {LOSE}  # part of its share that no kind may lose",
        ]
    seen, moved = in_percent(found.min_share, 2), _chosen(0.0, found.moved)
    return [
        _line("kinds.lose", LOSE, found.lose, f"part of its share that no kind of at least {seen} may lose"),
        f"kinds.min_share = {found.min_share:g}  # a class of less than {seen}, or of less than "
        f"{in_percent(scattered_share(moved), 2)} in over {CUT} kinds, can be lost unseen",
        f"kinds.level = {found.level}  # number of kinds",
        _line("kinds.moved", 0.0, moved, "share of samples that may be of other kinds than before"),
    ]


def _keepable(sets: GateSets, level: int, run: Run) -> _Lose | None:
    """Return the limit at this level on the smallest kinds that an unchanged release keeps; None if there is none."""
    least = min(MIN_SEEN, LEAST_PART / level)
    limits = KindLimits(lose=MOST_LOSE, level=level, min_share=least, moved=MOST_LOSE)
    found, division = kind_evidence(sets, limits, 0, run)
    kinds = [(one.shares[REF], one.evidence) for one in found if isinstance(one.evidence, LostShare)]
    if not kinds or division.promise is None or division.promise.kinds < level:
        return None
    seen = LEAST_PART / level
    while seen < MOST_PART / level:
        lose = _kept(kinds, seen)
        if lose is not None and lose <= MOST_LOSE:
            return _Lose(_chosen(LOSE, lose), _chosen(0.0, seen), level, unchanged_bound(_counts(found), fewest(sets)))
        seen *= STEP
    return None


def _counts(found: Sequence[KindEvidence]) -> EffectiveCounts:
    """Return the counts of the baseline."""
    return next(one.evidence.old for one in found if isinstance(one.evidence, Moved))


def _kept(kinds: Sequence[tuple[float, LostShare]], seen: float) -> float | None:
    """Return what an unchanged release keeps of `lose`, on kinds of this smallest share; None if it keeps none."""
    limited = [(share, replace(one, least=seen / CUT)) for share, one in kinds if share >= seen / PARTS]
    floors = [(share, _floor(one, len(limited))) for share, one in limited]
    if not floors or any(floor > hidden_loss(share, seen / CUT) for share, floor in floors):
        return None
    return max(floor for _, floor in floors)


def _new_lines(sets: GateSets, run: Run) -> list[str]:
    """Return the limit on new kinds. One of less than the finest kinds' mean share would be hidden in one of them."""
    margin = max(NEW, 1 / finest_level(sets))
    found, _ = kind_evidence(sets, KindLimits(new=margin), 0, run)
    kinds = [one.evidence for one in found if isinstance(one.evidence, GainedShare)]
    floors = [_floor(one, len(kinds)) for one in kinds]
    if not floors:
        return []
    return [_line("kinds.new", margin, max(floors), "share by which no kind may grow that the reference lacks")]


def _floor(one: LostShare | GainedShare, family: int) -> float:
    """Return the margin that an unchanged release keeps, with probability 0.95 for all kinds together."""
    mean, gain = max(one.counts.old_share * one.counts.size, 0.5), isinstance(one, GainedShare)
    members = gammaincinv(mean + 1, 1 - ALPHA / family) if gain else gammaincinv(mean, ALPHA / family)
    unlucky = one.with_members(float(members))
    return replace(unlucky, value=max(unlucky.value, one.half(ALPHA / family))).bound("high", ALPHA)


def _metric_line(sets: GateSets, run: Run) -> list[str]:
    limit = MetricLimit(worse=NOISE, difference=NOISE)
    for metric in METRICS:
        found, _ = score_evidence(sets, {metric: limit}, ALPHA, run)
        for one, rule, what in zip(found, ("worse", "difference"), ("part", "amount"), strict=True):
            if isinstance(one, Normal):
                least = 2 * upper_quantile(ALPHA, one.degrees) * one.error
                return [_line(f"metrics.{metric}.{rule}", 0.0, least, f"{what} by which it may be worse")]
    return []


def _line(key: str, margin: float, least: float, about: str) -> str:
    """Return a line of the policy."""
    chosen = _chosen(margin, least)
    share = not key.endswith("difference")
    told = [in_percent(value, 2) if share else f"{value:.2g}" for value in (least, chosen)]
    return f"{key} = {chosen:g}  # {about}: floor {told[0]} at this n; your limit {told[1]}"


def _chosen(margin: float, least: float) -> float:
    """Return the margin, or the floor if it is larger, rounded up to two digits."""
    unit = 10.0 ** (floor(log10(max(least, 1e-9))) - 1)
    return max(margin, round(ceil(least / unit) * unit, 12))
