"""Private data generation: one noisy mean embedding of the data, and a generator that is fitted to it.

After Vinaroz et al., "Hermite Polynomial Features for Private Data Generation" (DP-HP, ICML 2022, arXiv 2106.05042).
The data are looked at once, in `release`; whatever happens to its result costs no privacy. With Fourier features the
same code is DP-MERF (Harder et al., AISTATS 2021). What the release needs to know besides the data must be public:
the feature maps with their scales and views, the list of classes, the number of records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, get_args

import torch

from finc_eval.core.errors import FincEvalError, did_you_mean
from finc_eval.core.progress import Progress, silent
from finc_eval.feature_maps.class_features import labeled_sums
from finc_eval.feature_maps.hermite import HermiteFeatures
from finc_eval.privacy.dp.gaussian_mechanism import Guarantee, released
from finc_eval.privacy.dp.ledger import Ledger
from finc_eval.privacy.dp.records import opened_records
from finc_eval.privacy.reference.release import Bound

if TYPE_CHECKING:
    from finc_eval.feature_maps.base import FeatureMap

BATCH = 1024
"""Records whose features are in memory at once."""

LABELS_DIAMETER = sqrt(2)
"""‖onehot(y) − onehot(y')‖, at most."""


@dataclass(frozen=True)
class Statistic:
    """What of a record enters the release: φ(view(x)), next to its class.

    Attributes:
        phi: the feature map, made of public numbers.
        view: (k, d), a public linear map of records to what φ sees; the record itself when None.
        budget: the part of the budget, in units of μ², that this statistic gets, relative to those of the others.
        by_class: whether its mean is released for each class. Where it is not, one mean is released of all records,
            in which the noise is smaller than in the mean of one class by that class's share.
    """

    phi: FeatureMap
    view: torch.Tensor | None = None
    budget: float = 1.0
    by_class: bool = True

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """The features of records: (n, k) → (n, q), with gradients."""
        return self.phi(rows if self.view is None else rows @ self.view)

    def diameter(self, bound: Bound) -> float:
        """Sup ‖φ(x) − φ(y)‖: √2 for Hermite features, 2 for others, which are only known to have norm 1."""
        return self.phi.diameter if bound == "tight" and isinstance(self.phi, HermiteFeatures) else 2.0

    def to(self, device: str | torch.device) -> Statistic:
        """The same statistic on another device."""
        return replace(self, phi=self.phi.to(device), view=None if self.view is None else self.view.to(device))


@dataclass(frozen=True)
class PrivateEmbedding:
    """What was released of a data set, and all that a generator ever sees of it.

    Attributes:
        statistics: what was asked.
        means: for each statistic (classes, q): (1/m) Σ φ(x_i) ⊗ onehot(y_i) plus noise, float32; or (1, q), if it
            is not by class.
        scales: for each statistic the standard deviation of its noise.
        shares: (classes,) the shares of the classes, ≥ 1/m and summing to 1: a small noisy release of their own.
        records: m, which is public.
        guarantee: of all of it together.
    """

    statistics: tuple[Statistic, ...]
    means: tuple[torch.Tensor, ...]
    scales: tuple[float, ...]
    shares: torch.Tensor
    records: int
    guarantee: Guarantee

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(self.shares)

    @property
    def size(self) -> int:
        """The number of released numbers, the shares of classes apart."""
        return sum(mean.numel() for mean in self.means)

    def to(self, device: str | torch.device) -> PrivateEmbedding:
        """The same on another device."""
        return replace(
            self,
            statistics=tuple(statistic.to(device) for statistic in self.statistics),
            means=tuple(mean.to(device) for mean in self.means),
            shares=self.shares.to(device),
        )

    def discrepancy(self, means: Sequence[torch.Tensor]) -> torch.Tensor:
        """−2 log-likelihood of the release, up to a constant, per released number: Σ ‖μ̃ − μ_G‖²/s² over their number.

        It weighs the statistics by what is known of them, where the paper has a factor γ to tune.

        Args:
            means: for each statistic (classes, q), the mean of φ over the generator's samples of each class.
        """
        total = torch.zeros((), device=self.shares.device)
        for statistic, noisy, mean, scale in zip(self.statistics, self.means, means, self.scales, strict=True):
            joint = self.shares[:, None] * mean
            met = joint if statistic.by_class else joint.sum(0, keepdim=True)
            total = total + (noisy - met).square().sum() / scale**2
        return total / self.size


class Generator(Protocol):
    """What can be fitted to an embedding, and sampled."""

    def parameters(self) -> list[torch.Tensor]:
        """What is fitted."""
        ...

    def means(self, statistics: Sequence[Statistic]) -> list[torch.Tensor]:
        """For each statistic (classes, q): the mean of φ over samples of each class, with gradients."""
        ...

    def sample(self, labels: torch.Tensor, seed: int) -> torch.Tensor:
        """A record of each of these classes: (n,) → (n, k), on the CPU."""
        ...


def release(
    records: torch.Tensor,
    labels: torch.Tensor | None,
    statistics: Sequence[Statistic],
    guarantee: Guarantee,
    *,
    ledger: Ledger | str | Path | None,
    identities: Sequence[str] = (),
    name: str | None = None,
    classes: int = 1,
    label_budget: float = 0.1,
    bound: Bound = "tight",
) -> PrivateEmbedding:
    """Publish the noisy mean embedding of labeled records: the one place where private data are read.

    All parts together spend the guarantee exactly: part i has μᵢ² in proportion to its budget, and Σ μᵢ² = μ². The
    noise of a part of diameter Δ is N(0, (Δ/(m μᵢ))²). Replacing one record by any other changes a part by Δ/m at
    most, whatever its class: of two classes the features are at right angles.

    Args:
        records: (m, k). Rows that are not finite count as nothing: they cannot change the form of the release.
        labels: (m,) whole numbers from 0; others count as nothing. None where there is one class.
        statistics: what is asked of the data, at least one.
        guarantee: what is to be spent, for records that are replaced.
        ledger: where the spending is recorded, on the disk, before noise is drawn; None where nobody counts.
        identities: what the ledger knows the data set by; digests of the records when empty.
        name: what the ledger calls it beside that.
        classes: how many classes there are; public.
        label_budget: what the shares of the classes get, relative to the sum of all budgets; unused with one class.
        bound: "tight", or "paper" for the paper's 2/m.

    Raises:
        FincEvalError: an argument is out of range, shapes do not fit, or the budget does not suffice. Nothing is spent
            then.
    """
    _check(records, labels, statistics, guarantee, classes, label_budget, bound)
    m = len(records)
    known = torch.zeros(m, dtype=torch.long) if labels is None else labels.long().cpu()
    total = sum(statistic.budget for statistic in statistics)
    parts = [statistic.budget / total * (1 - label_budget * (classes > 1)) for statistic in statistics]
    scales = [
        statistic.diameter(bound) / (m * guarantee.mu * sqrt(part))
        for statistic, part in zip(statistics, parts, strict=True)
    ]
    exact = [_sums(records, known, statistic, classes) / m for statistic in statistics]
    counts = torch.bincount(known[(known >= 0) & (known < classes)], minlength=classes).double()
    if ledger is not None:
        book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        known_by = identities or opened_records(records, "the private set").identities
        book.spend((*known_by, *([name] if name else [])), guarantee, "data generation")
    means = [released(mean, scale).float() for mean, scale in zip(exact, scales, strict=True)]
    shares = torch.ones(1)
    if classes > 1:
        noisy = released(counts / m, LABELS_DIAMETER / (m * guarantee.mu * sqrt(label_budget))).clamp_min(1 / m)
        shares = (noisy / noisy.sum()).float()
    return PrivateEmbedding(tuple(statistics), tuple(means), tuple(scales), shares, m, guarantee)


def fit(
    generator: Generator,
    target: PrivateEmbedding,
    *,
    steps: int,
    rate: float,
    until: float = 1.0,
    progress: Progress = silent,
) -> list[float]:
    """Fit a generator to an embedding by Adam, its rate falling to 0 as a cosine; the discrepancy at each step.

    This is post-processing: it may be repeated, tuned and looked at freely. Below 1 the discrepancy is less than the
    noise: the generator begins to learn that, too.

    Args:
        generator: what is fitted, in place; on the target's device.
        target: the release.
        steps: how many updates.
        rate: the learning rate of the first of them.
        until: the discrepancy at which to stop.
        progress: told of every step.

    Raises:
        FincEvalError: steps or rate is not positive, or the discrepancy ceased to be a number.
    """
    if steps < 1 or not 0 < rate < float("inf"):
        raise FincEvalError(f"steps and rate must be positive, got {steps} and {rate:g}")
    optimizer = torch.optim.Adam(generator.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    course = []
    for step in range(steps):
        loss = target.discrepancy(generator.means(target.statistics))
        course.append(float(loss.detach()))
        if not isfinite(course[-1]):
            raise FincEvalError(
                f"the discrepancy is {course[-1]} after {step} steps: take a smaller rate than {rate:g}"
            )
        if course[-1] <= until:
            break
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
        progress("fitting", step + 1, steps)
    return course


def drawn_labels(shares: torch.Tensor, count: int, seed: int) -> torch.Tensor:
    """Classes in these shares, as evenly as whole numbers allow, in a random order: (classes,) → (count,)."""
    edges = (shares.double().cpu().cumsum(0) / float(shares.double().sum()) * count).round().long()
    sizes = torch.diff(edges, prepend=edges.new_zeros(1))
    labels = torch.arange(len(sizes)).repeat_interleave(sizes)
    return labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))]


