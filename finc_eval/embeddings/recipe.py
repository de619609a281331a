"""What an embedding cache is made of: the recipe of its numbers, its key, and how two recipes differ."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

from finc_eval.core.errors import FincEvalError, did_you_mean
from finc_eval.extractors.card import Card, NetworkPrecision
from finc_eval.extractors.weights import checked_weights
from finc_eval.samples import Manifest

SCHEMA = 2
DTYPE = "float32"

Recipe = dict[str, Any]


@dataclass(frozen=True)
class Identity:
    """What a cache is made of.

    Attributes:
        source: absolute path of the set, or "array".
        manifest: what the set consists of.
        extractor: the card's name.
        recipe: what the card, its weights and the arithmetic say of the numbers: plain JSON types.
    """

    source: str
    manifest: Manifest
    extractor: str
    recipe: Recipe

    @property
    def extractor_digest(self) -> str:
        """SHA-256 (hex) of the recipe: embeddings with the same one may be compared."""
        return _digest(self.recipe)

    @property
    def key(self) -> str:
        """SHA-256 (hex) of what decides the rows. Names and places are no part of it."""
        return _digest([self.manifest.digest, self.manifest.annotations, self.extractor_digest, DTYPE, SCHEMA])


def recipe_of(card: Card, precision: str) -> Recipe:
    """What decides the numbers of an extractor: its card, the bytes of its weights, the precision of its network.

    Raises:
        FincEvalError: there is no such precision, or the weights are not here and their digest is not known.
    """
    known = get_args(NetworkPrecision)
    if precision not in known:
        raise FincEvalError(
            f"the precision of a network must be one of {', '.join(known)}, got {precision!r}"
            f"{did_you_mean(precision, known)}"
        )
    recipe: Recipe = card.recipe | {"weights": _weights_digest(card), "precision": precision}
    # As it will be read back: with lists where the card has tuples.
    plain: Recipe = json.loads(json.dumps(recipe))
    return plain


def _weights_digest(card: Card) -> str | None:
    """The SHA-256 of the card's weights; of the file itself only where the card does not state all of it."""
    stated = card.weights and card.weights.sha256
    if stated and len(stated) == 64:
        return stated
    found = checked_weights(card)
    return found and found[1]


def changes(old: Recipe, new: Recipe) -> list[str]:
    """Say which parts of a recipe differ: "preprocessing.size: [224, 224], now [256, 256]"."""
    before, after = dict(_leaves(old)), dict(_leaves(new))
    return [
        f"{part}: {before.get(part, 'absent')}, now {after.get(part, 'absent')}"
        for part in dict.fromkeys([*before, *after])
        if before.get(part) != after.get(part)
    ]


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if value is None:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{name}.{key}" if name else key)
    else:
        yield name, value


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
