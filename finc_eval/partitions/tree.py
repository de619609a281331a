"""`Tree`: small communities joined to larger ones, the most closely linked first; every union is a kind."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

TOGETHER = 0.5
"""Weight of the links of two parts, over what it would be at random, from which on they lie together. With .25, planted
kinds of the demo and of digits are met less well (mean Jaccard index .93 and .66 instead of .96 and .70), with 1
only digits are (.68). Kinds of photographs are met as well."""


@dataclass(frozen=True, eq=False)
class Tree:
    """A binary tree over k leaves: nodes 0 to k − 1 are the leaves, and each later node joins two earlier ones."""

    joins: NDArray[np.int64]  # both children of the nodes k, k + 1, …, shape (k − 1, 2)
    # how closely the children of these nodes are linked, shape (k − 1,): the weight of their links over what it would
    # be at random. From `TOGETHER` on, the children lie together; below, they stand apart.
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
        for place, new in enumerate(range(k, 2 * k - 1)):
            among = close[np.ix_(alive, alive)]
            pair = alive[list(np.unravel_index(among.argmax(), among.shape))]
            joins[place], closeness[place] = pair, close[tuple(pair)]
            alive = np.setdiff1d(alive, pair)
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
        found = np.zeros((self.nodes, self.leaves), bool)
        np.fill_diagonal(found, True)
        for node, (one, other) in enumerate(self.joins, self.leaves):
            found[node] = found[one] | found[other]
        return found

    @cached_property
    def parents(self) -> NDArray[np.int64]:
        """Parent of each node, shape (2k − 1,); −1 for the root."""
        found = np.full(self.nodes, -1)
        for node, pair in enumerate(self.joins, self.leaves):
            found[pair] = node
        return found

    def leaves_of(self, node: int) -> list[int]:
        """Return the leaves of a node."""
        return np.flatnonzero(self.members[node]).tolist()

    def lies_together(self, node: int) -> bool:
        """Return whether a node is one thing: a leaf, or two parts that lie together."""
        return node < self.leaves or bool(self.closeness[node - self.leaves] >= TOGETHER)

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
        """Return the tree with one more leaf, the last one, which stands apart from all others."""
        leaves, root = self.leaves, self.nodes
        joins = np.append(self.joins + (self.joins >= leaves), [[leaves, root if leaves > 1 else 0]], 0)
        return Tree(joins, np.append(self.closeness, 0.0))
