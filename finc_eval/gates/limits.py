"""All limits of a policy, with the evidence on each: of whole sets, of slices of them, of sizes, and of copies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from finc_eval.core.progress import Stage
from finc_eval.core.run import Run
from finc_eval.core.words import percent
from finc_eval.embeddings.base import CachedEmbeddings
from finc_eval.embeddings.repeats import LOOK, share_of_repeats
from finc_eval.gates.divisions import MOVED, OF_REF, OF_SETS, tree_of_reference
from finc_eval.gates.evidence import Evidence, Fact, Missing
from finc_eval.gates.kinds import KindEvidence, kind_evidence
from finc_eval.gates.moved import Distance
from finc_eval.gates.policy import BasicLimits, CopyingLimits, KindLimits, MetricLimit, Policy, SliceLimits
from finc_eval.gates.scores import score_evidence
from finc_eval.gates.sets import GEN, REF, GateSets
from finc_eval.gates.shares import GainedShare, TwoCounts
from finc_eval.measures.metrics import COMPUTE
from finc_eval.memorization.audit import NearTraining
from finc_eval.memorization.settings import AUDIT_ALPHA
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.samples.profile import unlike_encodings

Scores = dict[str, dict[str, float]]
"""Scores by the label of a set and the name of the score."""

NO_SAMPLES = "embeddings alone do not say how samples were read: pass a folder, or what extract wrote"
"""The reason why an array has no facts about files."""


@dataclass
class Gathered:
    """Evidence on the limits of a policy, gathered one after the other."""

    # evidence on kinds, which says more than the others: shares and samples
    kinds: list[KindEvidence] = field(default_factory=list)
    others: list[Evidence] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)  # digests of the kinds of each part of the sets
    scores: Scores = field(default_factory=dict)  # scores of whole sets
    distances: tuple[Distance, ...] = ()  # how far the whole release is from older releases
    tree: KindTree | None = None  # kinds of the reference; None without limits on lost kinds
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


def stages_of(policy: Policy, generators: int) -> list[str]:
    """Return how the stages of a gate of so many embedded sets of generators begin, in their order."""
    kinds = None if policy.kinds is None or policy.kinds.column else policy.kinds
    asked: dict[str, object] = {
        LOOK: True,
        OF_REF: kinds and kinds.lose is not None,
        OF_SETS: kinds and (kinds.new is not None or (kinds.lose is not None and not kinds.only)),
        MOVED: kinds,
        Stage.of_parts("metrics of", (LOOK, *[COMPUTE] * len(policy.metrics)) * generators): policy.metrics,
        **{Stage.of_parts(name, (OF_REF, OF_SETS, MOVED)): True for name in policy.slices},
        "copying": policy.copying,
        Stage.of_parts("duplicates", (LOOK,)): policy.basics and policy.basics.duplicates is not None,
    }
    return [stage for stage, is_asked in asked.items() if is_asked]


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
    for rule, margin in limits.kinds.given.items() if limits.kinds else ():
        yield Missing(name=f"kinds.{rule}@{name}", margin=margin, note=why)
    for metric, limit in limits.metrics.items():
        for rule, wanted in limit.given.items():
            margin = 0.0 if isinstance(wanted, str) else wanted
            yield Missing(name=f"metrics.{metric}@{name} {rule}", margin=margin, note=why)


def basic_evidence(sets: GateSets, limits: BasicLimits, run: Run) -> Iterator[Evidence]:
    """Yield the facts that are limited."""
    info, gen = sets.infos[GEN], sets.gen
    cached = isinstance(gen, CachedEmbeddings)
    if limits.samples is not None:
        yield Fact(name="basics.samples", value=float(gen.n), margin=float(limits.samples), harm="low", n=gen.n)
    if limits.unreadable is not None:
        margin, name = limits.unreadable, "basics.unreadable"
        if cached:
            share = info.unreadable / (info.unreadable + gen.n)
            note = ", ".join(id for id, _ in info.unreadable_examples)
            yield Fact(name=name, value=share, margin=margin, n=gen.n, note=note)
        else:
            yield Missing(name=name, margin=margin, note=NO_SAMPLES)
    if limits.duplicates is not None:
        share = share_of_repeats(gen, run.prefixed("duplicates"))
        yield Fact(name="basics.duplicates", value=share, margin=limits.duplicates, n=gen.n)
    if limits.encodings and sets.baselines:
        old = next(iter(sets.baselines.values()))
        if isinstance(gen, CachedEmbeddings) and isinstance(old, CachedEmbeddings):
            unlike = unlike_encodings(gen.cache.seen_profile, old.cache.seen_profile, "the baseline")
            yield Fact(name="basics.encodings", value=float(len(unlike)), margin=0.0, n=gen.n, note="; ".join(unlike))
        else:
            yield Missing(name="basics.encodings", margin=0.0, note=NO_SAMPLES)


def copying_evidence(sets: GateSets, limits: CopyingLimits, train: object | None, run: Run) -> Iterator[Evidence]:
    """Yield the evidence on copies of training samples; the reference stands for fresh samples."""
    if train is None:
        for name, margin in limits.given.items():
            note = "pass train, all samples that the generator was trained on"
            yield Missing(name=f"copying.{name}", margin=float(margin), note=note)
        return
    found = NearTraining.of(
        sets.as_embedded(GEN), train, sets.as_embedded(REF), extractor=sets.extractor, run=run.prefixed("copying")
    )
    if limits.near is not None and found.same_law <= AUDIT_ALPHA:
        note = (
            f"training set and reference are not of one distribution (p = {found.same_law:.2g}), which also looks like "
            "copying: pass a reference that was drawn as the training set was"
        )
        yield Missing(name="copying.near", margin=limits.near, note=note)
    elif limits.near is not None:
        near, n, fresh = found.near, float(sets.gen.n), float(found.fresh)
        yield GainedShare(
            name="copying.near",
            value=near.value - near.control,
            margin=limits.near,
            n=sets.gen.n,
            counts=TwoCounts(near.value * n, n, near.control * fresh, fresh),
            note=f"{percent(near.value, 2)} of the samples, {percent(near.control, 2)} of fresh samples",
        )
    if limits.exact is not None:
        yield Fact(name="copying.exact", value=float(found.exact), margin=float(limits.exact), n=sets.gen.n)
