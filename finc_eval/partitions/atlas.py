"""`Mapped`: a result with a map of samples, which a page draws and a notebook explores."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from finc_eval.core.doors import inside
from finc_eval.core.errors import DataError, UsageError, did_you_mean
from finc_eval.core.record import NOT_IN_JSON
from finc_eval.core.words import join_words, plural
from finc_eval.embeddings.set_info import titles_of
from finc_eval.gallery.members import Fold, Members, count_ids, fold_members
from finc_eval.gallery.pictured import Pictured, Pictures, read_gallery
from finc_eval.naming.evidence import UniqueNames
from finc_eval.numerics.inference import ALPHA
from finc_eval.partitions.kind import Kind
from finc_eval.partitions.sample_map import SampleMap
from finc_eval.samples.source import Samples

if TYPE_CHECKING:
    import pandas as pd


OF_ALL = "From typical to odd."
OF_SOME = "A random sample of them, which the map has, from typical to odd."


@dataclass(frozen=True, eq=False)
class Mapped(Pictured):
    """A result of kinds with a map of samples.

    Attributes:
        map: some samples of all sets in the plane; None without kinds, and for a result that was read from JSON.
    """

    map: Annotated[SampleMap | None, *NOT_IN_JSON] = field(default=None, kw_only=True, repr=False)

    if TYPE_CHECKING:

        @property
        def kinds(self) -> tuple[Kind, ...]:
            """The listed kinds."""

        @property
        def headings(self) -> tuple[Kind, ...]:
            """Unions of listed kinds."""

    @property
    def _known_map(self) -> SampleMap:
        if self.map is None:
            raise DataError(
                "the result has no map: load its .h5 file, or compare embeddings with kinds by this version"
            )
        return self.map

    def still_samples(self) -> Mapping[str, Collection[str]]:
        """Return the ids of the samples of each set that only what does not differ shows."""
        counting = self._counting().shown_samples()
        return {label: {*ids} - {*counting[label]} for label, ids in self.shown_samples().items()}

    def _counting(self) -> Self:
        """Return the result without what does not differ."""
        raise NotImplementedError

    def members(self, kind: object) -> dict[str, tuple[str, ...]]:
        """Return the ids of the samples on the map that are of a kind or under a heading, by set, from typical to odd.

        They are all members of sets of at most 4 000 samples in all, and of larger sets a random sample of them. Of a
        direction or a look, they are the samples that the result keeps: the most typical.

        Args:
            kind: a kind, a heading, a direction or a look of the result, or its id, such as "k12", or name.

        Raises:
            UsageError: the result has no such kind.
            DataError: the result has no map.

        Example:
            >>> import finc_eval as fe
            >>> from finc_eval.demo import example_sets
            >>> comparison = fe.compare(*example_sets(), features=500)
            >>> first = comparison.kinds[0]
            >>> len(comparison.members(first)["gen"]) == first.shares["gen"].count
            True
        """
        known = {members.id: members for members in self.member_lists()}
        name = kind if isinstance(kind, str) else getattr(kind, "id", getattr(kind, "name", None))
        if not isinstance(name, str):
            raise UsageError(f"kind must be a kind of the result, or its id, got {type(kind).__name__}: pass kinds[0]")
        if name not in known:
            raise UsageError(f"the result has no kind {name!r}{did_you_mean(name, known)}: take an id of its list")
        return {label: tuple(ids) for label, ids in known[name].ids.items()}

    def member_lists(self) -> list[Members]:
        """Return the members of all kinds and headings, as `members` does.

        Raises:
            DataError: the result has no map.
        """
        drawn_map, names, sets = self._known_map, UniqueNames((*self.headings, *self.kinds)), self.pictured_sets()
        lists = []
        for kind in (*self.headings, *self.kinds):
            ids = {label: drawn_map.members(label, kind.children or (kind.id,)) for label in sets}
            counts = [(len(ids[label]), kind.shares[label].count, label) for label in sets]
            described = join_words([f"{n:,} of its {plural(count, 'sample')} of {label}" for n, count, label in counts])
            members = {label: kind.shares[label].count for label in sets}
            lists.append(Members(kind.id, names.title(kind), f"{described}, from typical to odd.", ids, members))
        return lists

    @cached_property
    def folds(self) -> Mapping[str, Fold]:
        """The members that each card has folded, by its id: pictures of what differs come first."""
        try:
            lists = self.member_lists()
        except DataError:  # without a map
            return {}
        counting = {members.id for members in self._counting().member_lists()}
        sets = self.pictured_sets()
        names: Iterable[str] = titles_of(*sets.values()) if [*sets] == ["gen", "ref"] else sets
        titles = dict(zip(sets, names if len({*names}) == len(sets) else sets, strict=True))
        ordered = [
            members._replace(described=OF_ALL if members.counts == count_ids(members) else OF_SOME)
            if members.counts
            else members
            for members in sorted(lists, key=lambda members: members.id not in counting)
        ]
        return fold_members(ordered, titles, self.folded if self.shown else 0)

    def to_atlas(self, *, thumbnails: bool = False, samples: Mapping[str, Samples] | None = None) -> pd.DataFrame:
        """Return the samples of the map as a pandas data frame that explorers of embeddings take as it is.

        A row is a sample: its place ("x", "y"), the label of its "set", the id and the name of its "kind", whether that
        is "significant", its "id", its "picture" as a data URI and the "path" of its file, both None where they are not
        known, and its nearest samples in feature space ("neighbors", by row number, with distances).

        Args:
            thumbnails: whether to read a picture of every sample; default: pictures that the result has already.
            samples: where the samples of a set are now, by its label, if not where they were embedded from.

        Raises:
            DataError: the result has no map; or samples that were passed cannot be opened.
            UsageError: pandas is not installed.

        Example:
            >>> import finc_eval as fe
            >>> from finc_eval.demo import example_sets
            >>> gen, ref = (fe.EmbeddingSet(one) for one in example_sets())
            >>> frame = fe.compare(gen, ref, features=500).to_atlas()
            >>> [*frame.columns]
            ['x', 'y', 'set', 'kind', 'name', 'significant', 'id', 'picture', 'path', 'neighbors']
            >>> chosen = frame[(frame.set == "gen") & frame.significant]  # or the selection of a widget
            >>> gen.select(chosen.id).n == len(chosen)
            True
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise UsageError("to_atlas needs pandas: pip install pandas, or use the fields of `map`") from error
        drawn_map = self._known_map
        names = UniqueNames(self.kinds)
        known = {kind.id: (names.title(kind), kind.p_value <= ALPHA) for kind in self.kinds}
        titles, significant = zip(*(known.get(kind, ("", False)) for kind in drawn_map.kinds), strict=True)
        labels = [*zip(drawn_map.sets, drawn_map.ids, strict=True)]
        given = samples or {}
        pictures = self._pictures_of(labels, given) if thumbnails else self.gallery_of(given).pictures
        small = (pictures.get(label, {}).get(name) for label, name in labels)
        sets = self.pictured_sets()
        return pd.DataFrame(
            {
                "x": drawn_map.xy[:, 0],
                "y": drawn_map.xy[:, 1],
                "set": drawn_map.sets,
                "kind": drawn_map.kinds,
                "name": titles,
                "significant": significant,
                "id": drawn_map.ids,
                "picture": [picture and picture.uri for picture in small],
                "path": [_path_of(given.get(label, sets[label].samples), name) for label, name in labels],
                "neighbors": [
                    {"ids": near.tolist(), "distances": far.tolist()}
                    for near, far in zip(drawn_map.neighbors, drawn_map.distances, strict=True)
                ],
            }
        )

    def _pictures_of(self, labels: Sequence[tuple[str, str]], samples: Mapping[str, Samples]) -> Pictures:
        """Read pictures of all samples of the map."""
        sets = self.pictured_sets()
        wanted: dict[str, list[str]] = {label: [] for label in sets}
        for label, name in labels:
            wanted[label].append(name)
        return read_gallery(sets, wanted, samples, kept=self.kept, names=self.names_in_sentences).pictures


def _path_of(samples: Any, name: str) -> str | None:
    """Return the path of the file of a sample, of a folder that was given or embedded; None if it is not there."""
    place = samples if isinstance(samples, str | Path) else getattr(samples, "place", None)
    if place is None or not Path(str(place)).is_dir():
        return None
    try:
        return str(inside(str(place), name))
    except (DataError, OSError):
        return None
