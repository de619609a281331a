"""Recipe, key and space of embeddings: everything that decides their numbers, and which of them can be compared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, get_args
from urllib.parse import quote

from finc_eval.core.digest import sha256_of
from finc_eval.core.errors import IncompatibleError, check_choice
from finc_eval.core.places import is_place
from finc_eval.core.record import Record, plain
from finc_eval.extractors.card import Card, NetworkPrecision
from finc_eval.extractors.weights import check_weights
from finc_eval.samples.profile import Profile
from finc_eval.samples.reading import EVERYTHING, Reading
from finc_eval.samples.shards import Shard
from finc_eval.samples.source import Manifest

CACHE_LAYOUT = 3
DECODING = 3  # version of the rules by which bytes become pixels: other pixels are never under the same key
ARITHMETIC = 2  # version of how a network computes on a CPU: other last digits are never under the same key
DTYPE = "<f4"  # type of the numbers of a cache: float32

DIGESTS, FAILED, ENCODINGS = "shard/digests", "shard/failed", "shard/traits"
"""Arrays of a shard until it is merged: the digest of each sample, the numbers of those that failed, and encodings."""

Recipe = dict[str, Any]


@dataclass(frozen=True)
class Identity:
    """Identity of a cache: the samples and the recipe that made it."""

    source: str  # absolute path of the set, or "array"
    manifest: Manifest  # manifest of the set
    extractor: str  # name of the card
    # everything about the card, its weights and the arithmetic that decides the numbers, as plain JSON types
    recipe: Recipe
    shard: Shard | None = None  # range of a larger set that the samples are; None for a whole set
    # which files and values of the place are the samples; it does not enter the key, as their bytes do
    reading: Reading = EVERYTHING

    @property
    def extractor_digest(self) -> str:
        """SHA-256 (hex) of the recipe; embeddings may be compared if it is the same."""
        return _digest(self.recipe)

    @property
    def origin(self) -> str:
        """Digest of the place of the samples and of how they are embedded; "" for samples that are not in files."""
        return origin_of(self.source, self.extractor, self.recipe, self.reading)

    @property
    def key(self) -> str:
        """SHA-256 (hex) of everything that decides the rows; names and paths do not."""
        rows = [self.manifest.digest, self.manifest.metadata, self.extractor_digest, "float32", CACHE_LAYOUT, DECODING]
        rows += [ARITHMETIC] if self.recipe.get("weights") else []
        return _digest(rows if self.shard is None else [*rows, self.shard.key])


@dataclass(frozen=True)
class CacheHeader(Record):
    """The header of a cache, besides its arrays; `EmbeddingCache` says what the fields are.

    Attributes:
        columns: names of the columns of metadata, in their order.
        cells: space of the cells in the file; None without cells, as in files of an extractor that has none.
    """

    key: str
    extractor: str
    extractor_digest: str
    manifest_digest: str
    source: str
    recipe: Recipe
    profile: Profile
    ignored: dict[str, int]
    columns: tuple[str, ...]
    outputs: tuple[str, ...]
    shard: Shard | None = None
    reading: Reading = EVERYTHING
    cells: str | None = None

    @classmethod
    def of(
        cls,
        identity: Identity,
        profile: Profile,
        columns: tuple[str, ...],
        outputs: tuple[str, ...],
        cells: str | None = None,
    ) -> CacheHeader:
        """Describe a cache of these samples."""
        return cls(
            key=identity.key,
            extractor=identity.extractor,
            extractor_digest=identity.extractor_digest,
            manifest_digest=identity.manifest.digest,
            source=identity.source,
            recipe=identity.recipe,
            profile=profile,
            ignored=dict(identity.manifest.ignored),
            columns=columns,
            outputs=outputs,
            shard=identity.shard,
            reading=identity.reading,
            cells=cells,
        )


def column_array(name: str) -> str:
    """Return the name of the list of texts of a column; HDF5 reads "/" and "." in a name as a path."""
    return f"columns/{quote(name, safe=' ').replace('.', '%2E')}"


def origin_of(source: str, extractor: str, recipe: Recipe, reading: Reading) -> str:
    """Return a digest of the place of samples, the name of a card and what was asked for; "" if they are not in files.

    The card may change, and prompts may be added: embeddings replace their own earlier embeddings.
    """
    asked = recipe.get("precision"), (recipe.get("clip") or {}).get("fps"), plain(replace(reading, prompts=None))
    return _digest([source, extractor, *asked]) if is_place(source) else ""


def recipe_of(card: Card, precision: str) -> Recipe:
    """Return everything that decides an extractor's numbers: card, digest of the weights, precision of the network."""
    check_choice("the precision of a network", precision, get_args(NetworkPrecision))
    digest = card.weights and card.weights.sha256
    if not digest or len(digest) != 64:  # the file is hashed only if the card does not state all of it
        weights = check_weights(card)
        digest = weights and weights[1]
    recipe: Recipe = card.recipe | {"weights": digest, "precision": precision}
    # In the form in which it will be read back, with lists where the card has tuples.
    plain: Recipe = json.loads(json.dumps(recipe))
    return plain


def space_of(card: Card, precision: NetworkPrecision = "float32") -> str:
    """Return the space of a card's embeddings, as name@digest, by which signatures and results know the extractor."""
    return space_named(card.name, _digest(recipe_of(card, precision)))


def spaces_of(card: Card) -> set[str]:
    """Return the spaces of a card's embeddings, one for each precision of the network."""
    return {space_of(card, precision) for precision in get_args(NetworkPrecision)}


def changes(old: Recipe, new: Recipe) -> list[str]:
    """Return one line per part of a recipe that differs: "preprocessing.size: [224, 224], now [256, 256]"."""
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
    return sha256_of(json.dumps(content, sort_keys=True))


ARRAY_SPACE = "array-"  # prefix of the space of embeddings whose extractor is unknown


def space_named(extractor: str, digest: str) -> str:
    """Return the space of an extractor, from its name and the digest of its recipe."""
    return f"{extractor}@{digest[:8]}"


def extractor_of(space: str) -> str:
    """Return the name of the extractor of a space."""
    return space.split("@")[0]


def known_space(spaces: Iterable[str]) -> str:
    """Return the first space whose extractor is known, or else the first."""
    every = [*spaces]
    return next((space for space in every if not space.startswith(ARRAY_SPACE)), every[0])


def check_same_space(name: str, space: str, other: str, other_space: str) -> None:
    """Raise IncompatibleError unless two sets have the same extractor; arrays do not name theirs, and always pass."""
    if space != other_space and not any(s.startswith(ARRAY_SPACE) for s in (space, other_space)):
        raise IncompatibleError(
            f"{name} was embedded with {space}, {other} with {other_space}: extract one of them again, with the "
            "same extractor"
        )


class HasSpace(Protocol):
    """A set, its statistics or its sketch, from embeddings of one extractor."""

    @property
    def space(self) -> str:
        """Extractor, as name@digest."""


class InSpace(HasSpace, Protocol):
    """Such a set of known dimension."""

    @property
    def dim(self) -> int:
        """Number of entries of an embedding."""


def check_alike(name: str, own: InSpace, other_name: str, other: InSpace) -> None:
    """Raise IncompatibleError unless two sets have the same extractor and dimension."""
    check_same_space(name, own.space, other_name, other.space)
    if own.dim != other.dim:
        raise IncompatibleError(
            f"{name} has {own.dim} entries per embedding and {other_name} {other.dim}: extract both with the same "
            "extractor"
        )
