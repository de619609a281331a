"""Gate on a private reference: a release against its baseline, by their distances from private records."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from finc_eval.core.errors import UsageError
from finc_eval.core.marks import text_digest
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import plain
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature
from finc_eval.core.words import figure, join_words, plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.opened import OpenedSet, Sets
from finc_eval.embeddings.opening import open_embeddings
from finc_eval.embeddings.recipe import ARRAY_SPACE
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.estimates.retraining import SAMPLING_ONLY
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.gates.baseline import History, samples_of
from finc_eval.gates.causes import find_findings
from finc_eval.gates.evidence import LimitEvidence, Normal, Side, round_up
from finc_eval.gates.facts.tables import PrivateLimits
from finc_eval.gates.first_policy import Proposal, policy_text
from finc_eval.gates.gate import basic_evidence, shown_limits
from finc_eval.gates.kind_shares import KindEvidence
from finc_eval.gates.policy import Policy
from finc_eval.gates.rule import family_sentence, judge, overall_of, too_fine
from finc_eval.gates.sets import ANCHOR, BASELINE, GEN, REF, GateSets
from finc_eval.gates.verdict import FIRST, Verdict
from finc_eval.numerics.inference import ALPHA, POWER, upper_quantile
from finc_eval.private.reference.board import NOISE_COVERED
from finc_eval.private.reference.mean_distance import (
    NoisyMean,
    SampleMean,
    apart,
    compared,
    detected_beyond,
    error_unchanged,
    interval,
    squared_distance,
)
from finc_eval.private.reference.result import DISTANCE_KEY
from finc_eval.private.reference.sketch import PrivateSketch
from finc_eval.sketches.opening import SetInput

FARTHER = "private.farther"
TABLES = ("private", "basics")  # tables of a policy that a private reference allows
OF_SAMPLES = ("copies", "membership")  # limits of [basics] that need samples of the reference

BLIND = (
    "the reference is a private sketch ({}): looks, kinds, copies and metrics need samples of the reference, and none "
    "of them was judged"
)


@dataclass(frozen=True, kw_only=True)
class PrivateDistance(LimitEvidence):
    """Distance of a release from private records, with the bounds of a score (`mean_distance.interval`)."""

    ref: NoisyMean
    gen: SampleMean

    def bound(self, side: Side, level: float, factor: float = 1.0) -> float:
        """Return an end of the interval, both of whose ends have this level."""
        more = replace(self.gen, n=max(round(self.gen.n * factor), 2))
        # More samples are taken to show the same distance.
        shift = 0.0 if factor == 1 else self.value - squared_distance(self.ref, more)
        low, high = interval(self.ref, more, 1 - 2 * level)
        return shift + (low if side == "low" else high)

    def detectable(self, level: float) -> float | None:
        """Return the MMD² whose lower bound is beyond the margin with probability 0.8."""
        return detected_beyond(self.ref, self.gen, self.margin, upper_quantile(level), upper_quantile(1 - POWER))


def gate_privately(
    sketch: PrivateSketch,
    gen: object,
    baselines: Sequence[object],
    anchor: object | None,
    policy: Policy,
    history: History | None,
    first: bool,
    extractor: AnyExtractor,
    run: Run | None,
) -> Verdict:
    """Judge a release by its distance from private records, and by plain facts; see `gate`.

    Raises:
        UsageError: the policy has limits that need samples of the reference, or there are several baselines.
        IncompatibleError: a set comes from another extractor than the sketch, or than the policy's.
    """
    run = Run.of(run)
    check_policy(policy)
    if len(baselines) > 1:
        raise UsageError(f"against a private sketch, a release has one baseline, got {len(baselines)}: pass one")
    old = {BASELINE: baselines[0]} if baselines else {}
    given = {GEN: gen, **old} | ({} if anchor is None else {ANCHOR: anchor})
    opened = open_embeddings({label: samples_of(each) for label, each in given.items()}, extractor, run, [sketch.space])
    policy.check_space(sketch.space)
    sets = _as_gate_sets(opened, given, extractor)
    evidence = [*distance_evidence(sets, sketch, policy.private, run)] if policy.private else []
    evidence += basic_evidence(sets, policy.basics, run) if policy.basics else ()
    judged = judge(evidence, policy.alpha, policy.interim)
    shown = shown_limits(judged, [KindEvidence(limit) for limit in evidence])
    limits = tuple(limit for limit, _ in shown)
    infos = sets.opened.infos | {REF: SetInfo("private reference", None, sketch.m, sketch.digest, from_sketch=True)}
    guarantees = join_words([f"({each.epsilon:g}, {each.delta:g})-DP" for each in sketch.guarantees])
    notes = [*too_fine(evidence, policy.alpha, policy.interim), *[FIRST] * first]
    notes += () if history is None else history.notes_on(limits, sketch.digest)
    return Verdict(
        overall="pass" if first and not limits else overall_of([limit.verdict for limit in limits]),
        limits=limits,
        family=family_sentence(judged, policy.alpha, policy.interim),
        noise=NOISE_COVERED.format(SAMPLING_ONLY),
        first=first,
        distances=(),
        scores={},
        baseline=None if history is None else history.latest.checksum,
        policy=policy,
        sets=infos,
        signature=_signature(opened, sketch, policy),
        warnings=(BLIND.format(guarantees), *notes),
        findings=find_findings(shown, [], sets),
        provenance=Provenance.here(run.device),
    )


def check_policy(policy: Policy) -> None:
    """Raise UsageError for limits that need samples of the reference."""
    others = [name for name in policy.limited if name not in TABLES]
    others += [name for name in ("groups", "pairs") if getattr(policy, name) is not None]
    basics = policy.basics.given if policy.basics else {}
    others += [f"basics.{name}" for name in basics if name in OF_SAMPLES]
    if others:
        raise UsageError(
            f"the reference is a private sketch, which limits of the tables private and basics are held against: leave "
            f"out {join_words(others)}, or judge by samples of a reference"
        )


def first_private_policy(
    sketch: PrivateSketch, baselines: Sequence[object], groups: str | None, extractor: AnyExtractor, run: Run | None
) -> str:
    """Return a policy as TOML with the floor of each limit, which a release like the baseline keeps at 95 %."""
    check_policy(Policy(private=PrivateLimits(farther=1.0), groups=groups))
    opened = open_embeddings({BASELINE: baselines[0]}, extractor, Run.of(run), [sketch.space])[BASELINE]
    ref, old = sketch.noisy_mean, sketch.summarize(opened, run=run)
    value, (_, high) = squared_distance(ref, old), interval(ref, old, 1 - ALPHA)
    half = upper_quantile(ALPHA) * error_unchanged(ref, old, old.n)
    floors = {DISTANCE_KEY: value + 2 * (high - value), FARTHER: 2 * half}
    about = {
        DISTANCE_KEY: f"largest MMD² from the private records; the baseline has {figure(value, '.2g')}",
        FARTHER: "MMD² by which a release may be farther from them than its baseline",
    }
    lines: list[str | Proposal] = [
        f"# For {plural(old.n, 'sample')} of a release and a private sketch of {sketch.m:,} records; floors are what "
        "an unchanged release keeps with probability 0.95.",
        f"# They cover {SAMPLING_ONLY}.",
    ]
    if not sketch.space.startswith(ARRAY_SPACE):
        lines.append(Proposal("extractor", sketch.space, "that the limits are for"))
    for key, floor in floors.items():
        said = f"{about[key]}: floor {figure(floor, '.2g')} at this n"
        lines.append(Proposal(key, round_up(floor), said))
    return policy_text(lines)


def distance_evidence(
    sets: GateSets, sketch: PrivateSketch, limits: PrivateLimits, run: Run
) -> Iterator[LimitEvidence]:
    """Yield the evidence on the distance of the release, and on how much farther it is than each older release."""
    older = {**sets.baselines, **({} if sets.anchor is None else {ANCHOR: sets.anchor})}
    passes = {GEN: sets.gen, **(older if limits.farther is not None else {})}
    runs = run.over("score", [each.n for each in passes.values()])
    samples = {
        label: sketch.summarize(embeddings, run=each)
        for (label, embeddings), each in zip(passes.items(), runs, strict=True)
    }
    ref, gen = sketch.noisy_mean, samples.pop(GEN)
    if limits.distance is not None:
        value = squared_distance(ref, gen)
        yield PrivateDistance(name=DISTANCE_KEY, value=value, margin=limits.distance, n=gen.n, ref=ref, gen=gen)
    if limits.farther is not None:
        for label, sample in samples.items():
            found, error = apart(*compared(ref, (gen, sample))), error_unchanged(ref, sample, gen.n)
            name = FARTHER if label == BASELINE else f"{FARTHER}-{label}"
            yield Normal.of(found, name=name, margin=limits.farther, n=gen.n, unchanged=0.0, error_unchanged=error)


def _as_gate_sets(opened: Mapping[str, Embeddings], given: Mapping[str, object], extractor: AnyExtractor) -> GateSets:
    """Return the sets as a gate holds them; the release stands for the reference, of which no sample is known."""
    sets: Sets[SetInput] = Sets(
        {label: OpenedSet(label, embeddings, given=given[label]) for label, embeddings in opened.items()}
    )
    old = {label: embeddings for label, embeddings in opened.items() if label == BASELINE}
    return GateSets(opened[GEN], old, opened.get(ANCHOR), opened[GEN], sets, extractor, (), tuple(old))


def _signature(opened: Mapping[str, Embeddings], sketch: PrivateSketch, policy: Policy) -> Signature:
    sizes = [*(embeddings.n for embeddings in opened.values()), sketch.m]
    of_policy = text_digest(json.dumps(plain(policy), sort_keys=True))[:12]
    fields = (("policy", of_policy), ("kinds", "none"), ("private", sketch.digest[:12]), ("alpha", f"{policy.alpha:g}"))
    return Signature.of(Verdict.type_name, sizes, sketch.space, *fields, ("interim", str(policy.interim)))
