"""Pictures in the file of a result, so that its page is the same from any folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np

from finc_eval.core.files.reading import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.gallery.gallery import Pictures, Thumbnails
from finc_eval.gallery.thumbnails import MAX_EDGE, Kind, Thumbnail

PICTURES = "pictures"
"""Key of the index of the pictures in the header, and beginning of the names of the arrays with their bytes."""


def write_pictures(file: NewFile, pictures: Mapping[str, Thumbnails]) -> None:
    """Write pictures into the file of a result."""
    index = []
    for number, (label, of_set) in enumerate(pictures.items()):
        entries = [[name, one.kind, one.width, one.height, len(one.data)] for name, one in sorted(of_set.items())]
        index.append({"set": label, "pictures": entries})
        data = b"".join(one.data for _, one in sorted(of_set.items()))
        file.array(f"{PICTURES}/{number}", np.frombuffer(data, np.uint8))
    file.header[PICTURES] = index


def read_pictures(file: StoredFile) -> Pictures:
    """Read the pictures that `write_pictures` wrote; call it in `content_of`."""
    return dict(_read_set(file, number, head) for number, head in enumerate(file.header[PICTURES]))


def _read_set(file: StoredFile, number: int, head: dict[str, Any]) -> tuple[str, Thumbnails]:
    data = file.array(f"{PICTURES}/{number}", None, dtype="|u1").tobytes()
    found, start = {}, 0
    for entry in head["pictures"]:
        name, kind, width, height, length = _check(*entry)
        found[name] = Thumbnail(data[start : start + length], kind, width, height)
        start += length
    if start != len(data):
        raise ValueError("its pictures do not match their index")
    return str(head["set"]), found


def _check(name: str, kind: Kind, width: int, height: int, length: int) -> tuple[str, Kind, int, int, int]:
    sizes: tuple[Any, ...] = (width, height, length)
    whole = all(isinstance(one, int) and one > 0 for one in sizes)
    if kind not in get_args(Kind) or not whole or max(width, height) > MAX_EDGE:
        raise ValueError("the index of its pictures is wrong")
    return str(name), kind, width, height, length
