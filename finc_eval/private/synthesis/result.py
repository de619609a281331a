"""`Synthesis`: what was released, at which guarantee, and how well the synthetic records agree with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import ceil, inf
from typing import Any, ClassVar

import numpy as np
import torch

from finc_eval.core.provenance import Provenance
from finc_eval.core.record import Record, plain
from finc_eval.core.serialize import Document, Shown
from finc_eval.feature_maps.base import FeatureMap
from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.private.dp.guarantee import Guarantee
from finc_eval.private.synthesis.columns import MISSING_LEVEL, Column, Number
from finc_eval.private.synthesis.dp_hp import Generator, PrivateEmbedding
from finc_eval.private.synthesis.learned import Learned
from finc_eval.private.synthesis.tabular import Table

NOT_PRIVATE = "NOT PRIVATE: no noise was added, so that this is a baseline, and protects no record"

ALL = "all"  # name of the one class of images without classes


@dataclass(frozen=True)
class ReleasedPart(Record):
    """A mean of features that was released, with noise.

    Attributes:
        features: feature map of the records.
        numbers: released numbers, of all classes together.
        budget: share of the budget, in units of μ², that the shares of the classes leave.
        noise: standard deviation of the noise on every number; 0 without a guarantee.
        discrepancy: squared distance of the generator's own numbers from them, over what noise alone makes of it.
    """

    features: str
    numbers: int
    budget: float
    noise: float
    discrepancy: float


@dataclass(frozen=True)
class MadeColumn(Record):
    """A column of a synthetic table.

    Attributes:
        name: its name.
        levels: values, or intervals of numbers, of its public description.
        shares: share of the synthetic records in each level.
        moved: total variation distance of these shares from those that the description assumes: what the release says
            about the column.
    """

    name: str
    levels: tuple[str, ...]
    shares: tuple[float, ...]
    moved: float


@dataclass(frozen=True, eq=False)
class Synthesis(Document):
    """Description of a synthesis. It reveals no more about the data than the synthetic records do.

    Attributes:
        method: name of the method, and its parameters that are not the default.
        guarantee: guarantee to each private record about everything that was made, this description included; None for
            a baseline without noise, which protects nobody.
        records: number of private records, which is public.
        synthetic: number of synthetic records.
        parts: what was released, besides the shares of the classes.
        shares: released share of each class; empty without classes.
        discrepancy: discrepancy of the generator from the release, about 1 when only noise is left.
        steps: number of steps of the fit.
        columns: columns of a synthetic table; empty for images.
        learned: discrepancies of tables that know less from the same release; None for images.
        spread: how much noise alone varies a discrepancy of 1.
        shown: ids of the images of each class that a page shows; empty for a table.
    """

    type_name: ClassVar[str] = "synthesis"
    page: ClassVar[str] = "finc_eval.private.synthesis.page"

    method: str
    guarantee: Guarantee | None
    records: int
    synthetic: int
    parts: tuple[ReleasedPart, ...]
    shares: dict[str, float]
    discrepancy: float
    steps: int
    columns: tuple[MadeColumn, ...] = ()
    learned: Learned | None = None
    spread: float = 0.0
    shown: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def features(self) -> int:
        """Number of released numbers, without the shares of the classes."""
        return sum(part.numbers for part in self.parts)

    @property
    def agrees(self) -> bool:
        """True if the generator agrees with the release as well as its noise allows."""
        # 3: spreads of the noise within which a generator agrees with a release.
        return self.discrepancy <= 1 + 3 * self.spread

    def __str__(self) -> str:
        return (
            f"{self.synthetic} synthetic records by {self.method} from {self.records} private ones: "
            f"{self.features} released numbers, discrepancy {self.discrepancy:.2f} after {self.steps} steps\n"
            f"{self.guarantee or NOT_PRIVATE}"
        )

    def _summary(self) -> str:
        epsilon = inf if self.guarantee is None else self.guarantee.epsilon
        return f"{self.synthetic} records by {self.method}, epsilon {epsilon:g}"

    def _frame_rows(self) -> Sequence[object]:
        return self.columns or self.parts


class _Synthetic(Shown):
    """Synthetic records that are shown as how they were made."""

    synthesis: Synthesis

    def _summary(self) -> str:
        return self.synthesis._summary()

    def _shown(self) -> dict[str, object]:
        return {"made": str(self.synthesis)}


@dataclass(frozen=True, eq=False)
class SyntheticTable(_Synthetic):
    """A synthetic table: its columns by name, and how they were made."""

    values: dict[str, np.ndarray]
    synthesis: Synthesis

    def to_dict(self) -> dict[str, Any]:
        """Return the columns as lists, and how they were made."""
        columns = {name: column.tolist() for name, column in self.values.items()}
        return {"values": columns, "synthesis": plain(self.synthesis)}

    def _frame_rows(self) -> list[dict[str, object]]:
        return [dict(zip(self.values, row, strict=True)) for row in zip(*self.values.values(), strict=True)]


@dataclass(frozen=True, eq=False)
class SyntheticImages(_Synthetic):
    """Synthetic images of the private images' shape and type, their labels (None without classes), and their making."""

    images: np.ndarray
    labels: np.ndarray | None
    synthesis: Synthesis

    def to_dict(self) -> dict[str, Any]:
        """Return shape and type of the images, the labels as a list, and how they were made."""
        return {
            "shape": list(self.images.shape),
            "dtype": str(self.images.dtype),
            "labels": None if self.labels is None else self.labels.tolist(),
            "synthesis": plain(self.synthesis),
        }

    def _frame_rows(self) -> list[dict[str, object]]:
        labels = [None] * len(self.images) if self.labels is None else self.labels.tolist()
        return [{"image": number, "label": label} for number, label in enumerate(labels)]


