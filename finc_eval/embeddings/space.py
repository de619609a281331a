"""Spaces of embeddings: embeddings by one extractor can be compared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from finc_eval.core.errors import IncompatibleError

ARRAY_SPACE = "array-"
"""Prefix of the space of embeddings whose extractor is unknown."""


def space_named(extractor: str, digest: str) -> str:
    """Return the space of an extractor, from its name and the digest of its recipe."""
    return f"{extractor}@{digest[:8]}"


def extractor_of(space: str) -> str:
    """Return the name of the extractor of a space."""
    return space.split("@")[0]


def known_space(spaces: Iterable[str]) -> str:
    """Return the first space whose extractor is known, or else the first."""
    return min(spaces, key=lambda space: space.startswith(ARRAY_SPACE))


def check_same_space(name: str, space: str, other: str, other_space: str) -> None:
    """Raise IncompatibleError unless two sets have the same extractor; arrays do not name theirs, and always pass."""
    if space != other_space and not any(s.startswith(ARRAY_SPACE) for s in (space, other_space)):
        raise IncompatibleError(
            f"{name} was embedded with {space}, {other} with {other_space}: extract one of them again, with the "
            "same extractor"
        )


class InSpace(Protocol):
    """A set, its statistics or its sketch, from embeddings of one extractor."""

    @property
    def space(self) -> str:
        """Extractor, as name@digest."""

    @property
    def dim(self) -> int:
        """Number of entries of an embedding."""


def check_alike(name: str, one: InSpace, other_name: str, other: InSpace) -> None:
    """Raise IncompatibleError unless two sets have the same extractor and dimension."""
    check_same_space(name, one.space, other_name, other.space)
    if one.dim != other.dim:
        raise IncompatibleError(
            f"{name} has {one.dim} entries per embedding and {other_name} {other.dim}: extract both with the same "
            "extractor"
        )
