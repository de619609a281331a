"""`Spaces`: two sets compared in several embedding spaces, and which space sees which difference."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import model_validator

from finc_eval.comparison.inputs import OpenSets, sketch_sets
from finc_eval.comparison.result import Comparison
from finc_eval.comparison.settings import Settings, settings_of
from finc_eval.comparison.side_by_side import SideBySide
from finc_eval.core.errors import IncompatibleError, UsageError
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import Record, check_names, plain
from finc_eval.core.run import Run
from finc_eval.core.words import SET_NAMES
from finc_eval.embeddings.embedding_set import take_arrays
from finc_eval.extractors.settings import AnyExtractor, check_spaces, extractions_by_space
from finc_eval.gallery.counts import MAX_SHOWN
from finc_eval.numerics.eigen import LowRank, extreme_eigenpairs
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.answer import LARGEST
from finc_eval.partitions.kind import Kind, shown_of

SAME = 0.5
"""Jaccard index of the members of two kinds from which on they are one kind in two spaces: most samples are in both."""


@dataclass(frozen=True)
class Counterpart(Record):
    """The kind of another space that a kind has most samples in common with.

    Attributes:
        id: its id, among the kinds of that space that differ in the same direction; None if there is none.
        jaccard: samples of both kinds over samples of either.
    """

    id: str | None
    jaccard: float


@dataclass(frozen=True)
class SeenKind(Record):
    """A kind that differs between the sets in a space.

    Attributes:
        space: name of the space.
        id: id of the kind in the comparison of that space.
        p_value: its p-value, adjusted for all kinds of all spaces.
        elsewhere: its counterpart in each other space, by name.
    """

    space: str
    id: str
    p_value: float
    elsewhere: dict[str, Counterpart]

    @property
    def seen_by(self) -> tuple[str, ...]:
        """Names of the spaces that see this kind."""
        return (self.space, *(name for name, counterpart in self.elsewhere.items() if counterpart.jaccard >= SAME))


@dataclass(frozen=True)
class ClusterOfSpace(Record):
    """Samples that are alike in one space, and not in another (SPEC, arXiv 2506.06231).

    Attributes:
        space: name of the space in which they are alike.
        other: name of the space in which they are not.
        eigenvalue: eigenvalue of (K − K′)/n, both kernel matrices centered, in [0, 1].
        kind: id of the kind of that space with most of these samples.
        ids: ids of the samples with the largest entries of the eigenvector, by set, at most 16.
    """

    space: str
    other: str
    eigenvalue: float
    kind: str
    ids: dict[str, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class Spaces(SideBySide):
    """Differences of two sets in several embedding spaces.

    Attributes:
        comparisons: the comparison of the sets in each space, by name; its p-values and intervals concern that space
            alone.
        kinds: the kinds that differ, by space and p-value; their p-values are adjusted for all spaces.
        clusters: samples that one space holds together and another does not, by pair of spaces, the largest first.

    Example:
        >>> import numpy as np
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets()
        >>> found = fe.compare({"upper": gen[:, :392], "lower": gen[:, 392:]},
        ...                    {"upper": ref[:, :392], "lower": ref[:, 392:]}, features=200)
        >>> list(found.comparisons), {kind.space for kind in found.kinds} <= {"upper", "lower"}
        (['upper', 'lower'], True)
    """

    type_name: ClassVar[str] = "spaces"
    page: ClassVar[str] = "finc_eval.comparison.pages.spaces"

    comparisons: dict[str, Comparison]
    kinds: tuple[SeenKind, ...]
    clusters: tuple[ClusterOfSpace, ...]

    warnings = SideBySide.all_warnings

    @property
    def rows(self) -> Mapping[str, Comparison]:
        """The comparison in each space."""
        return self.comparisons

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        known = {name: {kind.id for kind in comparison.kinds} for name, comparison in self.comparisons.items()}
        named: list[tuple[str, str | None]] = [(kind.space, kind.id) for kind in self.kinds]
        named += [(space, other.id) for kind in self.kinds for space, other in kind.elsewhere.items()]
        for cluster in self.clusters:
            named += [(cluster.space, cluster.kind), (cluster.other, None)]
            check_names("set", cluster.ids, SET_NAMES)
        for space, kind_id in named:
            check_names("space", [space], known)
            check_names("kind", [] if kind_id is None else [kind_id], known[space])
        return self

    def kind_of(self, one: SeenKind) -> Kind:
        """Return a kind with its shares, name and samples, from the comparison of its space."""
        return self.kind(one.space, one.id)

    def kind(self, space: str, kind_id: str) -> Kind:
        """Return a kind of a space by its id."""
        return next(kind for kind in self.comparisons[space].kinds if kind.id == kind_id)

    def shown_samples(self) -> Mapping[str, list[str]]:
        """Return the ids of the samples of both sets that a page shows."""
        found = shown_of((self.kind_of(kind) for kind in self.kinds), SET_NAMES, self.shown)
        for cluster in self.clusters:
            for label, ids in cluster.ids.items():
                found[label] += ids[: self.shown]
        return found

    def _frame_rows(self) -> list[dict[str, object]]:
        rows = [(seen, plain(self.kind_of(seen))) for seen in self.kinds]
        return [{"space": seen.space, **kind, "p_value": seen.p_value, "seen_by": seen.seen_by} for seen, kind in rows]

    def _summary(self) -> str:
        return ", ".join(f"{name}: {sum(kind.space == name for kind in self.kinds)} kinds" for name in self.comparisons)


def compare_in_spaces(
    gen: object,
    ref: object,
    extractors: Sequence[AnyExtractor],
    labels: object,
    settings: Settings | None,
    run: Run,
    options: Mapping[str, object],
    compare_opened: Callable[[OpenSets, Settings, Run], Comparison],
) -> Spaces:
    """Compare two sets in several embedding spaces, each by `compare_opened`; see `compare`."""
    opened: dict[str, OpenSets] = {}
    comparisons: dict[str, Comparison] = {}
    spaces: list[tuple[str, dict[str, object], AnyExtractor]]
    if isinstance(gen, Mapping) and isinstance(ref, Mapping):
        if extractors or gen.keys() != ref.keys():
            raise UsageError(
                f"gen has the spaces {', '.join(gen)}, and ref {', '.join(ref)}: give both sets in the same spaces, "
                "without extractors"
            )
        check_spaces([*gen])
        spaces = [(str(name), {"gen": gen[name], "ref": ref[name]}, None) for name in gen]
    else:
        both = {"gen": gen, "ref": ref}
        spaces = [(name, both, how) for name, how in extractions_by_space(extractors).items()]
    for name, given, extractor in spaces:
        run_here = run.prefixed(name)
        sets, columns = take_arrays(given, labels, options)
        chosen = settings_of(settings, columns)
        if not chosen.has_kinds:
            raise UsageError("spaces are compared by their kinds: use method finc with clusters, or clusters")
        opened[name] = sketch_sets(sets, chosen, run_here, extractor)
        first = next(iter(opened))
        for label, sketched in opened[name].sets.items():
            mine, others = sketched.at_hand.id_keys(), opened[first].sets[label].at_hand.id_keys()
            if not np.array_equal(mine, others):
                raise IncompatibleError(
                    f"{label} has {len(others):,} samples in {first} and {len(mine):,} in {name}, which are not the "
                    "same in the same order: embed the same files, with as many windows of each video, in every space"
                )
        comparisons[name] = compare_opened(opened[name], opened[name].settings, run_here)
        if not comparisons[name].kinds:
            raise UsageError(f"{name} has no kinds to compare by: pass samples or embeddings, not sketches")
    return Spaces(
        comparisons,
        _find_seen(comparisons, _common(opened, comparisons, run)),
        tuple(_clusters(opened, comparisons, run)),
        provenance=Provenance.here(run.device),
    )


def adjust(p_value: float, spaces: Collection[str]) -> float:
    """Return a p-value of one space, adjusted for all spaces (Bonferroni)."""
    return min(1.0, len(spaces) * p_value)


def _common(
    opened: Mapping[str, OpenSets], comparisons: Mapping[str, Comparison], run: Run
) -> dict[tuple[str, str], NDArray[np.int64]]:
    """Count the samples of each kind of one space in each kind of another, by pair of spaces."""
    pairs = list(permutations(comparisons, 2))
    found = {(a, b): np.zeros((len(comparisons[a].kinds), len(comparisons[b].kinds)), np.int64) for a, b in pairs}
    for label in SET_NAMES:
        # Batches of wide rows have fewer rows than those of another space.
        of_label = {name: found.sets[label].at_hand for name, found in opened.items()}
        places = {
            name: comparison.counted_kinds.assign(of_label[name], run) for name, comparison in comparisons.items()
        }
        for a, b in pairs:
            np.add.at(found[a, b], (places[a], places[b]), 1)
    return found


def _find_seen(
    comparisons: Mapping[str, Comparison], common: Mapping[tuple[str, str], NDArray[np.int64]]
) -> tuple[SeenKind, ...]:
    """Return the kinds that differ over all spaces, each with its counterparts."""
    p_values = {
        name: [adjust(kind.p_value, comparisons) for kind in comparison.kinds]
        for name, comparison in comparisons.items()
    }

    def counterpart(name: str, place: int, other: str) -> Counterpart:
        kinds, table = comparisons[other].kinds, common[name, other]
        either = table[place].sum() + table.sum(0) - table[place]
        alike = [
            p <= ALPHA and (kind.share_difference > 0) == (comparisons[name].kinds[place].share_difference > 0)
            for kind, p in zip(kinds, p_values[other], strict=True)
        ]
        jaccard = np.where(alike, table[place] / np.maximum(either, 1), 0.0)
        best = int(jaccard.argmax())
        return Counterpart(kinds[best].id if jaccard[best] > 0 else None, float(jaccard[best]))

    return tuple(
        SeenKind(name, kind.id, p, {other: counterpart(name, place, other) for other in comparisons if other != name})
        for name, comparison in comparisons.items()
        for place, (kind, p) in enumerate(zip(comparison.kinds, p_values[name], strict=True))
        if p <= ALPHA
    )


def _clusters(
    opened: Mapping[str, OpenSets], comparisons: Mapping[str, Comparison], run: Run
) -> Iterator[ClusterOfSpace]:
    """Find samples that one space holds together and another does not, among the bottom-k samples of both sets."""
    ids = [
        (label, sample)
        for label, sketched in next(iter(opened.values())).sets.items()
        for sample in sketched.sketch.sample.ids
    ]
    features = {
        name: torch.cat([sketched.sample[0] for sketched in found.sets.values()]) for name, found in opened.items()
    }
    for first, second in combinations(opened, 2):
        ends = extreme_eigenpairs(difference_of_kernels(features[first], features[second]), LARGEST)
        for (space, other), (values, vectors) in zip(((first, second), (second, first)), ends, strict=True):
            rows = torch.cat([sketched.sketch.sample.rows for sketched in opened[space].sets.values()])
            for value, vector in zip(values.tolist(), vectors.T.cpu(), strict=False):
                best = vector.topk(min(MAX_SHOWN, len(vector))).indices
                places = comparisons[space].counted_kinds.places(rows[best], run)
                kind = comparisons[space].kinds[int(np.bincount(places).argmax())].id
                of_sets: dict[str, tuple[str, ...]] = {
                    label: tuple(ids[row][1] for row in best.tolist() if ids[row][0] == label) for label in SET_NAMES
                }
                yield ClusterOfSpace(space, other, max(0.0, value), kind, of_sets)


def difference_of_kernels(features: torch.Tensor, others: torch.Tensor) -> LowRank:
    """Return (K − K′)/n of the same samples in two spaces, both centered, by their random features: (n, q), (n, q′)."""
    n = len(features)
    rows = torch.cat([(rows_of_space - rows_of_space.mean(0)).T for rows_of_space in (features, others)])
    weights = torch.cat([rows.new_full((features.shape[1],), 1 / n), rows.new_full((others.shape[1],), -1 / n)])
    return LowRank(rows, weights)
