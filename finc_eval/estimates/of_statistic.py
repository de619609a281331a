"""Any function of two sets becomes estimates, by leaving out random blocks of independent units in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.errors import DataError
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.subset import Subset
from finc_eval.estimates.estimate import Estimate

Statistic = Callable[[Embeddings, Embeddings], Mapping[str, float]]
"""Function of the generated set and the reference that returns numbers by their keys."""

BLOCKS = 10  # blocks that a jackknife leaves out in turn; each costs one more distance, or one more decomposition


def estimate_statistic(
    statistic: Statistic, gen: Embeddings, ref: Embeddings, units: NDArray[np.int64] | None = None
) -> dict[str, Estimate]:
    """Return an estimate of each number of a statistic, by the grouped delete-a-block jackknife (Tukey 1958).

    The interval is for other samples of as many units of the same laws; a bias that depends on the numbers of samples
    stays in it. It needs 20 independent units of each set, and 21 values of the statistic.

    Args:
        statistic: function of both sets, smooth in the weight of each sample.
        gen: generated set.
        ref: reference set.
        units: number of the independent unit that each generated sample is of, (n,), if it is not its group: the same
            numbers of two sets are left out together.

    Raises:
        DataError: a set has too few independent samples.

    Example:
        >>> import numpy as np
        >>> from finc_eval.embeddings.base import ArrayEmbeddings
        >>> rng = np.random.default_rng(0)
        >>> gen, ref = (ArrayEmbeddings(rng.normal(size=(400, 1)).astype("f4")) for _ in range(2))
        >>> mean = lambda one: float(one.rows_at(np.arange(one.n)).mean())
        >>> found = estimate_statistic(lambda gen, ref: {"shift": mean(gen) - mean(ref)}, gen, ref)["shift"]
        >>> low, high = found.interval
        >>> low < 0 < high, round(found.standard_error / (2 / 400) ** 0.5, 1)
        (True, 1.2)
    """
    whole = statistic(gen, ref)
    of_gen = [statistic(part, ref) for part in _without_blocks(gen, units)]
    of_ref = [statistic(gen, part) for part in _without_blocks(ref, None)]
    found = {}
    for key, value in whole.items():
        found[key] = Estimate.of_blocks(value, *([one[key] for one in values] for values in (of_gen, of_ref)))
    return found


def _without_blocks(one: Embeddings, units: NDArray[np.int64] | None) -> Iterator[Embeddings]:
    block_of = random_blocks(one, BLOCKS).numpy() if units is None else _numbered_blocks(one, units)
    yield from (Subset(one, np.flatnonzero(block_of != block)) for block in range(BLOCKS))


def _numbered_blocks(one: Embeddings, units: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the block of each sample by the number of its unit: one number is in one block, whatever the set."""
    count = int(units.max()) + 1
    _check_units(one, count)
    return np.asarray(np.random.default_rng(0).permutation(count)[units] % BLOCKS)


def random_blocks(embeddings: Embeddings, count: int) -> torch.Tensor:
    """Assign each sample at random to one of `count` blocks of equal size, and return its block, shape (n,).

    A hash of the ids decides, so the order of the samples does not matter. The samples of a group share a block,
    because they are not independent.
    """
    distinct, unit_of = np.unique(embeddings.unit_keys(), return_inverse=True)
    _check_units(embeddings, len(distinct), count)
    # np.unique sorts by hash, so that the ranks are a random order of the samples.
    return torch.from_numpy(unit_of % count)


def _check_units(embeddings: Embeddings, units: int, blocks: int = BLOCKS) -> None:
    if units < 2 * blocks:
        raise DataError(
            f"{embeddings.name} has {units} independent samples, too few for {blocks} blocks: give at least "
            f"{2 * blocks}"
        )
