"""Private data generation: one noisy mean embedding of the data, and a generator that is fitted to it.

After Vinaroz et al., "Hermite Polynomial Features for Private Data Generation" (DP-HP, ICML 2022, arXiv 2106.05042).
The data are read once, in `release_embedding`; whatever happens to its result costs no privacy. With Fourier features
the same code is DP-MERF (Harder et al., AISTATS 2021). Everything else that enters the release must be public: the
feature maps with their scales and views, the list of classes, the number of records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite, sqrt
from pathlib import Path
from typing import Protocol, get_args

import torch

from finc_eval.core.errors import (
    DataError,
    UsageError,
    check_choice,
    check_count,
    check_fraction,
    check_labels,
    check_positive,
)
from finc_eval.core.progress import Progress, silent
from finc_eval.private.dp.gaussian_mechanism import add_gaussian_noise, diameter_of
from finc_eval.private.dp.guarantee import Bound, Guarantee
from finc_eval.private.dp.ledger import Ledger, record_spending
from finc_eval.private.dp.population import PopulationIdentity, RowViews
from finc_eval.private.dp.records import PassingIdentity
from finc_eval.private.synthesis.released_features import Statistic

MAX_RELEASED = 50_000_000
"""Numbers of a release at most: with sums in float64, noise and gradients they take about 2 GB."""

LABELS_DIAMETER = sqrt(2)  # largest ‖onehot(y) − onehot(y')‖


@dataclass(frozen=True, eq=False)
class PassingRecords:
    """Private records that are read once, in batches."""

    m: int
    dim: int
    # function that yields all records in order, up to a number at a time, each batch (b, dim)
    batches: Callable[[int], Iterable[torch.Tensor]]


@dataclass(frozen=True)
class PrivateEmbedding:
    """The released mean embedding of a data set, which is all that a generator ever sees of it."""

    statistics: tuple[Statistic, ...]  # released statistics
    # noisy mean of each statistic, float32: (1/m) Σ φ(x_i) ⊗ onehot(y_i), shape (classes, q); or (1, q) if it is not by
    # class
    means: tuple[torch.Tensor, ...]
    # standard deviation of the noise of each statistic; without a guarantee, that which it would have at μ = 1, as the
    # unit of its discrepancy
    scales: tuple[float, ...]
    # (classes,) shares of the classes, ≥ 1/m and summing to 1, from a small noisy release of their own
    shares: torch.Tensor
    records: int  # m, the public number of records
    guarantee: Guarantee | None  # guarantee of the whole release to each record; None for a baseline without noise

    def to(self, device: str | torch.device) -> PrivateEmbedding:
        """Return the same embedding on another device."""
        return replace(
            self,
            statistics=tuple(statistic.to(device) for statistic in self.statistics),
            means=tuple(mean.to(device) for mean in self.means),
            shares=self.shares.to(device),
        )

    def discrepancy(self, means: Sequence[torch.Tensor]) -> torch.Tensor:
        """Compute Σ w ‖μ̃ − μ_G‖² over what noise alone makes of it, Σ w s² per released number.

        By default w is 1/s²: that is −2 log-likelihood of the release, up to a constant, and weighs the statistics by
        how well each is known. The paper has a factor γ to tune instead (eq. 16).
        """
        total, noise = torch.zeros((), device=self.shares.device), 0.0
        for statistic, noisy, mean, scale in zip(self.statistics, self.means, means, self.scales, strict=True):
            joint = self.shares[:, None] * mean
            expected = joint if statistic.by_class else joint.sum(0, keepdim=True)
            weight = scale**-2 if statistic.weight is None else statistic.weight
            total = total + weight * (noisy - expected).square().sum()
            noise += weight * scale**2 * noisy.numel()
        return total / noise

    @property
    def spread(self) -> float:
        """Spread of a discrepancy of 1 by noise alone: √(2 Σ (w s²)²) / Σ w s², over the released numbers."""
        weights = [
            1.0 if statistic.weight is None else statistic.weight * scale**2
            for statistic, scale in zip(self.statistics, self.scales, strict=True)
        ]
        sizes = [mean.numel() for mean in self.means]
        squares = sum(weight**2 * size for weight, size in zip(weights, sizes, strict=True))
        return sqrt(2 * squares) / sum(weight * size for weight, size in zip(weights, sizes, strict=True))


class Fitted(Protocol):
    """A model that can be fitted to an embedding."""

    def parameters(self) -> list[torch.Tensor]:
        """Return the tensors that are fitted."""

    def means(self, statistics: Sequence[Statistic]) -> list[torch.Tensor]:
        """Return the mean of φ over samples of each class, (classes, q) for each statistic, with gradients."""


class Generator(Fitted, Protocol):
    """A model that can be fitted to an embedding, and sampled."""

    def sample(self, labels: torch.Tensor, seed: int) -> torch.Tensor:
        """Draw one record for each of these class labels: (n,) → (n, k), on the CPU."""


def release_embedding(
    records: torch.Tensor | PassingRecords,
    labels: torch.Tensor | None,
    statistics: Sequence[Statistic],
    guarantee: Guarantee | None,
    *,
    ledger: Ledger | str | Path | None,
    identity: PopulationIdentity | None = None,
    name: str | None = None,
    classes: int = 1,
    label_budget: float = 0.1,
    bound: Bound = "tight",
    progress: Progress = silent,
) -> PrivateEmbedding:
    """Release the noisy mean embedding of labeled records. This is the only function that reads the private data.

    All parts together spend the guarantee exactly: part i gets μᵢ² in proportion to its budget, and Σ μᵢ² = μ². The
    noise of a part of diameter Δ is N(0, (Δ/(m μᵢ))²). Replacing one record by any other changes a part by at most Δ/m,
    even if the class changes, because the features of two classes are orthogonal. A refusal spends nothing.

    Records (m, k) that are not finite, and labels (m,) that are not from 0 to `classes` − 1, count as nothing: they
    cannot change the form of the release. The spending is on the ledger's disk before noise is drawn. Without a
    guarantee no noise is added, for a baseline that is not private. The `identity` in the ledger is by default digests
    and views of the records. `label_budget` is the part of the budget that the shares of several classes get.
    """
    if isinstance(records, torch.Tensor):
        records = _passing(records)
    _check(records, labels, statistics, guarantee, classes, label_budget, bound, ledger)
    m = records.m
    known = torch.zeros(m, dtype=torch.long) if labels is None else labels.long().cpu()
    total = sum(statistic.budget for statistic in statistics)
    parts = [statistic.budget / total * (1 - label_budget * (classes > 1)) for statistic in statistics]
    mu = 1.0 if guarantee is None else guarantee.mu
    scales = [
        diameter_of(statistic.phi, bound) / (m * mu * sqrt(part))
        for statistic, part in zip(statistics, parts, strict=True)
    ]
    seen = (PassingIdentity(m, records.dim), RowViews()) if ledger is not None and identity is None else None
    exact = [sums / m for sums in _sums(records, known, statistics, classes, seen, progress)]
    counts = torch.bincount(known[(known >= 0) & (known < classes)], minlength=classes).double()
    if seen is not None:
        passed, views = seen
        identity = PopulationIdentity(passed.digests(), (passed.content(), *views.views()))
    if ledger is not None and guarantee is not None and identity is not None:
        record_spending(ledger, identity, name, guarantee, "data generation")

    def noisy(mean: torch.Tensor, scale: float) -> torch.Tensor:
        return mean if guarantee is None else add_gaussian_noise(mean, scale)

    means = [noisy(mean, scale).float() for mean, scale in zip(exact, scales, strict=True)]
    shares = torch.ones(1)
    if classes > 1:
        counted = noisy(counts / m, LABELS_DIAMETER / (m * mu * sqrt(label_budget))).clamp_min(1 / m)
        shares = (counted / counted.sum()).float()
    return PrivateEmbedding(tuple(statistics), tuple(means), tuple(scales), shares, m, guarantee)


def fit(
    generator: Fitted,
    target: PrivateEmbedding,
    *,
    steps: int,
    rate: float,
    until: float = 1.0,
    progress: Progress = silent,
) -> list[float]:
    """Fit a generator to an embedding by Adam with cosine decay, and return the discrepancy at each step.

    This is post-processing: it may be repeated, tuned and inspected freely. A discrepancy below 1 is smaller than the
    noise: the generator begins to fit the noise as well. The fit stops at the discrepancy `until`.
    """
    check_count("steps", steps)
    check_positive("rate", rate)
    optimizer = torch.optim.Adam(generator.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    course = []
    for step in range(steps):
        loss = target.discrepancy(generator.means(target.statistics))
        course.append(float(loss.detach()))
        if not isfinite(course[-1]):
            raise UsageError(f"the discrepancy is {course[-1]} after {step} steps: take a smaller rate than {rate:g}")
        if course[-1] <= until:
            break
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
        progress("fitting", step + 1, steps)
    return course


def draw_labels(shares: torch.Tensor, count: int, seed: int) -> torch.Tensor:
    """Draw class labels in these shares, as exactly as whole numbers allow, in random order: (classes,) → (count,)."""
    edges = (shares.double().cpu().cumsum(0) / float(shares.double().sum()) * count).round().long()
    sizes = torch.diff(edges, prepend=edges.new_zeros(1))
    labels = torch.arange(len(sizes)).repeat_interleave(sizes)
    return labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))]


def _passing(records: torch.Tensor) -> PassingRecords:
    """Return records in memory, shape (m, d), as batches."""
    if records.ndim != 2 or not len(records):
        raise DataError(f"records must have shape (m, k) with m > 0, got {tuple(records.shape)}")

    def batches(size: int) -> Iterator[torch.Tensor]:
        return (records[start : start + size] for start in range(0, len(records), size))

    return PassingRecords(len(records), records.shape[1], batches)


def _sums(
    records: PassingRecords,
    labels: torch.Tensor,
    statistics: Sequence[Statistic],
    classes: int,
    seen: tuple[PassingIdentity, RowViews] | None,
    progress: Progress,
) -> list[torch.Tensor]:
    """Sum each φ over the records of each class, or over all: (classes, q) or (1, q), float64.

    All of it in one pass, which also identifies the records: what is recorded is what is released.
    """
    sums = [torch.zeros(classes, statistic.phi.size, dtype=torch.double) for statistic in statistics]
    stage = f"release of {_release(statistics, classes):,} numbers"
    widest = max(records.dim, *(statistic.phi.width for statistic in statistics))
    start = 0
    with torch.no_grad():
        # 1024, 1 << 24: records whose features are in memory at once, and their entries and features together.
        for rows in records.batches(max(1, min(1024, (1 << 24) // widest))):
            progress(stage, start, records.m)
            known = labels[start : start + len(rows)]
            start += len(rows)
            for watcher in seen or ():
                watcher.add(rows)
            counted = rows.isfinite().all(1).cpu() & (known >= 0) & (known < classes)
            chosen = rows[counted.to(rows.device)].float()
            for total, statistic in zip(sums, statistics, strict=True):
                total += statistic.class_sums(chosen, known[counted], classes, torch.double).cpu()
    progress(stage, records.m, records.m)
    return [
        total if statistic.by_class else total.sum(0, keepdim=True)
        for total, statistic in zip(sums, statistics, strict=True)
    ]


def _release(statistics: Sequence[Statistic], classes: int) -> int:
    """Return how many numbers are released, without the shares of the classes."""
    return sum(statistic.phi.size * (classes if statistic.by_class else 1) for statistic in statistics)


def _check(
    records: PassingRecords,
    labels: torch.Tensor | None,
    statistics: Sequence[Statistic],
    guarantee: Guarantee | None,
    classes: int,
    label_budget: float,
    bound: str,
    ledger: object,
) -> None:
    if not statistics:
        raise UsageError("a release needs at least one statistic")
    for statistic in statistics:
        check_positive("budget", statistic.budget)
    check_count("classes", classes)
    check_fraction("label_budget", label_budget)
    check_choice("bound", bound, get_args(Bound))
    if (numbers := _release(statistics, classes)) > MAX_RELEASED:
        raise UsageError(
            f"the release has {numbers:,} numbers, more than {MAX_RELEASED:,}: take lower orders, smaller products or "
            "fewer of them"
        )
    if labels is not None:
        check_labels(labels.shape, records.m)
    elif classes != 1:
        raise DataError(f"{records.m} records in {classes} classes came without labels: pass one label per sample")
    if guarantee is None:
        if ledger is not None:
            raise UsageError("a ledger holds private releases alone: pass a guarantee, or ledger=None for a baseline")
        return
    guarantee.check_delta(records.m)
    if guarantee.adjacency != "replace":
        raise UsageError(f'this release needs adjacency "replace", got {guarantee.adjacency!r}')
