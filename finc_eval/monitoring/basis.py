"""`Basis`: kinds, distances and φ, which a monitor holds fixed, all of them from one third of the reference."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.errors import DataError, check_seed
from finc_eval.core.files.stored import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.core.run import Run
from finc_eval.core.words import plural
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.embeddings.subset import Subset
from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.monitoring.evidence.copies import Originals
from finc_eval.monitoring.naming import name_kinds, unique_names
from finc_eval.numerics.kernels import median_bandwidth
from finc_eval.partitions.answer import kind_id
from finc_eval.partitions.kind_tree import KindTree

MIN_REFERENCE = 40  # samples of a reference: kinds and distances follow from one third, and shares from the rest
FITTED = 2000  # samples of the reference that kinds and distances follow from, at most
PART = 3
"""One of so many samples of the reference is fitted. A cluster of 10 % of 1 000 that fades is named in 38 of 40 runs
with one half, and in 40 of 40 with one third: shares are known better."""

MOST_KINDS = 16
"""Kinds that are followed, at most, besides unions of them. With 12, 16 or 24, the same cluster is named in 39, 39 and
40 of 40 runs, at step 15, 15 and 16."""

LEAST_SHARE = 0.03  # share of a kind, or of a union, that is followed: of 64 samples, two
FAR = 0.98  # quantile of the nearest distances of the reference beyond which a sample is of no known kind
REPEAT = 0.1  # part of the median nearest distance within which two samples are one again
SAME = 0.5
"""Part of the median nearest distance within which most samples are the same as before. Within the whole of it, noise
of 784 entries was taken for the same: all its distances are nearly equal, and traces err by a fifth."""

TRACES = 16  # random projections by which samples of the same seeds are known: distances are right to a fifth
FEATURES = 500  # frequencies of φ: distances of evaluations are read to two digits


@dataclass(frozen=True, eq=False)
class Basis:
    """Things that are held fixed: the tree of kinds and their names, the fitted samples, their distances, and φ."""

    tree: KindTree
    fitted: torch.Tensor  # embeddings that everything else follows from, shape (m, d)
    far: float  # distance to the nearest fitted sample beyond which a sample is far from all kinds
    repeat: float  # distance within which two samples of an evaluation are repeats
    phi: RandomFourierFeatures
    noise: float  # squared norm of the covariance of φ: the error of distances follows from it
    nodes: NDArray[np.int64]  # nodes of the tree that are followed, the leaves first
    words: tuple[str, ...]  # words for each of them, such as "cat"
    originals: Originals  # samples that the generator may copy, without the fitted ones

    @classmethod
    def fit(
        cls, reference: Embeddings, rows: NDArray[np.int64], seed: int, run: Run, train: Embeddings | None = None
    ) -> Self:
        """Fit everything to some rows of the reference; originals are the training set, or else its other rows."""
        fitted = reference.rows_at(rows).cpu()
        tree = KindTree.fit(fitted, seed, run).pruned(MOST_KINDS)
        own = nearest(fitted, fitted, 1, exclude_self=True, device=run.torch_device).distances[:, 0]
        leaf, _ = tree.assign(fitted, run)
        has = tree.tree.members[:, leaf]
        shares = has.mean(1)
        nodes = np.flatnonzero((shares >= LEAST_SHARE) & (shares <= 1 - LEAST_SHARE))
        drawn = fitted[: 2 * FEATURES]
        phi = RandomFourierFeatures(
            fitted.shape[1], FEATURES, sigma=_bandwidth(drawn), seed=seed, center=fitted.mean(0)
        )
        noise = float(phi(drawn).T.cov().square().sum()) if len(drawn) > 1 else 0.0
        words = name_kinds(reference, rows, has[nodes])
        far, repeat = float(np.quantile(own, FAR)), REPEAT * float(np.median(own))
        others = Subset(reference, np.setdiff1d(np.arange(reference.n), rows)) if train is None else train
        originals = Originals.of(others, fitted, seed, run, is_train=train is not None)
        return cls(tree, fitted, far, repeat, phi, noise, nodes, words, originals)

    @property
    def dim(self) -> int:
        """Number of entries of an embedding."""
        return self.fitted.shape[1]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of each followed node, such as "kind cat"; with its id where others have the same words."""
        return unique_names(self.words, self.nodes.tolist())

    @cached_property
    def kind_ids(self) -> dict[str, str]:
        """Id of each followed node, by its name."""
        return dict(zip(self.names, map(kind_id, self.nodes.tolist()), strict=True))

    @cached_property
    def members(self) -> NDArray[np.bool_]:
        """Leaves of each followed node, shape (nodes, leaves)."""
        return self.tree.tree.members[self.nodes]

    @cached_property
    def unions(self) -> frozenset[str]:
        """Names of the followed kinds that are unions of others."""
        inside = (self.members[:, None] <= self.members).all(2) & (self.members[:, None] < self.members).any(2)
        return frozenset(self.names[place] for place in np.flatnonzero(inside.any(0)).tolist())

    def overlap(self, one: str, other: str) -> bool:
        """Return whether two followed things are kinds that have samples in common, by their names."""
        if not {one, other} <= {*self.names}:
            return False
        mine, others = (self.members[self.names.index(name)] for name in (one, other))
        return bool((mine & others).any())

    def distances(self, rows: torch.Tensor, run: Run) -> NDArray[np.float64]:
        """Return the distance of each row, shape (n, d), to the nearest fitted sample."""
        return nearest(rows, self.fitted, 1, device=run.torch_device).distances[:, 0]

    def trace(self, rows: torch.Tensor) -> NDArray[np.float64]:
        """Return random projections of rows, shape (n, 16), whose distances are about those of the rows."""
        generator = torch.Generator().manual_seed(self.tree.seed)
        projection = torch.randn(self.dim, TRACES, generator=generator) / TRACES**0.5
        found: NDArray[np.float64] = ((rows - self.phi.center) @ projection).double().numpy()
        return found

    def are_the_same(self, traces: NDArray[np.float64], before: NDArray[np.floating]) -> bool:
        """Return whether most samples are much nearer to one of an earlier set than nearest samples are.

        That is the sample at the same place, as generators give it for the same seeds. Both are traces, shape (n, 16).
        """
        if traces.shape != before.shape or not len(traces):
            return False
        distance = np.linalg.norm(traces - before, axis=1)
        return bool(np.median(distance) < SAME * self.repeat / REPEAT)

    def write(self, file: NewFile) -> None:
        """Write everything into a file."""
        self.tree.write(file)
        file.header["basis"] = {"far": self.far, "repeat": self.repeat, "noise": self.noise, **self.phi.parameters}
        file.array("basis/fitted", self.fitted.numpy())
        file.array("basis/frequencies", self.phi.frequencies.numpy())
        file.array("basis/center", self.phi.center.numpy())
        file.array("basis/nodes", self.nodes)
        file.texts("basis/words", self.words)
        self.originals.write(file)

    @classmethod
    def read(cls, file: StoredFile) -> Self:
        """Read what `write` wrote; call it in `content_of`."""
        header = dict(file.header["basis"])
        far, repeat, noise = (float(header.pop(name)) for name in ("far", "repeat", "noise"))
        tree = KindTree.read(file)
        check_seed(tree.seed)
        fitted = torch.from_numpy(file.array("basis/fitted", None, len(tree.axes.origin)))
        frequencies = torch.from_numpy(file.array("basis/frequencies", fitted.shape[1], FEATURES))
        center = torch.from_numpy(file.array("basis/center", fitted.shape[1]))
        nodes = file.array("basis/nodes", None, dtype="<i8")
        words = tuple(file.texts("basis/words", len(nodes)).all())
        is_whole = all(tensor.isfinite().all() for tensor in (fitted, frequencies, center)) and min(repeat, noise) >= 0
        if not (is_whole and 0 <= far < np.inf and len(nodes) and nodes.min() >= 0 and nodes.max() < tree.tree.nodes):
            raise ValueError("what it holds fixed is not of a reference")
        phi = RandomFourierFeatures(fitted.shape[1], FEATURES, center=center, frequencies=frequencies, **header)
        if not phi(fitted).isfinite().all():  # a frequency times a sample is beyond all numbers
            raise ValueError("its feature map is not of its reference")
        return cls(tree, fitted, far, repeat, phi, noise, nodes, words, Originals.read(file, fitted.shape[1]))


def _bandwidth(rows: torch.Tensor) -> float:
    try:
        return median_bandwidth(rows)
    except DataError:  # it advises a setting that a monitor does not have
        raise DataError(
            "most samples of the reference are equal, or too far apart: pass a reference of different samples"
        ) from None


def divide_reference(reference: Embeddings, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of the reference that a basis is fitted to, and all others, at random."""
    if reference.n < MIN_REFERENCE:
        raise DataError(
            f"the reference has {plural(reference.n, 'sample')}, and a monitor needs at least {MIN_REFERENCE}: pass "
            "more samples of step 0, or of the training set"
        )
    order = np.random.default_rng(seed).permutation(reference.n)
    count = min(reference.n // PART, FITTED)
    return np.sort(order[:count]), np.sort(order[count:])
