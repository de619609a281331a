"""Small pictures that a board keeps of each set, so that its page shows kinds without the samples."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.record import Record
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.findings.finding import Finding
from finc_eval.gallery.counts import LEAD_SAMPLES, SHOWN_SAMPLES
from finc_eval.gallery.members import KEPT_OF_IT, Fold, Members, fold_members
from finc_eval.gallery.pictured import Pictures, Thumbnails, read_thumbnails
from finc_eval.gallery.thumbnails import Thumbnail
from finc_eval.leaderboards.standings import Row
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.counts import Examples
from finc_eval.partitions.kind import Kind
from finc_eval.partitions.settings import REFERENCE
from finc_eval.samples.source import Samples

KEPT_EDGE = 64  # pixels of the longer edge of a picture that a board keeps

KEPT_PICTURES = 64
"""Pictures of kinds of a set that a board keeps at most. Photographs have 1.6 kB each on average, 80 kB a set."""

PICTURED = 6  # findings of a model that a page shows with pictures, the largest

KEPT_OF_KIND = "The samples that a board keeps of it: the most typical first, then some drawn at random."


def ids_of_findings(findings: Sequence[Finding], *, of_model: bool, shown: int = LEAD_SAMPLES) -> list[str]:
    """Return the ids of the samples of a model, or of the reference, that show its findings, the largest first."""
    return [
        id
        for finding in findings[:PICTURED]
        for id in (finding.ids if finding.is_more == of_model else finding.ids_other)[:shown]
    ]


def fold_board(rows: Sequence[Row], kinds: Sequence[Kind], sets: Iterable[str]) -> dict[str, Fold]:
    """Return what cards have folded, by their id: samples that findings of models keep, and those of kinds."""
    lists = []
    for row in rows:
        for finding in row.findings[:PICTURED]:
            own, other = (finding.ids, finding.ids_other) if finding.is_more else (finding.ids_other, finding.ids)
            samples = {row.name: own, REFERENCE: other}
            samples = {label: samples[label] for label in finding.sets_with_it([*samples])}
            lists.append(Members(f"{row.name}: {finding.name}", finding.text, KEPT_OF_IT, samples))
    for kind in sorted(kinds, key=lambda kind: kind.p_value > ALPHA):
        ids = {label: tuple(dict.fromkeys((*part.top_ids, *part.drawn_ids))) for label, part in kind.shares.items()}
        counts = {label: part.count for label, part in kind.shares.items()}
        lists.append(Members(kind.id, kind.title, KEPT_OF_KIND, ids, counts))
    return fold_members(lists, {label: label for label in sets})


@dataclass(frozen=True)
class KeptPicture(Record):
    """A small picture of a sample.

    Attributes:
        id: id of the sample.
        kind: format of the picture.
        width: its width in pixels.
        height: its height in pixels.
        data: its bytes, in base64.
    """

    id: str
    kind: Literal["png", "webp", "jpeg"]
    width: int
    height: int
    data: str

    @classmethod
    def of(cls, name: str, thumbnail: Thumbnail) -> KeptPicture:
        """Return a picture as it is kept."""
        return cls(
            name, thumbnail.kind, thumbnail.width, thumbnail.height, base64.b64encode(thumbnail.data).decode("ascii")
        )

    @property
    def stated(self) -> tuple[str, bytes, str, int, int]:
        """What `kept_thumbnails` takes: the id, the bytes, and what the file says of them."""
        try:
            return self.id, base64.b64decode(self.data, validate=True), self.kind, self.width, self.height
        except ValueError:  # not base64: no bytes of a picture
            return self.id, b"", self.kind, self.width, self.height


def pictures_to_keep(
    info: SetInfo, examples: Sequence[Examples], weights: NDArray[np.float64], of_findings: Sequence[str] = ()
) -> tuple[KeptPicture, ...]:
    """Return pictures of the samples nearest to the centers of kinds; none of a set whose samples are not at hand.

    Each kind has one. Kinds of the largest weights, (kinds,), have more, as far as there is room. Pictures of the
    samples that show findings come on top.
    """
    order = np.argsort(-weights, kind="stable").tolist()
    first = [id for kind in order for id in examples[kind].top_ids[:1]][:KEPT_PICTURES]
    more = [id for kind in order for id in examples[kind].top_ids[1:LEAD_SAMPLES]][: KEPT_PICTURES - len(first)]
    return kept_pictures(info, [*first, *more, *of_findings])


def kept_pictures(info: SetInfo, ids: Sequence[str]) -> tuple[KeptPicture, ...]:
    """Return small pictures of samples of a set, by id; none of a set whose samples are not at hand."""
    if info.samples is None:
        return ()
    found, _ = read_thumbnails(info.samples, {*ids}, info.clip, KEPT_EDGE)
    return tuple(KeptPicture.of(name, found[name]) for name in sorted(found))


def add_findings(
    wanted: Mapping[str, Sequence[str]], rows: Sequence[Row], kept: Pictures | None, samples: Mapping[str, Samples]
) -> dict[str, list[str]]:
    """Add the ids of samples that show the findings of models to those wanted, by label.

    Of a set with kept pictures whose samples are not given, they are those that have one.
    """
    ids = {label: [*known] for label, known in wanted.items()}
    for row in rows:
        for label in (row.name, REFERENCE):
            found = ids_of_findings(row.findings, of_model=label == row.name, shown=SHOWN_SAMPLES)
            known = found if label in samples else (kept or {}).get(label, found)
            ids[label] += [id for id in found if id in known]
    return ids


def as_shown(kind: Kind, kept: Mapping[str, Thumbnails]) -> Kind:
    """Return a kind whose samples, in each set with kept pictures, are those that have one.

    They are typical ones: no samples were kept because they had been drawn at random.
    """
    shares = {
        label: replace(part, top_ids=tuple(id for id in part.top_ids if id in kept[label]), drawn_ids=())
        if kept.get(label)
        else part
        for label, part in kind.shares.items()
    }
    return replace(kind, shares=shares)
