"""`KindTree`: embeddings divided into kinds that form a tree of communities, blind to which set a sample is from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from finc_eval.core.device import send
from finc_eval.core.digest import sha256_of
from finc_eval.core.errors import DataError, IncompatibleError
from finc_eval.core.files.stored import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.core.progress import Stage
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.numerics.eigen import MAX_AXES, PrincipalAxes
from finc_eval.partitions.kmeans import kmeans, pool_samples

TOGETHER_IN_TREES = 0.5
"""Weight of the links of two parts, over what it would be at random, from which on they lie together. With .25, planted
kinds of the demo and of digits are met less well (mean Jaccard index .93 and .66 instead of .96 and .70), with 1
only digits are (.68). Kinds of photographs are met as well."""


@dataclass(frozen=True, eq=False)
class Tree:
    """A binary tree over k leaves: nodes 0 to k − 1 are the leaves, and each later node joins two earlier nodes."""

    joins: NDArray[np.int64]  # both children of the nodes k, k + 1, …, shape (k − 1, 2)
    # how closely the children of these nodes are linked, shape (k − 1,): the weight of their links over what it would
    # be at random. From `TOGETHER_IN_TREES` on, the children lie together; below, they stand apart.
    closeness: NDArray[np.float64]

    @classmethod
    def of(cls, links: NDArray[np.float64]) -> Tree:
        """Join the two communities that are linked most closely for their sizes, until one is left.

        This is average linkage of a graph: links between a and b of the weight w, over w_a·w_b / w, where w_a and w_b
        are the weights of all links of a and of b, and w of all (Bonald et al. 2018). Links have shape (k, k).
        """
        k = len(links)
        weight = np.zeros((2 * k - 1, 2 * k - 1))
        weight[:k, :k] = links
        total = np.zeros(2 * k - 1)
        total[:k] = np.where(links.any(1), links.sum(1), 1.0)
        every = links.sum()
        close = np.full_like(weight, -1.0)
        close[:k, :k] = links * every / np.outer(total[:k], total[:k])
        np.fill_diagonal(close, -1.0)
        alive, joins, closeness = np.arange(k), np.empty((k - 1, 2), np.int64), np.empty(k - 1)
        for row, new in enumerate(range(k, 2 * k - 1)):
            among = close[np.ix_(alive, alive)]
            pair = alive[list(np.unravel_index(among.argmax(), among.shape))]
            joins[row], closeness[row] = pair, close[tuple(pair)]
            alive = alive[(alive != pair[0]) & (alive != pair[1])]
            weight[new] = weight[pair].sum(0)
            weight[:, new] = weight[:, pair].sum(1)
            total[new] = total[pair].sum()
            close[new, alive] = close[alive, new] = weight[new, alive] * every / (total[new] * total[alive])
            alive = np.append(alive, new)
        return cls(joins, closeness)

    @property
    def leaves(self) -> int:
        """Number of leaves, k."""
        return len(self.joins) + 1

    @property
    def nodes(self) -> int:
        """Number of nodes, 2k − 1."""
        return 2 * self.leaves - 1

    @cached_property
    def members(self) -> NDArray[np.bool_]:
        """Leaves of each node, shape (2k − 1, k)."""
        is_member = np.zeros((self.nodes, self.leaves), bool)
        np.fill_diagonal(is_member, True)
        for node, (left, right) in enumerate(self.joins, self.leaves):
            is_member[node] = is_member[left] | is_member[right]
        return is_member

    @cached_property
    def parents(self) -> NDArray[np.int64]:
        """Parent of each node, shape (2k − 1,); −1 for the root."""
        parents = np.full(self.nodes, -1)
        for node, pair in enumerate(self.joins, self.leaves):
            parents[pair] = node
        return parents

    def check_sums(self, members: NDArray[np.int64], n: int) -> None:
        """Raise DataError unless the members of all nodes, shape (2k − 1,), are those of n samples, each in a leaf."""
        if len(members) != self.nodes:
            raise DataError(f"it counts {len(members):,} kinds, and there are {self.nodes:,}")
        sums = members[self.joins].sum(1)
        if members[: self.leaves].sum() != n or (members[self.leaves :] != sums).any():
            raise DataError(f"its kinds do not add up to its {n:,} samples")

    def leaves_of(self, node: int) -> list[int]:
        """Return the leaves of a node."""
        return np.flatnonzero(self.members[node]).tolist()

    def lies_together(self, node: int) -> bool:
        """Return whether a node is one thing: a leaf, or two parts that lie together."""
        return node < self.leaves or bool(self.closeness[node - self.leaves] >= TOGETHER_IN_TREES)

    def cut(self, most: int) -> NDArray[np.int64]:
        """Return the nodes of the cut into `most` kinds, or all leaves where there are fewer: what was joined last."""
        end = self.nodes - min(max(most, 1), self.leaves) + 1
        return np.flatnonzero((np.arange(self.nodes) < end) & ((self.parents >= end) | (self.parents < 0)))

    def pruned(self, most: int) -> Tree:
        """Return the tree above the cut into `most` kinds, which are its leaves in the order of `cut`."""
        kept = self.cut(most)
        first = self.nodes - len(kept) + 1
        numbers = np.full(self.nodes, -1)
        numbers[kept], numbers[first:] = np.arange(len(kept)), np.arange(len(kept), 2 * len(kept) - 1)
        return Tree(numbers[self.joins[first - self.leaves :]], self.closeness[first - self.leaves :])

    def with_another(self) -> Tree:
        """Return the tree with one more leaf, the last, which stands apart from all others."""
        leaves, root = self.leaves, self.nodes
        joins = np.append(self.joins + (self.joins >= leaves), [[leaves, root if leaves > 1 else 0]], 0)
        return Tree(joins, np.append(self.closeness, 0.0))


DIVIDE = Stage("find kinds", cost=1)  # name of the division in the progress

SAMPLES_PER_PROTOTYPE = 10
"""Fitted samples of a leaf per prototype. The nearest prototype meets planted kinds as well as the vote of the nearest
fitted samples (mean Jaccard index within .01 on digits, photographs and the demo)."""

BEYOND = SAMPLES_PER_PROTOTYPE / (SAMPLES_PER_PROTOTYPE - 1)
"""Radius in units of the largest distance of a fitted sample, which has drawn its own prototype towards it by so much.
Within the largest distance itself, .2 to .3 % of later samples of the same law were far in four data sets; within this
radius none, nearly all of a new blob, and 17 % of a new action of clips. A new digit is not far from the others."""

NEIGHBORS = 15  # Nearest neighbors of each sample. With 10 or 25, planted kinds are met as well.
FITTED_COPIES = NEIGHBORS + 1  # equal samples that are fitted at most

RESOLUTION = 16.0
"""Resolution of modularity at which the smallest communities are found: some 150 of 6 000 samples. With 8 or 32, their
unions meet planted kinds as well (mean Jaccard index within .02 on digits, photographs, clips and the demo)."""


@dataclass(frozen=True, eq=False)
class KindTree:
    """Kinds of samples: a sample is of the leaf of its nearest prototype, and of every node above that leaf."""

    axes: PrincipalAxes  # principal axes on which samples are compared
    prototypes: torch.Tensor  # coordinates of the prototypes, float32, shape (p, k)
    leaf: NDArray[np.int64]  # leaf of each prototype, shape (p,)
    tree: Tree  # the tree
    radius: float  # distance from its prototype beyond which a later sample is far from all kinds
    seed: int  # random seed of the fit

    @classmethod
    def fit(cls, rows: torch.Tensor, seed: int = 0, run: Run | None = None) -> Self:
        """Divide rows into kinds."""
        run = Run.of(run)
        if len(rows) < 4:
            raise DataError(f"{len(rows)} samples cannot be divided into kinds: at least 4 are needed")
        unlike = directions(rows.float().cpu())
        # More than `FITTED_COPIES` of a row would be a community of their own.
        # Rows are compared as bytes, ten times as fast as by their entries; + 0 makes one zero of two.
        _, same = np.unique(np.add(unlike.numpy(), 0, order="C").view(f"V{4 * unlike.shape[1]}"), return_inverse=True)
        order, counts = same.ravel().argsort(kind="stable"), np.bincount(same.ravel())
        rank = np.arange(len(rows)) - np.repeat(counts.cumsum() - counts, counts)
        unlike = unlike[torch.from_numpy(np.sort(order[rank < FITTED_COPIES]))]
        axes = PrincipalAxes.of(unlike)
        x = axes(unlike)
        labels, links = communities(x, seed, run.torch_device)
        points, leaf = [], []
        for label in range(labels.max() + 1):
            inside = np.ascontiguousarray(x.numpy()[labels == label])
            count = max(1, round(len(inside) / SAMPLES_PER_PROTOTYPE))
            points.append(
                inside.mean(0, keepdims=True) if count == 1 else kmeans(inside, count, seed, torch.device("cpu"))
            )
            leaf += [label] * len(points[-1])
        prototypes = torch.from_numpy(np.concatenate(points).astype(np.float32))
        fitted = cls(axes, prototypes, np.array(leaf, np.int64), Tree.of(links), float("inf"), seed)
        return replace(fitted, radius=BEYOND * float(np.sqrt(fitted.assign(rows, run)[1].max())))

    @classmethod
    def of_sets(cls, sets: Sequence[Embeddings], seed: int = 0, run: Run | None = None) -> Self:
        """Divide sets into kinds, by a sample of all together."""
        run = Run.of(run)
        with run.step(DIVIDE):
            return cls.fit(pool_samples(sets), seed, run)

    def pruned(self, most: int) -> Self:
        """Return the same tree with at most this many leaves: the nodes of its cut (`Tree.cut`)."""
        kept = self.tree.cut(most)
        return replace(self, leaf=self.tree.members[kept].argmax(0)[self.leaf], tree=self.tree.pruned(most))

    @property
    def digest(self) -> str:
        """Digest that identifies the tree."""
        return sha256_of(self.axes.origin, self.axes.axes, self.prototypes, torch.from_numpy(self.tree.joins))

    def assign(
        self, rows: ArrayLike | torch.Tensor, run: Run | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the leaf of each row, shape (n,), and its squared distance from the nearest prototype."""
        run, x = Run.of(run), torch.as_tensor(rows, dtype=torch.float32)
        assign = Assignment(self, run.torch_device)
        assigned = [assign(x[start : start + run.portion]) for start in range(0, max(len(x), 1), run.portion)]
        leaves, squared, _ = (torch.cat(parts).cpu().numpy() for parts in zip(*assigned, strict=True))
        return leaves, squared

    def far(self, squared: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Return which samples (n,) are far from all kinds, from the squared distances that `assign` returned."""
        return squared > np.float32(self.radius**2 * (1 + 1e-4))

    def write(self, file: NewFile) -> None:
        """Write the tree into a file."""
        file.header["kinds"] = {"seed": self.seed, "radius": self.radius, "unit": self.axes.unit}
        file.array("kinds/origin", self.axes.origin.numpy())
        file.array("kinds/axes", self.axes.axes.numpy())
        file.array("kinds/prototypes", self.prototypes.numpy())
        file.array("kinds/leaf", self.leaf)
        file.array("kinds/joins", self.tree.joins)
        file.array("kinds/closeness", self.tree.closeness)

    @classmethod
    def read(cls, file: StoredFile) -> Self:
        """Read what `write` wrote; call it in `content_of`."""
        header = file.header["kinds"]
        origin = torch.from_numpy(file.array("kinds/origin", None))
        axes = torch.from_numpy(file.array("kinds/axes", len(origin), None))
        prototypes = torch.from_numpy(file.array("kinds/prototypes", None, axes.shape[1]))
        leaf = file.array("kinds/leaf", len(prototypes), dtype="<i8")
        joins = file.array("kinds/joins", None, 2, dtype="<i8")
        tree = Tree(joins, file.array("kinds/closeness", len(joins), dtype="<f8"))
        later = np.arange(tree.leaves, tree.nodes)
        once = np.sort(joins.ravel())
        unit, radius = float(header["unit"]), float(header["radius"])
        if not (
            0 < unit < 1e150  # its square is finite
            and 0 <= radius < np.inf
            and all(tensor.isfinite().all() for tensor in (origin, axes, prototypes))
            and np.array_equal(np.unique(leaf), np.arange(tree.leaves))
            and (joins < later[:, None]).all()
            and np.array_equal(once, np.arange(len(once)))
            and np.isfinite(tree.closeness).all()
        ):
            raise ValueError("its kinds are not a tree")
        return cls(PrincipalAxes(origin, axes, unit), prototypes, leaf, tree, radius, int(header["seed"]))


class Assignment:
    """The prototypes of a tree on a device, to which batches of rows are assigned there."""

    def __init__(self, kinds: KindTree, device: torch.device) -> None:
        self._axes, self._prototypes, self.device = kinds.axes.to(device), send(kinds.prototypes, device), device
        self._leaf = send(torch.from_numpy(kinds.leaf.astype(np.int32)), device)
        self._norms = self._prototypes.square().sum(1)
        sizes = np.bincount(kinds.leaf)
        means = torch.zeros(len(sizes), kinds.prototypes.shape[1])
        means.index_add_(0, torch.from_numpy(kinds.leaf), kinds.prototypes)
        self._means = send(means / torch.from_numpy(sizes)[:, None].float(), device)

    def __call__(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the leaf of each row, int32; squared distances from its prototype, and from the middle of its leaf."""
        if rows.ndim != 2 or rows.shape[1] != len(self._axes.origin):
            raise IncompatibleError(
                f"the kinds divide embeddings of {len(self._axes.origin)} entries, got shape {tuple(rows.shape)}: "
                "extract both with the same extractor"
            )
        x = directions(send(rows, self.device).float())
        at = self._axes(x)
        least, near = (self._norms - 2 * at @ self._prototypes.T).min(1)
        leaf = self._leaf[near]
        norm = ((x - self._axes.origin) / self._axes.unit).square().sum(1)
        middle = (at - self._means[leaf]).square().sum(1)
        squared = (least + norm).clamp_min(0) * self._axes.unit**2
        return leaf, squared, middle


def directions(rows: torch.Tensor) -> torch.Tensor:
    """Return rows divided by their norms: the directions of embeddings show kinds.

    With the cosine, planted kinds of the demo are met with a Jaccard index of .96 instead of .79, and kinds of digits,
    photographs and clips as well. Rows of few entries are not embeddings, and stay as they are.
    """
    if rows.shape[1] <= MAX_AXES:
        return rows
    rows = rows / rows.abs().amax(1, keepdim=True).clamp_min(torch.finfo(rows.dtype).tiny)  # squares do not overflow
    norms: torch.Tensor = torch.linalg.vector_norm(rows, dim=1, keepdim=True).clamp_min(1)
    return rows / norms


def communities(x: torch.Tensor, seed: int, device: torch.device) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Divide rows into small communities of their graph of shared neighbors.

    Return the community of each row, from 0 on, shape (m,), and the weight of the links between every two communities,
    shape (k, k); on the diagonal, inside of each, twice.

    Two samples are linked if one is among the other's nearest neighbors, with the Jaccard index of their neighbors
    as weight (Levine et al. 2015). Communities maximize the modularity (Blondel et al. 2008). Communities by Leiden's
    algorithm meet planted kinds as well, but scikit-network's draws numbers that no seed governs.
    """
    from sknetwork.clustering import Louvain

    k = min(NEIGHBORS, len(x) - 1)
    near = nearest(x, x, k, exclude_self=True, device=device).indices
    graph = shared_neighbors(near)
    labels = np.arange(len(x))
    if graph.nnz:
        labels = Louvain(resolution=RESOLUTION, shuffle_nodes=True, random_state=seed).fit_predict(graph)
    _, labels = np.unique(labels, return_inverse=True)
    member = csr_matrix((np.ones(len(x)), (np.arange(len(x)), labels)))
    return labels, (member.T @ graph @ member).toarray()


def shared_neighbors(near: NDArray[np.int64]) -> csr_matrix:
    """Return the graph of shared neighbors, shape (m, m), from the k nearest neighbors of each row, shape (m, k)."""
    m, k = near.shape
    links = csr_matrix((np.ones(near.size), (np.repeat(np.arange(m), k), near.ravel())), (m, m))
    shared = (links @ links.T).multiply((links + links.T) > 0).tocsr()
    shared.setdiag(0)
    shared.eliminate_zeros()
    shared.data = shared.data / (2 * k - shared.data)
    return shared
