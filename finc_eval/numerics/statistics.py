"""Mean and covariance among named arrays: a vector beside a symmetric matrix of its size is read as statistics."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.errors import DataError, UsageError

PARTS_OF_NAMES = re.compile(
    r"(?P<mean>mean|average|avg|center|mu|(?<![a-z])m(?![a-z]))|(?P<covariance>covariance|cov|sigma|(?<![a-z])s(?![a-z]))"
    r"|(?P<sum>_?sum)"
)
"""Parts of the names of a mean and a covariance of one set: mu and sigma, m1 and s1, real_mean …"""

COUNTS = ("num_samples", "n_samples", "samples", "count", "n")
"""Endings of the name of the number of samples of sums, as torchmetrics keeps them."""

SYMMETRY = 1e-5
"""Difference from its transpose, in parts of the largest entry, that a covariance may have by rounding."""

Shapes = Mapping[str, tuple[int, ...]]
"""Shapes of arrays of floats by name."""


class Pair(NamedTuple):
    """Names of a mean and a covariance, and what their names have in common."""

    mean: str
    covariance: str
    stem: str

    @property
    def are_sums(self) -> bool:
        """True if they are sums over samples, by their names."""
        return "sum" in self.covariance.lower() or "sum" in self.mean.lower()


def pair_in(shapes: Shapes, read: Callable[[str], NDArray[Any]], where: str) -> Pair | None:
    """Return the mean and the covariance among arrays; None if there are none.

    They are called mu and sigma, or are a vector and a symmetric matrix of its size.

    Args:
        shapes: shapes of the arrays.
        read: function that reads an array by name.
        where: the file, for messages.

    Raises:
        DataError: there are several, and none is called mu and sigma.
    """
    if {"mu", "sigma"} <= set(shapes):
        return Pair("mu", "sigma", "")
    pairs = [pair for name, shape in shapes.items() if (pair := _pair_of(name, shape, shapes, where, read))]
    if len(pairs) > 1 and all(pair.are_sums for pair in pairs):
        pairs = [pair for pair in pairs if count_of(pair, shapes, read, where) > 0] or pairs[:1]
    if len(pairs) > 1:
        held = ", ".join(f"{pair.mean} with {pair.covariance}" for pair in pairs)
        raise DataError(f"{where} holds several means and covariances ({held}): save those of one set as mu and sigma")
    return pairs[0] if pairs else None


def count_of(pair: Pair, shapes: Shapes, read: Callable[[str], NDArray[Any]], where: str) -> int:
    """Return the number of samples of sums."""
    for name in shapes:
        if name.lower().endswith(COUNTS) and name.lower().startswith(pair.stem.partition("*")[0]):
            return int(np.asarray(read(name)).reshape(-1)[0])
    raise DataError(
        f"{where} holds the sums {pair.mean} and {pair.covariance} without the number of samples: save the mean and "
        "the covariance as mu and sigma"
    )


def from_sums(total: NDArray[Any], products: NDArray[Any], n: int, where: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return mean and covariance from the sum of n samples and the sum of their outer products."""
    if n < 2:
        raise DataError(f"{where} holds sums of {n} samples: a covariance takes two or more")
    mean = total.astype(np.float64) / n
    return mean, (products.astype(np.float64) - n * np.outer(mean, mean)) / (n - 1)


def is_covariance(matrix: NDArray[Any]) -> bool:
    """Return whether a matrix of several rows is symmetric, with a diagonal that is not negative."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        return False
    values = matrix.astype(np.float64)
    scale = float(np.abs(values).max())
    return bool(
        np.isfinite(scale)
        and np.abs(values - values.T).max() <= SYMMETRY * scale
        and values.diagonal().min() >= -SYMMETRY * scale
    )


def refuse_covariance(rows: torch.Tensor, name: str) -> None:
    """Raise UsageError for rows that are a symmetric matrix, neither diagonal nor constant: it is one of pairs."""
    if rows.shape[0] != rows.shape[1] or len(rows) < 3 or not is_covariance(matrix := _as_numbers(rows)):
        return
    if np.any(matrix - np.diag(matrix.diagonal())) and matrix.max() > matrix.min():
        raise UsageError(
            f"{name} is a symmetric matrix of {len(rows)} rows, as a covariance is, and not a set of embeddings: "
            "save mean and covariance in an .npz as mu and sigma for fe.metrics"
        )


def _as_numbers(rows: torch.Tensor) -> NDArray[np.float64]:
    return rows.detach().double().cpu().numpy()


def _pair_of(
    name: str, shape: tuple[int, ...], shapes: Shapes, where: str, read: Callable[[str], NDArray[Any]]
) -> Pair | None:
    """Return the pair whose covariance has this name; None if it is not one."""
    if len(shape) != 2 or shape[0] != shape[1]:
        return None
    vectors = [other for other, found in shapes.items() if found in (shape[:1], (1, *shape[:1]))]
    stem, part = _stem(name)
    alike = [other for other in vectors if _stem(other)[0] == stem and _stem(other)[1] != "covariance"]
    vectors = alike or [other for other in vectors if _stem(other)[1] == "mean"] or vectors
    if not vectors or not (part == "covariance" or is_covariance(np.asarray(read(name)))):
        return None
    if len(vectors) > 1:
        raise DataError(
            f"{where} holds the covariance {name}, and {', '.join(vectors)} may be its mean: save them as mu and sigma"
        )
    return Pair(vectors[0], name, stem)


def _stem(name: str) -> tuple[str, str | None]:
    """Return a name with a star for the part that says mean or covariance, and which of them it says."""
    found = list(PARTS_OF_NAMES.finditer(name.lower()))
    part = next((one.lastgroup for one in found if one.lastgroup != "sum"), None)
    return re.sub(r"\*+", "*", PARTS_OF_NAMES.sub("*", name.lower()).replace("_*", "*")), part
