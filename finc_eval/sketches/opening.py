"""The door for sketches where a whole set is needed."""

from __future__ import annotations

from pathlib import Path

import torch

from finc_eval.core.files.front import file_type
from finc_eval.embeddings.opening import unmerged
from finc_eval.sketches.header import SKETCH
from finc_eval.sketches.sketch import Sketch


def as_sketch(source: object, device: str | torch.device = "cpu") -> Sketch | None:
    """Open a set that is a sketch, or the path of one; None for any other.

    Raises:
        DataError: the file is damaged, or the sketch is of a shard.
    """
    path = source if isinstance(source, str | Path) else None
    found = Sketch.load(path, device) if path is not None and file_type(path) == SKETCH else source
    if not isinstance(found, Sketch):
        return None
    if found.shards:
        raise unmerged(str(path or "the sketch"), found.shards[0])
    return found
