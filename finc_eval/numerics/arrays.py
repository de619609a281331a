"""Arrays as embeddings or their mean and covariance, one sentence on what is neither, and folds of samples."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.files.tensors import MEAN, Shapes

ROWS_SEEN = 4096  # rows of float64 that are looked at for digits that float32 would lose
ENTRIES_SEEN = 1 << 22  # entries that are copied to be looked at: a set may take all the memory that is allowed
MOST_LOST = 1e-3  # rounding of an entry by float32, in parts of its standard deviation, from which distances are wrong
LEAST_SPREAD = 1e-14  # spread of an entry, in parts of its size, that is more than the rounding of float64


def as_rows(array: ArrayLike | torch.Tensor, name: str, *, whole: bool = True, precise: bool = False) -> torch.Tensor:
    """Return embeddings as a tensor of floats, shape (n, d); only a whole set shows whether it is a covariance.

    If rows stay `precise`, in float64, nothing is lost where they differ by little.
    """
    rows = array if isinstance(array, torch.Tensor) else as_tensor(array, name)
    if not is_plain(rows):
        kind = "on the device meta, without content" if rows.is_meta else "that is sparse, quantized or complex"
        raise UsageError(f"{name} is a tensor {kind}: pass a dense tensor of floats, such as x.to_dense().float()")
    if rows.ndim != 2 or 0 in rows.shape:
        advice = ": embed images or clips first, by fe.extract(x)" if rows.ndim > 2 else ""
        if rows.ndim == 2:
            advice = ": it has no samples" if not len(rows) else ": its rows have no entries"
        raise UsageError(f"{name} must be embeddings of shape (n, d), got shape {tuple(rows.shape)}{advice}")
    if not rows.dtype.is_floating_point:
        raise UsageError(
            f"{name} must be floating-point embeddings, got {rows.dtype}: pass floats, or embed images "
            "first, by fe.extract(x)"
        )
    if not whole:
        return rows
    if (
        len(rows) == rows.shape[1] > 2
        and is_covariance(matrix := _in_numpy(rows))
        # A diagonal or constant matrix is none of pairs.
        and np.count_nonzero(matrix) > np.count_nonzero(matrix.diagonal())
        and matrix.max() > matrix.min()
    ):
        raise UsageError(
            f"{name} is a symmetric matrix of {len(rows)} rows, as a covariance is, and not a set of embeddings: "
            "save mean and covariance in an .npz as mu and sigma for fe.metrics"
        )
    if precise or rows.dtype != torch.float64 or len(rows) < 2:
        return rows
    # So far from zero, float32 would lose how float64 embeddings differ.
    seen = rows.detach()[:: -(-len(rows) // ROWS_SEEN)]
    size, spread = _size_and_spread(seen)
    lost = (size * torch.finfo(torch.float32).eps > MOST_LOST * spread) & (spread > size * LEAST_SPREAD)
    if lost.any() and size.isfinite().all() and float(size.max()) <= torch.finfo(torch.float32).max:
        entry = int(lost.nonzero()[0])
        raise UsageError(
            f"{name} has entries near {float(size[entry]):.3g} that differ by {float(spread[entry]):.3g}, which "
            "float32 loses: subtract one vector, such as the mean of the reference, from both sets"
        )
    return rows


def finite_rows(given: torch.Tensor, numbers: Sequence[int] | NDArray[np.int64], name: str) -> torch.Tensor:
    """Return embeddings as float32; DataError if one is not finite, or too large for float32.

    `numbers` are the rows of these embeddings in the set of this name.
    """
    rows = given.float()
    # If a row's sum is finite, so are its entries, and the sum is seventy times as fast to check.
    if not rows.sum(1).isfinite().all() and not (finite := rows.isfinite().all(1)).all():
        first_bad = int((~finite).nonzero()[0])
        where = f"{name}: the embedding in row {numbers[first_bad]}"
        if given[first_bad].isfinite().all():
            most = float(given[first_bad].abs().max())
            raise DataError(
                f"{where} has the entry {most:.3g}, more than float32 can hold (3.4e38): scale the embeddings, or "
                "leave it out"
            )
        raise DataError(f"{where} is not finite (NaN or Inf): leave it out")
    return rows


def as_tensor(array: ArrayLike, name: str) -> torch.Tensor:
    """Return an array as a tensor, without a copy where torch can read its memory."""
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise UsageError(
            f"{name} has {int(np.ma.getmaskarray(array).sum()):,} masked entries, which embeddings cannot have: leave "
            "out the rows with np.ma.compress_rows(x), or fill them"
        )
    try:
        values = np.asarray(array)
    except (TypeError, ValueError) as error:  # such as rows of several lengths
        what = f"a {type(array).__name__} that is not one"
        raise UsageError(f"{name} must be an array of embeddings, shape (n, d), got {what}") from error
    if values.ndim == 0:
        raise UsageError(f"{name} must be an array of embeddings, a cache or its path, got {type(array).__name__}")
    if values.dtype.kind not in "biufc":
        what = "Python objects" if values.dtype.kind == "O" else f"values of the type {values.dtype}"
        raise UsageError(f"{name} is an array of {what}, not of numbers: convert it with x.astype('float32')")
    if values.dtype.kind == "f" and values.dtype.itemsize > np.dtype(np.float64).itemsize:
        values = values.astype(np.float64)
    elif not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    backward = any(stride < 0 for stride in values.strides)
    return torch.from_numpy(values.copy() if backward or not values.flags.writeable else values)


def is_plain(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is an ordinary one: not sparse, nested, quantized, packed, complex or without content."""
    special = tensor.is_quantized or tensor.is_complex() or tensor.is_meta or tensor.is_nested
    is_packed = str(tensor.dtype).endswith("_x2")  # two numbers in a byte, with which PyTorch does not compute
    return tensor.layout == torch.strided and not special and not is_packed


