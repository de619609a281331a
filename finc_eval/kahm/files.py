"""Models of classes in HDF5 files. Such a file holds the samples the models were made of: keep it as you keep them."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from pathlib import Path

import h5py
import numpy as np
import torch

from finc_eval.core.device import usable_device
from finc_eval.core.errors import DataError
from finc_eval.core.record import plain, structured
from finc_eval.core.storage import existing_hdf5, new_hdf5
from finc_eval.kahm.machine import Kahm, KahmSettings
from finc_eval.kahm.models import ClassModels, WideKahm

MODELS_TYPE, MODELS_LAYOUT = "kahm", 1
TENSORS = ("encoder", "mean", "encoded", "solved", "weights")


def save_models(path: str | Path, models: ClassModels) -> None:
    """Write models to an HDF5 file; they are read back to the same bits.

    Args:
        path: file to write.
        models: models of classes whose labels are strings, numbers or bools.

    Raises:
        DataError: the file cannot be written or is not a file of models, or a label has another type.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets(100)
        >>> fe.kahm.save_models("models.h5", fe.kahm.fit_classes(ref, [0, 1] * 50))
        >>> fe.kahm.load_models("models.h5").classes
        (0, 1)
    """
    check_labels(models.classes, "kept in a file")
    with new_hdf5(path, MODELS_TYPE, MODELS_LAYOUT) as file:
        file.attrs["classes"] = json.dumps(models.classes)
        file.attrs["settings"] = json.dumps(plain(models.settings))
        for place, model in enumerate(models.models.values()):
            for branch, layers in enumerate(model.branches):
                for layer, machine in enumerate(layers):
                    group = file.create_group(f"{place:06d}/{branch:06d}/{layer:06d}")
                    group.attrs["lam"] = machine.lam
                    for name in TENSORS:
                        group[name] = getattr(machine, name).cpu().numpy()


def load_models(path: str | Path, *, device: str | torch.device | None = "cpu") -> ClassModels:
    """Read models that `save_models` wrote.

    Args:
        path: file to read.
        device: device of the models; None for CUDA if available.

    Raises:
        DataError: the file does not exist, or is of another type or layout.
        UsageError: the device does not exist.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets(100)
        >>> models = fe.kahm.fit_classes(ref, ["a", "b"] * 50)
        >>> fe.kahm.save_models("models.h5", models)
        >>> bool((fe.kahm.load_models("models.h5").predict(gen) == models.predict(gen)).all())
        True
    """
    where = usable_device(device)
    with existing_hdf5(path, MODELS_TYPE, MODELS_LAYOUT) as file:
        settings = structured(KahmSettings, json.loads(file.attrs["settings"]), str(path))
        models = {
            label: WideKahm(
                tuple(
                    tuple(_machine(layers[layer], where) for layer in layers)
                    for layers in file[f"{place:06d}"].values()
                )
            )
            for place, label in enumerate(json.loads(file.attrs["classes"]))
        }
    return ClassModels(models, settings)


def check_labels(labels: Iterable[Hashable], purpose: str) -> None:
    """Raise DataError unless all labels of classes can be written as JSON and read back."""
    if not all(isinstance(label, str | int | float | bool) for label in labels):
        raise DataError(f"classes must be strings or numbers to be {purpose}, got {list(labels)}")


def _machine(group: h5py.Group, device: torch.device) -> Kahm:
    tensors = {name: torch.from_numpy(np.asarray(group[name])).to(device) for name in TENSORS}
    return Kahm(**tensors, lam=float(group.attrs["lam"]))
