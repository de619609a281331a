"""Statistics of reference sets in files: those of other tools read, our own written. No pickle is ever loaded."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from finc_eval.core.errors import FincEvalError
from finc_eval.core.signature import Signature
from finc_eval.core.storage import written_whole
from finc_eval.embeddings.base import ARRAY_SPACE
from finc_eval.metrics.gaussian import GaussianStatistics

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMAT = "finc-eval statistics 1"
OURS = ("format", "n", "space", "digest")


def read_statistics(path: str | Path, *, spatial: bool = False) -> GaussianStatistics:
    """Mean and covariance in an npz of pytorch-fid, clean-fid, EDM, the ADM evaluator, or of `write_statistics`.

    All keep them as `mu` and `sigma`, none but ours with the number of samples and the extractor, so n is None and
    the space unknown: that the file was made with the same extractor and resize is for the caller to know.

    Args:
        path: the file.
        spatial: read `mu_s` and `sigma_s` instead, the ADM evaluator's statistics for sFID.

    Raises:
        FincEvalError: when the file holds no such statistics, or they are no mean and covariance; when it is a
            pickle; when the digest in a file of ours is not that of its contents.
    """
    keys = ("mu_s", "sigma_s") if spatial else ("mu", "sigma")
    arrays = _npz(path, keys)
    mean, covariance = (np.atleast_1d(np.asarray(arrays[key])) for key in keys)
    _check(path, mean, covariance)
    statistics = GaussianStatistics(
        n=None,
        mean=torch.from_numpy(mean.astype(np.float64)),
        covariance=torch.from_numpy(covariance.astype(np.float64)),
        name=str(path),
        space=f"{ARRAY_SPACE}{len(mean)}",
    )
    return _ours(path, arrays, statistics) if "format" in arrays else statistics


def holds_statistics(path: str | Path) -> bool:
    """Whether this is an npz of statistics, and not of samples."""
    if not zipfile.is_zipfile(path) or Path(path).suffix.lower() != ".npz":
        return False
    with zipfile.ZipFile(path) as file:
        return {"mu.npy", "sigma.npy"} <= set(file.namelist())


def write_statistics(path: str | Path, statistics: GaussianStatistics) -> Signature:
    """Write an npz with `mu` and `sigma`, which other tools read too, and n, the extractor, digest and signature.

    Returns:
        The signature.

    Raises:
        FincEvalError: when the file cannot be written.
    """
    signature = statistics_signature(statistics)
    arrays = {
        "mu": statistics.mean.cpu().numpy(),
        "sigma": statistics.covariance.cpu().numpy(),
        "n": np.array(-1 if statistics.n is None else statistics.n),
        "space": np.array(statistics.space),
        "digest": np.array(_digest(statistics)),
        "signature": np.array(str(signature)),
        "format": np.array(FORMAT),
    }
    with written_whole(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # of a keyword that none of these is
    return signature


def statistics_signature(statistics: GaussianStatistics) -> Signature:
    """What pins these statistics: number of samples, extractor and digest."""
    n = "unknown" if statistics.n is None else str(statistics.n)
    return Signature("statistics", (("n", n), ("fx", statistics.space), ("digest", _digest(statistics)[:12])))


def read_kid_features(path: str | Path) -> NDArray[np.floating[Any]]:
    """The embeddings, shape (n, d), that clean-fid keeps as `feats` for KID.

    Raises:
        FincEvalError: when the file holds none.
    """
    feats = _npz(path, ("feats",))["feats"]
    if feats.ndim != 2 or not np.issubdtype(feats.dtype, np.floating):
        raise FincEvalError(f"feats in {path} must be floats of shape (n, d), got {feats.dtype} of {feats.shape}")
    return feats


def _npz(path: str | Path, needed: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """The needed arrays of an npz, and where it is one of ours the rest of it."""
    path = Path(path)
    if path.suffix.lower() in (".pkl", ".pickle"):
        raise FincEvalError(
            f"{path} is a pickle, which runs its author's code when it is read: where you trust it, convert it once "
            "with numpy.savez(path, mu=…, sigma=…) and give that file"
        )
    if not path.exists():
        raise FincEvalError(f"{path} does not exist")
    try:
        with zipfile.ZipFile(path), np.load(path, allow_pickle=False) as file:
            held = set(file.files)
            arrays = {key: file[key] for key in held & {*needed, *OURS}}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise FincEvalError(f"{path} is no npz of plain arrays ({error}): make it with numpy.savez") from error
    if not set(needed) <= held:
        listed = ", ".join(sorted(held)) or "nothing"
        raise FincEvalError(f"{path} has no {' and '.join(needed)}, it has {listed}: {_advice(held)}")
    return arrays


def _check(path: str | Path, mean: NDArray[Any], covariance: NDArray[Any]) -> None:
    if mean.ndim != 1 or covariance.shape != (len(mean), len(mean)):
        raise FincEvalError(
            f"{path} must hold a mean of shape (d,) and a covariance of (d, d), got {mean.shape} and {covariance.shape}"
        )
    if not all(np.issubdtype(array.dtype, np.floating) for array in (mean, covariance)):
        raise FincEvalError(f"{path} must hold floating-point numbers, got {mean.dtype} and {covariance.dtype}")
    if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
        raise FincEvalError(f"{path} holds numbers that are not finite (NaN or Inf): make it again")
    scale = float(np.abs(covariance).max())
    if np.abs(covariance - covariance.T).max() > 1e-5 * scale or covariance.diagonal().min() < -1e-5 * scale:
        raise FincEvalError(f"the covariance in {path} is not symmetric with a positive diagonal: make the file again")


def _ours(path: str | Path, arrays: dict[str, NDArray[Any]], plain: GaussianStatistics) -> GaussianStatistics:
    if str(arrays["format"]) != FORMAT:
        raise FincEvalError(f"{path} has the format {str(arrays['format'])!r}, this version reads {FORMAT!r}")
    if missing := set(OURS) - set(arrays):
        raise FincEvalError(f"{path} lacks {', '.join(sorted(missing))}: it is damaged, make it again")
    n = int(arrays["n"])
    statistics = GaussianStatistics(
        None if n < 0 else n, plain.mean, plain.covariance, plain.name, str(arrays["space"])
    )
    if _digest(statistics) != str(arrays["digest"]):
        raise FincEvalError(f"{path} was changed since it was written: its digest does not fit, make it again")
    return statistics


def _digest(statistics: GaussianStatistics) -> str:
    sha = hashlib.sha256(f"{statistics.n}|{statistics.space}".encode())
    for tensor in (statistics.mean, statistics.covariance):
        sha.update(tensor.cpu().contiguous().numpy().astype("<f8").tobytes())
    return sha.hexdigest()


def _advice(held: set[str]) -> str:
    if "arr_0" in held:
        return "those are samples, embed them with finc-eval extract"
    if "feats" in held:
        return "those are embeddings, for KID"
    return "give statistics as numpy.savez(path, mu=…, sigma=…) writes them"
