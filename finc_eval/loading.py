"""`load`: any file that finc-eval wrote, as the object that was saved; `results_in`: all results of a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

from finc_eval.core.errors import DataError, FincEvalError
from finc_eval.core.files.file_types import FILE_TYPES, wrong_type
from finc_eval.core.files.on_disk import on_disk
from finc_eval.core.files.parsed import read_json
from finc_eval.core.files.stored import content_of, file_type, header_of
from finc_eval.core.marks import CHECKSUM, mark_of
from finc_eval.core.serialize import read_document
from finc_eval.core.storage import PROGRAM
from finc_eval.embeddings.cache import EmbeddingCache
from finc_eval.results import RESULTS, result_class
from finc_eval.samples.files import files_in
from finc_eval.sketches.sketch import Sketch
from finc_eval.wing import part_of_wing

if TYPE_CHECKING:
    from finc_eval.core.serialize import Document
    from finc_eval.gallery.pictured import Pictured
    from finc_eval.private.reference.sketch import PrivateSketch

NOT_RESULTS = tuple(name for name in FILE_TYPES if name not in RESULTS)
"""Types of files that are not results, such as embeddings."""


def load(path: str | Path) -> Document | Sketch | PrivateSketch | EmbeddingCache:
    """Open a file that finc-eval wrote.

    Args:
        path: .h5 file of a result, a sketch, a private sketch or an embedding cache, or .json file of any
            result. Arrays, such as the coefficients of directions, are in the .h5 files alone.

    Raises:
        DataError: the file is missing, damaged, or from another program.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> fe.Sketch.reference(example_sets(300)[1], features=200).save("ref.h5")
        >>> fe.load("ref.h5").n
        300
    """
    path = on_disk(path)
    if not path.exists():
        raise DataError(f"{path} does not exist")
    if path.suffix == ".json":
        return _from_json(path)
    match file_type(path):
        case str(type_name) if type_name in RESULTS:
            return cast("type[Pictured]", result_class(type_name)).load(path)
        case "sketch":
            return Sketch.load(path)
        case "private sketch":
            return cast("PrivateSketch", part_of_wing("reference.sketch:PrivateSketch").load(path))
        case None if Path(path).suffix != ".h5":
            raise DataError(
                f"{path} is not a file of {PROGRAM}, which ends in .h5 or .json: samples are opened by fe.extract"
            )
        case _:
            return EmbeddingCache(path)


def load_result(path: str | Path) -> Document:
    """Open a result: an .h5 or .json file. If both have one name, open the .h5 file, which keeps pictures."""
    path = on_disk(path)
    if path.suffix == ".json":
        result, arrays = load(path), path.with_suffix(".h5")
        kept = (header_of(arrays) or {}).get("result", {}).get(CHECKSUM)
        return cast("Document", load(arrays) if kept == read_json(path)[CHECKSUM] else result)
    kind = file_type(path)
    if kind is None and path.is_file():
        raise DataError(f"{path} is not a result of {PROGRAM} of this version: make it again")
    if kind in NOT_RESULTS:
        raise wrong_type(path, kind, "a result, such as the .h5 file of finc-eval compare")
    return cast("Document", load(path))


def results_in(folder: Path) -> Iterator[tuple[str, Document | FincEvalError]]:
    """Yield the results in a folder and the folders below it, by their paths.

    What ends in .json or .h5 and cannot be read as a result is yielded with its error. Embeddings and sketches are left
    out, and so is the .h5 file of a result that has a .json file.
    """
    names = sorted(name for name in files_in(folder) if Path(name).suffix in (".json", ".h5"))
    for name in names:
        path = folder / name
        twin = mark_of(path.with_suffix(".json")) if path.suffix == ".h5" else None
        try:
            if path.suffix == ".h5" and (file_type(path) in NOT_RESULTS or (twin and twin == mark_of(path))):
                continue
            yield name, _from_json(path) if path.suffix == ".json" else load_result(path)
        except FincEvalError as error:
            yield name, error


def _from_json(path: Path) -> Document:
    data = read_document(path, RESULTS)
    with content_of(path):
        return result_class(data["type"]).from_dict(data, str(path))
