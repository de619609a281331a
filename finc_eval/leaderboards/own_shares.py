"""Shares of one model, from kinds of its samples and the reference alone: other models change none of them.

Ranks compare models, and do so by the kinds that all sets of a board share (`finc_eval/leaderboards/shares.py`). The
numbers of a model are about it alone: its samples and the reference are divided into kinds of their own, blind to which
set a sample is from, as `compare` divides two sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from finc_eval.core.progress import silent
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature
from finc_eval.embeddings.base import Embeddings
from finc_eval.estimates.error_source import ErrorSource
from finc_eval.estimates.estimate import Estimate
from finc_eval.leaderboards.columns import RULES, SHARES, too_few
from finc_eval.leaderboards.measures import Measure
from finc_eval.leaderboards.shares import estimate_unmatched, estimate_unmatched_within, share_estimates
from finc_eval.partitions.blocks import Pairing, designs
from finc_eval.partitions.counts import count, tally_sets
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.partitions.settings import MAIN_LEVEL, REFERENCE
from finc_eval.partitions.tests import EffectiveCounts


def own_shares(
    label: str, model: Embeddings, ref: Embeddings, seed: int, run: Run, pairing: Pairing | None = None
) -> dict[str, Measure]:
    """Return the shares of a model by key; within blocks, such as prompts, for a set of a pairing."""
    run = replace(run, progress=silent)
    kinds = KindTree.of_sets([model, ref], seed, run).pruned(MAIN_LEVEL)
    sets = {label: model, REFERENCE: ref}
    tallies = tally_sets({name: count(samples, kinds, run=run).counts for name, samples in sets.items()})
    own, others = (tally.effective() for tally in tallies.values())
    if pairing is not None:
        unmatched = estimate_unmatched_within(pairing.of(label, REFERENCE), kinds, seed, run)
    else:
        unmatched = estimate_unmatched(own, others, seed, is_design=bool(designs(sets)))
    fields = (("ref", ref.digest[:12]), ("kinds", kinds.digest[:12]))
    return {"unmatched": _kept("unmatched", unmatched, fields), **_counted_shares(own, others, fields)}


def _counted_shares(
    own: EffectiveCounts, ref: EffectiveCounts, fields: tuple[tuple[str, str], ...]
) -> Mapping[str, Measure]:
    """Return the shares that count kinds, chosen by half of either set; a reason for a set of too few samples."""
    reason = too_few([own])
    found = {}
    for key, rule in RULES.items():
        if reason is not None:
            found[key] = Measure(None, None, None, None, False, SHARES[key], reason, Signature(key, fields))
        else:
            (estimate,) = share_estimates(rule, [own.members], ref.members)
            found[key] = _kept(key, estimate, fields)
    return found


def _kept(key: str, estimate: Estimate, fields: tuple[tuple[str, str], ...]) -> Measure:
    """Keep an estimate; what its error owes to the reference is one number, which training runs of a model share."""
    kept = tuple(ErrorSource.of_variance(source.name, source.variance) for source in estimate.sources)
    return Measure.of(replace(estimate, sources=kept), False, SHARES[key], Signature(key, fields))
