"""Evidence on metrics: their values against the reference, and differences from the baseline, paired or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import hypot, inf, isfinite, sqrt

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.errors import DataError
from finc_eval.core.run import Run
from finc_eval.core.words import figure, plural
from finc_eval.embeddings.opening import form_of
from finc_eval.estimates.estimate import Estimate, difference, units_of
from finc_eval.gates.evidence import LimitEvidence, Missing, Normal, Side
from finc_eval.gates.policy import MetricLimit, metric_of
from finc_eval.gates.retraining import between_scores
from finc_eval.gates.sets import GEN, REF, GateSets
from finc_eval.measures.metrics import metrics as compute
from finc_eval.measures.registry import METRICS, get_metric
from finc_eval.measures.score import Score
from finc_eval.numerics.inference import ALPHA, normal_quantile, upper_quantile

DISTANCE_GROWTH = 2.0
"""Factor by which the standard error of a distance may be larger where the distance is one that a limit detects: near 0
it is smallest. Of Fréchet distances it was 1.3 to 1.8 (six runs of the design `worse` of benchmarks/gate.py)."""


@dataclass(frozen=True)
class MeasuredScore:
    """A score with its standard error."""

    value: float
    error: float  # standard error over other samples of the same sets
    # part of it that the reference has, which more generated samples leave as it is; variances are taken to go by the
    # numbers of samples
    fixed: float
    higher_is_better: bool | None  # whether a better generator has a larger value; None if neither is better


def score_evidence(
    sets: GateSets, limits: Mapping[str, MetricLimit], alpha: float, run: Run
) -> tuple[list[LimitEvidence], dict[str, dict[str, float]]]:
    """Compute the metrics of all generated sets, and return the evidence of each limit, and the scores by label."""
    metrics = list(dict.fromkeys(metric_of(name) for name in limits))
    scores: dict[str, dict[str, Score | str]] = {}
    labels = [label for label in sets.all if label != REF]
    for label in labels:
        same = [other for other in scores if sets.infos[other].digest == sets.infos[label].digest]
        known = scores[same[0]] if same else None  # a first policy takes its baseline as the release
        scores[label] = known or _scores(sets, label, metrics, list(limits), run.prefixed(f"metrics of {label}"))
    found: list[LimitEvidence] = []
    for name, limit in limits.items():
        measured = {label: _measure(scores[label][name], sets, label) for label in labels}
        new = measured[GEN]
        bounds: tuple[tuple[str, float | None, Side], ...] = (
            ("most", limit.most, "high"),
            ("least", limit.least, "low"),
        )
        for rule, margin, harm in bounds:
            title = sets.rule(f"metrics.{name}") + f" {rule}"
            if margin is not None and isinstance(new, str):
                found.append(Missing(name=title, margin=margin, note=new))
            elif margin is not None and isinstance(new, MeasuredScore):
                found.append(
                    Normal(
                        name=title,
                        value=new.value,
                        margin=margin,
                        harm=harm,
                        n=sets.gen.n,
                        error=new.error,
                        fixed=new.fixed,
                    )
                )
        for against in sets.comparisons:
            found += _relative(name, limit, measured, against, alpha, run)
    values = {
        label: {name: score.value for name, score in of_set.items() if not isinstance(score, str)}
        for label, of_set in scores.items()
    }
    return found, values


def _scores(sets: GateSets, label: str, metrics: list[str], names: list[str], run: Run) -> dict[str, Score | str]:
    """Return each score, or the reason why there is none."""
    found: dict[str, Score | str] = {}
    alone = any(get_metric(one).extractor for one in metrics)  # FID embeds samples by a network of its own
    gen, ref = (sets.sources[one] if alone else sets.as_embedded(one) for one in (label, REF))
    are_samples = "samples" in (form_of(gen), form_of(ref))
    extractor = sets.extractor if are_samples else None  # no extractor is asked of embeddings
    try:
        scores = compute(gen, ref, metrics, extractor=extractor, run=run)
    except DataError as error:
        return dict.fromkeys(names, str(error))
    for name in names:
        # The score kid_mean is the first one of the metric kid.
        own = [one for one in scores if one.key == name] or [one for one in scores if one.signature.metric == name]
        found[name] = own[0] if own else scores.failures.get(metric_of(name), f"{name} is not computed")
    return found


def _measure(score: Score | str, sets: GateSets, label: str) -> MeasuredScore | str:
    """Return a score with its standard error, or the reason why it has none."""
    if isinstance(score, str):
        return score
    if not isfinite(score.center):
        return f"{score.key} of {label} is not a finite number"
    if score.standard_error is None:
        why = f": {score.notes[-1]}" if score.notes else ""
        return f"{score.key} of {label} has no interval with {plural(sets.all[label].n, 'sample')}{why}"
    factor = get_metric(score.signature.metric).error_factor(sets.all[label], sets.ref)
    error, n, m = score.standard_error * factor, sets.all[label].n, sets.ref.n
    return MeasuredScore(score.center, error, error * sqrt(n / (n + m)), score.higher_is_better)


def _relative(
    name: str, limit: MetricLimit, measured: Mapping[str, MeasuredScore | str], sets: GateSets, alpha: float, run: Run
) -> Iterator[LimitEvidence]:
    """Yield the evidence on differences to the baseline, in parts of the baseline's score or as they are."""
    asked = {rule: limit.given[rule] for rule in ("worse", "difference") if rule in limit.given}
    paired = None
    if asked and all(isinstance(one, MeasuredScore) for one in measured.values()):
        paired = paired_estimates(sets, name, run)
    new, old = measured[GEN], [measured[label] for label in sets.baselines]
    known = [one for one in old if isinstance(one, MeasuredScore)]
    replicates = [one.value for label in sets.replicates if isinstance(one := measured[label], MeasuredScore)]
    for rule, wanted in asked.items():
        title = sets.rule(f"metrics.{name}") + f" {rule}"
        stated = 0.0 if isinstance(wanted, str) else float(wanted)
        if isinstance(new, str) or len(known) < len(old):
            why = dict.fromkeys(one for one in (new, *old) if isinstance(one, str))
            yield Missing(name=title, margin=stated, note="; ".join(why))
            continue
        change = ScoreChange(new, known, np.array(replicates), in_parts=rule == "worse")
        if note := change.why_not(name):
            yield Missing(name=title, margin=stated, note=note)
            continue
        calm, margin = change.noise_if_unchanged(sets.gen.n, sum(one.n for one in sets.baselines.values()))
        error, fixed, degrees = change.error_in_pairs(*paired) if paired else change.error(alpha)
        yield Normal(
            name=title,
            value=(-1.0 if new.higher_is_better else 1.0) * (new.value - change.base) / change.unit,
            margin=margin if isinstance(wanted, str) else stated,
            unchanged=0.0,
            n=sets.gen.n,
            error=error,
            error_unchanged=None if paired else calm,
            fixed=fixed,
            degrees=degrees,
            growth=1.0 if new.higher_is_better else DISTANCE_GROWTH,
            note=f"{figure(new.value)}, the baseline {figure(change.base)}",
        )


