"""`Pictured`: a result whose page shows samples, and whose file keeps small pictures of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, get_args

import numpy as np

from finc_eval.core.errors import UsageError
from finc_eval.core.files.front import check_target
from finc_eval.core.files.reading import StoredFile, existing_file
from finc_eval.core.files.writing import NewFile, new_file
from finc_eval.core.record import NOT_IN_JSON
from finc_eval.core.serialize import LAYOUT, Document
from finc_eval.core.storage import write_together
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.gallery.counts import SHOWN_SAMPLES, check_shown
from finc_eval.gallery.gallery import Gallery, Pictures, Thumbnails, read_gallery
from finc_eval.gallery.thumbnails import MAX_EDGE, Kind, Thumbnail
from finc_eval.samples import Samples

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
    found: Pictures = {}
    for number, head in enumerate(file.header[PICTURES]):
        data, start = file.array(f"{PICTURES}/{number}", None, dtype="|u1").tobytes(), 0
        of_set = found[str(head["set"])] = {}
        for entry in head["pictures"]:
            name, kind, width, height, length = _check(*entry)
            of_set[name] = Thumbnail(data[start : start + length], kind, width, height)
            start += length
        if start != len(data):
            raise ValueError("its pictures do not match their index")
    return found


def _check(name: str, kind: Kind, width: int, height: int, length: int) -> tuple[str, Kind, int, int, int]:
    sizes: tuple[Any, ...] = (width, height, length)
    whole = all(isinstance(one, int) and one > 0 for one in sizes)
    if kind not in get_args(Kind) or not whole or max(width, height) > MAX_EDGE:
        raise ValueError("the index of its pictures is wrong")
    return str(name), kind, width, height, length


@dataclass(frozen=True, eq=False)
class Pictured(Document):
    """A result whose page shows samples, and whose HDF5 file keeps small pictures of them.

    Attributes:
        shown: samples of each set and mode that its page shows and its file keeps pictures of; 0 for none.
        kept: pictures that the file had; None for a result that was not read from one.
    """

    names_in_sentences: ClassVar[Mapping[str, str]] = {}
    """Names of the sets in a sentence, by label; others are called by their label."""

    shown: int = field(default=SHOWN_SAMPLES, kw_only=True)
    kept: Annotated[Pictures | None, *NOT_IN_JSON] = field(default=None, kw_only=True, repr=False)

    def pictured_sets(self) -> Mapping[str, SetInfo]:
        """Return the sets whose samples a page shows, by label."""
        raise NotImplementedError

    def shown_samples(self) -> Mapping[str, Iterable[str]]:
        """Return the ids of the samples of each set that a page shows, by label."""
        raise NotImplementedError

    def showing(self, count: int) -> Self:
        """Return the result with this many samples of each set and mode shown and kept in its file; 0 for none.

        Raises:
            UsageError: the count is not a whole number from 0 to 16.
        """
        check_shown(count)
        return replace(self, shown=count)

    @cached_property
    def gallery(self) -> Gallery:
        """Pictures of the samples that a page shows, from the file it was read from or the sets that were compared."""
        return self._gather({})

    def gallery_of(self, samples: Mapping[str, Samples]) -> Gallery:
        """Return the pictures of the samples that a page shows, with where the samples of a set are now, by label."""
        return self._gather(samples) if samples else self.gallery

    def _gather(self, samples: Mapping[str, Samples]) -> Gallery:
        """Gather the pictures of the samples that a page shows."""
        sets, shown = self.pictured_sets(), self.shown_samples()
        return read_gallery(sets, shown, samples, kept=self.kept, names=self.names_in_sentences)

    def save(self, path: str | Path) -> None:
        """Write an HDF5 file, from which `load` restores the result, and its JSON twin.

        The file keeps small pictures of the samples that a page shows (`showing`), so that its page is the same from
        any folder.

        Raises:
            UsageError: the path ends in .json.
            DataError: the path holds another kind of file, or cannot be written.
        """
        twin = self.twin(path)
        with write_together():
            with new_file(path, self.type_name, LAYOUT) as file:
                file.header["result"] = self.to_dict()
                self._write(file)
                write_pictures(file, self.gallery.pictures)
            self.to_json(twin)

    @classmethod
    def twin(cls, path: str | Path) -> Path:
        """Return the path of the JSON twin of a result at `path`.

        Raise UsageError if that is `path` itself, and DataError if `path` holds another kind of file.
        """
        twin = Path(path).with_suffix(".json")
        if twin == Path(path):
            raise UsageError(f"{path} is the name of the JSON twin: save the result as {twin.stem}.h5")
        check_target(path, cls.type_name)
        return twin

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a result that `save` wrote.

        Raises:
            DataError: the file is missing, damaged, or of another type.
        """
        with existing_file(path, cls.type_name, LAYOUT) as file:
            data: dict[str, Any] = file.header["result"]
            arrays = cls._read(file, data)
            return cls.from_dict(data | arrays | {"kept": read_pictures(file)}, str(path))

    def _write(self, file: NewFile) -> None:
        """Write what JSON leaves out, except the pictures; default: nothing."""

    @classmethod
    def _read(cls, file: StoredFile, data: dict[str, Any]) -> dict[str, Any]:
        """Read what `_write` wrote, as fields of the result; parts of `data` may be completed."""
        return {}
