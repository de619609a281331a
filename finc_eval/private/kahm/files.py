"""Models of classes in files. Such a file holds the samples the models were made of: keep it as you keep them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from finc_eval.core.device import usable_device
from finc_eval.core.errors import DataError
from finc_eval.core.files.stored import StoredFile, existing_file
from finc_eval.core.files.writing import new_file
from finc_eval.core.record import Record, plain, structure
from finc_eval.private.kahm.machine import Kahm
from finc_eval.private.kahm.models import ClassModels, WideKahm
from finc_eval.private.kahm.settings import KahmSettings

MODELS_TYPE, MODELS_LAYOUT = "kahm", 2
TENSORS = ("encoder", "mean", "encoded", "solved", "weights")


@dataclass(frozen=True)
class ModelsHeader(Record):
    """Header of a file of models."""

    classes: tuple[bool | int | float | str, ...]
    settings: KahmSettings
    lambdas: tuple[tuple[tuple[float, ...], ...], ...]
    space: str = ""
    source: str = ""


def save_models(path: str | Path, models: ClassModels) -> None:
    """Write models to an HDF5 file; they are read back to the same bits.

    Args:
        path: file to write.
        models: models of classes whose labels are strings, numbers or bools.

    Raises:
        DataError: the file cannot be written or is not a file of models, or a label has another type.

    Example:
        >>> import finc_eval as fe
        >>> fe.kahm.save_models("models.h5", fe.kahm.fit_classes([[0.0], [1.0], [5.0], [6.0]], [0, 0, 1, 1]))
        >>> fe.kahm.load_models("models.h5").classes
        (0, 1)
    """
    check_labels(models.classes, "kept in a file")
    lambdas = tuple(
        tuple(tuple(machine.lam for machine in layers) for layers in model.branches) for model in models.models.values()
    )
    with new_file(path, MODELS_TYPE, MODELS_LAYOUT) as file:
        classes: tuple[bool | int | float | str, ...] = tuple(models.classes)  # type: ignore[arg-type]
        file.header |= plain(ModelsHeader(classes, models.settings, lambdas, models.space, models.source))
        for number, model in enumerate(models.models.values()):
            for branch, layers in enumerate(model.branches):
                for layer, machine in enumerate(layers):
                    for name in TENSORS:
                        file.array(f"{number}/{branch}/{layer}/{name}", getattr(machine, name).cpu().numpy())


def load_models(path: str | Path, *, device: str | torch.device | None = "cpu") -> ClassModels:
    """Read models that `save_models` wrote.

    Args:
        path: file to read.
        device: device of the models; None for CUDA if available.

    Raises:
        DataError: the file does not exist, or has another type or layout.
        UsageError: the device does not exist.

    Example:
        >>> import finc_eval as fe
        >>> fe.kahm.save_models("models.h5", fe.kahm.fit_classes([[0.0], [1.0], [5.0], [6.0]], ["a", "a", "b", "b"]))
        >>> fe.kahm.load_models("models.h5").predict([[0.5], [5.5]]).tolist()
        [0, 1]
    """
    where = usable_device(device)
    with existing_file(path, MODELS_TYPE, MODELS_LAYOUT) as file:
        header = structure(ModelsHeader, file.header, str(path))
        models: dict[Hashable, WideKahm] = {
            label: WideKahm(
                tuple(
                    tuple(_machine(file, f"{number}/{branch}/{layer}", lam, where) for layer, lam in enumerate(layers))
                    for branch, layers in enumerate(branches)
                )
            )
            for number, (label, branches) in enumerate(zip(header.classes, header.lambdas, strict=True))
        }
        if not models or len({model.dim for model in models.values()}) != 1:
            raise ValueError("its models are not of one space")
    return ClassModels(models, header.settings, header.space, header.source)


def check_labels(labels: Iterable[Hashable], purpose: str) -> None:
    """Raise DataError unless all labels of classes can be written as JSON and read back."""
    if not all(isinstance(label, str | int | float | bool) for label in labels):
        raise DataError(f"classes must be strings or numbers to be {purpose}, got {list(labels)}")


def _machine(file: StoredFile, path: str, lam: float, device: torch.device) -> Kahm:
    n, components = file.stored(f"{path}/encoded").shape
    (dim,) = file.stored(f"{path}/mean").shape
    shapes = ((dim, components), (dim,), (n, components), (n, dim), (n,))
    arrays = {name: file.array(f"{path}/{name}", *s, dtype="<f8") for name, s in zip(TENSORS, shapes, strict=True)}
    if not dim or not n or not all(np.isfinite(array).all() for array in arrays.values()):
        raise ValueError("a machine is empty, or has numbers that are not finite")
    return Kahm(**{name: torch.from_numpy(array).to(device) for name, array in arrays.items()}, lam=lam)
