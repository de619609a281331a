"""`Column`: one number of all models, from measures of metrics and from counts of kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf

import numpy as np

from finc_eval.core.signature import Signature
from finc_eval.estimates.error_source import GEN, REF, TRAINING, ErrorSource
from finc_eval.estimates.estimate import Estimate, mean_of
from finc_eval.leaderboards.measures import Measure, bounds_of
from finc_eval.leaderboards.shares import FACTOR, ShareRule, share_estimates
from finc_eval.partitions.tests import EffectiveCounts, Tally

SHARES = {
    "unmatched": "share of its samples that would have to change kind to match the reference",
    "missing": "share of the reference that is missing",
    "novel": "share of its samples that are novel",
}
"""Numbers from counts of kinds: what each is, in words."""

RULES = {"missing": ShareRule(True, FACTOR), "novel": ShareRule(False, FACTOR)}
"""Rules of the shares that count a kind if one set has much more of it."""

ALONE = "no other model has this number"  # why a model with an estimate is not ranked
NOT_MEASURED = "it was not measured"  # why a model of a stored board is not ranked by a metric that its entry lacks


@dataclass(frozen=True, eq=False)
class Column:
    """One number of all models."""

    key: str
    title: str
    higher_is_better: bool
    signature: Signature
    # smallest and largest value that the number can have, if estimates may go beyond
    bounds: tuple[float, float] = (-inf, inf)
    # estimates of the training runs of each model that has them all, by its name
    runs: dict[str, list[Estimate]] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)  # value of each model without an estimate that has one
    reasons: dict[str, str] = field(default_factory=dict)  # why a model has no estimate
    # estimates of the training runs of each model from itself and the reference alone, where those that compare models
    # are others
    own: dict[str, list[Estimate]] = field(default_factory=dict)

    @cached_property
    def estimates(self) -> dict[str, Estimate]:
        """Estimate of each model by which it is compared with others, the mean of its training runs."""
        return over_runs(self.runs)

    @cached_property
    def shown(self) -> dict[str, Estimate]:
        """Estimate of each model that is its number, whatever other models there are."""
        return self.estimates | over_runs(self.own)

    def among(self, models: int) -> Column:
        """Return the column among so many models; a number that one of several has ranks nobody."""
        if len(self.runs) != 1 or models == 1:
            return self
        reasons = self.reasons | dict.fromkeys(self.runs, ALONE)
        return replace(self, runs={}, own=self.runs | self.own, reasons=reasons)

    @property
    def training_error(self) -> float | None:
        """Standard deviation of the number between training runs; None if no model was trained twice."""
        variance, degrees = training_noise(self.runs)
        return None if degrees == inf else variance**0.5


OwnShares = Mapping[str, Sequence[Mapping[str, Measure]]]
"""Shares of the training runs of each model from itself and the reference alone, by key, by the name of the model."""


def share_columns(
    models: Mapping[str, Sequence[Tally]], ref: Tally, fields: tuple[tuple[str, str], ...], own: OwnShares
) -> list[Column]:
    """Return the shares of kinds that one set has much more of, by how many samples each set has of each kind.

    `models` has tallies of the training runs by model, of kinds that do not overlap; `fields` are of all signatures.
    """
    counts = {name: [run.effective() for run in runs] for name, runs in models.items()}
    reasons = {name: text for name, runs in counts.items() if (text := too_few(runs)) is not None}
    owners = [name for name, sets in counts.items() if name not in reasons for _ in sets]
    sets = [tally.members for name, tallies in counts.items() if name not in reasons for tally in tallies]
    found = []
    for key, rule in RULES.items():
        runs: dict[str, list[Estimate]] = {name: [] for name in owners}
        estimates = share_estimates(rule, sets, ref.effective().members) if sets else []
        for name, estimate in zip(owners, estimates, strict=True):
            runs[name].append(estimate)
        found.append(
            Column(
                key=key,
                title=SHARES[key],
                higher_is_better=False,
                signature=Signature(key, (*fields, ("factor", f"{rule.factor:g}"))),
                bounds=(0.0, 1.0),
                runs=runs,
                reasons=reasons,
                own=own_estimates(key, own),
            )
        )
    return found


def own_estimates(key: str, own: OwnShares) -> dict[str, list[Estimate]]:
    """Return the estimates of the training runs of each model by one share, for models that have it of all."""
    found = {}
    for name, runs in own.items():
        measures = [run.get(key) for run in runs]
        estimates = [measure.estimate() for measure in measures if measure is not None]
        known = [estimate for estimate in estimates if estimate is not None]
        if len(known) == len(runs):
            found[name] = known
    return found


def too_few(runs: Sequence[EffectiveCounts]) -> str | None:
    """Return why shares of a model cannot be estimated; None if they can.

    To be compared, all models choose kinds by as many samples as the smallest set informs like. A model of a few
    distinct samples would make the comparison of all others blind.
    """
    for run in runs:
        kinds = len(run.members)
        if run.n < kinds:
            return (
                f"its {run.samples:,.0f} samples inform like {run.n:,.0f} independent samples, and this share of "
                f"{kinds} kinds needs {kinds}"
            )
    return None


def metric_column(
    metric: str,
    models: Mapping[str, Sequence[Measure | None]],
    signature: Signature,
    bounds: tuple[float, float] | None = None,
    own: OwnShares | None = None,
) -> Column:
    """Return a metric of all models.

    A model with a training run that could not be measured has no estimate: nothing is averaged over gaps.
    """
    runs: dict[str, list[Estimate]] = {}
    values, reasons, title, better = {}, {}, metric, False
    for name, measures in models.items():
        known = [measure for measure in measures if measure is not None]
        estimates = [found for measure in known if (found := measure.estimate()) is not None]
        title = next((measure.title for measure in known), title)
        if len(estimates) == len(measures):
            runs[name] = estimates
            better = better or any(measure.higher_is_better for measure in known)
            continue
        reasons[name] = next((measure.reason for measure in known if measure.reason is not None), NOT_MEASURED)
        if len(measures) == 1 and known and known[0].value is not None:
            values[name] = known[0].value
    return Column(
        key=metric,
        title=title,
        higher_is_better=better,
        signature=signature,
        bounds=bounds or bounds_of(metric),
        runs=runs,
        values=values,
        reasons=reasons,
        own=own_estimates(metric, own or {}),
    )


def training_noise(models: Mapping[str, Sequence[Estimate]]) -> tuple[float, float]:
    """Return the variance of a number between training runs, without sampling, and its degrees of freedom.

    Without a model of several runs it is 0, with infinite degrees: not measured.
    """
    between, degrees = 0.0, 0
    for runs in models.values():
        free = len(runs) - 1
        if free:
            sampled = float(np.mean([run.variance_of(GEN) for run in runs]))
            between += free * (float(np.var([run.value for run in runs], ddof=1)) - sampled)
            degrees += free
    return (max(between / degrees, 0.0), float(degrees)) if degrees else (0.0, inf)


def over_runs(models: Mapping[str, Sequence[Estimate]]) -> dict[str, Estimate]:
    """Return one estimate per model: the mean of its training runs, which share the reference."""
    training, degrees = training_noise(models)
    if degrees == inf:
        return {name: runs[0] for name, runs in models.items() if runs}
    return {name: _over_runs(runs, training / len(runs), degrees) for name, runs in models.items() if runs}


def _over_runs(runs: Sequence[Estimate], training: float, degrees: float) -> Estimate:
    """Return the mean of training runs.

    Few runs say how much they vary: the degrees of freedom of training are also those of the variance of their sets,
    which it was measured beyond, and, with caution, those of the interval.
    """
    mean = mean_of(runs, shared=(REF,))
    shared = [source for source in mean.sources if source.name == REF]
    parts = ((GEN, mean.variance_of(GEN)), (TRAINING, training))
    found = Estimate.of(mean.value, [*(ErrorSource.of_variance(*source, degrees) for source in parts), *shared])
    return replace(found, interval=found.interval_at(degrees=degrees))
