"""`SampleMap`: some samples of each set in the plane, where neighbors stay neighbors, by the tree of their kinds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.files.stored import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.core.record import Indices, Numbers, Record
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.numerics.inference import ALPHA, significant
from finc_eval.numerics.neighbor_embedding import embed_neighbors, place_between
from finc_eval.numerics.precision import single_threaded
from finc_eval.partitions.counts import KindsOfSamples
from finc_eval.partitions.kind import Kind
from finc_eval.partitions.kind_tree import KindTree, directions
from finc_eval.sketches.folds import BottomSample

MAP_SAMPLES = 4000
"""Samples of all sets on a map, drawn at random. A page draws their cells in 40 kB; a cell holds five on average."""

MAX_LANDMARKS = 1024
"""Prototypes that are laid out. A tree has 1 000 of 10 000 samples: they take .4 s, 2 % of a comparison of 50 000 +
50 000 samples of 1280 entries."""

KEPT_NEIGHBORS = 10  # nearest samples that a map keeps of each sample, as many as its quality is measured by


class DrawnSamples(NamedTuple):
    """Samples of a set that were drawn at random: their ids, and their embeddings, shape (m, d)."""

    ids: Sequence[str]
    rows: torch.Tensor


@dataclass(frozen=True)
class Layout:
    """Places of the prototypes of a tree, between which any sample has a place. It knows no set."""

    tree: KindTree
    landmarks: torch.Tensor  # coordinates of prototypes, shape (m, k)
    places: torch.Tensor  # their places, between −1 and 1, shape (m, 2)

    @classmethod
    def of(cls, tree: KindTree) -> Self:
        """Lay out the prototypes of a tree; the same tree always has the same layout."""
        step = -(-len(tree.prototypes) // MAX_LANDMARKS)
        landmarks = tree.prototypes[::step]
        return cls(tree, landmarks, embed_neighbors(landmarks))

    def __call__(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the places of embeddings, (n, d) → (n, 2), and their coordinates on the axes of the tree, (n, k)."""
        with single_threaded():  # a map has few samples, and the last bits of products depend on the threads
            x = self.tree.axes(directions(rows.float().cpu()))
            return place_between(x, self.landmarks, self.places), x


