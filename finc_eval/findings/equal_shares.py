"""Looks at equal shares of kinds: a difference that unlike shares of kinds make is gone between samples of one kind."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from finc_eval.naming.evidence import MOST
from finc_eval.numerics.inference import ALPHA, normal_quantile

Floats = NDArray[np.float64]


def is_made_by_kinds(values: Mapping[str, Floats], kinds: Mapping[str, NDArray[np.str_]]) -> bool:
    """Return whether unlike shares of kinds make a difference of a trait.

    They do if at most half of the difference is left between samples of the same kind, and less than all of it by a
    one-sided test of level `ALPHA`.

    Args:
        values: trait of the samples of each set, shape (n,), by set: "gen" and "ref".
        kinds: id of the kind of each sample, shape (n,), by set.
    """
    left, error = left_within_kinds(values, kinds)
    return bool(left <= MOST and left + normal_quantile(1 - 2 * ALPHA) * error < 1)


def left_within_kinds(values: Mapping[str, Floats], kinds: Mapping[str, NDArray[np.str_]]) -> tuple[float, float]:
    """Return the part of a difference of mean ranks that is left within kinds, and its standard error.

    Ranks are of both sets together. Kinds are strata with the weights of van Elteren (1960), n m / (n + m); a kind that
    one set lacks says nothing. The part is below 0 for a difference in the other direction.

    Returns:
        Part of the difference of the sets, and its error; infinite errors if no kind is in both sets.
    """
    pooled = _mean_ranks(np.concatenate([values["gen"], values["ref"]]))
    gen, ref = np.split(pooled, [len(values["gen"])])
    whole = float(gen.mean() - ref.mean())
    weights, differences, squares = [], [], []
    for kind in {*kinds["gen"].tolist()} & {*kinds["ref"].tolist()}:
        own, other = gen[kinds["gen"] == kind], ref[kinds["ref"] == kind]
        weights.append(len(own) * len(other) / (len(own) + len(other)))
        differences.append(own.mean() - other.mean())
        squares.append(((own - own.mean()) ** 2).sum() + ((other - other.mean()) ** 2).sum())
    free = len(pooled) - 2 * len(weights)
    if whole == 0 or free <= 0 or not weights:
        return 1.0, float("inf")
    left = float(np.average(differences, weights=weights))
    return left / whole, float(np.sqrt(sum(squares) / free / sum(weights))) / abs(whole)


def _mean_ranks(values: Floats) -> Floats:
    """Return the ranks of values, (n,), from 1 on; equal values have the mean of their ranks."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[place.reshape(-1)])
