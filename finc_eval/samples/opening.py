"""`open_source`: recognize a set of samples, and open it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from posixpath import splitext
from typing import Any, Literal

import numpy as np

from finc_eval.core.doors import check_regular, with_home
from finc_eval.core.errors import DataError, UsageError, check_count, close_match
from finc_eval.core.files.on_disk import file_of
from finc_eval.core.files.stored import check_type
from finc_eval.core.places import disk_path, is_url, place_of, url_of
from finc_eval.core.words import plural
from finc_eval.samples.clips import CLIPS, Clip
from finc_eval.samples.files import (
    VIDEO_SUFFIXES,
    Files,
    FolderFiles,
    ImageFiles,
    NoImagesError,
    UrlFiles,
    ZipFiles,
    in_short,
    sort_out,
)
from finc_eval.samples.hugging_face import DatasetSource, is_saved, open_dataset, open_saved
from finc_eval.samples.images import IMAGE_SUFFIXES
from finc_eval.samples.in_memory import is_numbered, iterate
from finc_eval.samples.metadata import read_prompts
from finc_eval.samples.reading import BRACES, EVERYTHING, STORED, Color, Reading, only, split_glob
from finc_eval.samples.rows import ARRAY_SUFFIXES, ArraySource, NpzSource, images_of, is_tensor, open_array_file
from finc_eval.samples.shards import random_subset
from finc_eval.samples.source import Samples, Source, is_dataset, reason
from finc_eval.samples.tables import ParquetSource
from finc_eval.samples.tar import TarSource, open_tar_pattern, refuse_compressed
from finc_eval.samples.video_files import open_path_of_clips, open_rows_of_clips, open_url_of_clips


def open_source(
    source: Samples,
    *,
    clip: Clip | None = None,
    n: int | None = None,
    seed: int = 0,
    include: Sequence[str] | str = (),
    exclude: Sequence[str] | str = (),
    image_key: str | None = None,
    range: tuple[float, float] | None = None,
    prompts: str | Path | None = None,
    color: Color = STORED,
) -> Source:
    """Open a set of samples in any form.

    Args:
        source: one of
            the path of a folder (read recursively) or .zip of image files;
            the path of a .tar, of a folder of .tar files, or a pattern such as "shard-{0000..0009}.tar" (WebDataset);
            the path of an .npz, .npy, .pt or .safetensors with a uint8 array of images;
            the path of a .parquet file with a column of encoded images, or of a folder of them;
            a path with wildcards, such as "results/*_fake.png";
            the URL of any of these (s3://, gs://, az://, hf:// and file://; of single files also https://);
            the path of a folder that Hugging Face's `save_to_disk` wrote;
            a uint8 array or tensor, (n, height, width, 3), (n, height, width, 1) or (n, height, width);
            an object with a length and numbered items (a dataset of torch or Hugging Face, a list of images);
            an iterable of images or batches;
            a function that takes a number and returns a batch of that many images.
            With `clip` also videos: see `open_path_of_clips`.
        clip: choice of the frames of a clip; default: samples are images.
        n: number of samples to take, as a seeded subset of a larger set; default: all. Functions, and iterables without
            a length, need it.
        seed: random seed of the subset.
        include: patterns of the names of files that are samples, such as "*_fake.png"; default: all.
        exclude: patterns of the names of files that are not samples.
        image_key: name of the images if a sample has several things by name: a key of dictionaries, a column, an array,
            or what follows the first dot in names of tar members ("left.png").
        range: the numbers that are black and white, such as (-1, 1), in arrays, tensors and image files of more than
            8 bits; default: 0 and 255, and other types than uint8 are refused.
        prompts: column of the metadata that has the prompts; or the path of a .csv or .jsonl that names the samples. Or
            the path of a .txt, .tsv, .csv or .jsonl with a prompt a line: line k, from 0 or from 1, belongs to the
            samples whose name, or folder, begins with k. Default: prompts that are found with the samples.
        color: "stored" to take pixels as image files have them, as FID tools do; "srgb" to convert them by the color
            profile, gamma or CICP that a file has.

    Raises:
        UsageError: a choice does not fit the source; `n` is missing, not a positive whole number, or more than the set
            has; the source is not of a form above.
        DataError: the source does not exist, cannot be read, or holds no samples.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> digits, _ = example_sets(50)
        >>> source = fe.open_source((255 * digits).astype("uint8").reshape(50, 28, 28), n=10)
        >>> [(sample.id, sample.pixels.shape) for sample in source.samples()][:2]
        [('1', (28, 28, 3)), ('3', (28, 28, 3))]
        >>> source.manifest().n
        10
    """
    if n is not None:
        check_count("n", n)
    reading = Reading(include, exclude, image_key, range, color=color)  # type: ignore[arg-type]  # it takes a single pattern, too
    try:
        opened = _open_images(source, n, reading) if clip is None else _open_clips(source, clip, n, reading)
    except PermissionError as error:
        raise DataError(f"{error.filename} cannot be read ({reason(error)}): check who may read it") from error
    opened.reading = reading
    if prompts is not None:
        opened.columns = {**opened.columns, **read_prompts(str(prompts), opened.ids, opened.columns)}
    if n is None or n == len(opened.ids):
        return opened
    if n > len(opened.ids):
        raise UsageError(
            f"{opened.name} has {plural(len(opened.ids), 'sample')}, but n is {n}: ask for at most as many"
        )
    return random_subset(opened, n, seed)


def open_clips(source: Any, clip: Clip, reading: Reading = EVERYTHING) -> Source | None:
    """Open a set of clips; None for images, and for a folder or .zip without videos and frames."""
    form = _form_of(source)
    return _OF_CLIPS[form](source, clip, reading) if form in _OF_CLIPS else None


def _open_clips(source: Any, clip: Clip, n: int | None, reading: Reading) -> Source:
    if reading.image_key is not None or reading.range is not None or reading.color != STORED:
        raise UsageError("image_key, range and color are for images, and the extractor takes clips")
    if opened := open_clips(source, clip, reading):
        return opened
    try:
        name = _open_images(source, n, reading).name
    except NoImagesError as error:
        raise DataError(error.as_videos) from error
    raise DataError(
        f"{name} holds images, but the extractor takes clips: pass the folder that holds the videos or the folders of "
        "frames, or an array of shape (n, frames, height, width, 3), or choose an extractor for images (finc-eval "
        "doctor extractors list)"
    )


SamplesForm = Literal["place", "stream", "array", "dataset", "table", "numbered"]
"""Forms of samples: a path, a pattern of paths or a URL; an iterator or a function; an array or a tensor; a dataset of
Hugging Face; a data frame; and whatever else has a length and numbered items."""


def _open_images(source: Any, n: int | None, reading: Reading) -> Source:
    return _OPENERS[_form_of(source)](source, n, reading)


def _form_of(source: Any) -> SamplesForm:
    """Return the form of samples, by their type and not by what they hold."""
    if isinstance(source, str | Path):
        return "place"
    is_iterable = hasattr(source, "__iter__") and not isinstance(source, Mapping | bytes)
    has_numbers = is_numbered(source)
    if not has_numbers and (callable(source) or is_iterable):
        return "stream"
    if is_tensor(source) or isinstance(source, np.ndarray):
        return "array"
    if is_dataset(source):
        return "dataset"
    if hasattr(source, "columns") and hasattr(source, "to_numpy"):
        return "table"
    if has_numbers:
        return "numbered"
    raise UsageError(
        f"samples must be a path, an array, a dataset or an iterable, got {type(source).__name__}: "
        "turn it into a uint8 array of shape (n, height, width, 3)"
    )


def _open_stream(source: Any, n: int | None, reading: Reading) -> Source:
    reading.refuse("the iterator", keys=True)
    return iterate(source, n, reading)


def _open_array(source: Any, n: int | None, reading: Reading) -> Source:
    who = f"the tensor ({source.dtype})" if is_tensor(source) else "the array"
    reading.refuse(who)
    if np.ma.is_masked(source):
        raise DataError(f"{who} has masked entries, which pixels cannot have: fill them, as by x.filled(0)")
    source = np.asarray(source) if isinstance(source, np.ndarray) else source
    return ArraySource(images_of(source, who, reading, alone=True), reading)


def _open_dataset(source: Any, n: int | None, reading: Reading) -> Source:
    reading.refuse("the dataset", keys=True)
    return open_dataset(source, "the dataset", reading=reading)


def _refuse_table(source: Any, n: int | None, reading: Reading) -> Source:
    raise UsageError("a table is not a set of images: pass the column of images or their paths, as list(x['path'])")


def _open_numbered(source: Any, n: int | None, reading: Reading) -> Source:
    reading.refuse("the dataset", keys=True)
    return DatasetSource(source, reading)


def existing_path(given: str | Path) -> Path | None:
    """Return the path of a file or folder that exists; None for a pattern of several, and for a remote folder."""
    try:
        if is_url(given):
            return None if BRACES.search(str(given)) else file_of(given)
        path = with_home(disk_path(given))
        if path.exists():
            check_regular(path, or_folder=True)
            return path
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(f"{given} is not a path that can be looked up: {reason(error)}") from error
    if BRACES.search(str(given)) or split_glob(str(given)):
        return None
    if not path.parent.is_dir():
        raise DataError(f"{path} does not exist, nor does the folder {path.parent}")
    nearest = close_match(path.name, (entry.name for entry in path.parent.iterdir()))
    raise DataError(
        f"{path} does not exist: {f'did you mean {path.parent / nearest}?' if nearest else 'check the path'}"
    )


def _open_place(place: str | Path, n: int | None, reading: Reading) -> Source:
    """Open a path, or the URL of a folder, or a pattern."""
    path = existing_path(place)
    return _open_pattern(str(place), reading) if path is None else _open_path(path, reading)


def _open_clips_at(place: str | Path, clip: Clip, reading: Reading) -> Source | None:
    """Open the clips at a path or behind a URL; None for anything else."""
    path = existing_path(place)
    return open_url_of_clips(str(place), clip, reading) if path is None else open_path_of_clips(path, clip, reading)


def _open_path(path: Path, reading: Reading) -> Source:
    """Open a folder, or a file by its suffix."""
    if path.is_dir():
        return _open_folder_of(path, reading)
    suffix = path.suffix.lower()
    if suffix not in _OF_FILES:
        reading.refuse(str(path), keys=True)
        raise _not_samples(path, suffix)
    return _OF_FILES[suffix](path, reading)


def _open_folder_of(path: Path, reading: Reading) -> Source:
    """Open a folder on the local disk."""
    if is_saved(path):
        reading.refuse(str(path), keys=True)
        return open_saved(path, reading)
    if (path / "data.mdb").is_file():
        raise _an_lmdb(path)
    return _open_folder(FolderFiles(path), path, reading)


def _open_zip(path: Path, reading: Reading) -> Source:
    reading.refuse(str(path), files=True)
    return _image_files(ZipFiles(path), reading)


def _open_tar(path: Path, reading: Reading) -> Source:
    return TarSource(place_of(path), [(path.stem, path)], reading)


def _open_arrays(path: Path, reading: Reading) -> Source:
    reading.refuse(str(path), keys=True)
    return NpzSource(path, reading) if path.suffix.lower() == ".npz" else open_array_file(path, reading)


def _open_parquet(path: Path, reading: Reading) -> Source:
    reading.refuse(str(path), keys=True)
    return ParquetSource(place_of(path), [(path.stem, path)], reading)


def _refuse_lmdb(path: Path, reading: Reading) -> Source:
    reading.refuse(str(path), keys=True)
    raise _an_lmdb(path)


def _an_lmdb(path: Path) -> DataError:
    return DataError(
        f"{path} is an LMDB, which is not read: write its images to files, by the package lmdb (for key, value in "
        "lmdb.open(path, readonly=True, lock=False).begin().cursor()), and pass their folder"
    )


def _open_pattern(text: str, reading: Reading) -> Source:
    """Open the URL of a folder, or a pattern of files or shards."""
    if BRACES.search(text):
        return open_tar_pattern(text, reading)
    if is_url(text) or (divided := split_glob(text)) is None:
        return _open_folder(UrlFiles(text), text, reading)
    # The other files of the folder are not a part of the set.
    folder, pattern = divided
    if not folder.is_dir():
        raise DataError(f"{text}: the folder {folder} does not exist")
    files = FolderFiles(folder)
    reading.refuse(str(folder), files=True)
    ids, ignored = sort_out(files, only(pattern, files.names()), reading)
    if not ids:
        raise DataError(f"{text} matches {f'no images, only {in_short(ignored)}' if ignored else 'nothing'}")
    return ImageFiles(files, ids, ignored)


def _image_files(files: Files, reading: Reading) -> Source:
    """Return the images among files, of which some must be images."""
    ids, ignored = sort_out(files, reading=reading)
    if not ids:
        raise NoImagesError(files.name, ignored)
    return ImageFiles(files, ids, ignored)


def _not_samples(path: Path, suffix: str) -> DataError:
    """Return why a file is not a set of samples."""
    refuse_compressed(path)
    if suffix in IMAGE_SUFFIXES:
        return DataError(f"{path} is a single image: pass the folder that holds the set")
    if suffix in VIDEO_SUFFIXES:
        return DataError(f"{path} is a video: {CLIPS}")
    check_type(path, str(path), "samples")
    return DataError(
        f"{path} is not a set of samples: pass a folder, a .zip, a .tar, an .npz or a numpy array of images"
    )


def _open_folder(files: Files, folder: str | Path, reading: Reading) -> Source:
    names = list(files.names())
    ids, ignored = sort_out(files, names, reading)
    if ids:
        reading.refuse(files.name, files=True)
        return ImageFiles(files, ids, ignored)
    url = url_of(folder)
    for suffix, kind in ((".tar", TarSource), (".parquet", ParquetSource)):
        shards = [
            (splitext(name)[0], f"{url}/{name}" if url else Path(folder, name))
            for name in sorted(names)
            if name.lower().endswith(suffix)
        ]
        if shards:
            reading.refuse(files.name, files=suffix == ".tar", keys=True)
            return kind(files.name, shards, reading)
    raise NoImagesError(files.name, ignored)


_OPENERS: Mapping[SamplesForm, Callable[[Any, int | None, Reading], Source]] = {
    "place": _open_place,
    "stream": _open_stream,
    "array": _open_array,
    "dataset": _open_dataset,
    "table": _refuse_table,
    "numbered": _open_numbered,
}
"""Function that opens samples, by their form: from the source, the number of samples, and what is read of them."""

_OF_CLIPS: Mapping[SamplesForm, Callable[[Any, Clip, Reading], Source | None]] = {
    "place": _open_clips_at,
    "array": open_rows_of_clips,
}
"""Function that opens clips, by their form; other forms hold images."""

_OF_FILES: Mapping[str, Callable[[Path, Reading], Source]] = {
    ".zip": _open_zip,
    ".tar": _open_tar,
    ".parquet": _open_parquet,
    **dict.fromkeys((".npz", *ARRAY_SUFFIXES), _open_arrays),
    **dict.fromkeys((".mdb", ".lmdb"), _refuse_lmdb),
}
"""Function that opens a file of samples, by its suffix."""
