"""Classes that a set has with another look: gray goldfish lie outside the kind of goldfish.

A look moves samples of a class out of their kind, so that the kind seems lost. The extractor's last layer still sees
the class in them. So the samples outside the kind that are most like its class are asked for a look that neither the
kind nor all else has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.words import quote
from finc_eval.embeddings.base import Embeddings
from finc_eval.findings.causes import Held, Members
from finc_eval.findings.finding import Finding
from finc_eval.naming.classes import class_levels, is_class
from finc_eval.naming.evidence import CLASSIFIER, MOST, SUCH_AS
from finc_eval.naming.explained import TAIL, Explained, name_cause
from finc_eval.naming.looks import MOST_EXAMPLES
from finc_eval.naming.measured import MeasuredSets
from finc_eval.naming.questions import enrichment_p
from finc_eval.naming.texture import Array
from finc_eval.numerics.families import bonferroni
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.kind import Kind

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Samples outside a kind that are most like its class, and all samples that they are compared with.

    Attributes:
        near: whether a sample is outside the kind and among those that are most like its class, by set, shape (n,).
        kind: whether a sample is of the kind, by set, shape (n,).
        lost: number of samples that the generated set lost of the kind.
    """

    near: Members
    kind: Members
    lost: int

    @property
    def rest(self) -> dict[str, Mask]:
        """Mask of all other samples, by set, shape (n,)."""
        return {label: ~(mask | self.kind[label]) for label, mask in self.near.items()}


def find_class_with_look(
    held: Held, kind: Kind, sets: Mapping[str, Embeddings], rows: Mapping[str, NDArray[np.int64]], known: MeasuredSets
) -> Held | None:
    """Return the class of a kind that the generated set has less of as a class with a look, or None.

    The candidates are the samples outside the kind that are most like its class: as many as the generated set lost. The
    look must be more frequent among the generated candidates than in all other samples, adjusted for all looks. So a
    look of many classes is not a look of this class. It must also be more frequent than in the kind and among the
    candidates of the reference, adjusted for the looks that are left: what the class always looks like has not changed.

    Args:
        held: the kind, with its samples.
        kind: the same kind, with its evidence.
        sets: embeddings, "gen" and "ref".
        rows: indices of the samples looked at, by set.
        known: traits, and their values in these samples.
    """
    noun = _class_of(kind)
    levels = None if noun is None or held.finding.is_more else _levels(noun, sets, rows)
    if noun is None or levels is None or not known[1]:
        return None
    candidates = _most_like(levels, held.members)
    looks = _looks(known, candidates)
    if not looks:
        return None
    look = name_cause(looks, [trait.name for trait in known[0]])
    members = {"gen": _estimate(look, levels, candidates), "ref": look.has["ref"] & candidates.near["ref"]}
    shares = {label: float(mask.mean()) for label, mask in members.items()}
    shown = {label: sets[label].ids_at(rows[label][mask][:MOST_EXAMPLES]) for label, mask in members.items()}
    name = f"like {quote(noun)} but {re.split('[,:]', look.name or '')[0]}"
    found = Finding(name, "look", False, shares["gen"], shares["ref"], held.finding.p_value, ids=shown["gen"])
    return Held(found, members, name, look.trait, None, shown, of_kind=held.key)


def _class_of(kind: Kind) -> str | None:
    """Return the class that names a kind: of "food such as lemon" the example, as other food may have stayed."""
    noun = next((part.value for part in kind.evidence if part.in_name and part.source == CLASSIFIER), None)
    example = (kind.name or "").partition(SUCH_AS)[2].partition(" (")[0]
    return example if noun is not None and is_class(example) else noun


