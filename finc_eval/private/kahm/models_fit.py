"""`ModelsFit`: which models there are, how large they are, and how near samples are to the model of their class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from finc_eval.core.errors import DataError, UsageError, check_labels
from finc_eval.core.provenance import Provenance
from finc_eval.core.record import Record
from finc_eval.core.serialize import Document
from finc_eval.embeddings.subset import Subset
from finc_eval.private.kahm.models import ClassModels, WideKahm, precise_rows


@dataclass(frozen=True)
class ClassFit(Record):
    """The model of one class.

    Attributes:
        name: label of the class.
        samples: number of samples that the model was made of and holds.
        branches: number of branches, which are machines, or layers of them.
        machines: number of machines in all branches.
        components: number of principal components of the first machine of each branch, at most.
        lam: mean λ of the machines.
        own: median distance of the model's samples to it, in the unit of the features.
        to_mean: median distance of these samples to their mean.
        held_out: median distance of other samples of the class to it; None without such samples.
        held_out_samples: number of these.
    """

    name: str
    samples: int
    branches: int
    machines: int
    components: int
    lam: float
    own: float
    to_mean: float
    held_out: float | None = None
    held_out_samples: int = 0


@dataclass(frozen=True, eq=False)
class ModelsFit(Document):
    """Models of classes, and how near their own samples and others are to them.

    Attributes:
        classes: what is known of the model of each class, in the order of the models.
        dim: p, number of entries of a sample.
        extractor: extractor of the samples, as name@digest; "" if unknown.
        settings: settings of the models.
        asked: number of components that were asked for; a model has at most these.
        is_judged: whether held-out samples were measured.
    """

    type_name: ClassVar[str] = "models-fit"
    page: ClassVar[str] = "finc_eval.private.kahm.models_fit_page"

    classes: tuple[ClassFit, ...]
    dim: int
    extractor: str
    settings: str
    asked: int
    is_judged: bool

    @property
    def samples(self) -> int:
        """Number of samples that the models hold."""
        return sum(row.samples for row in self.classes)

    @property
    def machines(self) -> int:
        """Number of machines of all models."""
        return sum(row.machines for row in self.classes)

    def _summary(self) -> str:
        return f"{len(self.classes)} classes, {self.machines} machines, {self.samples} samples"

    def _frame_rows(self) -> list[dict[str, object]]:
        """Return the median distance of each class's own samples, with what else is known of its model."""
        return [
            {
                "name": row.name,
                "value": row.own,
                "held_out": row.held_out,
                "to_mean": row.to_mean,
                "samples": row.samples,
                "branches": row.branches,
                "machines": row.machines,
                "components": row.components,
                "lam": row.lam,
            }
            for row in self.classes
        ]


def describe_models(models: ClassModels, others: object | None = None, labels: ArrayLike | None = None) -> ModelsFit:
    """Describe models of classes: machines, sizes, and how near their own samples and others are to them.

    Own samples are read from the models, which hold them.

    Args:
        models: models of classes.
        others: samples of the same classes that the models have not seen, shape (n, p): array, tensor, cache or path.
        labels: class of each of these, shape (n,); default: their column "label".

    Raises:
        UsageError: labels came without others.
        DataError: others have no labels, or not one for each, or none of a class of the models, or a row is not finite.
        IncompatibleError: others have another dimension or extractor than the samples of the models.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> ref = example_sets(300)[1]
        >>> labels = ref.mean(1) > 0.13
        >>> models = fe.kahm.fit_classes(ref[:200], labels[:200])
        >>> found = fe.kahm.describe_models(models, ref[200:], labels[200:])
        >>> found.machines, all(row.own < row.held_out for row in found.classes)
        (2, True)
    """
    if others is None and labels is not None:
        raise UsageError("labels are of others: pass both")
    names = [str(name) for name in models.classes]
    held_out = [np.empty(0)] * len(names) if others is None else _held_out(models, names, others, labels)
    rows = (
        _of_class(name, model, distances)
        for name, model, distances in zip(names, models.models.values(), held_out, strict=True)
    )
    return ModelsFit(
        provenance=Provenance.here("cpu"),
        classes=tuple(rows),
        dim=next(iter(models.models.values())).dim,
        extractor=models.space,
        settings=str(models.settings),
        asked=models.settings.components,
        is_judged=others is not None,
    )


def _held_out(
    models: ClassModels, names: Sequence[str], others: object, labels: ArrayLike | None
) -> list[NDArray[np.float64]]:
    """Return the distances of held-out samples to the model of their class, (n,) for each class."""
    rows = precise_rows(others, "others")
    if labels is None:
        if "label" not in rows.columns:
            raise DataError("others have no labels: pass labels, one for each")
        labels = rows.column("label")
    texts = np.array([str(label) for label in np.asarray(labels).tolist()], object)
    check_labels(texts.shape, rows.n)
    if not np.isin(texts, names).any():
        raise DataError(f"no sample of others has a class of the models, {', '.join(names)}: pass others with labels")
    found = []
    for name, label in zip(names, models.classes, strict=True):
        chosen = np.flatnonzero(texts == name)
        alone = ClassModels({label: models.models[label]}, models.settings, models.space)
        found.append(alone.distances(Subset(rows, chosen)).values[:, 0] if len(chosen) else np.empty(0))
    return found


def _of_class(name: str, model: WideKahm, held_out: NDArray[np.float64]) -> ClassFit:
    """Return what is known of the model of a class, with the distances of held-out samples to it, (n,)."""
    own = torch.cat([layers[0].samples() for layers in model.branches])
    machines = [machine for layers in model.branches for machine in layers]
    return ClassFit(
        name=name,
        samples=model.n,
        branches=len(model.branches),
        machines=len(machines),
        components=max(machine.components for machine in machines),
        lam=float(np.mean([machine.lam for machine in machines])),
        own=float(np.median(model.distances(own).values)),
        to_mean=float(np.median(torch.linalg.vector_norm(own - own.mean(0), dim=1).cpu().numpy())),
        held_out=float(np.median(held_out)) if np.isfinite(held_out).any() else None,
        held_out_samples=len(held_out),
    )
