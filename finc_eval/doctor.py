"""`diagnose`: versions, devices and folders of an installation, the first thing to put into a bug report."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch

from finc_eval.core.errors import DataError
from finc_eval.core.provenance import installed_version
from finc_eval.core.record import Record
from finc_eval.embeddings.folder import cache_folder
from finc_eval.extractors.weights import weights_folder

DIAGNOSED_PACKAGES = (
    "torch",
    "torchvision",
    "timm",
    "numpy",
    "scipy",
    "scikit-learn",
    "h5py",
    "av",
    "pillow",
    "imagehash",
)
"""Packages whose version changes numbers, or which files can be read."""

FAISS_PACKAGES = ("faiss-gpu", "faiss-cpu")  # packages that provide faiss


@dataclass(frozen=True)
class Folder(Record):
    """A folder in which finc-eval keeps files.

    Attributes:
        writable: whether files can be written to it, or to the place where it will be made.
        used: total size of the files in it, in bytes.
        free: free space on its disk, in bytes.
    """

    purpose: str
    path: Path
    exists: bool
    writable: bool
    used: int
    free: int


@dataclass(frozen=True)
class Diagnosis(Record):
    """Properties of an installation.

    Attributes:
        versions: versions of finc-eval, Python and the packages that decide numbers; None for a missing package.
        cuda: version of CUDA that torch was built for; None if it was built without CUDA.
        devices: descriptions of the devices that torch can use.
        folders: folders of caches and of weights.
    """

    versions: dict[str, str | None]
    cuda: str | None
    devices: tuple[str, ...]
    folders: tuple[Folder, ...]


def diagnose() -> Diagnosis:
    """Collect the properties of this installation."""
    versions = {"finc-eval": installed_version("finc-eval"), "Python": platform.python_version()}
    versions |= {name: installed_version(name) for name in DIAGNOSED_PACKAGES}
    versions["faiss"] = next(
        (f"{version} ({name})" for name in FAISS_PACKAGES if (version := installed_version(name))), None
    )
    devices = [f"cpu: {os.cpu_count()} cores, torch uses {torch.get_num_threads()}; {sys.platform}"]
    for index in range(torch.cuda.device_count()):
        card = torch.cuda.get_device_properties(index)
        devices.append(f"cuda:{index}: {card.name}, {card.total_memory / 2**30:.0f} GiB")
    places = {"embedding caches": cache_folder, "weights": weights_folder}
    folders = [_inspect(purpose, path) for purpose, folder in places.items() if (path := _known(folder))]
    return Diagnosis(versions, torch.version.cuda, tuple(devices), tuple(folders))


def _known(folder: Callable[[], Path]) -> Path | None:
    """Return a folder; None for a user without a home, who has none."""
    with suppress(DataError):
        return folder()
    return None


def _inspect(purpose: str, path: Path) -> Folder:
    nearest = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
    used = sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) if path.is_dir() else 0
    writable = nearest.is_dir() and os.access(nearest, os.W_OK)
    return Folder(purpose, path, path.is_dir(), writable, used, shutil.disk_usage(nearest).free)
