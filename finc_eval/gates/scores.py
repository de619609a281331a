"""Evidence on metrics: their values against the reference, and differences from the baseline, paired or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite, sqrt

import numpy as np

from finc_eval.core.errors import DataError
from finc_eval.core.run import Run
from finc_eval.core.words import figure, plural
from finc_eval.embeddings.repeats import mean_group_size
from finc_eval.estimates.error_source import ErrorSource
from finc_eval.estimates.estimate import Estimate, difference, mean_of, units_of
from finc_eval.estimates.retraining import between_scores
from finc_eval.gates.evidence import LimitEvidence, Missing, Normal, Side
from finc_eval.gates.policy import MetricLimit, metric_of
from finc_eval.gates.sets import GEN, REF, GateSets
from finc_eval.measures.metrics import metrics as compute
from finc_eval.measures.registry import METRICS, get_metric
from finc_eval.measures.score import Score
from finc_eval.numerics.inference import ALPHA, upper_quantile

UNLIKE_GROUPS = 1.02
"""Ratio of the mean sizes of groups beyond which sets are of unlike groups. At 1.06 (4 samples each against 3 and 5),
the recall of the same law was worse in 54 of 60 gates, at a level of 5 %."""

DISTANCE_GROWTH = 2.0
"""Factor by which the standard error of a distance may be larger where the distance is one that a limit detects: near 0
it is smallest. Of Fréchet distances it was 1.3 to 1.8 (six runs of the design `worse` of benchmarks/gate.py)."""


def score_evidence(
    sets: GateSets, limits: Mapping[str, MetricLimit], alpha: float, run: Run
) -> tuple[list[LimitEvidence], dict[str, dict[str, float]]]:
    """Compute the metrics of all generated sets, and return the evidence of each limit, and the scores by label."""
    metrics = list(dict.fromkeys(metric_of(name) for name in limits))
    scores: dict[str, dict[str, Score | str]] = {}
    labels = [label for label in sets.all if label != REF]
    for label in labels:
        same = [other for other in scores if sets.opened.infos[other].digest == sets.opened.infos[label].digest]
        known = scores[same[0]] if same else None  # a first policy takes its baseline as the release
        scores[label] = known or _scores(sets, label, metrics, list(limits), run.prefixed(f"metrics of {label}"))
    found: list[LimitEvidence] = []
    for name, limit in limits.items():
        by_units = estimates_by_units(sets, name, run)
        measured = {label: _measure(scores[label][name], sets, label, by_units.get(label)) for label in labels}
        found += _absolute(name, limit, measured[GEN], sets)
        for against in sets.comparisons:
            unlike = _unlike_groups(name, scores[GEN][name], against)
            compared = {**measured, GEN: unlike} if unlike else measured
            found += _relative(name, limit, compared, _better(scores[GEN][name]), against, alpha, run)
    values = {
        label: {name: score.value for name, score in of_set.items() if not isinstance(score, str)}
        for label, of_set in scores.items()
    }
    return found, values


def _scores(sets: GateSets, label: str, metrics: list[str], names: list[str], run: Run) -> dict[str, Score | str]:
    """Return each score, or the reason why there is none."""
    found: dict[str, Score | str] = {}
    alone = any(get_metric(metric).extractor for metric in metrics)  # FID embeds samples by a network of its own
    both = [sets.opened[which] for which in (label, REF)]
    gen, ref = (given_set.given if alone else given_set.as_embedded for given_set in both)
    are_samples = alone and any(given_set.form == "samples" for given_set in both)
    extractor = sets.extractor if are_samples else None  # no extractor is asked of embeddings
    try:
        scores = compute(gen, ref, metrics, extractor=extractor, run=run)
    except DataError as error:
        return dict.fromkeys(names, str(error))
    for name in names:
        # The score kid_mean is the first one of the metric kid.
        named = [score for score in scores if score.key == name] or [
            score for score in scores if score.signature.metric == name
        ]
        found[name] = named[0] if named else scores.failures.get(metric_of(name), f"{name} is not computed")
    return found


def _measure(score: Score | str, sets: GateSets, label: str, by_units: Estimate | None = None) -> Estimate | str:
    """Return a score with the error of both sets, or the reason why it has none.

    The error is that of `by_units`, whose units are few or many. Without it, the error is that of the interval, and the
    variances of both sets are taken to go by the numbers of samples.
    """
    if isinstance(score, str):
        return score
    if not isfinite(score.center):
        return f"{score.key} of {label} is not a finite number"
    if score.standard_error is None:
        why = f": {score.notes[-1]}" if score.notes else ""
        return f"{score.key} of {label} has no interval with {plural(sets.all[label].n, 'sample')}{why}"
    if by_units is not None:
        return by_units.at(score.center)
    variance, n, m = score.standard_error**2, sets.all[label].n, sets.ref.n
    parts = ((GEN, m / (n + m)), (REF, n / (n + m)))
    return Estimate.of(score.center, [ErrorSource.of_variance(name, part * variance) for name, part in parts])


def _better(score: Score | str) -> bool | None:
    """Return whether a better generator has a larger value; None if neither is better, or if there is none."""
    return None if isinstance(score, str) else score.higher_is_better


def _unlike_groups(name: str, score: Score | str, sets: GateSets) -> str:
    """Return why a score compares no release with a baseline in unlike groups; "" if it does, or if they are alike."""
    if isinstance(score, str) or not get_metric(metric_of(name)).is_for_like_groups(score.key):
        return ""
    new, *old = (mean_group_size(one) for one in (sets.gen, *sets.baselines.values()))
    unlike = next((size for size in old if not 1 / UNLIKE_GROUPS <= new / size <= UNLIKE_GROUPS), None)
    if unlike is None:
        return ""
    return (
        f"{score.key} compares for groups of like sizes only, and the group of a sample has {figure(new)} samples on "
        f"average in the release, {figure(unlike)} in the baseline: compare sets in like groups, or a sample of each"
    )


def _absolute(name: str, limit: MetricLimit, new: Estimate | str, sets: GateSets) -> Iterator[LimitEvidence]:
    """Yield the evidence on limits of the score itself."""
    bounds: tuple[tuple[str, float | None, Side], ...] = (("most", limit.most, "high"), ("least", limit.least, "low"))
    for rule, margin, harm in bounds:
        title = sets.rule(f"metrics.{name}") + f" {rule}"
        if margin is None:
            continue
        if isinstance(new, str):
            yield Missing(name=title, margin=margin, note=new)
        else:
            yield Normal.of(new, name=title, margin=margin, harm=harm, n=sets.gen.n)


def _relative(
    name: str,
    limit: MetricLimit,
    measured: Mapping[str, Estimate | str],
    higher_is_better: bool | None,
    sets: GateSets,
    alpha: float,
    run: Run,
) -> Iterator[LimitEvidence]:
    """Yield the evidence on differences to the baseline, in parts of the baseline's score or as they are."""
    asked = {rule: limit.given[rule] for rule in ("worse", "difference") if rule in limit.given}
    known = {label: estimate for label, estimate in measured.items() if isinstance(estimate, Estimate)}
    paired = paired_estimates(sets, name, run) if asked and len(known) == len(measured) else None
    for rule, wanted in asked.items():
        title = sets.rule(f"metrics.{name}") + f" {rule}"
        stated = 0.0 if isinstance(wanted, str) else float(wanted)
        if why := [reason for label in (GEN, *sets.baselines) if isinstance(reason := measured[label], str)]:
            yield Missing(name=title, margin=stated, note="; ".join(dict.fromkeys(why)))
            continue
        old = [known[label] for label in sets.baselines]
        replicates = np.array([known[label].value for label in sets.replicates if label in known])
        training = between_scores(replicates, len(old))
        change = ScoreChange(known[GEN], mean_of(old), training, in_parts=rule == "worse")
        if note := change.why_not(name, higher_is_better):
            yield Missing(name=title, margin=stated, note=note)
            continue
        calm, margin = change.noise_if_unchanged(sets.gen.n, sum(baseline.n for baseline in sets.baselines.values()))
        found = change.in_pairs(*paired) if paired else change.of_other_sets(alpha)
        yield Normal.of(
            found.times(-1.0 if higher_is_better else 1.0),
            name=title,
            margin=margin if isinstance(wanted, str) else stated,
            unchanged=0.0,
            n=sets.gen.n,
            error_unchanged=None if paired else calm,
            growth=1.0 if higher_is_better else DISTANCE_GROWTH,
            note=f"{figure(change.new.value)}, the baseline {figure(change.old.value)}",
        )


