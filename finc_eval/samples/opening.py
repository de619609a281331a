"""`open_source`: finds out what it was given."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from finc_eval.core.errors import FincEvalError
from finc_eval.samples.datasets import DatasetSource
from finc_eval.samples.files import VIDEO_SUFFIXES, FolderSource, ZipSource, files_in, no_images, sort_out
from finc_eval.samples.hugging_face import HuggingFaceSource, is_dataset, is_saved, open_saved
from finc_eval.samples.images import IMAGE_SUFFIXES
from finc_eval.samples.in_memory import is_tensor
from finc_eval.samples.iterators import iterate
from finc_eval.samples.rows import ArraySource, NpzSource, check_rows
from finc_eval.samples.source import Source, reason
from finc_eval.samples.subset import Subset
from finc_eval.samples.tar import BRACES, open_tar, open_tar_folder, open_tar_pattern, refuse_compressed

if TYPE_CHECKING:
    from finc_eval.samples.clips import Clip

Samples = str | Path | npt.NDArray[Any] | Iterable[Any] | Callable[[int], Any]
"""What `open_source` takes: a path, an array or tensor, a dataset, an iterable, or a function that makes a batch."""


def open_source(source: Samples, *, clip: Clip | None = None, n: int | None = None, seed: int = 0) -> Source:
    """Open a set of samples, whatever it comes as.

    Args:
        source: the path of
            a folder (read recursively) or .zip of image files,
            a .tar, a folder of .tar files, or a pattern as "shard-{0000..0009}.tar" (WebDataset),
            an .npz with a uint8 array of images,
            a folder that Hugging Face's `save_to_disk` wrote;
            or a uint8 array or tensor, (n, height, width, 3), (n, height, width, 1) or (n, height, width);
            or an object with a length and numbered items (a dataset of torch, of Hugging Face, a list of images);
            or an iterable of images or batches, or a function that returns a batch of as many images as it is told.
            With `clip`, what holds videos as well.
        clip: which frames of a video are a sample; None where samples are images.
        n: how many samples to take: a seeded subset where the set has more. An iterable that does not know its
            length, and a function, need it.
        seed: of the subset.

    Raises:
        FincEvalError: the source is missing, holds no samples or fewer than `n`, or is of a kind that cannot be read.
    """
    if n is not None and n < 1:
        raise FincEvalError(f"n must be at least 1, got {n}")
    if isinstance(source, str | Path):
        _check_path(source)
    opened = _open_images(source, n) if clip is None else _open_clips(source, clip, n)
    if n is None or n == len(opened.ids):
        return opened
    if n > len(opened.ids):
        raise FincEvalError(f"{opened.name} has {len(opened.ids)} samples, and {n} were asked for: ask for fewer")
    return Subset(opened, n, seed)


def _open_clips(source: Any, clip: Clip, n: int | None) -> Source:
    # Images alone should not pay for the reader of videos.
    from finc_eval.samples.video_files import open_clips

    if opened := open_clips(source, clip):
        return opened
    name = _open_images(source, n).name
    raise FincEvalError(
        f"{name} holds images, and the extractor takes clips: pass videos, folders of frames, or an array of shape "
        "(n, frames, height, width, 3), or choose an extractor for images (finc-eval extractors list)"
    )


def _open_images(source: Any, n: int | None) -> Source:
    if isinstance(source, str | Path):
        return _open_path(str(source))
    if not _is_numbered(source) and (callable(source) or _is_iterable(source)):
        return iterate(source, n)
    if is_tensor(source):
        source = source.detach().cpu().numpy()
        if source.ndim == 4 and source.shape[3] not in (1, 3) and source.shape[1] in (1, 3):
            source = source.transpose(0, 2, 3, 1)
    if isinstance(source, np.ndarray):
        check_rows(source.shape, source.dtype, "the array")
        return ArraySource(source)
    if is_dataset(source):
        return HuggingFaceSource(source, "the dataset")
    if _is_numbered(source):
        return DatasetSource(source)
    raise FincEvalError(
        f"samples must be a path, an array, a dataset or an iterable, got {type(source).__name__}: "
        "turn it into a uint8 array of shape (n, height, width, 3)"
    )


def _check_path(given: str | Path) -> None:
    """Refuse what no system takes for a path: it is too long, or of a user who does not exist."""
    try:
        Path(given).expanduser().exists()
    except (OSError, RuntimeError) as error:
        raise FincEvalError(f"{given} is no path that can be looked up: {reason(error)}") from error


def _open_path(given: str) -> Source:
    path = Path(given).expanduser()
    if not path.exists():
        if BRACES.search(given):
            return open_tar_pattern(given)
        raise FincEvalError(f"{path} does not exist{_close_match(path)}")
    if path.is_dir():
        return _open_folder(path)
    suffix = path.suffix.lower()
    if suffix == ".zip":
        return ZipSource(path)
    if suffix == ".npz":
        return NpzSource(path)
    if suffix == ".tar":
        return open_tar(path)
    refuse_compressed(path)
    if suffix in IMAGE_SUFFIXES:
        raise FincEvalError(f"{path} is a single image: pass the folder that holds the set")
    if suffix in VIDEO_SUFFIXES:
        raise FincEvalError(f"{path} is a video: choose an extractor for clips (finc-eval extractors list)")
    raise FincEvalError(
        f"{path} is no set of samples: pass a folder, a .zip, a .tar, an .npz or a numpy array of images"
    )


def _open_folder(folder: Path) -> Source:
    if is_saved(folder):
        return open_saved(folder)
    ids, ignored = sort_out(files_in(folder))
    if ids:
        return FolderSource(folder, ids, ignored)
    shards = [name for name in files_in(folder) if name.lower().endswith(".tar")]
    if not shards:
        raise no_images(folder, ignored)
    return open_tar_folder(folder, shards)


def _is_numbered(source: Any) -> bool:
    """Whether items can be asked for by number, from 0 to a known length."""
    is_mapping = isinstance(source, Mapping | str | bytes)
    return not is_mapping and hasattr(source, "__len__") and hasattr(source, "__getitem__")


def _is_iterable(source: Any) -> bool:
    return hasattr(source, "__iter__") and not isinstance(source, Mapping | bytes)


def _close_match(path: Path) -> str:
    if not path.parent.is_dir():
        return f", nor does the folder {path.parent}"
    matches = difflib.get_close_matches(path.name, [entry.name for entry in path.parent.iterdir()], n=1)
    return f": did you mean {path.parent / matches[0]}?" if matches else ": check the path"