@dataclass(frozen=True, eq=False)
class SampleMap(Record):
    """Some samples of each set in the plane, one set after the other.

    They are drawn at random, at most 4 000 in all, and the most typical samples of the kinds that a page labels.

    Attributes:
        xy: places, shape (n, 2), between −1 and 1. Distances between far places say nothing.
        ids: ids of the samples.
        sets: label of the set of each sample.
        kinds: id of the listed kind of each sample; "" for none.
        oddness: distance of each sample from the nearest prototype of its kind, shape (n,): small for typical samples.
        neighbors: nearest samples of each sample in feature space, as places in these lists, shape (n, k).
        distances: their distances, in feature space, shape (n, k).
    """

    xy: Numbers
    ids: tuple[str, ...]
    sets: tuple[str, ...]
    kinds: tuple[str, ...]
    oddness: Numbers
    neighbors: Indices
    distances: Numbers

    def __repr__(self) -> str:
        counts = ", ".join(f"{self.sets.count(label):,} of {label}" for label in dict.fromkeys(self.sets))
        return f"SampleMap({counts})"

    def __len__(self) -> int:
        return len(self.ids)

    def drawn(self, label: str, count: int) -> tuple[str, ...]:
        """Return the ids of some samples of a set, drawn at random."""
        start = self.sets.index(label) if label in self.sets else len(self)
        return self.ids[start : start + min(count, self.sets.count(label))]

    def members(self, label: str, kinds: Collection[str]) -> tuple[str, ...]:
        """Return the ids of the samples of a set that are of some kinds, the most typical first."""
        rows = [row for row in range(len(self)) if self.sets[row] == label and self.kinds[row] in kinds]
        return tuple(self.ids[row] for row in sorted(rows, key=lambda row: float(self.oddness[row])))

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weight of each sample, shape (n,): those of each set add to 1."""
        _, label, counts = np.unique(self.sets, return_inverse=True, return_counts=True)
        return np.asarray(1 / counts[label.ravel()])

    def write(self, file: NewFile, kinds: Sequence[str]) -> None:
        """Write the map into a file of a result with these kinds."""
        places = {name: number for number, name in enumerate(kinds)}
        file.array("map/xy", self.xy)
        file.array("map/kinds", np.array([places.get(kind, -1) for kind in self.kinds], np.int64))
        file.array("map/oddness", self.oddness)
        file.array("map/neighbors", self.neighbors)
        file.array("map/distances", self.distances)
        file.texts("map/ids", self.ids)
        file.header["map"] = {label: self.sets.count(label) for label in dict.fromkeys(self.sets)}


def read_map(file: StoredFile, kinds: Sequence[str], labels: Sequence[str]) -> SampleMap | None:
    """Read what `SampleMap.write` wrote; None of a file without a map. Call it in `content_of`."""
    if (counts := file.header.get("map")) is None:
        return None
    xy = file.array("map/xy", None, 2)
    n = len(xy)
    places = file.array("map/kinds", n, dtype="<i8")
    oddness = file.array("map/oddness", n)
    neighbors = file.array("map/neighbors", n, None, dtype="<i8")
    distances = file.array("map/distances", n, neighbors.shape[1])
    sizes = [int(count) for count in counts.values()]
    if min(sizes, default=0) < 0 or sum(sizes) != n:  # before anything is made for them
        raise ValueError("its map does not match its numbers of samples")
    sets = [str(label) for label, count in zip(counts, sizes, strict=True) for _ in range(count)]
    fit = (
        set(sets) <= set(labels)
        and np.isfinite(xy).all()
        and ((places >= -1) & (places < len(kinds))).all()
        and ((neighbors >= 0) & (neighbors < n)).all()
        and (distances >= 0).all()
        and (oddness >= 0).all()
    )
    if not fit:
        raise ValueError("its map does not match its kinds")
    names = [*kinds, ""]
    ids = file.texts("map/ids", n).all()
    return SampleMap(
        xy, tuple(ids), tuple(sets), tuple(names[number] for number in places), oddness, neighbors, distances
    )


def labeled(kinds: Sequence[Kind]) -> list[Kind]:
    """Return the kinds that a map labels: those that differ most, and the largest of the others."""
    differing = sorted(significant(kinds, ALPHA), key=lambda kind: -abs(kind.difference))
    others = [kind for kind in kinds if kind.p_value > ALPHA]
    others.sort(key=lambda kind: -sum(part.share for part in kind.shares.values()))
    # 10 and 3: labels that a map has room for, of kinds that differ and of others.
    return [*differing[:10], *others[:3]]


def draw_samples(sets: Mapping[str, Embeddings]) -> dict[str, DrawnSamples]:
    """Draw samples of each set at random, as many as a map has: those with the smallest hashes of their ids."""
    drawn = {}
    for label, embeddings in sets.items():
        sample = BottomSample(embeddings.dim, MAP_SAMPLES // len(sets))
        sample.update(embeddings.id_keys(), embeddings.ids_at, embeddings.rows_at)
        drawn[label] = DrawnSamples(sample.ids, sample.rows)
    return drawn


def map_sets(
    sets: Mapping[str, Embeddings],
    drawn: Mapping[str, DrawnSamples],
    kinds: Sequence[Kind],
    divided: KindsOfSamples | None,
    run: Run,
) -> SampleMap | None:
    """Lay out samples of sets that were divided into kinds; None of sets that were not.

    Args:
        sets: embeddings by label, which were counted.
        drawn: samples of each set, drawn at random.
        kinds: the listed kinds.
        divided: the tree, and its listed nodes; None without kinds.
        run: device of the assignment to kinds.
    """
    if divided is None:
        return None
    most, ids, labels, parts = MAP_SAMPLES // len(sets), list[str](), list[str](), list[torch.Tensor]()
    for label, sample in drawn.items():
        shown = [*sample.ids[:most]]
        more = _typical(kinds, label, set(shown))
        ids += [*shown, *more]
        labels += [label] * (len(shown) + len(more))
        parts += [sample.rows[:most].cpu(), sets[label].rows_at(np.array([*more.values()], np.int64)).cpu()]
    rows = torch.cat(parts)
    leaf, squared = divided.tree.assign(rows, run)
    known = [*(kind.id for kind in kinds), ""]  # the last is for the place −1
    xy, x = Layout.of(divided.tree)(rows)
    near = nearest(x, x, min(KEPT_NEIGHBORS, len(ids) - 1), exclude_self=True, device=run.device)
    return SampleMap(
        xy.numpy(),
        tuple(ids),
        tuple(labels),
        tuple(known[number] for number in divided.place[leaf].tolist()),
        np.sqrt(squared),
        near.indices,
        near.distances.astype(np.float32),
    )


def _typical(kinds: Sequence[Kind], label: str, taken: set[str]) -> dict[str, int]:
    """Return typical samples that a set shows of labeled kinds, with their row numbers, except those that are taken."""
    parts = [kind.shares[label] for kind in labeled(kinds) if kind.set_with_most == label]
    # 2: typical samples of a labeled kind that are on the map in any case.
    pairs = [pair for kind in parts for pair in [*zip(kind.top_ids, kind.top, strict=False)][:2]]
    return {name: row for name, row in pairs if name not in taken}
