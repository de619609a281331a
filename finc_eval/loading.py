"""`load`: any file that finc-eval wrote, as the object that was saved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from finc_eval.core.errors import DataError
from finc_eval.core.files.front import file_type
from finc_eval.core.files.reading import content_of
from finc_eval.core.serialize import read_document
from finc_eval.embeddings.cache import EmbeddingCache
from finc_eval.partitions.kinds import Kinds
from finc_eval.privacy.reference.sketch import PrivateSketch
from finc_eval.report import RESULTS, result_class
from finc_eval.sketches.sketch import Sketch

if TYPE_CHECKING:
    from finc_eval.core.serialize import Document
    from finc_eval.gallery.pictured import Pictured


def load(path: str | Path) -> Document | Sketch | PrivateSketch | EmbeddingCache:
    """Open a file that finc-eval wrote.

    Args:
        path: .h5 file of a result, a sketch, a private sketch or an embedding cache, or .json file of any
            result. Arrays, such as the directions of modes, are in the .h5 files alone.

    Raises:
        DataError: the file is missing, damaged, or not one of finc-eval's.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> fe.Sketch.reference(example_sets(300)[1], features=200).save("ref.h5")
        >>> fe.load("ref.h5").n
        300
    """
    if not Path(path).exists():
        raise DataError(f"{path} does not exist")
    if Path(path).suffix == ".json":
        return _from_json(Path(path))
    match file_type(path):
        case "comparison" | "models" | "methods" | "sweep" | "changes" as type_name:
            return cast("type[Pictured]", result_class(type_name)).load(path)
        case "kinds":
            return Kinds.load(path)
        case "sketch":
            return Sketch.load(path)
        case "private sketch":
            return PrivateSketch.load(path)
        case _:
            return EmbeddingCache(path)


def _from_json(path: Path) -> Document:
    data = read_document(path, RESULTS)
    with content_of(path):
        return result_class(data["type"]).from_dict(data, str(path))
