"""Why one set has more of a direction: frequency or appearance, and which directions show one kind of sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.record import Record
from finc_eval.embeddings.base import Embeddings
from finc_eval.naming.evidence import MOST, TRAIT, Name
from finc_eval.naming.properties import OTHERS_PER_SET, Indices, smallest_hashes
from finc_eval.naming.questions import Counts, enrichment_p
from finc_eval.numerics.inference import ALPHA, holm, hypergeometric_masses

CauseKind = Literal["frequency", "appearance", "both"]

NEIGHBORS = 10  # nearest samples of the other set that are looked at for each member

LIFT = 3.0
"""Times as often as by chance that members of linked directions are near each other.

Chosen on four draws of digits, one of which was slanted, blurred or thickened in gen. In ten other draws, 17 of 19
linked pairs were of one digit, and the altered digit was linked in 8."""


@dataclass(frozen=True)
class LookCause(Record):
    """Cause of a direction: how often its labels are drawn, what samples of a label look like, or both.

    The difference of the shares of members is the sum of two parts (Kitagawa 1955): Σ (p_l − q_l)·(g_l + r_l)/2 from
    the frequencies p_l and q_l of the labels, and Σ (p_l + q_l)/2·(g_l − r_l) from the shares g_l and r_l of members
    among the samples of a label.

    Attributes:
        kind: "frequency", "appearance" or "both"; None if neither is significant.
        labels: labels that make most of the members.
        frequency_p: p-value of "these labels are not more frequent in the set that has more" (Fisher's exact test,
            times the number of labels).
        appearance_p: p-value of "given the label, members are not more frequent in that set" (exact stratified test).
            Both p-values are adjusted for each other (Holm).
    """

    kind: CauseKind | None
    labels: tuple[str, ...]
    frequency_p: float
    appearance_p: float


def frequency_or_appearance(labels: Mapping[str, Sequence[str]], members: Mapping[str, NDArray[np.int64]]) -> LookCause:
    """Find out why one of two sets has more of a direction.

    Members must come from directions and thresholds that were chosen on other samples, and samples must be independent.
    A missing label is ""; the first set is the one that has more.
    """
    known = sorted({label for mine in labels.values() for label in mine} - {""})
    samples, inside = np.zeros((2, 2, len(known)), np.int64)
    for row, (name, mine) in enumerate(labels.items()):
        number = np.searchsorted(known, mine) if known else np.zeros(len(mine), np.int64)
        number[[not label for label in mine]] = len(known)
        samples[row] = np.bincount(number, minlength=len(known) + 1)[:-1]
        inside[row] = np.bincount(number[members[name]], minlength=len(known) + 1)[:-1]
    if not samples.sum(1).all() or not inside.any():
        return LookCause(None, (), 1.0, 1.0)
    # The fewest labels that make at least half of the members.
    counts = inside.sum(0)
    order = np.argsort(-counts, kind="stable")
    largest = order[: int(np.searchsorted(np.cumsum(counts[order]), counts.sum() / 2)) + 1]
    more, less = samples[:, largest].sum(1)
    frequency_p = float(enrichment_p(more, samples[0].sum(), less, samples[1].sum())) * len(known)
    tests = torch.tensor([min(frequency_p, 1.0), stratified_p(inside, samples)], dtype=torch.float64)
    (often_p, looks_p), (often, looks) = holm(tests).tolist(), difference_parts(inside, samples)
    # 0.2: part of the difference below which a significant cause is not called one.
    is_often, is_looks = (
        p_value <= ALPHA and part >= 0.2 * (often + looks) for p_value, part in ((often_p, often), (looks_p, looks))
    )
    kinds: tuple[CauseKind | None, ...] = (None, "appearance", "frequency", "both")
    return LookCause(kinds[2 * is_often + is_looks], tuple(known[label] for label in largest), often_p, looks_p)


def stratified_p(members: Counts, samples: Counts) -> float:
    """Compute the exact one-sided p-value of "the first set does not have more members, given the label".

    The number of members in the first set is a sum of independent hypergeometric numbers, one for each label, given
    the margins: the exact form of Cochran's, Mantel's and Haenszel's test. Both counts have the shape (2, labels).
    """
    distribution, lowest = np.ones(1), 0
    for inside, total, first in zip(members.sum(0), samples.sum(0), samples[0], strict=True):
        low, masses = hypergeometric_masses(int(inside), int(first), int(total - first))
        distribution = np.convolve(distribution, masses)
        lowest += low
    return float(min(distribution[max(0, int(members[0].sum() - lowest)) :].sum(), 1.0))


def difference_parts(members: Counts, samples: Counts) -> tuple[float, float]:
    """Return the parts of the difference of the shares of members: of frequency and of appearance (Kitagawa 1955).

    Both arguments count by set and label, shape (2, labels): members, and all samples.
    """
    frequency = samples / samples.sum(1, keepdims=True)
    with np.errstate(invalid="ignore"):
        rate = members / samples
    # A label that a set lacks cannot look different.
    rate = np.where(np.isnan(rate), rate[::-1], rate)
    by_frequency = ((frequency[0] - frequency[1]) * rate.mean(0)).sum()
    by_appearance = (frequency.mean(0) * (rate[0] - rate[1])).sum()
    return float(by_frequency), float(by_appearance)


OWN, OTHER = {"over": "gen", "under": "ref"}, {"over": "ref", "under": "gen"}
"""The set that has more of a direction of each role, and the one that has less."""


def look_different(
    names: Sequence[Name],
    roles: Sequence[str],
    members: Sequence[Mapping[str, Indices]],
    sets: Mapping[str, Embeddings],
) -> list[int | None]:
    """Link over- and under-represented directions that show the same kind of sample.

    Two directions show one kind if the strongest label, word or class of each describes most members of the other. If
    these do not decide, two directions show one kind if each is what the other set has in place of the other: of the
    samples of the other set that are nearest to the members of one direction, the members of the other direction are
    three times as many as by chance, both ways. `members` in the set that has more of a direction are used; the result
    is the number of the linked direction, or None.
    """
    places = [np.asarray(rows.get(OWN[role], ()), np.int64) for role, rows in zip(roles, members, strict=True)]
    pools = {}
    for name, samples in sets.items():
        mine = [found for role, found in zip(roles, places, strict=True) if OWN[role] == name]
        pools[name] = np.unique(np.concatenate([smallest_hashes(samples, OTHERS_PER_SET), *mine]))
    rows = {name: sets[name].rows_at(pool) for name, pool in pools.items()}
    lifts = np.zeros((len(places), len(places)))
    for i, role in enumerate(roles):
        own_rows, pool = rows[OWN[role]], pools[OTHER[role]]
        at = own_rows[torch.from_numpy(np.searchsorted(pools[OWN[role]], places[i])).to(own_rows.device)]
        distances = torch.cdist(at, rows[OTHER[role]])
        nearest = pool[distances.topk(min(NEIGHBORS, len(pool)), largest=False).indices.cpu().numpy()]
        for j in range(len(places)):
            if roles[j] != role and len(places[i]) and len(places[j]):
                lifts[i, j] = np.isin(nearest, places[j]).mean() * len(pool) / len(places[j])
    lifts = np.minimum(lifts, lifts.T)  # the smaller one of both ways
    for i, j in product(range(len(names)), repeat=2):
        if roles[i] != roles[j] and (same := same_kind(names[i], names[j])) is not None:
            lifts[i, j] = LIFT + lifts[i, j] if same else 0
    return [int(row.argmax()) if row.max() >= LIFT else None for row in lifts]


def same_kind(one: Name, other: Name) -> bool | None:
    """Return whether the first source that names both directions says the same of them; None without such a source.

    The strongest value of each must describe most members of the other too: classes such as tusker and African elephant
    come in either order.
    """
    values, others = _values_of_most(one), _values_of_most(other)
    shared = next((source for source in values if values[source] and others.get(source)), None)
    return None if shared is None else values[shared][0] in others[shared] and others[shared][0] in values[shared]


def _values_of_most(name: Name) -> dict[str, list[str]]:
    """Return, by source, the values that most members have, the strongest first; traits are left out."""
    found: dict[str, list[str]] = {}
    for part in name.evidence:
        if part.source != TRAIT:
            found.setdefault(part.source, []).extend([part.value] if part.share_members >= MOST else [])
    return found
