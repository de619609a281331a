"""`gate`: may a release replace the release before it? The pipeline, from sets and a policy to a verdict."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, Never, cast

from finc_eval.core.errors import UsageError
from finc_eval.core.marks import text_digest
from finc_eval.core.progress import Stage
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import plain, refuse_unknown
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature
from finc_eval.core.words import percent
from finc_eval.embeddings.base import CachedEmbeddings
from finc_eval.embeddings.needs import Check
from finc_eval.embeddings.opening import training_runs
from finc_eval.embeddings.recipe import ARRAY_SPACE, known_space
from finc_eval.embeddings.repeats import LOOK, share_of_repeats
from finc_eval.estimates.retraining import noise_covered
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.findings.copies import measure_copies
from finc_eval.gates.appearance import gather_on_appearance
from finc_eval.gates.baseline import History, is_history, samples_of
from finc_eval.gates.by_id import by_id_evidence, compare_runs, find_other_pictures
from finc_eval.gates.causes import Suspect, copied_suspect, find_findings, find_suspects
from finc_eval.gates.divisions import DIFFERENCES, MOVED, OF_REF, OF_SETS, ReleaseKinds, name_prompts, tree_of_reference
from finc_eval.gates.evidence import LimitEvidence, Missing, PlainFact
from finc_eval.gates.facts.membership import membership_evidence
from finc_eval.gates.facts.of_private import lacking_sketch, private_part
from finc_eval.gates.facts.parts import find_release_parts
from finc_eval.gates.kind_shares import KindEvidence
from finc_eval.gates.kinds import Gathered, compare_two, gather_on_kinds
from finc_eval.gates.limit import MOVES, Limit
from finc_eval.gates.policy import BasicLimits, CopyingLimits, Policy, SliceLimits
from finc_eval.gates.rule import Judged, family_sentence, judge, overall_of, too_fine
from finc_eval.gates.scores import score_evidence
from finc_eval.gates.sets import GEN, REF, GateSets, find_visible_change, measure_pair, same_samples
from finc_eval.gates.shares import GainedShare, TwoCounts
from finc_eval.gates.verdict import CLEAR, FIRST, ReleaseFinding, Verdict
from finc_eval.measures.metrics import COMPUTE
from finc_eval.memorization.audit import NearTraining
from finc_eval.memorization.settings import AUDIT_ALPHA
from finc_eval.numerics.families import level_of_each
from finc_eval.numerics.precision import arithmetic
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.partitions.placed import ReleaseMap
from finc_eval.same_ids.pairs import PAIRS
from finc_eval.samples.profile import unlike_encodings

NO_SAMPLES = "embeddings alone do not say how samples were read: pass a folder, or what extract wrote"
"""The reason why an array has no facts about files."""


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
        DIFFERENCES: generators > 1 and not kinds,
        "copying": policy.copying,
        Stage.of_parts("duplicates", (LOOK,)): policy.basics and policy.basics.duplicates is not None,
        Stage.of_parts("copies", (LOOK,)): policy.basics and policy.basics.copies is not None,
        PAIRS: policy.by_id,
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
    found, level = Gathered(tree=kinds), level_of_each(policy.alpha, policy.interim)

    def add(part: GateSets, limits: Policy | SliceLimits, run: Run) -> dict[str, dict[str, float]]:
        """Add the evidence on kinds and metrics of these sets, and return their scores."""
        if limits.kinds:
            gather_on_kinds(found, part, limits.kinds, policy.seed, run)
        if not limits.metrics:
            return {}
        evidence, scores = score_evidence(part, limits.metrics, level, run)
        found.others += evidence
        return scores

    found.scores = add(sets, policy, run)
    for name, limits in policy.slices.items():
        part = sets.slice_of(name, limits.column, limits.only, policy.pairs)
        if isinstance(part, str):
            found.others += _lacking(name, limits, part)
        else:
            add(part, limits, run.prefixed(name))
    if policy.copying:
        found.others += copying_evidence(sets, policy.copying, train, run)
    if policy.appearance:
        gather_on_appearance(found, sets, policy.appearance, policy.seed, level, run)
    found.others += lacking_sketch(policy.private)
    if policy.basics:
        found.others += basic_evidence(sets, policy.basics, run)
        found.others += membership_evidence(sets, policy.basics.membership, train, policy.seed, run)
    if policy.by_id and sets.baselines:
        measured, found.answer = compare_runs(sets, found.answer, policy.seed, run)
        found.by_id = measured.answer()
        found.others += by_id_evidence(measured, found.by_id, policy.by_id)
    return found


def _lacking(name: str, limits: SliceLimits, why: str) -> Iterator[LimitEvidence]:
    """Yield the limits on a slice that has too few samples."""
    lacking = {f"kinds.{rule}@{name}": margin for rule, margin in (limits.kinds.given if limits.kinds else {}).items()}
    for metric, limit in limits.metrics.items():
        lacking |= {f"metrics.{metric}@{name} {rule}": wanted for rule, wanted in limit.given.items()}
    for rule, margin in lacking.items():
        yield Missing(name=rule, margin=0.0 if isinstance(margin, str) else margin, note=why)


def basic_evidence(sets: GateSets, limits: BasicLimits, run: Run) -> Iterator[LimitEvidence]:
    """Yield the facts that are limited."""
    info, gen = sets.opened.infos[GEN], sets.gen
    if limits.samples is not None:
        yield PlainFact(name="basics.samples", value=float(gen.n), margin=float(limits.samples), harm="low", n=gen.n)
    if limits.unreadable is not None:
        margin, name = limits.unreadable, "basics.unreadable"
        if isinstance(gen, CachedEmbeddings):
            share = info.unreadable / (info.unreadable + gen.n)
            note = ", ".join(id for id, _ in info.unreadable_examples)
            yield PlainFact(name=name, value=share, margin=margin, n=gen.n, note=note)
        else:
            yield Missing(name=name, margin=margin, note=NO_SAMPLES)
    if limits.duplicates is not None:
        share = share_of_repeats(gen, run.prefixed("duplicates"))
        yield PlainFact(name="basics.duplicates", value=share, margin=limits.duplicates, n=gen.n)
    if limits.copies is not None:
        with run.prefixed("copies").step(LOOK):
            copies = measure_copies({"gen": gen, "ref": sets.ref}, run)
        yield PlainFact(name="basics.copies", value=copies.share, margin=limits.copies, n=gen.n)
    if limits.encodings and sets.baselines:
        old = next(iter(sets.baselines.values()))
        if isinstance(gen, CachedEmbeddings) and isinstance(old, CachedEmbeddings):
            unlike = unlike_encodings(gen.cache.seen_profile, old.cache.seen_profile, ("gen", "the baseline"))
            yield PlainFact(
                name="basics.encodings", value=float(len(unlike)), margin=0.0, n=gen.n, note="; ".join(unlike)
            )
        else:
            yield Missing(name="basics.encodings", margin=0.0, note=NO_SAMPLES)


def copying_evidence(sets: GateSets, limits: CopyingLimits, train: object | None, run: Run) -> Iterator[LimitEvidence]:
    """Yield the evidence on copies of training samples; the reference stands for fresh samples."""
    if train is None:
        for name, margin in limits.given.items():
            note = "pass train, all samples that the generator was trained on"
            yield Missing(name=f"copying.{name}", margin=float(margin), note=note)
        return
    found = NearTraining.of(
        sets.opened[GEN].as_embedded,
        train,
        sets.opened[REF].as_embedded,
        extractor=sets.extractor,
        run=run.prefixed("copying"),
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
        yield PlainFact(name="copying.exact", value=float(found.exact), margin=float(limits.exact), n=sets.gen.n)


@arithmetic()
def gate(
    gen: object,
    baseline: object,
    ref: object,
    policy: Policy | Mapping[str, Any] | str | Path,
    *,
    anchor: object | None = None,
    train: object | None = None,
    first: bool = False,
    extractor: AnyExtractor = None,
    run: Run | None = None,
    **unknown: Never,
) -> Verdict:
    """Judge whether a new release may replace the release before it.

    Each limit of the policy is held against an interval: a limit *held* if all of its interval is within the margin,
    *improved* if all of it is also better than no change, and *regressed* if all of it is beyond. A node of a tree, or
    a look, also regressed if it surely changed and its estimate is beyond the margin. Everything else is undecided, and
    says how many samples would decide it. Nothing that is missing passes (docs/gate.md).

    Args:
        gen: samples of the new release: array or tensor of embeddings (n, d), `EmbeddingSet`, `EmbeddingCache`,
            `Sketch`, the path of a file of these, or the path of samples, which are embedded first.
        baseline: samples of the release before, in the same forms; or a list of them, of the same model trained several
            times. From three on, the noise of training is measured. The folder of a history stands for its latest
            baseline, with its first baseline as the anchor; the folder of a bundle for that baseline.
        ref: the reference; or a private sketch or its path, for limits on the distance from private records.
        policy: a `Policy`, a table of its fields, or the path of a TOML file.
        anchor: samples of an older release. All limits on differences are also held against it, so that many releases
            that lose a little each do not pass for ever.
        train: all samples that the new release was trained on, for limits on copying; the reference must then be
            samples that it has not seen.
        first: whether this is the first release, without a baseline: limits on differences are left out, and
            all outputs say so.
        extractor: how to embed sets of samples; default: the extractor behind the other sets.
        run: device, portions and progress.
        unknown: options that do not exist, which are refused.

    Raises:
        UsageError: the policy limits nothing, or a value is out of range.
        DataError: a set or the policy cannot be read, or has too few samples.
        IncompatibleError: the sets come from unlike extractors, or from another extractor than the policy's.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets()
        >>> fe.gate(1 - gen, gen, ref, {"kinds": {"new": 0.1}}).overall  # white on black is new
        'regression'
    """
    refuse_unknown(unknown, [*signature(gate).parameters][:-1])
    policy = Policy.of(policy)
    history = History.open(str(baseline)) if is_history(baseline) else None
    anchor = history.anchor.samples if anchor is None and history and history.anchor else anchor
    baselines = _baselines(baseline, history, first=first)
    if (judge_by := private_part(ref, "gate_privately")) is not None:
        return cast(Verdict, judge_by(gen, baselines, anchor, policy, history, first, extractor, run))
    run = Run.of(run).planned(*stages_of(policy, 1 + len(baselines) + (anchor is not None)))
    sets = _open_sets(gen, baselines, ref, anchor, policy, extractor, run)
    found = gather_evidence(sets, policy, train, run, None if history is None else history.kinds_of(sets.space))
    judged = judge([one.evidence for one in found.all], policy.alpha, policy.interim)
    shown = shown_limits(judged, found.all)
    findings = findings_of(shown, found, sets, policy.seed, run)  # it places the release on the map, too
    limits = tuple(limit for limit, _ in shown)
    notes = (
        *_notes_on(found, policy),
        *[FIRST] * first,
        *([] if history is None else history.notes_on(limits, sets.opened.infos[REF].digest)),
    )
    return Verdict(
        overall="pass" if first and not limits else overall_of([one.verdict for one in limits]),
        limits=limits,
        family=family_sentence(judged, policy.alpha, policy.interim),
        noise=noise_covered(len(sets.replicates)),
        first=first,
        distances=tuple(found.distances),
        scores=found.scores,
        baseline=None if history is None else history.latest.checksum,
        policy=policy,
        sets=sets.opened.infos,
        signature=_signature(sets, policy, "+".join(dict.fromkeys(found.digests)) or "none"),
        warnings=(*same_samples(sets), *sets.warnings, *notes),
        findings=findings,
        tree=found.tree,
        map=found.map,
        visible=None if findings else found.visible,
        parts=() if found.parts is None else tuple(part for part, _ in found.parts.parts),
        by_id=found.by_id,
        provenance=Provenance.here(run.device),
    )


def _open_sets(
    gen: object,
    baselines: Sequence[object],
    ref: object,
    anchor: object | None,
    policy: Policy,
    extractor: AnyExtractor,
    run: Run,
) -> GateSets:
    """Open the sets of a gate as its policy asks for, and check that they are of its extractor."""
    sets = GateSets.open(
        samples_of(gen),
        [samples_of(baseline) for baseline in baselines],
        samples_of(ref),
        policy.groups,
        run,
        anchor=samples_of(anchor),
        pairs=policy.pairs,
        by_id=policy.by_id is not None,
        columns=policy.columns,
        checks=[policy_space(policy)],
        extractor=extractor,
    )
    policy.check_space(sets.space)
    return sets


def policy_space(policy: Policy) -> Check:
    """Return the check that sets are of the extractor that a policy is for."""
    return lambda sets: policy.check_space(known_space([*(one.space for one in sets.values()), ARRAY_SPACE]))


def _notes_on(found: Gathered, policy: Policy) -> list[str]:
    """Return what to know of the limits, and which are finer than the samples can show."""
    limiting = [one.evidence for one in found.all if one.above is None]
    return [*found.warnings, *too_fine(limiting, policy.alpha, policy.interim)]


def _baselines(baseline: object, history: History | None, *, first: bool) -> list[object]:
    """Return the releases before: the training runs of one model; none of a first release."""
    if first and history is not None:
        raise UsageError(f"{history.folder} has a first baseline already: compare the release with it, without first")
    older = baseline if history is None else history.latest.samples
    baselines = [] if first else training_runs(older)
    if not baselines and not first:
        raise UsageError("the gate needs a baseline to compare with: pass the release before")
    return baselines


def shown_limits(judged: Sequence[Judged], shown: Sequence[KindEvidence]) -> list[tuple[Limit, KindEvidence]]:
    """Return the limits, and the largest other kinds that regressed, each with its evidence."""
    beyond = {one.evidence.name for one in judged if one.verdict == "regressed"}
    kept = [
        (one, part)
        for one, part in zip(judged, shown, strict=True)
        if part.above is None or (part.evidence.name in beyond and not part.above & beyond)
    ]
    return [(_limit_of(one, part), part) for one, part in kept]


def _limit_of(one: Judged, part: KindEvidence) -> Limit:
    return Limit(
        name=one.evidence.name,
        verdict=one.verdict,
        value=None if one.verdict == "missing" else one.evidence.value,
        interval=one.interval,
        margin=one.evidence.margin,
        harm=one.evidence.harm,
        detectable=one.detectable,
        needed=one.needed,
        note=one.evidence.note,
        shares=part.shares,
        examples=part.examples,
    )


def findings_of(
    shown: Sequence[tuple[Limit, KindEvidence]], found: Gathered, sets: GateSets, seed: int, run: Run
) -> tuple[ReleaseFinding, ...]:
    """Return what is wrong with a release, by name, and gather its map; of a first release, nothing was compared."""
    suspects: list[Suspect] = []
    prompts = ""
    broken = {limit.rule for limit, _ in shown if limit.verdict == "regressed"}
    if sets.baselines:
        old = next(iter(sets.baselines))
        answer = found.answer or compare_two(sets, old, seed, run.prefixed(DIFFERENCES))
        changes = ReleaseKinds.of(sets, answer, old, run)
        measured = measure_pair(sets, old, found.pictures)
        found.parts = found.parts or find_release_parts(sets, old, seed, run)
        suspects = find_suspects(sets, answer, changes, old, seed, measured, found.parts, run)
        found.visible = None if suspects else find_visible_change(sets, answer, old, measured, CLEAR, seed, run)
        if found.tree is not None:
            placed = {REF: sets.ref, old: sets.all[old], GEN: sets.gen}
            found.map = ReleaseMap.of(found.tree, placed, changes.kinds, changes.kinds_of, (GEN, old))
        if MOVES in broken:
            prompts = name_prompts(sets, answer, seed, run)
        if "basics.copies" in broken:
            suspects.append(copied_suspect(sets, old, run))
        if found.by_id is None and (others := find_other_pictures(sets, run)):
            suspects.append(Suspect.plain(others, (GEN, old)))
    return find_findings(shown, suspects, sets, prompts, found.by_id)


def _signature(sets: GateSets, policy: Policy, digest: str) -> Signature:
    """Return the signature: the policy by its digest, and the kinds by theirs."""
    sizes = [one.n for one in sets.all.values()]
    of_policy = text_digest(json.dumps(plain(policy), sort_keys=True))[:12]
    fields = (("policy", of_policy), ("kinds", digest), ("alpha", f"{policy.alpha:g}"))
    groups = (("groups", policy.groups),) if policy.groups else ()
    last = ("interim", str(policy.interim)), *groups, ("seed", str(policy.seed))
    return Signature.of(Verdict.type_name, sizes, sets.space, *fields, *last)
