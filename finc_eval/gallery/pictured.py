"""Pictures and captions of samples, and `Pictured`: a result whose page shows them, and whose file keeps them small."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np

from finc_eval.core.errors import FincEvalError, UsageError
from finc_eval.core.files.stored import StoredFile, existing_file
from finc_eval.core.files.writing import NewFile, check_target, new_file
from finc_eval.core.places import shown_place
from finc_eval.core.record import NOT_IN_JSON
from finc_eval.core.run import Run
from finc_eval.core.serialize import LAYOUT, Document
from finc_eval.core.storage import write_together
from finc_eval.core.words import join_words
from finc_eval.embeddings.base import ArrayEmbeddings, Embeddings
from finc_eval.embeddings.pictures import EmbeddedSamples, HeldSamples
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.gallery.counts import SHOWN_SAMPLES, check_shown
from finc_eval.gallery.members import FOLDED_PICTURES, Fold, pictured_ids
from finc_eval.gallery.thumbnails import SMALL_EDGE, Thumbnail, kept_thumbnails, preview, thumbnail
from finc_eval.samples.clips import Clip
from finc_eval.samples.source import Samples

Thumbnails = dict[str, Thumbnail]

Pictures = dict[str, Thumbnails]  # thumbnails by the label of their set and their id


@dataclass(frozen=True)
class Gallery:
    """Pictures of the samples that a result shows."""

    pictures: Pictures  # thumbnails by the label of their set and their id, without missing pictures
    notes: tuple[str, ...] = ()  # why pictures are missing, at most one sentence for each reason


def read_gallery(
    sets: Mapping[str, SetInfo],
    shown: Mapping[str, Iterable[str]],
    given: Mapping[str, Samples],
    *,
    kept: Mapping[str, Thumbnails] | None = None,
    names: Mapping[str, str] | None = None,
    still: Mapping[str, Collection[str]] = MappingProxyType({}),
    small: Mapping[str, Iterable[str]] = MappingProxyType({}),
) -> Gallery:
    """Gather the pictures of the samples that a result shows, all by the label of their set.

    Pictures of a set come from what the caller gives, else from what the file of the result kept, else from the samples
    that were compared in this process. A path that a file names is never opened. Sentences call the sets by `names`.
    The pictures of clips with the ids `still` are their last frames. Samples `small` have small pictures, where they
    are at hand and are not shown otherwise.
    """
    if given:
        from finc_eval.samples.opening import open_source  # the readers of samples, which few results need
    for label, samples in given.items():
        if label not in sets:
            raise UsageError(f"the result has no set {label!r}: it has {', '.join(sets)}")
        open_source(samples, clip=sets[label].clip)  # what a caller names must be there; the rest may be gone
    pictures: Pictures = {}
    missing: dict[str, list[tuple[str, str]]] = {}
    for label, info in sets.items():
        wanted = set(shown[label])
        folded = set(small.get(label, ())) - wanted
        source = given.get(label, info.samples)
        if label not in given and (kept is not None or source is None):
            held, reason = (kept or {}).get(label, {}), "only their ids are at hand"
            reason = "the file has no pictures of them that can be read" if held else reason
            pictures[label] = {name: picture for name, picture in held.items() if name in wanted | folded}
        else:
            pictures[label], reason = read_thumbnails(
                source, wanted, info.clip, still=still.get(label, ()), small=folded
            )
        if lacking := len(wanted - pictures[label].keys()):
            count = "the" if lacking == len(wanted) else f"{lacking} of the {len(wanted)}"
            missing.setdefault(reason, []).append((label, f"{count} samples of {(names or {}).get(label, label)}"))
    notes = []
    for reason, unseen in missing.items():
        labels = [label for label, _ in unseen]
        where = f"samples={{{', '.join(f'{label!r}: …' for label in labels)}}} or --samples {labels[0]}=…"
        words = f"{join_words([samples_of for _, samples_of in unseen])} are not shown, because {reason}: pass {where}"
        notes.append(f"{words[0].upper()}{words[1:]}, the folder, zip, npz or array that holds them.")
    return Gallery(pictures, tuple(notes))


def read_thumbnails(
    source: Any,
    wanted: set[str],
    clip: Clip | None,
    still_edge: int | None = None,
    *,
    still: Collection[str] = (),
    small: Collection[str] = (),
) -> tuple[Thumbnails, str]:
    """Read samples from anything `open_source` takes; return their pictures, and why some are missing if some are.

    With `still_edge`, the pictures of clips are the frame in their middle, and no edge is longer. Of clips with the
    ids `still`, they are the last frame, as the first picture of a preview is. Samples `small` come on top, small.
    """
    thumbnails: Thumbnails = {}
    wanted = wanted.union(small)
    if not wanted:
        return thumbnails, ""
    try:
        if isinstance(source, EmbeddedSamples | HeldSamples):
            whence = f"{shown_place(source.place)}, or are not the samples that were embedded"
            samples = source.read(wanted)
        else:
            from finc_eval.samples.opening import open_source

            opened = open_source(source, clip=clip)
            whence, samples = (
                shown_place(opened.name),
                opened.take([n for n, name in enumerate(opened.ids) if name in wanted]),
            )
        for sample in samples:
            pixels, encoding = sample.pixels, sample.encoding
            edge = SMALL_EDGE if sample.id in small else still_edge
            if pixels is not None and edge is not None:
                image = pixels if pixels.ndim == 3 else pixels[len(pixels) // 2]
                thumbnails[sample.id] = thumbnail(image, edge)
            elif pixels is not None and pixels.ndim > 3 and sample.id in still:
                thumbnails[sample.id] = thumbnail(pixels[-1])
            elif pixels is not None and pixels.ndim > 3 and len(pixels) > 1:
                # 25: frames a second of clips that do not state it, such as arrays.
                fps = (clip and clip.fps) or (encoding and encoding.fps) or 25.0
                thumbnails[sample.id] = preview(pixels, fps / clip.stride if clip else fps)
            elif pixels is not None:
                thumbnails[sample.id] = thumbnail(pixels if pixels.ndim == 3 else pixels[0])
    except (FincEvalError, OSError) as error:
        stated = str(getattr(source, "place", source))
        return thumbnails, f"they cannot be read ({str(error).replace(stated, shown_place(stated))})"
    return thumbnails, f"they cannot be found or read in {whence}"


class Caption(NamedTuple):
    """Facts of a sample, and the reference sample that is nearest to it."""

    facts: tuple[str, ...]  # its metadata, one line a column
    # id of the nearest reference sample of a generated one, and its distance; None for a reference sample
    nearest: tuple[str, float] | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines under a picture."""
        if self.nearest is None:
            return self.facts
        return (*self.facts, f"nearest reference sample: {self.nearest[0]}, at distance {self.nearest[1]:.3g}")


