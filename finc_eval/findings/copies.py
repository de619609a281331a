"""Copies of the reference among the samples of a set, exact and near, as a finding: the same words in all verbs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.progress import silent
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.repeats import counts_by_hash
from finc_eval.findings.causes import Held, Members
from finc_eval.findings.finding import Finding
from finc_eval.naming.looks import MOST_EXAMPLES
from finc_eval.naming.measured import looked_rows
from finc_eval.naming.repeated import COPIES, NEAR_COPIES, REPEATED, SOME_NEAR, digests_of, pair_rows
from finc_eval.numerics.families import level_of_each
from finc_eval.numerics.hash_counts import Counts, HashCounts, drawable

COPIED = 0.001
"""Level of copies, which a headline adds to all else that it says; `tests/findings/test_rates.py` measures the rate."""

EACH = level_of_each(COPIED, 2)  # level of exact and of near copies

DRAWN_VALUES = 500  # values that random parts are drawn of: if all are copies, chance gives as many in none of 10^100


@dataclass(frozen=True, eq=False)
class CopiedSamples:
    """Samples of "gen" that equal samples of "ref", or nearly do.

    Attributes:
        name: what they are called.
        share: share of "gen", of near copies the least share.
        share_ref: share of "ref" that equals another sample of it.
        p_value: p-value of "both sets are draws of one law"; 1 for hardly any copies.
        is_all: whether both are one set: all samples of each equal samples of the other.
        members: which of the samples looked at are copies, and which of the reference are repeated in it, by set.
        examples: ids of copies, and of originals, by set.
    """

    name: str
    share: float
    share_ref: float
    p_value: float
    is_all: bool
    members: Members
    examples: dict[str, tuple[str, ...]]


def measure_copies(
    sets: Mapping[str, Embeddings], run: Run | None = None, blocks: Mapping[str, NDArray[np.int64]] | None = None
) -> CopiedSamples:
    """Find the samples of "gen" that equal samples of "ref", or nearly do.

    Samples are equal by their pixels, where they are known, or else by their embeddings. Draws of a law with few values
    repeat each other, too: the share of the reference is of the samples that equal another sample of it. Near copies
    are near pairs across the sets, if there are more than between random parts of both.

    Args:
        sets: embeddings, "gen" and "ref".
        run: run, whose device is used.
        blocks: block of each sample of paired sets, by label.
    """
    digests = digests_of(sets, replace(Run.of(run), progress=silent))
    counts = counts_by_hash(sets, digests)
    values, own, others = counts["gen"].beside(counts["ref"])
    shares = _share(own, others > 0), _share(others, others > 1)
    rows = {label: looked_rows(one) for label, one in sets.items()}
    known = {"gen": np.union1d(values[others > 0], digests["ref"]), "ref": values[others > 1]}
    members = {label: np.isin(digests[label][looked], known[label]) for label, looked in rows.items()}
    share, p_value = shares[0], p_of_copies(counts["gen"], counts["ref"]) if shares[0] >= REPEATED else 1.0
    is_all = bool(own.all() and others.all())
    is_exact, near = p_value <= EACH, pair_rows(sets, rows, blocks, run)
    is_near = near is not None and near.pairs.copies_p <= EACH and near.pairs.least >= REPEATED
    if near is not None and is_near:
        marked = {label: near.mark(label, near.pairs.copied) for label in sets}
        fresh = marked["gen"] & ~members["gen"]
        share += near.pairs.least * float(fresh.sum() / max(marked["gen"].sum(), 1))
        members = {label: has | marked[label] for label, has in members.items()}
        p_value = min(p_value, near.pairs.copies_p)
    name = COPIES if not is_near else SOME_NEAR if is_exact else NEAR_COPIES
    return CopiedSamples(name, share, shares[1], p_value, is_all, members, _show(sets, members, digests))


def _show(
    sets: Mapping[str, Embeddings], members: Members, digests: Mapping[str, NDArray[np.uint64]]
) -> dict[str, tuple[str, ...]]:
    """Return ids of copies among the samples looked at, and of their originals where these are equal, by set."""
    rows = looked_rows(sets["gen"])[members["gen"]][:MOST_EXAMPLES]
    originals = np.flatnonzero(np.isin(digests["ref"], digests["gen"]))[:MOST_EXAMPLES]
    return {"gen": sets["gen"].ids_at(rows), "ref": sets["ref"].ids_at(originals)}


def hold_copies(
    sets: Mapping[str, Embeddings], run: Run | None = None, blocks: Mapping[str, NDArray[np.int64]] | None = None
) -> list[Held]:
    """Return the copies of "ref" in "gen" as a finding; none if there are none beyond chance, or both are one set."""
    copies = measure_copies(sets, run, blocks)
    if copies.p_value > EACH or copies.is_all:
        return []
    found = Finding(
        copies.name, "copy", False, copies.share, copies.share_ref, copies.p_value, ids=copies.examples["gen"]
    )
    return [Held(found, copies.members, copies.name, None, None, copies.examples)]


def p_of_copies(gen: HashCounts, ref: HashCounts) -> float:
    """Return the p-value of "both sets are draws of one law, which may repeat its values", from the numbers of values.

    Under it, the reference is a random part of all samples. The samples of the other part that equal a sample of the
    reference are counted for 7 999 random parts, of the values that come more than once. Of sketches, the samples with
    the values that both have counted take the place of all samples.
    """
    own, others = drawable(*gen.beside(ref)[1:])
    n, m = int(own.sum()), int(others.sum())
    several = np.flatnonzero(own + others > 1)[:DRAWN_VALUES]  # in the order of digests: any part of them
    own, others = own[several], others[several]
    rest = n + m - int((own + others).sum())
    draws = np.random.default_rng(0).multivariate_hypergeometric([*(own + others), rest], m, 7999, "marginals")
    drawn = draws[:, :-1]
    by_chance = np.where(drawn > 0, own + others - drawn, 0).sum(1)
    return float((1 + np.count_nonzero(by_chance >= own[others > 0].sum())) / (1 + len(drawn)))


def _share(counts: Counts, chosen: NDArray[np.bool_]) -> float:
    """Return the share of the samples that have the chosen values."""
    return float(counts[chosen].sum() / max(1, counts.sum()))
