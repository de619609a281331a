"""`gate`: may a release replace the one before it? The pipeline, from sets and a policy to a verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from finc_eval.core.marks import text_digest
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import plain
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature
from finc_eval.extractors.settings import AnyExtractor
from finc_eval.gates.basics import basic_evidence, copying_evidence
from finc_eval.gates.evidence import Evidence
from finc_eval.gates.kinds import KindEvidence, kind_evidence
from finc_eval.gates.policy import Policy
from finc_eval.gates.retraining import MIN_REPLICATES, SAMPLING_ONLY
from finc_eval.gates.rule import Judged, family_sentence, judge, overall_of
from finc_eval.gates.scores import score_evidence
from finc_eval.gates.sets import GateSets
from finc_eval.gates.verdict import Limit, Verdict
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
    extractor: AnyExtractor = None,
    run: Run | None = None,
) -> Verdict:
    """Judge whether a new release may replace the one before it.

    Each limit of the policy is held against an interval: a limit *held* if all of its interval is within the margin,
    and *regressed* if all of it is beyond; everything else is undecided, and says how many samples would decide it.
    Nothing that is missing passes (docs/gate.md).

    Args:
        gen: samples of the new release: array or tensor of embeddings (n, d), `EmbeddingSet`, `EmbeddingCache`,
            `Sketch`, the path of a file of one, or the path of samples, which are embedded first.
        baseline: samples of the release before, in the same forms; or a list of them, of the same model trained
            several times. From three on, the noise of training is measured.
        ref: the reference.
        policy: a `Policy`, a table of its fields, or the path of a TOML file.
        anchor: samples of an older release. All limits on differences are held against it, too, so that many releases
            that lose a little each do not pass for ever.
        train: all samples that the new release was trained on, for limits on copying; the reference must then be
            samples that it has not seen.
        extractor: how to embed sets of samples; default: the extractor behind the other sets.
        run: device, portions and progress.

    Raises:
        UsageError: the policy limits nothing, or a value is out of range.
        DataError: a set or the policy cannot be read, or has too few samples.
        IncompatibleError: the sets come from unlike extractors.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets()
        >>> fe.gate(1 - gen, gen, ref, {"kinds": {"new": 0.1, "level": 4}}).overall  # white on black is new
        'regression'
    """
    policy, run = Policy.of(policy), run or Run()
    baselines = list(baseline) if isinstance(baseline, list | tuple) else [baseline]
    sets = GateSets.open(gen, baselines, ref, policy.groups, run, anchor=anchor, extractor=extractor)
    kinds: list[KindEvidence] = []
    digest, warnings = "none", sets.warnings
    if policy.kinds:
        kinds, division = kind_evidence(sets, policy.kinds, policy.seed, run)
        digest = division.digest
        warnings += division.hidden(policy.kinds.lose or 0.0, policy.kinds.min_share)
    others: list[Evidence] = []
    if policy.metrics:
        others += score_evidence(sets, policy.metrics, policy.alpha / policy.looks, run)
    if policy.copying:
        others += copying_evidence(sets, policy.copying, train, run)
    if policy.basics:
        others += basic_evidence(sets, policy.basics, run)
    shown = [*kinds, *(KindEvidence(one, {}, {}) for one in others)]
    evidence = [one.evidence for one in shown]
    judged = judge(evidence, policy.alpha, policy.looks)
    return Verdict(
        overall=overall_of([one.verdict for one in judged]),
        limits=tuple(_limit(one, part) for one, part in zip(judged, shown, strict=True)),
        family=family_sentence(evidence, policy.alpha, policy.looks),
        noise=noise_sentence(len(baselines)),
        policy=policy,
        sets=sets.infos,
        signature=_signature(sets, policy, digest),
        warnings=warnings,
        provenance=Provenance.here(run.device),
    )


def noise_sentence(replicates: int) -> str:
    """Say which noise the intervals cover."""
    if replicates < MIN_REPLICATES:
        return SAMPLING_ONLY
    return f"the noise of sampling, and that of training, from {replicates} replicates of the baseline"


def _limit(judged: Judged, shown: KindEvidence) -> Limit:
    evidence, missing = judged.evidence, judged.verdict == "missing"
    return Limit(
        name=evidence.name,
        verdict=judged.verdict,
        value=None if missing else evidence.value,
        interval=judged.interval,
        margin=evidence.margin,
        harm=evidence.harm,
        detectable=judged.detectable,
        needed=judged.needed,
        note=evidence.note,
        shares=shown.shares,
        examples=shown.examples,
    )


def _signature(sets: GateSets, policy: Policy, digest: str) -> Signature:
    """Return the signature: the policy by its digest, and the kinds by theirs."""
    opened: Sequence[Any] = list(sets.all.values())
    fields = (("policy", policy_digest(policy)), ("kinds", digest), ("alpha", f"{policy.alpha:g}"))
    looks = (("looks", str(policy.looks)), ("groups", policy.groups or "videos"), ("seed", str(policy.seed)))
    return Signature.of(Verdict.type_name, [one.n for one in opened], opened[0].space, *fields, *looks)


def policy_digest(policy: Policy) -> str:
    """Return 12 digits that tell two policies apart."""
    return text_digest(json.dumps(plain(policy), sort_keys=True))[:12]
