"""All limits of a policy, with the evidence on each: of whole sets, and of slices of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from finc_eval.core.run import Run
from finc_eval.gates.basics import basic_evidence, copying_evidence
from finc_eval.gates.divisions import tree_of_reference
from finc_eval.gates.evidence import Evidence, Missing
from finc_eval.gates.kinds import KindEvidence, kind_evidence
from finc_eval.gates.moved import Distance
from finc_eval.gates.policy import KindLimits, MetricLimit, Policy, SliceLimits
from finc_eval.gates.scores import score_evidence
from finc_eval.gates.sets import GateSets
from finc_eval.partitions.kind_tree import KindTree

Scores = dict[str, dict[str, float]]
"""Scores by the label of a set and the name of the score."""


@dataclass
class Gathered:
    """Evidence on the limits of a policy, gathered one after the other.

    Attributes:
        kinds: evidence on kinds, which says more than the others: shares and samples.
        digests: digests of the kinds of each part of the sets.
        scores: scores of whole sets.
        distances: how far the whole release is from older releases.
        tree: kinds of the reference; None without limits on lost kinds.
    """

    kinds: list[KindEvidence] = field(default_factory=list)
    others: list[Evidence] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    scores: Scores = field(default_factory=dict)
    distances: tuple[Distance, ...] = ()
    tree: KindTree | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def all(self) -> list[KindEvidence]:
        """All of it, in the order of the policy."""
        return [*self.kinds, *(KindEvidence(one) for one in self.others)]

    def add(
        self, sets: GateSets, kinds: KindLimits | None, metrics: Mapping[str, MetricLimit], policy: Policy, run: Run
    ) -> Scores:
        """Add the evidence on kinds and metrics of these sets, and return their scores."""
        if kinds:
            found, division = kind_evidence(sets, kinds, self.tree, policy.seed, run)
            self.kinds += found
            self.digests += division.digests
            self.distances = self.distances if sets.part else division.distances
            self.warnings += division.unseen
        if not metrics:
            return {}
        evidence, scores = score_evidence(sets, metrics, policy.alpha / policy.looks, run)
        self.others += evidence
        return scores


def gather_evidence(
    sets: GateSets, policy: Policy, train: object | None, run: Run, kinds: KindTree | None = None
) -> Gathered:
    """Return the evidence on all limits of a policy."""
    every = [policy.kinds, *(one.kinds for one in policy.slices.values())]
    if all(one is None or one.lose is None or one.column for one in every):
        kinds = None
    elif kinds is None:
        kinds = tree_of_reference(sets, policy.seed, run)
    found = Gathered(tree=kinds)
    found.scores = found.add(sets, policy.kinds, policy.metrics, policy, run)
    for name, limits in policy.slices.items():
        part = sets.slice_of(name, limits.column, limits.only, policy.pairs)
        if isinstance(part, str):
            found.others += _missing(name, limits, part)
        else:
            found.add(part, limits.kinds, limits.metrics, policy, run.prefixed(name))
    if policy.copying:
        found.others += copying_evidence(sets, policy.copying, train, run)
    if policy.basics:
        found.others += basic_evidence(sets, policy.basics, run)
    return found


def _missing(name: str, limits: SliceLimits, why: str) -> Iterator[Evidence]:
    if limits.kinds:
        for rule in ("lose", "new", "moved"):
            if (margin := getattr(limits.kinds, rule)) is not None:
                yield Missing(name=f"kinds.{rule}@{name}", margin=margin, note=why)
    for metric, limit in limits.metrics.items():
        for rule in ("most", "least", "worse", "difference"):
            if (wanted := getattr(limit, rule)) is not None:
                margin = 0.0 if isinstance(wanted, str) else wanted
                yield Missing(name=f"metrics.{metric}@{name} {rule}", margin=margin, note=why)
