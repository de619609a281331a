"""`Recomputed`: the number of a metric under any conventions; sets are embedded again when a convention needs it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np
import torch

from finc_eval.conventions.altered import (
    AlteredSource,
    Look,
    is_here,
    looks_of,
    other_networks,
    plain_card,
    resized_otherwise,
    short_side,
)
from finc_eval.conventions.forms import AnyNumber, error_over_samples
from finc_eval.conventions.table import SETS
from finc_eval.core.progress import Progress
from finc_eval.core.run import Run
from finc_eval.embeddings.base import ArrayEmbeddings, CachedEmbeddings, Embeddings
from finc_eval.embeddings.job import Job
from finc_eval.embeddings.recipe import recipe_of
from finc_eval.extractors.card import Card, NetworkPrecision
from finc_eval.extractors.network import CardNetwork
from finc_eval.measures.mmd import unit_length
from finc_eval.samples.shards import random_subset
from finc_eval.samples.source import Source

Key = tuple[Hashable, ...]
Changes = Mapping[str, object]


@dataclass(frozen=True, eq=False)
class Pictures:
    """The samples of both sets, and how they are embedded in other ways."""

    sources: Mapping[str, Source]  # by "gen" and "ref"
    card: Card
    precision: NetworkPrecision
    run: Run
    _made: dict[str, Callable[[int | None], CardNetwork]] = field(default_factory=dict)

    @cached_property
    def looks(self) -> dict[str, Look]:
        """Alterations of pixels, by name."""
        (side, square), (other, other_square) = (short_side(self.sources[label]) for label in SETS)
        return looks_of(max(side, other), square and other_square)

    @cached_property
    def cards(self) -> dict[str, Card]:
        """Cards that resize otherwise, by name."""
        return resized_otherwise(self.card)

    @cached_property
    def networks(self) -> dict[str, Card]:
        """Cards of other networks whose weights are here, by name."""
        return {f"the network {card.name}": plain_card(card) for card in other_networks(self.card) if is_here(card)}

    def _card(self, name: object) -> Card:
        return plain_card(self.card) if name is None else (self.cards | self.networks)[str(name)]

    def _embedder(self, card: Card) -> Callable[[int | None], CardNetwork]:
        """Return the network of a card; cards that only resize otherwise have the network of this one."""
        base = plain_card(self.card) if card.name == self.card.name else card
        if base.name not in self._made:
            self._made[base.name] = lru_cache(lambda size: CardNetwork(base, self.run.device, self.precision, size))
        return self._made[base.name]

    def embed(self, label: str, look: object, card_name: object, tell: Progress) -> Embeddings:
        """Embed a set with other pixels or another card; the rows are kept as caches are."""
        source = self.sources[label]
        if look is not None:
            source = AlteredSource(source, str(look), self.looks[str(look)])
        card = self._card(card_name)
        job = Job(card, recipe_of(card, self.precision), source, self.run, self._embedder(card))
        job.count_missing(lambda *_: None)
        with job.made(lambda *_: None, tell) as cache:
            return in_memory(CachedEmbeddings(cache), SETS[label])


@dataclass(eq=False)
class Recomputed:
    """The number of a metric under conventions, each computed once.

    Attributes:
        sets: embeddings as they are, by "gen" and "ref".
        outputs: further outputs of the network for both sets, by name and then by set.
        pictures: samples to embed otherwise; None if there are none.
        number: how the number is computed.
        name: what distinguishes these sets from others whose numbers are computed by the same `number`.
    """

    sets: Mapping[str, Embeddings]
    outputs: Mapping[str, Mapping[str, Embeddings]]
    pictures: Pictures | None
    number: AnyNumber
    name: str = ""
    _values: dict[Key, float] = field(default_factory=dict)
    _views: dict[Key, Embeddings] = field(default_factory=dict)

    def of(self, changes: Changes) -> float:
        """Compute the number with these conventions."""
        key = tuple(sorted(changes.items()))
        if key not in self._values:
            gen, ref = (self.rows(label, changes) for label in SETS)
            keys = tuple(self._row_key(label, changes) for label in SETS)
            value = self.number(gen, ref, keys, changes.get("form"))  # type: ignore[arg-type]
            self._values[key] = value * float(changes.get("factor", 1))  # type: ignore[arg-type]
        return self._values[key]

    def error(self, changes: Changes) -> float | None:
        """Return the standard error of a number over generated samples; None if it is not known."""
        gen, ref = (self.rows(label, changes) for label in SETS)
        error = error_over_samples(self.number, gen, ref)
        plain = {knob: value for knob, value in changes.items() if knob not in ("factor", "form")}
        return None if error is None else error * abs(self.of(changes) / (self.of(plain) or 1))

    def rows(self, label: str, changes: Changes) -> Embeddings:
        """Return the embeddings of a set with these conventions."""
        rows = self._view(label, changes)
        if (taken := changes.get(f"{label}.rows")) is not None:
            rows = in_memory(rows, rows.name, taken(rows.n))  # type: ignore[operator]
        if changes.get("unit length"):
            rows = ArrayEmbeddings(unit_length(rows.rows_at(np.arange(rows.n))), rows.name)
        return rows

    def missing(self, changes: Changes) -> list[Key]:
        """Return the views that are not embedded yet."""
        keys = [key for label in SETS if (key := _view_key(label, changes)) is not None]
        return [key for key in keys if key not in self._views]

    def embed(self, key: Key, tell: Progress) -> None:
        """Embed a view."""
        assert self.pictures is not None
        label, look, card = key
        self._views[key] = self.pictures.embed(str(label), look, card, tell)

    def of_part(self, most: int) -> Recomputed | None:
        """Return the values of random parts of both sets; None if the sets have no more samples, or no pictures."""
        if self.pictures is None or max(len(source.ids) for source in self.pictures.sources.values()) <= most:
            return None
        sources = {
            label: source if len(source.ids) <= most else random_subset(source, most, 0)
            for label, source in self.pictures.sources.items()
        }
        pictures = replace(self.pictures, sources=sources)
        sets = {label: pictures.embed(label, None, None, lambda *_: None) for label in SETS}
        return Recomputed(sets, {}, pictures, self.number, name="part")

    def _view(self, label: str, changes: Changes) -> Embeddings:
        if (layer := changes.get("layer")) is not None:
            return self.outputs[str(layer)][label]
        key = _view_key(label, changes)
        if key is None:
            return self.sets[label]
        if key not in self._views:
            self.embed(key, lambda *_: None)
        return self._views[key]

    def _row_key(self, label: str, changes: Changes) -> Key:
        chosen = (f"{label}.look", f"{label}.card", f"{label}.rows", "layer", "unit length")
        return self.name, label, *(changes.get(knob) for knob in chosen)


def _view_key(label: str, changes: Changes) -> Key | None:
    look, card = changes.get(f"{label}.look"), changes.get(f"{label}.card")
    return None if look is None and card is None else (label, look, card)


def in_memory(rows: Embeddings, name: str, numbers: object = None) -> ArrayEmbeddings:
    """Return rows as an array in memory, all or those with these numbers."""
    taken: torch.Tensor = rows.rows_at(np.arange(rows.n) if numbers is None else np.asarray(numbers))
    return ArrayEmbeddings(taken, name)
