"""What this installation is made of and where it keeps things: the first thing to put into a bug report."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from finc_eval.core.serialize import Document
from finc_eval.doctor.parity import Outcome
from finc_eval.embeddings.folder import cache_folder
from finc_eval.extractors.weights_folder import weights_folder

PACKAGES = ("torch", "torchvision", "timm", "numpy", "scipy", "scikit-learn", "h5py", "av", "pillow")
"""Whose version changes numbers, or what can be read; faiss goes by two names."""

FAISS = ("faiss-gpu", "faiss-cpu")


@dataclass(frozen=True)
class Folder:
    """A folder of finc-eval's.

    Attributes:
        what: it is for.
        path: where it is, or will be made.
        exists: whether it is there yet.
        writable: whether files can be written to it, or to where it will be made.
        used: bytes of the files in it.
        free: bytes left on its disk.
    """

    what: str
    path: Path
    exists: bool
    writable: bool
    used: int
    free: int


@dataclass(frozen=True)
class Diagnosis(Document):
    """An installation.

    Attributes:
        versions: of finc-eval, Python and the packages that decide numbers; None where one is missing.
        cuda: the version of CUDA that torch was built for; None where it was built without.
        devices: those that torch can use, in words.
        folders: of caches and of weights.
        parity: how it agrees with other libraries; None where that was not asked.
    """

    versions: dict[str, str | None]
    cuda: str | None
    devices: tuple[str, ...]
    folders: tuple[Folder, ...]
    parity: tuple[Outcome, ...] | None = None

    @property
    def disagrees(self) -> bool:
        """Whether an installed library gives other numbers."""
        return any(outcome.verdict == "disagree" for outcome in self.parity or ())

    def to_dict(self) -> dict[str, Any]:
        """The diagnosis as plain JSON types."""
        return {
            "program": "finc-eval",
            "version": self.versions["finc-eval"],
            "schema": 1,
            "versions": self.versions,
            "cuda": self.cuda,
            "devices": list(self.devices),
            "folders": [asdict(folder) | {"path": str(folder.path)} for folder in self.folders],
            "parity": None if self.parity is None else [asdict(outcome) for outcome in self.parity],
        }


def diagnose() -> Diagnosis:
    """Look at this installation."""
    import torch

    versions = {"finc-eval": _version("finc-eval"), "Python": platform.python_version()}
    versions |= {name: _version(name) for name in PACKAGES}
    versions["faiss"] = next((f"{version} ({name})" for name in FAISS if (version := _version(name))), None)
    devices = [f"cpu: {os.cpu_count()} cores, of which torch uses {torch.get_num_threads()}; {sys.platform}"]
    for index in range(torch.cuda.device_count()):
        card = torch.cuda.get_device_properties(index)
        devices.append(f"cuda:{index}: {card.name}, {card.total_memory / 2**30:.0f} GiB")
    folders = (_look_at("embedding caches", cache_folder()), _look_at("weights", weights_folder()))
    return Diagnosis(versions, torch.version.cuda, tuple(devices), folders)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _look_at(what: str, path: Path) -> Folder:
    place = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
    used = sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) if path.is_dir() else 0
    writable = place.is_dir() and os.access(place, os.W_OK)
    return Folder(what, path, path.is_dir(), writable, used, shutil.disk_usage(place).free)
