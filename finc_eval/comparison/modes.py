"""Modes: directions of feature space with their masses, intervals and samples."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Annotated, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import computed_field

from finc_eval.core.checks import check_fraction
from finc_eval.core.record import ABSENT, NOT_IN_JSON, Indices, Numbers, Record

Role = Literal["over", "under"]

SAMPLES_PER_TAIL = 50
"""Samples of each set that a mode keeps per tail."""


class _Tested(Protocol):
    @property
    def p_value(self) -> float: ...


Tested = TypeVar("Tested", bound=_Tested)

Direction = Annotated[NDArray[np.float32], *NOT_IN_JSON]
"""v, shape (q,), norm 1. The HDF5 file of a comparison has it, JSON does not."""


@dataclass(frozen=True, eq=False)
class Tail(Record):
    """The samples that score highest at one end of a mode.

    Attributes:
        share: fraction of the mode's in-sample excess in this tail; the two tails add to 1.
        gen, ref: indices of the top samples of each set, best first, at most `SAMPLES_PER_TAIL`.
        gen_ids, ref_ids: their sample ids.
        gen_scores, ref_scores: |s| = |φ(x)·v| of each, between 0 and 1.
    """

    share: float
    gen: Indices
    ref: Indices
    gen_ids: tuple[str, ...]
    ref_ids: tuple[str, ...]
    gen_scores: Numbers
    ref_scores: Numbers


@dataclass(frozen=True, eq=False)
class Mode(Record):
    """A direction of feature space on which one set has more mass than the other.

    The mass of a set is the mean of s² over its samples, s = φ(x)·v: how much of the set resembles the mode. It is the
    share of such samples when they are tight and unlike all others. Masses, excess and interval are cross-fitted: each
    sample is scored by the matching direction of the half of the data it is not part of.

    Attributes:
        id: stable name, from role and best sample; it does not depend on rank, batching or device.
        role: "over" when the generated set has more of it, "under" when it has less.
        excess: mass_gen − ρ·mass_ref for "over", mass_ref − ρ·mass_gen for "under".
        mass_gen, mass_ref: mass of the mode in each set, in [0, 1].
        excess_frequency: excess of the share of member samples in the set that has more over ρ times the share in the
            other, estimated from the scores on the mode's first tail (docs/method.md); None where the scores allow no
            estimate.
        interval: confidence interval of the excess; all intervals of a comparison hold together with
            probability 0.95 (Bonferroni).
        p_value: one-sided p-value of "no excess", adjusted for all directions tested (Holm).
        standard_error: standard error of the excess.
        stability: share of the mode that refits find again, in [0, 1]: R² between its scores and those of the matching
            mode of a refit, averaged over four refits, to each half of the samples and with each half of the random
            frequencies. Near 1 the mode is a fact of the data; below 0.5 do not give it a name.
        fitted_excess: vᵀΛv in the data the direction was fitted to, an over-estimate; for unrotated modes
            this is the eigenvalue.
        tails: positive and negative tail; the positive one carries most of the excess.
        direction: v, shape (q,), norm 1.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> mode = fe.compare(*example_sets(), features=500).under[0]
        >>> mode.role, mode.p_value < 0.05, mode.mass_gen < mode.mass_ref
        ('under', True, True)
    """

    id: str
    role: Role
    excess: float
    mass_gen: float
    mass_ref: float
    excess_frequency: float | None
    interval: tuple[float, float]
    p_value: float
    standard_error: float
    stability: float
    fitted_excess: float
    tails: tuple[Tail, Tail]
    direction: Direction = field(default=ABSENT, kw_only=True)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def ratio(self) -> float:
        """mass_gen / mass_ref; infinite when the reference has none, null in JSON."""
        return self.mass_gen / self.mass_ref if self.mass_ref > 0 else float("inf")

    @property
    def top_gen(self) -> NDArray[np.int64]:
        """Indices of the generated samples that are most of this mode, best first."""
        return self.tails[0].gen

    @property
    def top_ref(self) -> NDArray[np.int64]:
        """Indices of the reference samples that are most of this mode, best first."""
        return self.tails[0].ref

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"Mode({self.id}, excess={self.excess:.4f} [{low:.4f}, {high:.4f}], mass_gen={self.mass_gen:.4f}, "
            f"mass_ref={self.mass_ref:.4f}, p={self.p_value:.2g})"
        )

    def _repr_html_(self) -> str:
        low, high = self.interval
        rows = {
            "role": f"{self.role}-represented",
            "mass in gen": f"{self.mass_gen:.4f}",
            "mass in ref": f"{self.mass_ref:.4f}",
            "ratio": f"{self.ratio:.2f}",
            "excess": f"{self.excess:.4f} [{low:.4f}, {high:.4f}]",
            "excess frequency": "unknown" if self.excess_frequency is None else f"{self.excess_frequency:.4f}",
            "p": f"{self.p_value:.2g}",
            "best in gen": ", ".join(self.tails[0].gen_ids[:5]),
            "best in ref": ", ".join(self.tails[0].ref_ids[:5]),
        }
        cells = "".join(f"<tr><th>{name}</th><td>{escape(value)}</td></tr>" for name, value in rows.items())
        return f"<table><caption>Mode {escape(self.id)}</caption>{cells}</table>"


def mode_id(role_or_set: str, best_sample: str) -> str:
    """Return the name of the mode of a role, or a set, from its best sample: "over-1f09ab"."""
    return f"{role_or_set}-{hashlib.blake2b(best_sample.encode('utf-8', 'surrogateescape'), digest_size=3).hexdigest()}"


def unique_id(role_or_set: str, samples: Iterable[str], taken: Container[str]) -> str:
    """Return the first name by one of these samples that is free: two modes can share their best sample."""
    return next(name for sample in samples if (name := mode_id(role_or_set, sample)) not in taken)


def significant(modes: Sequence[Tested], alpha: float) -> tuple[Tested, ...]:
    """Return the modes whose adjusted p-value is at most α."""
    check_fraction("alpha", alpha)
    return tuple(mode for mode in modes if mode.p_value <= alpha)