PARTS_OF_NAMES = re.compile(
    rf"(?P<mean>{MEAN})|(?P<covariance>covariance|cov|sigma|(?<![a-z])s(?![a-z]))"
    r"|(?P<sum>_?sum)"
)
"""Parts of the names of a mean and a covariance of one set: mu and sigma, m1 and s1, real_mean …"""

OTHER_MATRIX = re.compile(
    r"(?<![a-z])(inv|inverse|prec|precision|corr|correlation|corrcoef|chol|cholesky|scatter|gram|kernel|sqrt|root)(?![a-z])"
)
"""Names of matrices that are made of a covariance, and are not one."""

COUNT = re.compile(r"(?<![a-z])(?:n|num|nobs|count|samples|images|examples)\d*$")
"""Endings of the name of a number of samples: n, num_samples, real_features_num_samples …"""

SYMMETRY = 1e-5  # difference from its transpose, in parts of the largest entry, that a covariance may have by rounding


class Pair(NamedTuple):
    """Names of a mean and a covariance, and what their names have in common."""

    mean: str
    covariance: str
    stem: str

    @property
    def are_sums(self) -> bool:
        """True if they are sums over samples, by their names."""
        return "sum" in self.covariance.lower() or "sum" in self.mean.lower()

    @property
    def is_named(self) -> bool:
        """True if the matrix is called a covariance."""
        return _stem(self.covariance)[1] == "covariance"


def pair_in(shapes: Shapes, read: Callable[[str], NDArray[Any]], where: str) -> Pair | None:
    """Return the mean and the covariance among arrays; None if there are none.

    They are called mu and sigma, or are a vector and a symmetric matrix of its size.
    """
    if {"mu", "sigma"} <= set(shapes):
        return Pair("mu", "sigma", "")
    pairs = [pair for name, shape in shapes.items() if (pair := _pair_of(name, shape, shapes, where, read))]
    if len(pairs) > 1 and all(pair.are_sums for pair in pairs):
        pairs = [pair for pair in pairs if count_of(pair, shapes, read)] or pairs[:1]
    if len(pairs) > 1:
        held = ", ".join(f"{pair.mean} with {pair.covariance}" for pair in pairs)
        raise DataError(f"{where} holds several means and covariances ({held}): save one pair as mu and sigma")
    return pairs[0] if pairs else None


def count_of(pair: Pair, shapes: Shapes, read: Callable[[str], NDArray[Any]]) -> int | None:
    """Return the number of samples that stands beside a pair; None without one, or if there are several."""
    first, star, _ = pair.stem.partition("*")
    named = [name for name in shapes if COUNT.search(name.lower()) and name.lower().startswith(first if star else "")]
    numbers = {
        float(number.item())
        for name in named
        if (number := np.asarray(read(name))).size == 1 and number.dtype.kind in "iuf"
    }
    return int(n) if len(numbers) == 1 and (n := numbers.pop()).is_integer() else None


