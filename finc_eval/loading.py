"""`load`: any file that finc-eval wrote, opened as what it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from finc_eval.comparison.result import Comparison
from finc_eval.core.errors import FincEvalError
from finc_eval.core.storage import kind_of
from finc_eval.embeddings.base import ARRAY_SPACE
from finc_eval.embeddings.cache import EmbeddingCache
from finc_eval.sketches.sketch import Sketch

if TYPE_CHECKING:
    from finc_eval.privacy.reference.sketch import PrivateSketch


def load(path: str | Path) -> Comparison | Sketch | PrivateSketch | EmbeddingCache:
    """The comparison, sketch, private sketch or embedding cache in this file.

    Raises:
        FincEvalError: when the file is missing, damaged, or not one of finc-eval's.
    """
    if not Path(path).exists():
        raise FincEvalError(f"{path} does not exist")
    match kind_of(path):
        case "comparison":
            return Comparison.load(path)
        case "sketch":
            return Sketch.load(path)
        case "private sketch":
            from finc_eval.privacy.reference.sketch import PrivateSketch

            return PrivateSketch.load(path)
        case _:
            return EmbeddingCache(path)


def extractor_of(path: str | Path) -> str | None:
    """The name of the extractor behind the embeddings or the sketch in this file; None where it holds neither."""
    match kind_of(path):
        case "embeddings":
            with EmbeddingCache(path) as cache:
                return cache.extractor
        case "sketch" | "private sketch":
            made = load(path)
            assert not isinstance(made, Comparison | EmbeddingCache)
            space = made.space
            return None if space.startswith(ARRAY_SPACE) else space.split("@")[0]
        case _:
            return None
