"""Sets in tar shards, as WebDataset writes them: the files of one sample share their name up to its first dot.

`a/7.jpg`, `a/7.cls` and `a/7.txt` in train-003.tar are the image, label and prompt of the sample "train-003/a/7".
One pass over the headers finds the place of every image; after that, images are read in any order.
"""

from __future__ import annotations

import io
import itertools
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from finc_eval.core.doors import with_home
from finc_eval.core.errors import DataError, UsageError, did_you_mean
from finc_eval.core.files.archives import tar_members
from finc_eval.core.files.on_disk import on_disk
from finc_eval.core.files.parsed import foreign_json
from finc_eval.core.files.stated import check_stated
from finc_eval.core.places import is_url, place_of
from finc_eval.samples.files import (
    BY_NAME,
    FileSource,
    NoImagesError,
    bytes_at,
    in_short,
    is_hidden,
    is_other,
    refuse_excess,
)
from finc_eval.samples.images import IMAGE_SUFFIXES, SIGNATURE_BYTES, SIGNATURES
from finc_eval.samples.metadata import LABEL_KEYS, PROMPT_KEYS
from finc_eval.samples.reading import BRACES, EVERYTHING, Reading
from finc_eval.samples.source import align, reason

COMPRESSED = (".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst")
MAX_SHARDS = 100_000
LABEL_SUFFIX, PROMPT_SUFFIX, TABLE_SUFFIX = ".cls", ".txt", ".json"

UNREADABLE = (tarfile.TarError, OSError, EOFError, ValueError, OverflowError, RecursionError, MemoryError)
"""Errors of an archive that is not one, is cut short, or has members with headers that are not what they must be."""


class _Place(NamedTuple):
    """Place of the bytes of an image, its name in the shard, and the sample and suffix by the name's first dot."""

    shard: int
    offset: int
    size: int
    name: str
    sample: str
    suffix: str


class TarSource(FileSource):
    """The images in one or more uncompressed tar files; ids are shard/key."""

    kind = "tar"

    def __init__(self, name: str, shards: list[tuple[str, Path | str]], reading: Reading = EVERYTHING) -> None:
        """Index the shards."""
        self._paths = [path if isinstance(path, str) else path.resolve() for _, path in shards]
        self.reading = reading
        entries: list[_Place] = []
        labels: dict[str, str] = {}
        prompts: dict[str, str] = {}
        ignored = Counter[str]()
        for number, (shard, path) in enumerate(shards):
            for key, suffix, member, entry in _members(path):
                sample = f"{shard}/{key}"
                if suffix in (LABEL_SUFFIX, PROMPT_SUFFIX, TABLE_SUFFIX):
                    label, prompt = _label_and_prompt(path, entry, member, suffix)
                    labels |= {} if label is None else {sample: label}
                    prompts |= {} if prompt is None else {sample: prompt}
                elif not self.reading.takes(member.name):
                    ignored[BY_NAME] += 1
                elif _holds_image(entry, member, suffix):
                    name_in_shard = f"{shard}/{PurePosixPath(member.name).with_suffix('')}"
                    entries.append(
                        _Place(number, member.offset_data, member.size, name_in_shard, sample, suffix.lstrip("."))
                    )
                else:
                    ignored[suffix or "no suffix"] += 1
        places, others = _chosen(entries, self.reading.image_key, name)
        ignored.update(f".{suffix}" for suffix in others)
        if not places:
            raise NoImagesError(name, dict(ignored))
        ids = sorted(places)
        self._places = [places[sample] for sample in ids]
        super().__init__(
            name,
            ids,
            dict(sorted(ignored.items())),
            align(labels, ids, "label", name),
            align(prompts, ids, "prompt", name),
        )

    def open(self, number: int) -> IO[bytes]:
        entry = self._places[number]
        refuse_excess(entry.size)
        return io.BytesIO(bytes_at(on_disk(self._paths[entry.shard]), entry.offset, entry.size))


def _holds_image(path: Path, member: tarfile.TarInfo, suffix: str) -> bool:
    """Return whether a member is an image, by its last suffix, or by its first bytes if nothing else is known."""
    last = f".{suffix.rpartition('.')[2]}" if suffix else ""
    if last in IMAGE_SUFFIXES:
        return True
    head = min(member.size, SIGNATURE_BYTES)
    return not is_other(last) and SIGNATURES.match(bytes_at(path, member.offset_data, head)) is not None


