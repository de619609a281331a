"""The k smallest keys of every query over a stream of distance blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.device import sent
from finc_eval.embeddings.search.distance_blocks import DistanceBlock, true_pairs


@dataclass(frozen=True)
class Key:
    """Function of a distance that is minimized over the base.

    Attributes:
        of: computes keys from squared distances and from the squared radii of the balls of the base; the two
            broadcast. It does not decrease as a distance grows.
        degree: power of the unit of length that a key has.
    """

    of: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    degree: int


SQUARED_DISTANCE = Key(lambda squared, _: squared, 2)


class Smallest:
    """The k smallest keys of every query so far, each with its row of the base.

    Attributes:
        keys: shape (n, k), ascending; infinite where there are fewer than k.
        indices: shape (n, k), of equal keys the first in the base; −1 where there are fewer than k.

    Args:
        n: number of queries.
        k: number of keys to keep per query.
        key: what to minimize.
        radii_squared: squared radii of the balls of the base, where the key depends on them.
    """

    def __init__(
        self, n: int, k: int, key: Key = SQUARED_DISTANCE, radii_squared: NDArray[np.float64] | None = None
    ) -> None:
        self.keys = np.full((n, k), np.inf)
        self.indices = np.full((n, k), -1, dtype=np.int64)
        self._k, self._key, self._radii = k, key, radii_squared

    def update(self, block: DistanceBlock) -> None:
        """Add the keys of a block; a pair must not come twice."""
        where, width = block.lower.device, block.lower.shape[1]
        given = self._radii
        radii = torch.zeros(1, device=where) if given is None else sent(torch.from_numpy(given[block.columns]), where)
        radii = radii.expand(width)
        scaled = block.scaled(radii)
        keys = self._key.of(block.lower, scaled)
        i, j = true_pairs(keys <= self._limit(block, keys, scaled))
        self._merge(block, i, j, radii)

    def _limit(self, block: DistanceBlock, keys: torch.Tensor, scaled: torch.Tensor) -> torch.Tensor:
        """Return finite upper bounds of the k-th keys, shape (b, 1).

        The bound is the k-th key so far or, in the first block, the largest of k upper bounds.
        """
        known = torch.from_numpy(self.keys[block.rows, -1:] / block.unit**self._key.degree)
        limit = sent(known.to(block.lower.dtype), block.lower.device)
        if limit.isinf().any() and keys.shape[1] >= self._k:
            columns = keys.topk(self._k, largest=False).indices
            rows = torch.arange(len(columns), device=columns.device)[:, None]
            upper = block.lower.gather(1, columns) + block.slack(rows, columns)
            limit = limit.minimum(self._key.of(upper, scaled[columns]).amax(1, keepdim=True))
        return limit.clamp_max(torch.finfo(limit.dtype).max)

    def _merge(self, block: DistanceBlock, i: torch.Tensor, j: torch.Tensor, radii: torch.Tensor) -> None:
        exact = self._key.of(block.exact(i, j), radii[j]).cpu().numpy()
        rows, new = (i + block.x.start).cpu().numpy(), (j + block.y.start).cpu().numpy()
        touched = np.unique(rows)
        rows = np.concatenate([np.repeat(touched, self._k), rows])
        keys = np.concatenate([self.keys[touched].ravel(), exact])
        indices = np.concatenate([self.indices[touched].ravel(), new])
        order = np.lexsort((indices, keys, rows))
        best = order[np.searchsorted(rows[order], touched)[:, None] + np.arange(self._k)]
        self.keys[touched], self.indices[touched] = keys[best], indices[best]
