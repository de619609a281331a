"""Classifiers from noisy samples, and from samples fabricated out of them by smoothing.

Kumar, Moser and Fischer, JAIR 79, 2024: the smoother (Definition 13), fabricated samples (Definition 14), and the
classifiers of Definitions 12 (noisy samples) and 15 (fabricated ones). As published, the clusters and the number of
smoothing steps are found from the raw samples, so the promise of the noise does not reach the result. Here all that
follows the noise reads nothing but noisy samples, unless asked otherwise. Fabrication makes membership harder to see
because it smooths: fewer components or a larger λ do the same without it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from finc_eval.core.device import usable_device
from finc_eval.core.errors import FincEvalError
from finc_eval.kahm.element_noise import ElementGuarantee, ElementNoise
from finc_eval.kahm.machine import Settings, fit, fit_layers
from finc_eval.kahm.models import PER_BRANCH, ClassModels, WideKahm, clusters
from finc_eval.kahm.rows import PreciseRows, as_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

STEPS = 2
"""M, where it is fixed: what the paper's rule gives in nearly all classes of MNIST."""

MOST_STEPS = 100
"""Smoothing falls off like a small power of the steps: what has not happened by then does not."""


class Fabricated(NamedTuple):
    """Samples made of noisy ones.

    Attributes:
        samples: shape (N, p).
        steps: M.
        kept: samples without an image, which stayed as they were.
    """

    samples: torch.Tensor
    steps: int
    kept: int


@dataclass(frozen=True, eq=False)
class PrivateModels:
    """Models of classes made from noisy samples alone.

    Attributes:
        models: of the classes.
        guarantee: of the noise, per element and per record.
        strict: whether nothing but noisy samples was read; else the guarantee does not reach the models.
        steps: M of every branch of every class; empty without fabrication (Definition 12).
        kept: samples that fabrication could not map.
    """

    models: ClassModels
    guarantee: ElementGuarantee
    strict: bool
    steps: tuple[int, ...]
    kept: int

    def to_dict(self) -> dict[str, Any]:
        """What is promised, as plain JSON types."""
        return {
            "guarantee": self.guarantee.to_dict(),
            "strict": self.strict,
            "fabricated": bool(self.steps),
            "steps": list(self.steps),
            "kept": self.kept,
            "settings": str(self.models.settings),
        }

    def __str__(self) -> str:
        reach = "" if self.strict else "; it does NOT reach these models, whose clusters or steps read raw samples"
        return f"{self.guarantee}{reach}"


def smoothed(samples: torch.Tensor, settings: Settings) -> torch.Tensor:
    """One step of the smoother (Definition 13): Y ↦ K (K + λI)⁻¹ Y = Y − λU, of one cluster, (N, p) → (N, p).

    It shrinks towards the origin, not towards the samples' mean or manifold: center first.
    """
    machine = fit(samples, settings)
    return samples.double() - machine.lam * machine.solved


def fabricated(noisy: torch.Tensor, settings: Settings, *, steps: int = STEPS, centered: bool = True) -> Fabricated:
    """Samples of one cluster made of noisy ones (Definition 14): the images A(Y) of Y, smoothed M − 1 times before.

    Args:
        noisy: shape (N, p).
        settings: of the machines; all of one layer.
        steps: M ≥ 1.
        centered: about the mean of the noisy samples, which is added again; False as in the paper.

    Raises:
        FincEvalError: M is below 1.
    """
    if steps < 1:
        raise FincEvalError(f"steps must be at least 1, the images of the noisy samples themselves, got {steps}")
    mean = noisy.double().mean(0) if centered else torch.zeros_like(noisy[0], dtype=torch.double)
    rows = noisy.double() - mean
    for _ in range(steps - 1):
        rows = smoothed(rows, settings)
    images = fit(rows, settings).images(rows).points
    missing = images.isnan().any(1)
    return Fabricated(torch.where(missing[:, None], rows, images) + mean, steps, int(missing.sum()))


def published_steps(raw: torch.Tensor, noisy: torch.Tensor, settings: Settings) -> int:
    """The paper's M (eq. 88): after M − 1 smoothings the samples are modeled as well as the raw ones. It reads those.

    Args:
        raw: shape (N, p).
        noisy: the same with noise.
        settings: of the machines.
    """
    limit, rows = fit(raw, settings).modeling_error(), noisy
    for step in range(1, MOST_STEPS):
        if fit(rows, settings).modeling_error() <= limit:
            return step
        rows = smoothed(rows, settings)
    return MOST_STEPS


def private_models(
    samples: object,
    labels: ArrayLike,
    noise: ElementNoise,
    settings: Settings,
    *,
    fabricate: bool = True,
    strict: bool = True,
    generator: torch.Generator | None = None,
    device: str | torch.device | None = "cpu",
) -> PrivateModels:
    """The classifier of Definition 15, or without fabrication that of Definition 12.

    Args:
        samples: shape (N, p): array, tensor, cache or the path of one; held in float64.
        labels: shape (N,), which are public, as are the sizes of the classes.
        noise: what is added first.
        settings: of the models.
        fabricate: whether the models are of fabricated samples or of noisy ones.
        strict: cluster noisy samples, center them, and take M = 2. False is the paper's form, which clusters the raw
            samples and finds M from them, with a warning.
        generator: for experiments that must repeat, and never for private data.
        device: where the models are computed and stay.

    Raises:
        FincEvalError: not one label a sample, a row that is not finite, or no such device.
    """
    if not strict:
        warnings.warn(
            "strict=False clusters raw samples and takes the number of smoothing steps from them, as published: the "
            "models have no guarantee",
            stacklevel=2,
        )
    rows, where = as_rows(samples, "samples"), usable_device(device)
    codes = np.asarray(labels)
    if codes.shape != (rows.n,):
        raise FincEvalError(f"labels must be one a sample, shape ({rows.n},), got {codes.shape}")
    models, steps, kept = {}, [], 0
    for label in np.unique(codes):
        raw = rows.rows_at(np.flatnonzero(codes == label)).to(where).double()
        noisy = noise.added(raw, generator)
        branches = []
        for part in _parts(noisy if strict else raw, settings):
            material = noisy[torch.from_numpy(part).to(where)]
            if fabricate:
                count = STEPS if strict else published_steps(raw[torch.from_numpy(part).to(where)], material, settings)
                material, _, unmapped = fabricated(material, settings, steps=count, centered=strict)
                steps.append(count)
                kept += unmapped
            branches.append(fit_layers(material, settings))
        models[label.item()] = WideKahm(tuple(branches))
    return PrivateModels(
        models=ClassModels(models, settings),
        guarantee=noise.guarantee(rows.dim, private=generator is None),
        strict=strict,
        steps=tuple(steps),
        kept=kept,
    )


def _parts(rows: torch.Tensor, settings: Settings) -> list[NDArray[np.int64]]:
    count = ceil(len(rows) / PER_BRANCH) if settings.branches is None else settings.branches
    return clusters(PreciseRows(rows), min(count, len(rows)), max(2, settings.components + 1), settings.seed)