def _chosen(entries: list[_Place], key: str | None, name: str) -> tuple[dict[str, _Place], list[str]]:
    """Choose the image of each sample, and return the suffixes of the others.

    Without `key` they are the images whose names have a single dot, if there are any. If all suffixes of a set differ,
    its names have dots in them, and its samples are known by their names up to the last dot.
    """
    suffixes = Counter(entry.suffix for entry in entries)
    if key is not None:
        wanted = key.lstrip(".").lower()
        if wanted not in suffixes:
            raise DataError(
                f"{name} has no images called {wanted!r}{did_you_mean(wanted, suffixes)}: what follows the first dot "
                f"of their names is {in_short(suffixes) or 'nothing'}"
            )
        taken = [entry for entry in entries if entry.suffix == wanted]
    else:
        taken = [entry for entry in entries if "." not in entry.suffix] or entries
    places = {entry.sample: entry for entry in taken}
    if len(places) < len(taken) and len({entry.suffix for entry in taken}) == len(taken):
        places = {entry.name: entry for entry in taken}
    if len(places) < len(taken):
        last = {entry.sample: entry for entry in taken}
        first = next(entry for entry in taken if last[entry.sample] is not entry)
        other = last[first.sample]
        if first.suffix == other.suffix:
            raise DataError(f"{name} holds two images of the sample {first.sample}: give each image a key of its own")
        raise DataError(
            f"{name} holds two images of the sample {first.sample}, {first.suffix} and {other.suffix}: choose by "
            f"image_key={first.suffix!r} (--image-key)"
        )
    used = set(taken)
    return places, [entry.suffix for entry in entries if entry not in used]


def expand(pattern: str) -> list[str]:
    """Expand braces as a shell does: "s-{08..10}.tar" to s-08.tar, s-09.tar, s-10.tar, and {a,b} to a, b."""
    pieces: list[list[str]] = []
    count, end = 1, 0
    for braces in BRACES.finditer(pattern):
        first, last, words = braces.groups()
        pieces.append([pattern[end : braces.start()]])
        numbers = range(int(first), int(last) + 1) if first else range(0)
        count *= len(numbers) if first else words.count(",") + 1
        if count > MAX_SHARDS:
            raise UsageError(f"{pattern} names more than {MAX_SHARDS} shards: correct the pattern")
        pieces.append([str(number).zfill(len(first)) for number in numbers] if first else words.split(","))
        end = braces.end()
    pieces.append([pattern[end:]])
    return ["".join(parts) for parts in itertools.product(*pieces)]


def open_tar_pattern(pattern: str, reading: Reading) -> TarSource:
    """Open the shards that a pattern with braces names."""
    paths: list[Path | str] = [*expand(pattern)] if is_url(pattern) else [with_home(path) for path in expand(pattern)]
    missing = [path for path in paths if isinstance(path, Path) and not path.exists()]
    if missing or not paths:
        first = f", the first of them {missing[0]}" if missing else ""
        raise DataError(
            f"{pattern} names {len(paths)} shards, and {len(missing)} do not exist{first}: correct the pattern"
        )
    places = [path if isinstance(path, Path) else Path(place_of(path)) for path in paths]
    names = [path.stem for path in places]
    if len(set(names)) < len(names):
        names = [str(path.with_suffix("")) for path in places]
    return TarSource(place_of(pattern), list(zip(names, paths, strict=True)), reading)


def refuse_compressed(path: Path) -> None:
    """Raise DataError for a compressed shard, whose samples cannot be read by their place."""
    if path.name.lower().endswith(COMPRESSED):
        raise DataError(f"{path} is compressed, so its samples cannot be read by their place: unpack it to a .tar")


def _members(path: Path | str) -> Iterator[tuple[str, str, tarfile.TarInfo, Path]]:
    """Yield the key, lower-case suffix, header and place of every file of a shard that is not hidden."""
    path = on_disk(path)
    refuse_compressed(path)
    try:
        for member in tar_members(path):
            name = PurePosixPath(member.name)
            if not member.isfile() or member.issparse() or not name.name or is_hidden(member.name):
                continue
            stem, dot, suffix = name.name.partition(".")
            yield str(name.with_name(stem)), (dot + suffix).lower(), member, path
    except UNREADABLE as error:
        raise _unreadable(path, error) from error


def _unreadable(path: object, error: Exception) -> DataError:
    return DataError(
        f"{path} cannot be read as a .tar file ({reason(error)}): "
        "it may be cut short, compressed or of another type; copy or save it again"
    )


def _label_and_prompt(
    path: Path | str, place: Path, member: tarfile.TarInfo, suffix: str
) -> tuple[str | None, str | None]:
    """Read the label or the prompt, or both, in a member of a shard, whose file is at `place`."""
    where = f"{path}: {member.name}"
    check_stated("table of texts", member.size, f"{place}: {member.name}")
    try:
        data = bytes_at(place, member.offset_data, member.size)
    except UNREADABLE as error:
        raise _unreadable(place, error) from error
    try:
        text = data.decode("utf-8")
    except ValueError as error:
        raise DataError(f"{where} cannot be read ({error}): write it again in UTF-8") from error
    if suffix == LABEL_SUFFIX:
        return text.strip(), None
    if suffix == PROMPT_SUFFIX:
        return None, text.strip()
    if not isinstance(table := foreign_json(text, where), dict):
        return None, None
    label, prompt = (
        next((str(table[key]) for key in keys if table.get(key) is not None), None)
        for keys in (LABEL_KEYS, PROMPT_KEYS)
    )
    return label, prompt
