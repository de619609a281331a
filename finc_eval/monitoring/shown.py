"""Samples that a monitor shows: thumbnails of each kind at up to seven steps, ids, and words for what is new."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from finc_eval.core.errors import check_finite
from finc_eval.core.files.stored import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.gallery.thumbnails import Thumbnail, kept_thumbnails

MOST_STEPS = 7  # steps of a filmstrip: with pictures of 48 pixels, a line of 400


BROKEN = "not finite"  # name of the alarm of samples that are not finite
LEFT_OUT = (BROKEN, "copies")  # names of ids of samples that are left out
SHOWN = 8  # ids of samples that show a followed thing, at most

Pictures = dict[float, dict[str, Thumbnail]]  # thumbnails of things, by step
Ends = tuple[tuple[str, ...], tuple[str, ...]]  # ids of samples with the least of a thing, and with the most of it


@dataclass(frozen=True)
class ShownSamples:
    """Pictures, ids and words of some samples, by the name of each followed thing.

    Attributes:
        pictures: thumbnail of a sample of each kind.
        ids: ids of samples with the least of it, and of those with the most of it or that have it.
        words: words for things whose samples no name of the reference describes: new kinds and repeats.
    """

    pictures: dict[str, Thumbnail] = field(default_factory=dict)
    ids: dict[str, Ends] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)

    def __add__(self, other: ShownSamples) -> ShownSamples:
        """Join what two processes show of an evaluation."""
        none: Ends = ((), ())
        both = {name: (self.ids.get(name, none), other.ids.get(name, none)) for name in (self.ids | other.ids)}
        ids = {name: ((a + c)[:SHOWN], (b + d)[:SHOWN]) for name, ((a, b), (c, d)) in both.items()}
        return ShownSamples(other.pictures | self.pictures, ids, other.words | self.words)


class Strips:
    """Thumbnails of each kind at up to seven steps, and ids and words of the last evaluation that has a thing.

    The steps are the first, the last, and steps spread between them.
    """

    def __init__(self, reference: ShownSamples | None = None) -> None:
        self.pictures: Pictures = {}
        self.reference, self.last = reference or ShownSamples(), ShownSamples()
        self.notes: list[str] = []  # pictures of a file that cannot be shown

    def ids_of(self, name: str, is_more: bool, is_share: bool) -> tuple[str, ...]:
        """Return ids of samples that show a change: of a lost share those of the reference."""
        shown = self.reference if is_share and not is_more else self.last
        least, most = shown.ids.get(name, ((), ()))
        return most if is_more or is_share else least

    def add_left_out(self, shown: ShownSamples) -> None:
        """Add the ids of samples that are left out of an evaluation."""
        left_out = {name: ends for name, ends in shown.ids.items() if name in LEFT_OUT}
        self.last = ShownSamples({}, self.last.ids | left_out, self.last.words)

    def add(self, step: float, shown: ShownSamples) -> None:
        """Add an evaluation; if there are too many steps, leave out the pictures with the nearest neighbors."""
        self.last = ShownSamples({}, self.last.ids | shown.ids, self.last.words | shown.words)
        if not shown.pictures:
            return
        self.pictures = with_pictures(self.pictures, step, shown.pictures, MOST_STEPS)

    def write(self, file: NewFile) -> None:
        """Write the pictures into a file."""
        write_pictures(file, "strips", self.pictures)
        file.header["shown"] = [[shown_of.ids, shown_of.words] for shown_of in (self.reference, self.last)]

    @classmethod
    def read(cls, file: StoredFile) -> Self:
        """Read what `write` wrote; call it in `content_of`."""
        found = cls()
        found.reference, found.last = (
            ShownSamples({}, _ids(ids), _texts(words)) for ids, words in file.header["shown"]
        )
        found.pictures, found.notes = read_pictures(file, "strips", MOST_STEPS)
        return found


def with_pictures(known: Pictures, step: float, new: Mapping[str, Thumbnail], most: int) -> Pictures:
    """Return pictures by step with a step added; of too many steps, that with the nearest neighbors is left out."""
    pictures = {**known, step: dict(new)}
    if len(pictures) > most:
        steps = sorted(pictures)
        gaps = {middle: after - before for before, middle, after in zip(steps, steps[1:], steps[2:], strict=False)}
        del pictures[min(gaps, key=lambda middle: gaps[middle])]
    return pictures


def write_pictures(file: NewFile, name: str, pictures: Pictures) -> None:
    """Write pictures by step into a file, under a name."""
    entries = [(step, thing, picture) for step, found in pictures.items() for thing, picture in found.items()]
    file.header[name] = [
        [step, thing, picture.kind, picture.width, picture.height, len(picture.data)]
        for step, thing, picture in entries
    ]
    file.array(name, np.frombuffer(b"".join(picture.data for *_, picture in entries), np.uint8))


def read_pictures(file: StoredFile, name: str, most: int) -> tuple[Pictures, list[str]]:
    """Read what `write_pictures` wrote, and notes on pictures that cannot be shown; call it in `content_of`."""
    data, start = file.array(name, None, dtype="|u1").tobytes(), 0
    brought: dict[float, list[tuple[str, bytes, str, int, int]]] = {}
    for step, thing, kind, width, height, size in file.header[name]:
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError("the index of its pictures is wrong")
        stated = str(thing), data[start : start + size], kind, width, height
        brought.setdefault(check_finite("the step of a picture", step), []).append(stated)
        start += size
    if start != len(data) or len(brought) > most:
        raise ValueError("its pictures do not match their index")
    found: Pictures = {}
    notes = []
    for step, pictures in brought.items():
        found[step], note = kept_thumbnails(pictures)
        notes += [f"step {step:g}: {note}"] if note else []
    return found, notes


def _ids(read: dict[str, list[list[str]]]) -> dict[str, Ends]:
    """Return ids as a file has them."""
    return {name: (tuple(map(str, least)), tuple(map(str, most))) for name, (least, most) in read.items()}


def _texts(read: dict[str, str]) -> dict[str, str]:
    return {name: str(text) for name, text in read.items()}