Captions = dict[str, dict[str, Caption]]  # captions by the label of the set and the id of the sample
MAX_LENGTH = 300  # characters of a value of the metadata; prompts may be pages long


def captions_of(sets: Mapping[str, Embeddings], shown: Mapping[str, Iterable[str]], run: Run) -> Captions:
    """Describe the samples that a page shows, and the reference samples nearest to the generated samples."""
    gen, beside = sets["gen"].metadata_of(set(shown.get("gen", ()))), dict[str, tuple[str, float]]()
    if gen:
        of_gen = sets["gen"].rows_at(np.array([row for row, _ in gen.values()], np.int64))
        near = nearest(ArrayEmbeddings(of_gen), sets["ref"], 1, device=run.device)
        others = sets["ref"].ids_at(near.indices[:, 0])
        beside = dict(zip(gen, zip(others, near.distances[:, 0].tolist(), strict=True), strict=True))
    ref = sets["ref"].metadata_of({*shown.get("ref", ()), *(other for other, _ in beside.values())})
    return {
        "gen": {name: Caption(_facts(values), beside[name]) for name, (_, values) in gen.items()},
        "ref": {name: Caption(_facts(values)) for name, (_, values) in ref.items()},
    }


def store_captions(captions: Captions, shown: Mapping[str, Iterable[str]]) -> dict[str, Any]:
    """Return the captions of the samples that a page shows as plain JSON types."""
    wanted = {label: {*shown[label]} for label in captions}
    return {
        label: {name: list(captions) for name, captions in of_set.items() if name in wanted[label]}
        for label, of_set in captions.items()
    }


def check_captions(stored: Any) -> Captions:
    """Return captions that `store_captions` gave and a file kept."""
    captions_of_sets: Captions = {}
    for label, of_set in stored.items():
        captions = captions_of_sets[str(label)] = {}
        for name, (facts, near) in of_set.items():
            other = None if near is None else (str(near[0]), float(near[1]))
            captions[str(name)] = Caption(tuple(map(str, facts)), other)
    return captions_of_sets


def _facts(values: Mapping[str, str]) -> tuple[str, ...]:
    cut = {name: value if len(value) <= MAX_LENGTH else f"{value[:MAX_LENGTH]}…" for name, value in values.items()}
    return tuple(f"{name}: {value}" for name, value in cut.items())