@dataclass(frozen=True, eq=False)
class ScoreChange:
    """The score of a release against the mean score of the baseline's training runs."""

    new: MeasuredScore
    old: Sequence[MeasuredScore]
    replicates: NDArray[np.float64]  # scores of the runs that show the noise of training
    in_parts: bool  # whether the difference counts in parts of the baseline's score, or as it is

    @cached_property
    def base(self) -> float:
        """The baseline's score."""
        return float(np.mean([one.value for one in self.old]))

    @cached_property
    def base_error(self) -> float:
        """Standard error of the baseline's score."""
        return hypot(*(one.error for one in self.old)) / len(self.old)

    @cached_property
    def unit(self) -> float:
        """Unit of the difference."""
        return abs(self.base) if self.in_parts else 1.0

    @cached_property
    def growth(self) -> float:
        """Factor of the baseline's error in the error of the difference."""
        return self.new.value / self.base if self.in_parts else 1.0

    @cached_property
    def training(self) -> tuple[float, float]:
        """Standard deviation of a difference that training alone makes, and its degrees of freedom."""
        return between_scores(self.replicates, len(self.old))

    def why_not(self, name: str) -> str:
        """Return why no difference can be judged; "" if one can."""
        if self.new.higher_is_better is None:
            return f"neither direction of {name} is better: use most or least"
        if self.in_parts and abs(self.base) <= normal_quantile() * self.base_error:
            return (
                f"{name} of the baseline, {figure(self.base, '.3g')}, cannot be distinguished from 0: limit its "
                "difference in place of worse"
            )
        return ""

    def noise_if_unchanged(self, n: int, old_n: int) -> tuple[float, float]:
        """Return the error of a release like the baseline, and the margin that it keeps."""
        spread, degrees = self.training
        unchanged = max(self.base_error * sqrt(1 + old_n / n) / self.unit, spread / self.unit)
        return unchanged, 2 * upper_quantile(ALPHA, degrees) * unchanged

    def error_in_pairs(self, new: Estimate, old: Estimate) -> tuple[float, float, float]:
        """Return the error of the difference of paired sets, the part that stays, and its degrees of freedom."""
        change = difference(new, old, self.growth)
        return change.standard_error / self.unit, sqrt(change.variances[1]) / self.unit, change.degrees

    def error(self, alpha: float) -> tuple[float, float, float]:
        """Return the error of the difference of other sets, the part that stays, and its degrees of freedom.

        The wider bound counts: of sampling alone, or of the replicates.
        """
        spread, degrees = self.training
        error = hypot(self.new.error, self.growth * self.base_error) / self.unit
        if spread / self.unit * upper_quantile(alpha, degrees) > error * upper_quantile(alpha):
            return spread / self.unit, spread / self.unit, degrees
        of_old = hypot(*(one.fixed for one in self.old)) / len(self.old)
        return error, hypot(self.new.fixed, self.growth * of_old) / self.unit, inf


def paired_estimates(sets: GateSets, name: str, run: Run) -> tuple[Estimate, Estimate] | None:
    """Estimate a metric of a release and of its baseline, whose units are the pairs.

    Only a metric with an estimator has them, for paired sets, in the space of these sets, if `name` is its first score.
    For others (None) the error of unpaired sets stands, which is larger where both scores rise and fall together.
    """
    metric = METRICS.get(name)
    (label,) = list(sets.baselines)[:1]
    if metric is None or metric.estimator is None or label not in sets.pairs or not metric.is_defined_on(sets.gen):
        return None
    groups = units_of(sets.gen)
    of_gen = np.arange(sets.gen.n) if groups is None else groups
    of_old = np.empty_like(of_gen)
    of_old[sets.pairs[label]] = of_gen
    estimate = metric.estimator(sets.ref, run)
    try:
        return estimate(sets.gen, of_gen), estimate(sets.baselines[label], of_old)
    except DataError:
        return None