def from_sums(
    pair: Pair, total: NDArray[Any], products: NDArray[Any], n: int | None, where: str
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return mean (d,) and covariance (d, d) from the sum of n samples and the sum of their outer products."""
    if n is None:
        raise DataError(
            f"{where} holds the sums {pair.mean} and {pair.covariance} without the number of samples: save the mean "
            "and the covariance as mu and sigma"
        )
    if n < 2:
        raise DataError(f"{where} holds sums of {n} samples: a covariance takes two or more")
    mean = total.astype(np.float64) / n
    return mean, (products.astype(np.float64) - n * np.outer(mean, mean)) / (n - 1)


def is_covariance(matrix: NDArray[Any]) -> bool:
    """Return whether a matrix of several rows is symmetric, with a diagonal that is not negative."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        return False
    step = max(1, ENTRIES_SEEN // len(matrix))
    parts = [slice(start, start + step) for start in range(0, len(matrix), step)]
    scale = float(np.max([np.abs(matrix[part]).max() for part in parts]))
    return (
        bool(np.isfinite(scale))
        and float(matrix.diagonal().min()) >= -SYMMETRY * scale
        and all(_difference(matrix[part], matrix[:, part].T) <= SYMMETRY * scale for part in parts)
    )


def _difference(x: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the largest absolute difference of two arrays of one shape."""
    return float(np.abs(x.astype(np.float64) - y).max())


def _in_numpy(rows: torch.Tensor) -> NDArray[Any]:
    """Return a tensor as an array, without a copy if numpy has its kind of float."""
    rows = rows.detach()
    array: NDArray[Any] = (rows if rows.dtype in (torch.float32, torch.float64) else rows.float()).cpu().numpy()
    return array


def _size_and_spread(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the largest magnitude and the standard deviation of each column."""
    parts = torch.split(rows, max(1, ENTRIES_SEEN // len(rows)), 1)
    return torch.cat([part.abs().amax(0) for part in parts]), torch.cat([part.std(0) for part in parts])


def _pair_of(
    name: str, shape: tuple[int, ...], shapes: Shapes, where: str, read: Callable[[str], NDArray[Any]]
) -> Pair | None:
    """Return the pair whose covariance has this name; None if it is not one."""
    if len(shape) != 2 or shape[0] != shape[1]:
        return None
    vectors = [other for other, size in shapes.items() if size in (shape[:1], (1, *shape[:1]))]
    stem, part = _stem(name)
    alike = [other for other in vectors if _stem(other)[0] == stem and _stem(other)[1] != "covariance"]
    vectors = alike or [other for other in vectors if _stem(other)[1] == "mean"] or vectors
    if (
        vectors
        and (other := OTHER_MATRIX.search(name.lower()))
        and any(_stem(vector)[1] == "mean" for vector in vectors)
    ):
        raise DataError(
            f"{where} holds a mean and the matrix {name}, not a covariance by its name ({other[0]}): save mean and "
            "covariance as mu and sigma"
        )
    if not vectors or not (part == "covariance" or is_covariance(np.asarray(read(name)))):
        return None
    if len(vectors) > 1:
        raise DataError(
            f"{where} holds the covariance {name}, and {', '.join(vectors)} may be its mean: save them as mu and sigma"
        )
    return Pair(vectors[0], name, stem)


def _stem(name: str) -> tuple[str, str | None]:
    """Return a name with a star for the part that says mean or covariance, and which of them it says."""
    matches = list(PARTS_OF_NAMES.finditer(name.lower()))
    part = next((match.lastgroup for match in matches if match.lastgroup != "sum"), None)
    return re.sub(r"\*+", "*", PARTS_OF_NAMES.sub("*", name.lower()).replace("_*", "*")), part


FOLD_BIT = np.uint64(1)  # the bit of a key that is the fold of a sample: the last bit


def fold_of(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the fold, 0 or 1, of samples with these keys, both of shape (n,)."""
    return (keys & FOLD_BIT).astype(np.int64)


def without_fold(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the keys, shape (n,), without the bit of their fold; these bits decide which samples are drawn."""
    return keys >> FOLD_BIT


def rows_of(folds: torch.Tensor, fold: int) -> torch.Tensor:
    """Return the indices of the rows of a fold, ascending, from the fold of each row."""
    return (folds == fold).nonzero().squeeze(1)
