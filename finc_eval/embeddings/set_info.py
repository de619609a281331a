"""`SetInfo`: the description of a set in a result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path, PurePath
from typing import Annotated

from finc_eval.core.errors import DataError
from finc_eval.core.places import is_place, is_url
from finc_eval.core.record import NOT_IN_JSON, Digest, Record
from finc_eval.core.words import join_words, plural
from finc_eval.embeddings.base import CachedEmbeddings, Embeddings
from finc_eval.embeddings.pictures import EmbeddedSamples, HeldSamples
from finc_eval.embeddings.repeats import REFERENCE
from finc_eval.embeddings.subset import Subset
from finc_eval.samples.clips import Clip
from finc_eval.samples.files import in_short
from finc_eval.samples.metadata import divide_ignored
from finc_eval.samples.profile import shallow, unlike_encodings
from finc_eval.samples.source import Samples

MAX_EXAMPLES = 20  # examples of unreadable samples, and of copies, that a result keeps


KnownSamples = Samples | EmbeddedSamples | HeldSamples  # samples that are at hand in this process


@dataclass(frozen=True)
class SetInfo(Record):
    """The description of a set in a result.

    Attributes:
        name: name of the set.
        source: folder, zip or npz of its samples, to be read by people: a path that a file names is never opened; None
            when the embeddings came without one.
        n: number of samples.
        digest: SHA-256 of the embeddings, or of the parts of a sketch.
        from_sketch: True when only a sketch was at hand: intervals are then conservative, and the samples shown come
            from the sketch's own sample.
        unreadable: number of samples that could not be read.
        unreadable_examples: the first few of them, as (id, reason).
        clip: frames of a video that make a sample; None for images.
        samples: where the samples are, known from the sets that were opened in this process; None for a result that was
            read from a file.
    """

    name: str
    source: str | None
    n: int
    digest: Digest
    from_sketch: bool
    unreadable: int = 0
    unreadable_examples: tuple[tuple[str, str], ...] = ()
    clip: Clip | None = None
    samples: Annotated[KnownSamples | None, *NOT_IN_JSON] = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if min(self.n, self.unreadable) < 0:
            raise DataError(f"the set {self.name!r:.100} has fewer samples than 0")

    @property
    def place(self) -> str:
        """Place of the samples as a page may print it: only the name of what lies outside the working folder."""
        if self.source is None:
            return "a sketch" if self.from_sketch else "embeddings alone"
        return Path(self.source).name if is_place(self.source) else self.source

    def warnings(self, label: str) -> list[str]:
        """Warn of unreadable samples, and tell the number of videos behind windows."""
        warnings = self.unread(label)
        if self.clip and self.clip.windows > 1:
            videos = ceil(self.n / self.clip.windows)
            warnings.append(f"the {self.n:,} samples of {label} are windows of about {videos:,} videos")
        return warnings

    def unread(self, label: str) -> list[str]:
        """Warn of samples that could not be read."""
        sentences = []
        if self.unreadable:
            # 5: unreadable samples that a warning names.
            names = [f"{name} ({reason})" for name, reason in self.unreadable_examples[:5]]
            more = self.unreadable - len(names)
            are = "is" if self.unreadable == 1 else "are"
            sentences.append(
                f"{plural(self.unreadable, 'sample')} of {label} could not be read and {are} left out: "
                + join_words([*names, *([f"{more:,} more"] if more else [])])
            )
        return sentences


def titles_of(gen: SetInfo, ref: SetInfo) -> tuple[str, str]:
    """Return the titles of two sets: the ends of their paths, as long as needed to make them differ."""
    first, second = (PurePath(info.source or info.name) for info in (gen, ref))
    for length in range(1, max(len(first.parts), len(second.parts)) + 1):
        ends = [str(PurePath(*path.parts[-length:])) for path in (first, second)]
        if ends[0] != ends[1]:
            return ends[0], ends[1]
    return gen.name, ref.name


def notes_on(label: str, embeddings: Embeddings) -> list[str]:
    """Return what to know of the samples behind embeddings: what was left out, and pixels nearly black."""
    if not isinstance(embeddings, CachedEmbeddings):
        return []
    cache, notes = embeddings.cache, set_info(label, embeddings, embeddings.n, "").unread(label)
    files, unmatched = divide_ignored(cache.ignored)
    if files:
        notes.append(f"files of {label} were left out, as they are not samples: {in_short(files)}")
    if unmatched:
        notes.append(f"the metadata of {label} do not fit the samples: {in_short(unmatched)}")
    if cache.grids is not None:
        notes.append(f"{label}: {cache.grids}")
    if sentence := shallow(cache.profile):
        notes.append(f"{label}: {sentence}")
    return notes


def unlike_files(sets: Mapping[str, Embeddings]) -> dict[tuple[str, str], list[str]]:
    """Return how the files of sets are encoded unlike those of the reference, or else of the first set, by label."""
    profiles = {
        label: embeddings.cache.seen_profile
        for label, embeddings in sets.items()
        if isinstance(embeddings, CachedEmbeddings)
    }
    base = REFERENCE if REFERENCE in profiles else next(iter(profiles), "")
    pairs = [(label, base) for label in profiles if label != base]
    return {pair: unlike_encodings(profiles[pair[0]], profiles[base], pair) for pair in pairs}


def set_info(label: str, embeddings: Embeddings | None, n: int, digest: str) -> SetInfo:
    """Describe a set."""
    whole = embeddings.source if isinstance(embeddings, Subset) else embeddings
    cache = whole.cache if isinstance(whole, CachedEmbeddings) else None
    failures = cache.failures if cache else []
    source = cache.source if cache else None
    if source is not None and not is_url(source):  # relative to the working folder, so that reports name no more
        path, here = Path(source), Path.cwd()
        source = str(path.relative_to(here) if path.is_relative_to(here) else path) if path.is_absolute() else None
    return SetInfo(
        name=(embeddings and embeddings.title) or label,
        source=source,
        n=n,
        digest=digest,
        from_sketch=embeddings is None,
        unreadable=len(failures),
        unreadable_examples=tuple((str(i), str(reason)) for i, reason in failures[:MAX_EXAMPLES]),
        clip=cache.clip if cache else None,
        samples=embeddings.samples if embeddings else None,
    )
