"""Models of classes in HDF5 files. Such a file holds the samples the models were made of: keep it as you keep them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from finc_eval.core.device import usable_device
from finc_eval.core.errors import FincEvalError
from finc_eval.core.storage import existing_hdf5, new_hdf5
from finc_eval.kahm.machine import Kahm, Settings
from finc_eval.kahm.models import ClassModels, WideKahm

if TYPE_CHECKING:
    import h5py

KIND, SCHEMA = "kahm", 1
TENSORS = ("encoder", "mean", "encoded", "solved", "weights")


def save_models(path: str | Path, models: ClassModels) -> None:
    """Write models; they are read back to the same bits.

    Raises:
        FincEvalError: the file cannot be written or is another one, or a class is no string, number or bool.
    """
    classes = list(models.classes)
    if not all(isinstance(label, str | int | float | bool) for label in classes):
        raise FincEvalError(f"classes must be strings or numbers to be kept in a file, got {classes}")
    with new_hdf5(path, KIND, SCHEMA) as file:
        file.attrs["classes"] = json.dumps(classes)
        file.attrs["settings"] = json.dumps(asdict(models.settings))
        for place, model in enumerate(models.models.values()):
            for branch, layers in enumerate(model.branches):
                for layer, machine in enumerate(layers):
                    group = file.create_group(f"{place:06d}/{branch:06d}/{layer:06d}")
                    group.attrs["lam"] = machine.lam
                    for name in TENSORS:
                        group[name] = getattr(machine, name).cpu().numpy()


def load_models(path: str | Path, device: str | torch.device | None = "cpu") -> ClassModels:
    """Read models.

    Raises:
        FincEvalError: there is no such file, it is of another kind or version, or there is no such device.
    """
    where = usable_device(device)
    with existing_hdf5(path, KIND, SCHEMA) as file:
        settings = json.loads(file.attrs["settings"])
        if isinstance(settings["lam"], list):
            settings["lam"] = tuple(settings["lam"])
        models = {
            label: WideKahm(
                tuple(
                    tuple(_machine(layers[layer], where) for layer in layers)
                    for layers in file[f"{place:06d}"].values()
                )
            )
            for place, label in enumerate(json.loads(file.attrs["classes"]))
        }
    return ClassModels(models, Settings(**settings))


def _machine(group: h5py.Group, device: torch.device) -> Kahm:
    tensors = {name: torch.from_numpy(np.asarray(group[name])).to(device) for name in TENSORS}
    return Kahm(**tensors, lam=float(group.attrs["lam"]))
