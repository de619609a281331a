"""`Strips`: thumbnails of each kind at up to seven steps, spread over all looks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np

from finc_eval.core.errors import check_finite
from finc_eval.core.files.stored import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.gallery.thumbnails import Thumbnail, kept_thumbnails

MOST_STEPS = 7  # steps of a filmstrip: with pictures of 48 pixels, a line of 400


class Strips:
    """Thumbnails of each kind at up to seven steps: the first, the last, and steps spread between them."""

    def __init__(self) -> None:
        self.pictures: dict[float, dict[str, Thumbnail]] = {}
        self.notes: list[str] = []  # pictures of a file that cannot be shown

    def add(self, step: float, pictures: Mapping[str, Thumbnail]) -> None:
        """Add the pictures of a look; if there are too many steps, leave out the one with the nearest neighbors."""
        if not pictures:
            return
        self.pictures[step] = dict(pictures)
        if len(self.pictures) > MOST_STEPS:
            steps = sorted(self.pictures)
            gaps = {one: after - before for before, one, after in zip(steps, steps[1:], steps[2:], strict=False)}
            del self.pictures[min(gaps, key=lambda one: gaps[one])]

    def write(self, file: NewFile) -> None:
        """Write the pictures into a file."""
        entries = [(step, name, one) for step, found in self.pictures.items() for name, one in found.items()]
        index = [[step, name, one.kind, one.width, one.height, len(one.data)] for step, name, one in entries]
        file.header["strips"] = index
        file.array("strips", np.frombuffer(b"".join(one.data for *_, one in entries), np.uint8))

    @classmethod
    def read(cls, file: StoredFile) -> Self:
        """Read what `write` wrote; call it in `content_of`."""
        data, start, found = file.array("strips", None, dtype="|u1").tobytes(), 0, cls()
        brought: dict[float, list[tuple[str, bytes, str, int, int]]] = {}
        for step, name, kind, width, height, size in file.header["strips"]:
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise ValueError("the index of its pictures is wrong")
            stated = str(name), data[start : start + size], kind, width, height
            brought.setdefault(check_finite("the step of a picture", step), []).append(stated)
            start += size
        if start != len(data) or len(brought) > MOST_STEPS:
            raise ValueError("its pictures do not match their index")
        for step, pictures in brought.items():
            found.pictures[step], note = kept_thumbnails(pictures)
            found.notes += [f"step {step:g}: {note}"] if note else []
        return found
