"""Pictures in the HDF5 file of a result, so that its page is the same from any folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_args

import h5py
import numpy as np

from finc_eval.core.errors import DataError
from finc_eval.gallery.gallery import Pictures, Thumbnails
from finc_eval.gallery.thumbnails import MAX_EDGE, Kind, Thumbnail

GROUP = "pictures"
"""Group of the pictures in the file: for each set the bytes of all, and an index as JSON."""


def write_pictures(file: h5py.File, pictures: Mapping[str, Thumbnails]) -> None:
    """Write pictures into the file of a result."""
    group = file.create_group(GROUP)
    for number, (label, of_set) in enumerate(pictures.items()):
        index = [[name, one.kind, one.width, one.height, len(one.data)] for name, one in sorted(of_set.items())]
        text = json.dumps({"set": label, "pictures": index}).encode("ascii")
        group[f"{number}/index"] = np.frombuffer(text, np.uint8)
        group[f"{number}/bytes"] = np.frombuffer(b"".join(one.data for _, one in sorted(of_set.items())), np.uint8)


def read_pictures(file: h5py.File, where: str) -> Pictures:
    """Read the pictures that `write_pictures` wrote; none from a file without.

    Raises:
        DataError: they are damaged.
    """
    if GROUP not in file:
        return {}
    try:
        return dict(_read_set(file[GROUP][number]) for number in sorted(file[GROUP], key=int))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"the pictures in {where} are damaged: make it again") from error


def _read_set(group: h5py.Group) -> tuple[str, Thumbnails]:
    head = json.loads(group["index"][:].tobytes())
    data = group["bytes"][:].tobytes()
    found, start = {}, 0
    for entry in head["pictures"]:
        name, kind, width, height, length = _checked(*entry)
        found[name] = Thumbnail(data[start : start + length], kind, width, height)
        start += length
    if start != len(data):
        raise ValueError
    return str(head["set"]), found


def _checked(name: str, kind: Kind, width: int, height: int, length: int) -> tuple[str, Kind, int, int, int]:
    sizes: tuple[Any, ...] = (width, height, length)
    if kind not in get_args(Kind) or not all(isinstance(one, int) and one > 0 for one in sizes):
        raise ValueError
    if max(width, height) > MAX_EDGE:
        raise ValueError
    return str(name), kind, width, height, length
