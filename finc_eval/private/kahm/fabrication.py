"""Models of classes from noisy samples, and from samples fabricated out of them by smoothing.

Kumar, Moser and Fischer, JAIR 79, 2024: the smoother (Definition 13), fabricated samples (Definition 14), and the
classifiers of noisy (Definition 12) and of fabricated samples (Definition 15). As published, the clusters and the
number of smoothing steps are found from the raw samples, so the guarantee of the noise does not reach the result. Here
every step after the noise reads nothing but noisy samples, unless asked otherwise. Fabrication makes membership harder
to see because it smooths: fewer components or a larger λ do the same without it.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from finc_eval.core.device import usable_device
from finc_eval.core.errors import check_count
from finc_eval.core.record import NOT_IN_JSON, Record
from finc_eval.embeddings.base import Embeddings
from finc_eval.private.kahm.element_noise import ElementGuarantee, ElementNoise
from finc_eval.private.kahm.machine import Kahm, check_rows, fit_deep, fit_machine
from finc_eval.private.kahm.models import (
    ClassModels,
    PreciseRows,
    WideKahm,
    branch_members,
    class_members,
    known_space,
    precise_rows,
    tell_fewer_components,
)
from finc_eval.private.kahm.settings import KahmSettings

FABRICATION_STEPS = 2  # M, where it is fixed: the paper's rule gives it in nearly all classes of MNIST

MAX_FABRICATION_STEPS = 100
"""Smoothing falls off like a small power of the steps: what has not happened by then does not."""


class Fabricated(NamedTuple):
    """Samples made from noisy samples."""

    samples: torch.Tensor  # fabricated samples, shape (N, p)
    steps: int  # M, number of steps
    kept: int  # number of samples without an image, which stayed as they were


@dataclass(frozen=True, eq=False)
class PrivateModels(Record):
    """Models of classes made from noisy samples.

    Attributes:
        models: models of the classes.
        guarantee: guarantee of the noise, per element and per record.
        strict: whether nothing but noisy samples was read; otherwise the guarantee does not reach the models.
        steps: M of every branch of every class; empty without fabrication (Definition 12).
        kept: number of samples that fabrication could not map.
    """

    models: Annotated[ClassModels, *NOT_IN_JSON]
    guarantee: ElementGuarantee
    strict: bool
    steps: tuple[int, ...]
    kept: int

    def __str__(self) -> str:
        reach = "" if self.strict else "; it does NOT reach these models, whose clusters or steps read raw samples"
        return f"{self.guarantee}{reach}"


@dataclass(frozen=True, eq=False)
class FabricatedSet(Record):
    """Samples of classes made from noisy samples, in the order of the raw samples.

    Attributes:
        samples: samples, shape (N, p), float32.
        guarantee: guarantee of the noise, per element and per record; nothing after the noise read raw samples.
        steps: M of every branch of every class; empty without fabrication.
        kept: number of samples that fabrication could not map.
    """

    samples: Annotated[NDArray[np.float32], *NOT_IN_JSON]
    guarantee: ElementGuarantee
    steps: tuple[int, ...]
    kept: int


def smooth(samples: ArrayLike | torch.Tensor, settings: KahmSettings | None = None) -> torch.Tensor:
    """Smooth the samples of one cluster once (Definition 13): Y ↦ K (K + λI)⁻¹ Y = Y − λU.

    It shrinks towards the origin, not towards the samples' mean or manifold: center first.

    Args:
        samples: samples, shape (N, p), finite.
        settings: settings of the machine.

    Returns:
        Smoothed samples, shape (N, p), float64.

    Raises:
        DataError: the samples are not finite numbers of shape (N, p).

    Example:
        >>> import finc_eval as fe
        >>> fe.kahm.smooth([[-1.0], [1.0]]).round(decimals=2).tolist()
        [[-0.19], [0.19]]
    """
    machine = fit_machine(samples, settings)
    return torch.as_tensor(samples).double() - machine.lam * machine.solved


def fabricate(
    noisy: ArrayLike | torch.Tensor,
    settings: KahmSettings | None = None,
    *,
    steps: int = FABRICATION_STEPS,
    centered: bool = True,
) -> Fabricated:
    """Make samples of a cluster from noisy samples (Definition 14): the images A(Y) of Y, smoothed M − 1 times before.

    Args:
        noisy: noisy samples, shape (N, p), finite.
        settings: settings of the machines, which all have one layer.
        steps: M ≥ 1, number of steps.
        centered: whether the mean of the noisy samples is subtracted first and added again; False as in the paper.

    Returns:
        The fabricated samples, float64, the number of steps, and the number of samples that have no image.

    Raises:
        UsageError: M is below 1.
        DataError: the samples are not finite numbers of shape (N, p).

    Example:
        >>> import torch
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets(200)
        >>> noisy = fe.kahm.ElementNoise(epsilon=8).add(torch.from_numpy(ref), torch.Generator().manual_seed(0))
        >>> made = fe.kahm.fabricate(noisy)
        >>> made.samples.shape, made.steps, made.kept
        (torch.Size([200, 784]), 2, 0)
    """
    check_count("steps", steps)
    rows = check_rows(noisy)
    mean = rows.mean(0) if centered else torch.zeros_like(rows[0])
    rows = rows - mean
    for _ in range(steps - 1):
        rows = smooth(rows, settings)
    images, _, poles = fit_machine(rows, settings).images(rows)
    return Fabricated(torch.where(poles[:, None], rows, images) + mean, steps, int(poles.sum()))


def published_steps(raw: torch.Tensor, noisy: torch.Tensor, settings: KahmSettings) -> int:
    """Return the paper's M (eq. 92), which reads raw samples: after M − 1 smoothings the samples are modeled as well.

    The error of a model is Σ ‖yᵢ − A(yᵢ)‖ over its own samples (eq. 88), see `Kahm.modeling_error`.

    Args:
        raw: raw samples, shape (N, p).
        noisy: the same samples with noise, shape (N, p).
        settings: settings of the machines.

    Example:
        >>> import torch
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> raw = torch.from_numpy(example_sets(200)[1]).double()
        >>> noisy = fe.kahm.ElementNoise(epsilon=4).add(raw, torch.Generator().manual_seed(0))
        >>> fe.kahm.published_steps(raw, noisy, fe.kahm.KahmSettings())
        2
    """
    limit, rows = fit_machine(raw, settings).modeling_error(raw), noisy
    for step in range(1, MAX_FABRICATION_STEPS):
        if fit_machine(rows, settings).modeling_error(rows) <= limit:
            return step
        rows = smooth(rows, settings)
    return MAX_FABRICATION_STEPS


def fit_private_classes(
    samples: object,
    labels: ArrayLike,
    noise: ElementNoise,
    settings: KahmSettings | None = None,
    *,
    fabricated: bool = True,
    strict: bool = True,
    generator: torch.Generator | None = None,
    device: str | torch.device | None = "cpu",
) -> PrivateModels:
    """Make a model of each class from noisy samples: the classifier of Definition 15, or of Definition 12.

    Args:
        samples: samples, shape (N, p): array, tensor, cache or its path; held in float64.
        labels: label of each sample, shape (N,). Labels and the sizes of classes are public.
        noise: noise that is added first.
        settings: settings of the models.
        fabricated: whether the models are made of fabricated samples (Definition 15) or of noisy samples (12).
        strict: whether to cluster noisy samples, center them, and take M = 2. False is the paper's form, which clusters
            the raw samples and finds M from them, with a warning.
        generator: seeded generator for experiments that must repeat. Never use one for private data.
        device: device where the models are computed and stay; None for CUDA if available.

    Raises:
        DataError: there is not one label for each sample, or a row is not finite.
        UsageError: the device does not exist.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets(200)
        >>> made = fe.kahm.fit_private_classes(ref, ref.mean(1) > 0.13, fe.kahm.ElementNoise(epsilon=8))
        >>> made.guarantee.epsilon, made.guarantee.record_epsilon, made.models.classes
        (8.0, 6272.0, (False, True))
    """
    settings = settings or KahmSettings()
    rows = precise_rows(samples, "samples")
    held: dict[Hashable, list[tuple[Kahm, ...]]] = {}
    steps, kept = [], 0
    for label, _, made, count, unmapped in _noisy_branches(
        rows, labels, noise, settings, fabricated, strict, generator, device
    ):
        held.setdefault(label, []).append(fit_deep(made, settings))
        steps.append(count)
        kept += unmapped
    models = {label: WideKahm(tuple(branches)) for label, branches in held.items()}
    return PrivateModels(
        models=ClassModels(models, settings, known_space(rows)),
        guarantee=noise.guarantee(rows.dim, private=generator is None),
        strict=strict,
        steps=tuple(steps) if fabricated else (),
        kept=kept,
    )


def fabricate_classes(
    samples: object,
    labels: ArrayLike,
    noise: ElementNoise,
    settings: KahmSettings | None = None,
    *,
    fabricated: bool = True,
    generator: torch.Generator | None = None,
    device: str | torch.device | None = "cpu",
) -> FabricatedSet:
    """Make samples of each class from noisy samples; models of them follow Definition 15, or Definition 12.

    Args:
        samples: samples, shape (N, p): array, tensor, cache or its path.
        labels: label of each sample, shape (N,). Labels and the sizes of classes are public.
        noise: noise that is added first.
        settings: settings of the machines.
        fabricated: whether noisy samples are smoothed and mapped (Definition 14), or returned as they are.
        generator: seeded generator for experiments that must repeat. Never use one for private data.
        device: device of the computation; None for CUDA if available.

    Raises:
        DataError: there is not one label for each sample, or a row is not finite.
        UsageError: the device does not exist.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets(200)
        >>> made = fe.kahm.fabricate_classes(ref, ref.mean(1) > 0.13, fe.kahm.ElementNoise(epsilon=8))
        >>> made.samples.shape, made.steps
        ((200, 784), (2, 2))
    """
    settings = settings or KahmSettings()
    rows = precise_rows(samples, "samples")
    made_rows, steps, kept = np.empty((rows.n, rows.dim), np.float32), [], 0
    for _, members, made, count, unmapped in _noisy_branches(
        rows, labels, noise, settings, fabricated, True, generator, device
    ):
        made_rows[members] = made.cpu().numpy()
        steps.append(count)
        kept += unmapped
    guarantee = noise.guarantee(rows.dim, private=generator is None)
    return FabricatedSet(made_rows, guarantee, tuple(steps) if fabricated else (), kept)


def _noisy_branches(
    rows: Embeddings,
    labels: ArrayLike,
    noise: ElementNoise,
    settings: KahmSettings,
    fabricated: bool,
    strict: bool,
    generator: torch.Generator | None,
    device: str | torch.device | None,
) -> Iterator[tuple[Hashable, NDArray[np.int64], torch.Tensor, int, int]]:
    """Yield each branch of each sorted label: label, rows of the set, noisy or fabricated samples, steps, and kept."""
    if not strict:
        warnings.warn(
            "strict=False clusters raw samples and takes the number of smoothing steps from them, as published: the "
            "models have no guarantee",
            stacklevel=3,
        )
    where, classes = usable_device(device), class_members(labels, rows.n)
    tell_fewer_components(settings, rows.dim, min(map(len, classes.values())))
    for label, members in classes.items():
        raw = rows.rows_at(members).to(where).double()
        noisy = noise.add(raw, generator)
        for part in branch_members(PreciseRows(noisy if strict else raw), settings):
            here = torch.from_numpy(part).to(where)
            count, material, kept = 0, noisy[here], 0
            if fabricated:
                count = FABRICATION_STEPS if strict else published_steps(raw[here], material, settings)
                material, _, kept = fabricate(material, settings, steps=count, centered=strict)
            yield label, members[part], material, count, kept
