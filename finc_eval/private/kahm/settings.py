"""`KahmSettings`: everything that changes the model of a class."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Annotated, Literal

from finc_eval.core.errors import UsageError, check_count, check_seed, did_you_mean
from finc_eval.core.record import Record, about

Lambda = float | Literal["fixed_point"] | tuple[Literal["relative"], float]
"""Rule for λ: the paper's λ*, a number, or a multiple of the samples' mean square."""


@dataclass(frozen=True)
class KahmSettings(Record):
    """Everything that changes the model of a class.

    Raises:
        UsageError: a value is out of range.

    Example:
        >>> import finc_eval as fe
        >>> str(fe.kahm.KahmSettings(components=10, depth=2))
        'n=10,L=2,lambda=fixed_point,S=auto,seed=0'
    """

    components: Annotated[
        int,
        about(
            "n, number of principal components that the kernel sees; a model has at most one for each entry of a "
            "sample, and fewer than it has samples"
        ),
    ] = 20
    depth: Annotated[
        int,
        about("L ≤ n, number of layers of a conditionally deep model, of n, n − 1, … components; it rarely matters"),
    ] = 1
    lam: Annotated[
        Lambda,
        about(
            "λ: fixed_point for the paper's λ*, a positive number, or (relative, c) for c times the mean square of the "
            "samples; λ* lies between 2 and 3 times that, so it depends on their unit"
        ),
    ] = "fixed_point"
    branches: Annotated[
        int | None, about("S, number of branches of a wide model; default: one for every thousand samples, rounded up")
    ] = None
    seed: Annotated[int, about("random seed of the k-means that assigns samples to branches")] = 0

    def __post_init__(self) -> None:
        self._store(
            components=check_count("components", self.components),
            depth=check_count("depth", self.depth),
            branches=None if self.branches is None else check_count("branches", self.branches),
            seed=check_seed(self.seed),
        )
        if self.depth > self.components:
            raise UsageError(
                f"depth must be at most the {self.components} components, as each layer has one less, got {self.depth}"
            )
        is_relative = isinstance(self.lam, tuple) and len(self.lam) == 2 and self.lam[0] == "relative"
        ratio = self.lam[1] if is_relative else self.lam  # type: ignore[index]  # a tuple, as just seen
        _check_rule(ratio)

    def __str__(self) -> str:
        lam = f"{self.lam[1]:g}*ms" if isinstance(self.lam, tuple) else self.lam
        branches = "auto" if self.branches is None else self.branches
        return f"n={self.components},L={self.depth},lambda={lam},S={branches},seed={self.seed}"


def _check_rule(value: object) -> None:
    """Raise UsageError unless λ is that of the fixed point, or a positive finite number."""
    if value != "fixed_point" and (not isinstance(value, int | float) or not 0 < value < inf):
        hint = did_you_mean(value, ("fixed_point",)) if isinstance(value, str) else ""
        wanted = '"fixed_point", a positive number or ("relative", positive number)'
        raise UsageError(f"lam must be {wanted}, got {value!r}{hint}")