def synthesis_of(
    method: str,
    generator: Generator,
    target: PrivateEmbedding,
    names: Sequence[str],
    drawn: torch.Tensor,
    course: Sequence[float],
) -> Synthesis:
    """Describe a release, and a generator that was fitted to it."""
    return Synthesis(
        method=method,
        guarantee=target.guarantee,
        records=target.records,
        synthetic=len(drawn),
        parts=_parts(generator, target),
        shares=dict(zip(names, target.shares.tolist(), strict=False)),
        discrepancy=course[-1],
        steps=len(course),
        spread=target.spread,
        provenance=Provenance.here(target.shares.device),
    )


def make_columns(table: Table, records: torch.Tensor) -> tuple[MadeColumn, ...]:
    """Return the columns of synthetic records, (n, k) one-hot, in the levels of their description."""
    made = []
    for column, levels in zip(table.columns, table.level_indices(records).T, strict=True):
        shares = torch.bincount(levels, minlength=column.levels) / len(records)
        moved = float((shares - column.prior).abs().sum() / 2)
        made.append(MadeColumn(column.name, _names(column), tuple(shares.tolist()), moved))
    return tuple(made)


def first_of_each(drawn: torch.Tensor, classes: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the ids of the first images of each class, by the label of each (n,); of all, without classes."""
    # 8: images of each class that a page shows.
    return {
        name: tuple(str(int(row)) for row in torch.nonzero(drawn == number)[:8, 0])
        for number, name in enumerate(classes or (ALL,))
    }


@torch.no_grad()
def _parts(generator: Generator, target: PrivateEmbedding) -> tuple[ReleasedPart, ...]:
    total, parts = sum(statistic.budget for statistic in target.statistics), []
    made = generator.means(target.statistics)
    for statistic, released, scale, mean in zip(target.statistics, target.means, target.scales, made, strict=True):
        alone = replace(target, statistics=(statistic,), means=(released,), scales=(scale,))
        parts.append(
            ReleasedPart(
                features=_describe(statistic.phi),
                numbers=released.numel(),
                budget=statistic.budget / total,
                noise=0.0 if target.guarantee is None else scale,
                discrepancy=float(alone.discrepancy([mean])),
            )
        )
    return tuple(parts)


def _describe(phi: FeatureMap) -> str:
    if isinstance(phi, RandomFourierFeatures):
        return f"random Fourier features, {phi.features} frequencies, length scale {phi.sigma:.3g}"
    fields = dict(phi.signature())
    return f"{fields['map']} features, order {fields['order']}, length scale {float(fields['sigma']):.3g}"


def _names(column: Column) -> tuple[str, ...]:
    if not isinstance(column, Number):
        return column.values
    ends = [*zip(column.edges, column.edges[1:], strict=False)]
    if column.integer:
        ends = [(ceil(low), max(ceil(high) - 1, ceil(low))) for low, high in ends]
    names = tuple(f"{low:g}" if low == high else f"{low:g} to {high:g}" for low, high in ends)
    return (*names, MISSING_LEVEL) if column.missing else names
