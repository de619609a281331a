"""Which method proposes the directions of a comparison: FINC, or a baseline of its paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

from finc_eval.core.errors import FincEvalError, did_you_mean

MethodName = Literal["finc", "ken", "rarity", "fld"]

METHODS: tuple[MethodName, ...] = get_args(MethodName)

CLUSTERING: tuple[MethodName, ...] = ("rarity", "fld")
"""Those that find samples novel one by one, and cluster them."""

NOVEL = 0.3
"""Share of a set that counts as novel, unless another is asked for: of 0.1, 0.2, 0.3 and 0.5, that from which on little
more of the demo's digits is found (docs/method.md)."""

NEIGHBORS = 3
"""The Rarity paper's."""


@dataclass(frozen=True)
class Method:
    """How directions are found.

    Attributes:
        name: "finc", the leading eigenvectors of C_gen − ρC_ref by random features; "ken", the same without random
            features, from the kernel matrix; "rarity" or "fld", clusters of the samples that the score of this name
            finds most novel.
        novel: of "rarity" and "fld", the share of the samples that are clustered; else None.
        neighbors: of "rarity", k, to which neighbor the balls of its manifold reach; else None.
    """

    name: MethodName = "finc"
    novel: float | None = None
    neighbors: int | None = None

    @classmethod
    def of(cls, name: str, novel: float | None = None, neighbors: int | None = None) -> Method:
        """The method of this name, with what its parameters are when they are left out.

        Raises:
            FincEvalError: on an unknown name, or parameters that are out of range or not of this method.
        """
        (method,) = methods_of([name], novel, neighbors)
        return method

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """Its fields of a signature."""
        novel = () if self.novel is None else (("novel", f"{self.novel:g}"),)
        return (*novel, *(() if self.neighbors is None else (("neighbors", str(self.neighbors)),)))


FINC = Method()


def methods_of(names: Sequence[str], novel: float | None = None, neighbors: int | None = None) -> tuple[Method, ...]:
    """The methods of these names; the parameters are of those among them that have them.

    Raises:
        FincEvalError: on an unknown name or one named twice, or parameters that are out of range or of none of them.
    """
    for place, name in enumerate(names):
        if name not in METHODS:
            raise FincEvalError(
                f"method must be one of {', '.join(METHODS)}, got {name!r}{did_you_mean(name, METHODS)}"
            )
        if name in names[:place]:
            raise FincEvalError(f"method {name!r} is named twice: name it once")
    if novel is not None and not set(names) & set(CLUSTERING):
        raise FincEvalError(f"novel {novel:g} was given, but only rarity and fld cluster novel samples: leave it out")
    if neighbors is not None and "rarity" not in names:
        raise FincEvalError(f"neighbors {neighbors} was given, but only rarity has neighbors: leave it out")
    share, k = NOVEL if novel is None else novel, NEIGHBORS if neighbors is None else neighbors
    if not 0 < share <= 1:
        raise FincEvalError(f"novel must be a share between 0 and 1, got {share:g}")
    if k < 1:
        raise FincEvalError(f"neighbors must be at least 1, got {k}")
    return tuple(
        Method(
            cast(MethodName, name),
            novel=share if name in CLUSTERING else None,
            neighbors=k if name == "rarity" else None,
        )
        for name in names
    )