@dataclass(frozen=True, eq=False)
class ScoreChange:
    """The score of a release against that of its baseline: which difference of both estimates a limit is held to."""

    new: Estimate
    old: Estimate  # mean of the baseline's training runs
    training: ErrorSource  # error of new − old that training alone makes
    in_parts: bool  # whether the difference counts in parts of the baseline's score, or as it is

    @property
    def unit(self) -> float:
        """Unit of the difference."""
        return abs(self.old.value) if self.in_parts else 1.0

    def why_not(self, name: str, higher_is_better: bool | None) -> str:
        """Return why no difference can be judged; "" if one can."""
        if higher_is_better is None:
            return f"neither direction of {name} is better: use most or least"
        if self.in_parts and abs(self.old.value) <= self.old.half:
            return (
                f"{name} of the baseline, {figure(self.old.value, '.3g')}, cannot be distinguished from 0: limit its "
                "difference in place of worse"
            )
        return ""

    def noise_if_unchanged(self, n: int, old_n: int) -> tuple[float, float]:
        """Return the error of a release like the baseline, and the margin that it keeps."""
        errors = (
            (self.old.standard_error * sqrt(1 + old_n / n) / self.unit, self.old.degrees),
            (sqrt(self.training.variance) / self.unit, self.training.degrees),
        )
        margin = 2 * max((upper_quantile(ALPHA, degrees) * error for error, degrees in errors if error), default=0.0)
        return max(error for error, _ in errors), margin

    def in_pairs(self, new: Estimate, old: Estimate) -> Estimate:
        """Return the difference with the error of paired estimates of both sets."""
        return self._between(new, old, is_paired=True)

    def of_other_sets(self, alpha: float) -> Estimate:
        """Return the difference of other sets. The wider bound counts: of sampling alone, or of the replicates."""
        sampled = self._between(self.new, self.old, is_paired=False)
        trained = Estimate.of(sampled.value, (self.training.times(1 / self.unit),))
        by_training, by_sampling = (
            upper_quantile(alpha, found.degrees) * found.standard_error for found in (trained, sampled)
        )
        return trained if by_training > by_sampling else sampled

    def _between(self, new: Estimate, old: Estimate, *, is_paired: bool) -> Estimate:
        """Return the difference, with the error that it has to first order if it is a part of the baseline's score."""
        growth = self.new.value / self.old.value if self.in_parts else 1.0
        found = difference(new, old, growth, is_paired=is_paired).times(1 / self.unit)
        return Estimate.of((self.new.value - self.old.value) / self.unit, found.sources)


def estimates_by_units(sets: GateSets, name: str, run: Run) -> dict[str, Estimate]:
    """Estimate a metric of each generated set from the influences of its units, by label.

    Sets whose error is not known are left out. All are, unless the metric has an estimator in the space of these sets,
    and `name` is its first score.
    """
    metric = METRICS.get(name)
    if metric is None or metric.estimator is None or not metric.is_defined_on(sets.gen, sets.ref):
        return {}
    estimate, found = metric.estimator(sets.ref, run), dict[str, Estimate]()
    for label, samples in sets.all.items():
        if label != REF:
            same = [known for known in found if sets.all[known] is samples]
            with suppress(DataError):
                found[label] = found[same[0]] if same else estimate(samples, None)
    return found


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
