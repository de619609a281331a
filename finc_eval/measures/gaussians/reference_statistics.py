"""Files of reference statistics: read files of other tools, read and write our own. Pickles are never loaded."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.digest import sha256_of
from finc_eval.core.doors import create_file
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.files.npz import NpzFile
from finc_eval.core.files.stored import content_of
from finc_eval.core.places import out_path
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature
from finc_eval.core.storage import check_writable, write_whole
from finc_eval.embeddings.array_files import holds_statistics, read_moments
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.recipe import ARRAY_SPACE
from finc_eval.measures.gaussians.gaussian import GaussianStatistics, from_embeddings
from finc_eval.samples.rows import holds_images

STATISTICS_LAYOUT = "finc-eval statistics 1"
OWN_KEYS = ("format", "n", "space", "digest")  # arrays that only our own files have


def read_statistics(path: str | Path, *, spatial: bool = False) -> GaussianStatistics:
    """Read mean and covariance from a file of pytorch-fid, clean-fid, EDM, the ADM evaluator, or `write_statistics`.

    All of them store `mu` and `sigma` in an npz. Other names, .pt and .safetensors are recognized by their content: a
    vector beside a symmetric matrix of its size. The sums that torchmetrics keeps are turned into both. A number
    of samples beside them, such as n, is read as well. Only our own files also state the extractor: of others, the
    caller has to know that extractor and resize were the same.
    `spatial` reads `mu_s` and `sigma_s` instead, the ADM evaluator's statistics for sFID.
    """
    moments = None if spatial else read_moments(path)
    if moments is None:
        keys = ("mu_s", "sigma_s") if spatial else ("mu", "sigma")
        arrays = _npz(path, keys)
        moments = arrays[keys[0]], arrays[keys[1]], None
    else:
        arrays = _npz(path, ()) if Path(path).suffix.lower() == ".npz" else {}
    mean, covariance = (np.atleast_1d(np.asarray(moment)) for moment in moments[:2])
    _check(path, mean, covariance)
    statistics = GaussianStatistics(
        n=moments[2],
        mean=torch.from_numpy(mean.astype(np.float64)),
        stated=torch.from_numpy(covariance.astype(np.float64)),
        name=str(path),
        space=f"{ARRAY_SPACE}{len(mean)}",
        is_foreign=True,
    )
    return _ours(path, arrays, statistics) if "format" in arrays else statistics


def write_statistics(
    path: str | Path, statistics: GaussianStatistics, source: str = "", about: Mapping[str, str] | None = None
) -> Signature:
    """Write statistics as an npz with `mu` and `sigma`, which other tools read, plus n, extractor, digest, signature.

    `source` is the digest of the set that they are of. `about` has further texts, such as its license. Return
    their signature: number of samples, extractor and digest.
    """
    n, digest = statistics.n, _digest(statistics)
    fields = ("n", "unknown" if n is None else str(n)), ("fx", statistics.space), ("digest", digest[:12])
    signature = Signature("statistics", fields)
    arrays = {
        "mu": statistics.mean.cpu().numpy(),
        "sigma": statistics.covariance.cpu().numpy(),
        "n": np.array(-1 if n is None else n),
        "space": np.array(statistics.space),
        "digest": np.array(digest),
        "signature": np.array(str(signature)),
        "source": np.array(source),
        "format": np.array(STATISTICS_LAYOUT),
        **{key: np.array(text) for key, text in (about or {}).items()},
    }
    with write_whole(path) as temporary, create_file(temporary) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # of the keyword allow_pickle, which is not among these
    return signature


def check_place(path: str | Path | None) -> None:
    """Raise an error unless statistics can be written at a path; None asks for none."""
    if path is None:
        return
    if Path(path).suffix != ".npz":
        raise UsageError(f"save_statistics must be the path of an .npz, got {path}")
    check_writable(out_path(path))


def save_statistics_of(
    path: str | Path, given: Embeddings | GaussianStatistics, run: Run, about: Mapping[str, str]
) -> None:
    """Write the statistics of a set, with its digest and texts about it."""
    if isinstance(given, Embeddings):
        write_statistics(path, from_embeddings(given, run=run), given.digest, about)
    else:
        write_statistics(path, given, about=about)


def source_of(path: str | Path) -> str:
    """Return the digest of the set that statistics in a file of ours are of; "" for any other file."""
    return stated_text(path, "source")


def stated_text(path: str | Path, name: str) -> str:
    """Return a text that a file of ours has beside its statistics; "" for any other file."""
    with suppress(DataError):
        file = NpzFile(path)
        if {"format", name} <= set(file.names):
            return str(file.array(name))
    return ""


def beside_samples(source: object) -> GaussianStatistics | None:
    """Return the statistics that a file of images or embeddings holds as well; None without any."""
    if not isinstance(source, str | Path) or holds_statistics(source):
        return None
    with suppress(DataError):  # of several sets, or damaged: the samples are what the file is read for
        return None if read_moments(source) is None else read_statistics(source)
    return None


def note_beside(source: object, given: object, used: object, run: Run) -> str | None:
    """Return what to know of samples with statistics beside them, for a Fréchet distance.

    `used` is what the distance is computed from.
    """
    if not isinstance(given, Embeddings) or (stored := beside_samples(source)) is None:
        return None
    are_images = holds_images(Path(str(source)))
    what = "images by this extractor" if are_images else "embeddings"
    if stored.dim == given.dim:
        computed = from_embeddings(given, run=run).to(stored.mean.device)
        least, most = sorted(float(each.trace) for each in (computed, stored))
        distance = float((computed.mean - stored.mean).square().sum())
        # 10: squared distance of two means of one set, in parts of what it is for an independent sample of it.
        # 1.5: ratio of the total variances of a set and of a sample of it.
        if distance > 10 * most / given.n or most > 1.5 * least:
            return (
                f"{given.name} contradicts itself: its stored mean and covariance are not those of its {what}: use a "
                "file with one of both"
            )
    took = "its images were embedded, and its stored mean and covariance not used"
    if isinstance(used, GaussianStatistics):
        took = "its stored mean and covariance were used, not its images"
    return f"{given.name} holds both images and statistics: {took}" if are_images else None


def _npz(path: str | Path, needed: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """Read the needed arrays of an npz and, if it is one of ours, the others too."""
    path = Path(path)
    if path.suffix.lower() in (".pkl", ".pickle"):
        raise DataError(
            f"{path} is a pickle, which runs its author's code when it is read: if you trust it, convert it once "
            "with numpy.savez(path, mu=…, sigma=…) and pass that file"
        )
    file = NpzFile(path)
    held = set(file.names)
    arrays = {key: file.array(key) for key in held & {*needed, *OWN_KEYS}}
    if not set(needed) <= held:
        listed = ", ".join(sorted(held)) or "nothing"
        advice = "pass statistics as numpy.savez(path, mu=…, sigma=…) writes them"
        if "feats" in held:
            advice = "those are embeddings, for KID"
        if "arr_0" in held:
            advice = "those are samples, embed them with finc-eval extract"
        raise DataError(f"{path} has no {' and '.join(needed)}, it has {listed}: {advice}")
    return arrays


def _check(path: str | Path, mean: NDArray[Any], covariance: NDArray[Any]) -> None:
    if mean.ndim != 1 or covariance.shape != (len(mean), len(mean)):
        raise DataError(
            f"{path} must hold a mean of shape (d,) and a covariance of (d, d), got {mean.shape} and {covariance.shape}"
        )
    if not all(np.issubdtype(array.dtype, np.floating) for array in (mean, covariance)):
        raise DataError(f"{path} must hold floating-point numbers, got {mean.dtype} and {covariance.dtype}")
    if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
        raise DataError(f"{path} holds numbers that are not finite (NaN or Inf): make it again")
    scale = float(np.abs(covariance).max())
    if np.abs(covariance - covariance.T).max() > 1e-5 * scale or covariance.diagonal().min() < -1e-5 * scale:
        raise DataError(f"the covariance in {path} is not symmetric with a positive diagonal: make the file again")


def _ours(path: str | Path, arrays: dict[str, NDArray[Any]], plain: GaussianStatistics) -> GaussianStatistics:
    if str(arrays["format"]) != STATISTICS_LAYOUT:
        raise DataError(
            f"{path} has the layout {str(arrays['format'])!r}, this version reads {STATISTICS_LAYOUT!r}: write it again"
        )
    if missing := set(OWN_KEYS) - set(arrays):
        raise DataError(f"{path} lacks {', '.join(sorted(missing))}: it is damaged, make it again")
    with content_of(path):
        n = int(arrays["n"])
        statistics = GaussianStatistics(
            None if n < 0 else n, plain.mean, plain.covariance, plain.name, str(arrays["space"]), is_foreign=n < 0
        )
    if _digest(statistics) != str(arrays["digest"]):
        raise DataError(f"{path} was changed since it was written: its digest does not match, make it again")
    return statistics


def _digest(statistics: GaussianStatistics) -> str:
    arrays = (tensor.cpu().numpy().astype("<f8") for tensor in (statistics.mean, statistics.covariance))
    return sha256_of(f"{statistics.n}|{statistics.space}", *arrays)
