"""Evidence on plain facts about the new release, and on copies of training samples."""

from __future__ import annotations

from collections.abc import Iterator

from finc_eval.core.run import Run
from finc_eval.core.words import percent
from finc_eval.embeddings.base import CachedEmbeddings
from finc_eval.embeddings.repeats import share_of_repeats
from finc_eval.gates.evidence import Evidence, Fact, Missing
from finc_eval.gates.policy import BasicLimits, CopyingLimits
from finc_eval.gates.sets import GEN, REF, GateSets
from finc_eval.gates.shares import GainedShare, TwoCounts
from finc_eval.memorization.audit import NearTraining
from finc_eval.memorization.result import AUDIT_ALPHA
from finc_eval.samples.profile import unlike_encodings

NO_SAMPLES = "embeddings alone do not say how samples were read: pass a folder, or what extract wrote"
"""The reason why an array has no facts about files."""


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
        share = share_of_repeats(gen, run)
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
        for name, margin in (("near", limits.near), ("exact", limits.exact)):
            if margin is not None:
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