def _sums(records: torch.Tensor, labels: torch.Tensor, statistic: Statistic, classes: int) -> torch.Tensor:
    """Σ φ(x_i) of each class, or of all: (classes, q) or (1, q), float64."""
    sums = torch.zeros(classes, statistic.phi.size, dtype=torch.double)
    with torch.no_grad():
        for start in range(0, len(records), BATCH):
            rows, known = records[start : start + BATCH], labels[start : start + BATCH]
            counted = rows.isfinite().all(1).cpu() & (known >= 0) & (known < classes)
            features = statistic(rows[counted.to(rows.device)].float()).double().cpu()
            sums += labeled_sums(features, known[counted], classes)
    return sums if statistic.by_class else sums.sum(0, keepdim=True)


def _check(
    records: torch.Tensor,
    labels: torch.Tensor | None,
    statistics: Sequence[Statistic],
    guarantee: Guarantee,
    classes: int,
    label_budget: float,
    bound: str,
) -> None:
    if not statistics or not all(0 < statistic.budget < float("inf") for statistic in statistics):
        raise FincEvalError("a release needs at least one statistic, each with a positive budget")
    if records.ndim != 2 or not len(records):
        raise FincEvalError(f"records must have shape (m, k) with m > 0, got {tuple(records.shape)}")
    if (labels is None and classes != 1) or (labels is not None and labels.shape != records.shape[:1]):
        shape = None if labels is None else tuple(labels.shape)
        raise FincEvalError(f"labels of {len(records)} records in {classes} classes must be as many, got {shape}")
    if classes < 1 or not 0 < label_budget < 1:
        raise FincEvalError(f"classes must be positive and label_budget between 0 and 1, got {classes}, {label_budget}")
    guarantee.check_delta(len(records))
    if guarantee.adjacency != "replace":
        raise FincEvalError(f'this release is for adjacency "replace", got {guarantee.adjacency!r}')
    if bound not in get_args(Bound):
        names = get_args(Bound)
        raise FincEvalError(f"bound must be one of {', '.join(names)}, got {bound!r}{did_you_mean(bound, names)}")