def _estimate(look: Explained, levels: Mapping[str, Array], candidates: _Candidates) -> Mask:
    """Return the generated samples with a look that are most like the class, shape (n,).

    They are as many as the set lost of the kind, but no more than it has more samples with the look; and at least the
    candidates with the look.
    """
    has = {label: mask & ~candidates.kind[label] for label, mask in look.has.items()}
    more = round((has["gen"].mean() - has["ref"].mean()) * len(has["gen"]))
    least = int((has["gen"] & candidates.near["gen"]).sum())
    order = np.argsort(np.where(has["gen"], -levels["gen"], np.inf), kind="stable")
    found = np.zeros(len(order), bool)
    found[order[: max(least, min(candidates.lost, more))]] = True
    return found


def _levels(
    noun: str, sets: Mapping[str, Embeddings], rows: Mapping[str, NDArray[np.int64]]
) -> dict[str, Array] | None:
    """Return how much the last layer sees a class or noun in samples, shape (n,), by set; None without a last layer."""
    found = {label: class_levels(samples, rows[label], noun) for label, samples in sets.items()}
    return None if any(each is None for each in found.values()) else {k: v for k, v in found.items() if v is not None}


def _most_like(levels: Mapping[str, Array], kind: Members) -> _Candidates:
    """Return the samples outside a kind that are most like its class: as many as the generated set lost of it."""
    lost = max(1, round((kind["ref"].mean() - kind["gen"].mean()) * len(kind["gen"])))
    outside = np.concatenate([np.where(kind[label], -np.inf, of_set) for label, of_set in levels.items()])
    least = np.sort(outside)[-lost]
    return _Candidates({label: (of_set >= least) & ~kind[label] for label, of_set in levels.items()}, kind, lost)


def _looks(known: MeasuredSets, candidates: _Candidates) -> list[Explained]:
    """Return the looks of the candidates that are of their class, the most frequent first.

    A sample has a look if it lies beyond nearly all other samples.
    """
    traits, measured = known
    looks, p_values = [], []  # two p-values of each look: against all other samples, and against those of the class
    for place, trait in enumerate(traits):
        for side, name in ((1, trait.high), (-1, trait.low)):
            if name is None or (trait.least is not None and side < 0):
                continue
            values = {label: side * each.values[:, place] for label, each in measured.items()}
            rest = np.concatenate([values[label][mask] for label, mask in candidates.rest.items()])
            least = float(np.quantile(rest, 1 - TAIL)) if trait.least is None else np.nextafter(trait.least, -np.inf)
            has = {label: of_set > least for label, of_set in values.items()}
            count = float((has["gen"] & candidates.near["gen"]).sum())
            order = {label: mask.astype(float) for label, mask in has.items()}
            looks.append(Explained(trait, count, False, "gen", name, order, threshold=0.5))
            p_values.append(_p_values(has, candidates))
    of_rest, of_class = np.array(p_values).T
    is_clear = bonferroni(of_rest, len(of_rest)) <= ALPHA
    is_clear[is_clear] = bonferroni(of_class[is_clear], int(is_clear.sum())) <= ALPHA
    found = [look for look, clear in zip(looks, is_clear, strict=True) if clear and look.gap > 0]
    return sorted(found, key=lambda look: -look.z)


def _p_values(has: Members, candidates: _Candidates) -> tuple[float, float]:
    """Return p-values of "the candidates of the generated set have a look no more often than others".

    The others are all other samples, and the candidates of the reference together with the kind. Both are 1 for a look
    that fewer than half of the candidates have.
    """
    own = has["gen"][candidates.near["gen"]]
    if not own.size or own.mean() < MOST:
        return 1.0, 1.0
    alike = np.concatenate([has["ref"][candidates.near["ref"]], *(has[label][candidates.kind[label]] for label in has)])
    rest = np.concatenate([has[label][mask] for label, mask in candidates.rest.items()])
    sizes = [np.array([int(of.sum()), len(of)]) for of in (own, rest, alike)]
    of_rest, of_class = (float(enrichment_p(*sizes[0], *size)) for size in sizes[1:])
    return of_rest, of_class