PICTURES = "pictures"
"""Key of the index of the pictures in the header, and beginning of the names of the arrays with their bytes."""


def read_pictures(file: StoredFile) -> Pictures:
    """Read the pictures of the file of a result; call it in `content_of`."""
    pictures: Pictures = {}
    for number, head in enumerate(file.header[PICTURES]):
        data, start = file.array(f"{PICTURES}/{number}", None, dtype="|u1").tobytes(), 0
        brought = []
        for name, kind, width, height, size in head["pictures"]:
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise ValueError("the index of its pictures is wrong")
            brought.append((str(name), data[start : start + size], kind, width, height))
            start += size
        if start != len(data):
            raise ValueError("its pictures do not match their index")
        pictures[str(head["set"])], _ = kept_thumbnails(brought)
    return pictures


@dataclass(frozen=True, eq=False)
class Pictured(Document):
    """A result whose page shows samples, and whose HDF5 file keeps small pictures of them.

    Attributes:
        shown: samples of each set that its page shows on a card and its file keeps pictures of; 0 for none.
        kept: pictures that the file had; None for a result that was not read from one.
        folder_of_members: name of the folder beside its page that has all members of its kinds; "" without one.
        folded: small pictures of members that its page has folded at most.
    """

    names_in_sentences: ClassVar[Mapping[str, str]] = {}
    """Names of the sets in a sentence, by label; others are called by their label."""

    shown: int = field(default=SHOWN_SAMPLES, kw_only=True)
    kept: Annotated[Pictures | None, *NOT_IN_JSON] = field(default=None, kw_only=True, repr=False)
    folder_of_members: Annotated[str, *NOT_IN_JSON] = field(default="", kw_only=True, repr=False)
    folded: Annotated[int, *NOT_IN_JSON] = field(default=FOLDED_PICTURES, kw_only=True, repr=False)

    def pictured_sets(self) -> Mapping[str, SetInfo]:
        """Return the sets whose samples a page shows, by label."""
        raise NotImplementedError

    def shown_samples(self) -> Mapping[str, Iterable[str]]:
        """Return the ids of the samples of each set that a page shows, by label."""
        raise NotImplementedError

    def still_samples(self) -> Mapping[str, Collection[str]]:
        """Return the ids, among `shown_samples`, of clips that a page shows by their last frame alone; default: none.

        It shows what does not count so. The preview of a clip takes twenty times as long to make.
        """
        return {}

    @property
    def folds(self) -> Mapping[str, Fold]:
        """The members that each card has folded, by its id; default: none."""
        return {}

    def showing(self, count: int) -> Self:
        """Return the result with this many samples of each set shown on a card and kept in its file; 0 for none.

        Raises:
            UsageError: the count is not a whole number from 0 to 16.
        """
        check_shown(count)
        return replace(self, shown=count)

    def showing_fewer(self, samples: Mapping[str, Samples]) -> Self:
        """Return the result with fewer members folded, or else with half of its samples shown.

        Those that are at hand are not read again.
        """
        few = FOLDED_PICTURES // 4
        fewer = replace(self, folded=few * (self.folded > few)) if self.folded else replace(self, shown=self.shown // 2)
        return fewer if samples or self.gallery.notes else replace(fewer, kept=self.gallery.pictures)

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
        names, still, small = self.names_in_sentences, self.still_samples(), pictured_ids(self.folds)
        return read_gallery(sets, shown, samples, kept=self.kept, names=names, still=still, small=small)

    def save(self, path: str | Path) -> None:
        """Write an HDF5 file, from which `load` restores the result, and its JSON twin.

        The file keeps small pictures of the samples that a page shows (`showing`), so that its page is the same from
        any folder.

        Raises:
            UsageError: the path ends in .json.
            DataError: the path holds another kind of file, or cannot be written.
        """
        twin, index = self.twin(path), []
        with write_together():
            with new_file(path, self.type_name, LAYOUT) as file:
                file.header["result"] = self.to_dict()
                self._write(file)
                for number, (label, of_set) in enumerate(self.gallery.pictures.items()):
                    pictures = sorted(of_set.items())
                    entries = [
                        [name, picture.kind, picture.width, picture.height, len(picture.data)]
                        for name, picture in pictures
                    ]
                    index.append({"set": label, "pictures": entries})
                    data = b"".join(picture.data for _, picture in pictures)
                    file.array(f"{PICTURES}/{number}", np.frombuffer(data, np.uint8))
                file.header[PICTURES] = index
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
