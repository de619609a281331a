"""`gate`: may a release replace the release before it? The pipeline, from sets and a policy to a verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from finc_eval.core.errors import UsageError
from finc_eval.core.marks import text_digest
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import plain
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.gates.history import History, is_history, samples_of
from finc_eval.gates.kinds import KindEvidence
from finc_eval.gates.limits import gather_evidence, stages_of
from finc_eval.gates.policy import Policy
from finc_eval.gates.retraining import MIN_REPLICATES, SAMPLING_ONLY, TRAINING_TOO
from finc_eval.gates.rule import Judged, family_sentence, judge, overall_of, too_fine
from finc_eval.gates.sets import GEN, REF, GateSets
from finc_eval.gates.verdict import FIRST, Limit, Verdict
from finc_eval.numerics.precision import arithmetic


@arithmetic("float32")
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
) -> Verdict:
    """Judge whether a new release may replace the release before it.

    Each limit of the policy is held against an interval: a limit *held* if all of its interval is within the margin,
    *improved* if all of it is also better than no change, and *regressed* if all of it is beyond; everything else is
    undecided, and says how many samples would decide it.
    Nothing that is missing passes (docs/gate.md).

    Args:
        gen: samples of the new release: array or tensor of embeddings (n, d), `EmbeddingSet`, `EmbeddingCache`,
            `Sketch`, the path of a file of these, or the path of samples, which are embedded first.
        baseline: samples of the release before, in the same forms; or a list of them, of the same model trained several
            times. From three on, the noise of training is measured. The folder of a history stands for its latest
            baseline, with its first baseline as the anchor; the folder of a bundle for that baseline.
        ref: the reference.
        policy: a `Policy`, a table of its fields, or the path of a TOML file.
        anchor: samples of an older release. All limits on differences are also held against it, so that many releases
            that lose a little each do not pass for ever.
        train: all samples that the new release was trained on, for limits on copying; the reference must then be
            samples that it has not seen.
        first: whether this is the first release, without a baseline: limits on differences are left out, and
            all outputs say so.
        extractor: how to embed sets of samples; default: the extractor behind the other sets.
        run: device, portions and progress.

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
    policy = Policy.of(policy)
    history = History.open(str(baseline)) if is_history(baseline) else None
    if history is not None and anchor is None and history.anchor is not None:
        anchor = history.anchor.samples
    if first and history is not None:
        raise UsageError(f"{history.folder} has a first baseline already: compare the release with it, without first")
    older = baseline if history is None else history.latest.samples
    baselines = [] if first else list(older) if isinstance(older, list | tuple) else [older]
    if not baselines and not first:
        raise UsageError("the gate needs a baseline to compare with: pass the release before")
    run = Run.of(run).planned(*stages_of(policy, 1 + len(baselines) + (anchor is not None)))
    sets = GateSets.open(
        samples_of(gen),
        [samples_of(one) for one in baselines],
        samples_of(ref),
        policy.groups,
        run,
        anchor=samples_of(anchor),
        pairs=policy.pairs,
        extractor=extractor,
    )
    policy.check_space(sets.space)
    found = gather_evidence(sets, policy, train, run, None if history is None else history.kinds_of(sets.space))
    evidence = [one.evidence for one in found.all]
    limits = shown_limits(judge(evidence, policy.alpha, policy.looks), found.all)
    limiting = [one.evidence for one in found.all if one.above is None]
    fine = too_fine(limiting, policy.alpha, policy.looks)
    warnings = [*_same_samples(sets), *sets.warnings, *found.warnings, *fine, *([FIRST] if first else [])]
    if history is not None:
        warnings += history.never_fired(limits)
        if history.latest.verdict.sets[REF].digest != sets.infos[REF].digest:
            warnings.append("the baseline was promoted with another reference")
    return Verdict(
        overall="pass" if first and not limits else overall_of([one.verdict for one in limits]),
        limits=limits,
        family=family_sentence(evidence, policy.alpha, policy.looks),
        noise=SAMPLING_ONLY if len(baselines) < MIN_REPLICATES else TRAINING_TOO.format(len(baselines)),
        first=first,
        distances=found.distances,
        scores=found.scores,
        baseline=None if history is None else history.latest.checksum,
        policy=policy,
        sets=sets.infos,
        signature=_signature(sets, policy, "+".join(dict.fromkeys(found.digests)) or "none"),
        warnings=tuple(warnings),
        tree=found.tree,
        provenance=Provenance.here(run.device),
    )


def shown_limits(judged: Sequence[Judged], shown: Sequence[KindEvidence]) -> tuple[Limit, ...]:
    """Return the limits, and the largest other kinds that regressed."""
    beyond = {one.evidence.name for one in judged if one.verdict == "regressed"}
    return tuple(
        Limit(
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
        for one, part in zip(judged, shown, strict=True)
        if part.above is None or (part.evidence.name in beyond and not part.above & beyond)
    )


def _same_samples(sets: GateSets) -> list[str]:
    """Return a sentence about each two sets that are the same; only an anchor may equal the baseline."""
    pairs = combinations((GEN, *sets.baselines, REF), 2)
    same = [(one, other) for one, other in pairs if sets.infos[one].digest == sets.infos[other].digest]
    return [
        f"{one} and {other} are the same samples, which shows nothing: pass another set as {one}" for one, other in same
    ]


def _signature(sets: GateSets, policy: Policy, digest: str) -> Signature:
    """Return the signature: the policy by its digest, and the kinds by theirs."""
    sizes = [one.n for one in sets.all.values()]
    of_policy = text_digest(json.dumps(plain(policy), sort_keys=True))[:12]
    fields = (("policy", of_policy), ("kinds", digest), ("alpha", f"{policy.alpha:g}"))
    groups = (("groups", policy.groups),) if policy.groups else ()
    last = ("looks", str(policy.looks)), *groups, ("seed", str(policy.seed))
    return Signature.of(Verdict.type_name, sizes, sets.space, *fields, *last)
