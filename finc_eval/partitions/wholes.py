"""Wholes that kinds are parts of, such as a label or a class, with their own shares; and kinds grouped by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from finc_eval.embeddings.base import Embeddings
from finc_eval.naming.evidence import CLASSIFIER, MOST
from finc_eval.naming.parts import Property, have, is_known
from finc_eval.naming.properties import smallest_hashes
from finc_eval.numerics.blocks import WithinBlocks
from finc_eval.partitions.blocks import Pairing
from finc_eval.partitions.counts import Counts, Examples, tally_sets
from finc_eval.partitions.kind import Kind, Whole, describe_kinds
from finc_eval.partitions.tests import KindTests, test_kinds, test_within_blocks

SEEN_SAMPLES = 4096  # samples of a set whose classes are looked at: an interval of a share is then at most 2 points


@dataclass(frozen=True, eq=False)
class Wholes:
    """Shares of properties in sets.

    Attributes:
        found: whole of each property that all sets know.
        sets: label of the set that has more of it than the others together, by property; "" if none has, by the
            interval of the difference.
    """

    found: Mapping[Property, Whole]
    more: Mapping[Property, str]

    @classmethod
    def of(
        cls,
        properties: Sequence[Property],
        sets: Mapping[str, Embeddings],
        rho: float,
        pairing: Pairing | None = None,
        seed: int = 0,
    ) -> Wholes:
        """Count sets by properties; properties of one source are a family, whose intervals hold together."""
        wholes, more = dict[Property, Whole](), dict[Property, str]()
        known = [name for name in dict.fromkeys(properties) if all(is_known(each, name) for each in sets.values())]
        for source in dict.fromkeys(known_property.source for known_property in known):
            family = [known_property for known_property in known if known_property.source == source]
            tests = _test(family, sets, rho, pairing, seed)
            kinds = describe_kinds(tests, range(len(family)), {}, lambda label, number: Examples(), str)
            for said, kind in zip(family, kinds, strict=True):
                shares = {label: each.share for label, each in kind.shares.items()}
                wholes[said] = Whole(
                    said.words, kind.set_with_least or kind.set_with_most, shares, kind.difference, kind.interval
                )
                more[said] = _side(kind)
        return cls(wholes, more)

    def part_of(self, kind: Kind, said: Sequence[Property]) -> Whole | None:
        """Return the first whole that a kind's name says, and that the kind is a part of; None without one.

        A kind that a set has lost is a part of its class if the set has other samples of the class.
        """
        most = kind.set_with_most
        wholes = [self.found[name] for name in said if name in self.found]
        # 0.8: part of a whole from which a kind is all of it, and its own share says enough.
        parts = (whole for whole in wholes if kind.shares[most].share < 0.8 * whole.shares[most])
        return next(parts, next((whole for whole in wholes if has_others(kind, whole)), None))


def has_others(kind: Kind, whole: Whole) -> bool:
    """Return whether a set that has less of a kind has other samples of the whole, as many as half of all of it."""
    most = kind.set_with_most
    return any(
        whole.shares[label] >= MOST * whole.shares[most] and part.share <= MOST * kind.shares[most].share
        and part.share < 0.8 * whole.shares[label]
        for label, part in kind.shares.items()
    )  # fmt: skip


def _side(kind: Kind) -> str:
    """Return which side a difference is on, as `Kind.side` does; "" if its interval does not leave out 0."""
    low, high = kind.interval
    return kind.side if low > 0 or high < 0 else ""


def _test(
    family: Sequence[Property], sets: Mapping[str, Embeddings], rho: float, pairing: Pairing | None, seed: int
) -> KindTests:
    seen = family[0].source == CLASSIFIER and pairing is None
    rows = {
        label: smallest_hashes(embeddings, SEEN_SAMPLES) if seen else np.arange(embeddings.n)
        for label, embeddings in sets.items()
    }
    masks = {label: have(embeddings, rows[label], family) for label, embeddings in sets.items()}
    counts = {label: _count(masks[label], embeddings.group_hashes(), rows[label]) for label, embeddings in sets.items()}
    tests = test_kinds(tally_sets(counts), rho)
    if pairing is None:
        return tests
    # Samples with the same properties are a cell.
    cells, of_cell = np.unique(np.concatenate([*masks.values()]), axis=0, return_inverse=True)
    return test_within_blocks(tests, WithinBlocks.of(pairing.blocked, of_cell.ravel(), cells.T, seed))


def _count(has: NDArray[np.bool_], groups: NDArray[np.uint64] | None, rows: NDArray[np.int64]) -> Counts:
    """Count samples (n,) by properties, has (n, p), which overlap; `groups` are of all samples, by their `rows`."""
    if groups is None:
        return Counts(len(has), has.sum(0))
    _, group, sizes = np.unique(groups[rows], return_inverse=True, return_counts=True)
    of_group = csr_matrix((np.ones(len(has)), (group, np.arange(len(has)))), (len(sizes), len(has)))
    return Counts(len(has), has.sum(0), sizes.astype(float), of_group @ csr_matrix(has, dtype=float))


@dataclass(frozen=True)
class Group:
    """Kinds that differ in the same way, and are most of one whole that does so."""

    kinds: tuple[int, ...]
    shared: Property


def group_kinds(kinds: Mapping[int, Kind], shared: Mapping[int, Sequence[Property]], wholes: Wholes) -> list[Group]:
    """Group kinds that differ by the properties that most of their members have, the largest difference first.

    The whole must differ in the same way, and the kinds must hold most of it in the set with most: two lost classes
    are not one cause because both are animals. Of properties of the same kinds, the one that the fewest samples have
    is said.
    """
    left, groups = dict(kinds), list[Group]()
    while True:
        candidates = []
        for said, whole in wholes.found.items():
            inside = [node for node, kind in left.items() if said in shared[node] and kind.side == wholes.more[said]]
            inside_of = {label: sum(left[node].shares[label].share for node in inside) for label in whole.shares}
            most = max(whole.shares, key=lambda label: whole.shares[label])
            if len(inside) > 1 and inside_of[most] >= MOST * whole.shares[most]:
                size = abs(sum(left[node].difference for node in inside))
                candidates.append((round(size, 9), -sum(whole.shares.values()), said.words, Group(tuple(inside), said)))
        if not candidates:
            return groups
        groups.append(max(candidates, key=lambda each: each[:3])[-1])
        left = {node: kind for node, kind in left.items() if node not in groups[-1].kinds}
