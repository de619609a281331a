"""`Gallery`: pictures and captions of the samples that a result shows, and a sentence on missing pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from finc_eval.core.errors import FincEvalError, UsageError
from finc_eval.core.run import Run
from finc_eval.core.words import join_words
from finc_eval.embeddings.base import ArrayEmbeddings, Embeddings
from finc_eval.embeddings.pictures import EmbeddedSamples, HeldSamples
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.gallery.thumbnails import Thumbnail, sample_thumbnail
from finc_eval.samples import Samples, open_source
from finc_eval.samples.clips import Clip

Thumbnails = dict[str, Thumbnail]

Pictures = dict[str, Thumbnails]
"""Thumbnails by the label of their set and their id."""


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
) -> Gallery:
    """Gather the pictures of the samples that a result shows, all by the label of their set.

    Pictures of a set come from what the caller gives, else from what the file of the result kept, else from the samples
    that were compared in this process. A path that a file names is never opened. Sentences call the sets by `names`.
    """
    for label, samples in given.items():
        if label not in sets:
            raise UsageError(f"the result has no set {label!r}: it has {', '.join(sets)}")
        open_source(samples, clip=sets[label].clip)  # what a caller names must be there; the rest may be gone
    pictures: Pictures = {}
    missing: dict[str, list[tuple[str, str]]] = {}
    for label, info in sets.items():
        wanted = set(shown[label])
        source = given.get(label, info.samples)
        if label not in given and (kept is not None or source is None):
            held, reason = (kept or {}).get(label, {}), "only their ids are at hand"
            pictures[label] = {name: one for name, one in held.items() if name in wanted}
        else:
            pictures[label], reason = read_thumbnails(source, wanted, info.clip)
        if lacking := len(wanted) - len(pictures[label]):
            count = "the" if lacking == len(wanted) else f"{lacking} of the {len(wanted)}"
            missing.setdefault(reason, []).append((label, f"{count} samples of {(names or {}).get(label, label)}"))
    return Gallery(pictures, tuple(_note(reason, dict(found)) for reason, found in missing.items()))


def read_thumbnails(source: Any, wanted: set[str], clip: Clip | None) -> tuple[Thumbnails, str]:
    """Read samples from anything `open_source` takes; return their pictures, and why some are missing if some are."""
    found: Thumbnails = {}
    if not wanted:
        return found, ""
    try:
        if isinstance(source, EmbeddedSamples | HeldSamples):
            place, samples = f"{source.place}, or are not the samples that were embedded", source.read(wanted)
        else:
            opened = open_source(source, clip=clip)
            place, samples = opened.name, opened.take([n for n, name in enumerate(opened.ids) if name in wanted])
        for sample in samples:
            if sample.pixels is not None:
                found[sample.id] = sample_thumbnail(sample.pixels, sample.traits, clip)
    except (FincEvalError, OSError) as error:
        return found, f"they cannot be read ({error})"
    return found, f"they cannot be found or read in {place}"


def _note(reason: str, missing: Mapping[str, str]) -> str:
    """Return why pictures are missing, from the words for the samples of each set by its label."""
    first, *_ = missing
    where = f"samples={{{', '.join(f'{label!r}: …' for label in missing)}}} or --samples {first}=…"
    sentence = f"{join_words([*missing.values()])} are not shown, because {reason}: pass {where}"
    return f"{sentence[0].upper()}{sentence[1:]}, the folder, zip, npz or array that holds them."


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


Captions = dict[str, dict[str, Caption]]
"""Captions by the label of the set and the id of the sample."""

MAX_LENGTH = 300
"""Characters of a value of the metadata; prompts may be pages long."""


def captions_of(sets: Mapping[str, Embeddings], shown: Mapping[str, Iterable[str]], run: Run) -> Captions:
    """Describe the samples that a page shows, and the reference samples nearest to the generated ones."""
    gen = sets["gen"].metadata_of(set(shown.get("gen", ())))
    nearest = _nearest({name: row for name, (row, _) in gen.items()}, sets, run)
    ref = sets["ref"].metadata_of({*shown.get("ref", ()), *(other for other, _ in nearest.values())})
    return {
        "gen": {name: Caption(_facts(values), nearest[name]) for name, (_, values) in gen.items()},
        "ref": {name: Caption(_facts(values)) for name, (_, values) in ref.items()},
    }


def store_captions(captions: Captions, shown: Mapping[str, Iterable[str]]) -> dict[str, Any]:
    """Return the captions of the samples that a page shows as plain JSON types."""
    wanted = {label: {*shown[label]} for label in captions}
    return {
        label: {name: list(one) for name, one in of_set.items() if name in wanted[label]}
        for label, of_set in captions.items()
    }


def check_captions(stored: Any) -> Captions:
    """Return captions that `store_captions` gave and a file kept."""
    return {
        str(label): {str(name): _check(*parts) for name, parts in of_set.items()} for label, of_set in stored.items()
    }


def _check(facts: Iterable[object], nearest: Any) -> Caption:
    if nearest is None:
        return Caption(tuple(map(str, facts)))
    other, distance = nearest
    return Caption(tuple(map(str, facts)), (str(other), float(distance)))


def _nearest(rows: Mapping[str, int], sets: Mapping[str, Embeddings], run: Run) -> dict[str, tuple[str, float]]:
    """Return the nearest reference sample of generated samples, whose rows are given by id, and its distance."""
    if not rows:
        return {}
    own = sets["gen"].rows_at(np.array(list(rows.values()), np.int64))
    near = nearest(ArrayEmbeddings(own), sets["ref"], 1, device=run.device)
    others = sets["ref"].ids_at(near.indices[:, 0])
    return dict(zip(rows, zip(others, near.distances[:, 0].tolist(), strict=True), strict=True))


def _facts(values: Mapping[str, str]) -> tuple[str, ...]:
    cut = {name: value if len(value) <= MAX_LENGTH else f"{value[:MAX_LENGTH]}…" for name, value in values.items()}
    return tuple(f"{name}: {value}" for name, value in cut.items())
