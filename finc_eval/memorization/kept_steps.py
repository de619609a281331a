"""Steps of an audit that are kept on the disk until it ends, so that an audit that was stopped goes on where it was.

A step is known by the sets, the settings and the device. What is embedded has caches of its own, which stay.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import numpy as np

from finc_eval.core.digest import sha256_of
from finc_eval.core.doors import create_file
from finc_eval.core.errors import DataError
from finc_eval.core.files.npz import NpzFile
from finc_eval.core.places import user_folder
from finc_eval.core.storage import write_whole

LAYOUT = 1
"""Number of what the steps are; another one is for other numbers from the same sets."""

MIN_KEPT_SAMPLES = 1000
"""Samples of the largest set from which steps are kept: those of smaller sets take seconds."""

WHOLE = "values"  # name of the array of a step that is one

MOST_AUDITS = 20  # stopped audits whose steps are kept; of more, those that were stopped first go

T = TypeVar("T")


class KeptSteps:
    """The steps of one audit; each is a named tuple or a dataclass of arrays, numbers and others of its kind."""

    def __init__(self, samples: int, *key: str) -> None:
        """Name the steps by a key, of an audit whose largest set has this many samples."""
        self._folder: Path | None = None
        if samples >= MIN_KEPT_SAMPLES:
            try:
                self._folder = user_folder("embeddings") / f"audits-{LAYOUT}" / sha256_of("\0".join(key))
            except DataError:  # a user without any place starts again
                return

    def __call__(self, name: str, kind: type[T], make: Callable[[], T]) -> T:
        """Return the step with this name that an earlier run kept, or make it and keep it."""
        if self._folder is None:
            return make()
        path = self._folder / f"{name}.npz"
        kept = _read(path, kind)
        if kept is None:
            kept = make()
            try:
                with write_whole(path) as temporary, create_file(temporary) as file:
                    np.savez(file, **_arrays(kept))
                _remove_oldest(self._folder.parent)
            except (DataError, OSError):  # what cannot be written is made again
                self._folder = None
        return kept

    def remove(self) -> None:
        """Remove the steps, which the result replaces."""
        if self._folder is not None:
            _remove(self._folder)


def _remove(folder: Path) -> None:
    """Remove a folder with what a kill left in it; what another run writes there just now may stay."""
    shutil.rmtree(folder, ignore_errors=True)


def _remove_oldest(audits: Path) -> None:
    """Remove the steps of the audits that were stopped first, where there are too many."""
    by_age = sorted(audits.iterdir(), key=lambda folder: folder.stat().st_mtime)
    for folder in by_age[: max(0, len(by_age) - MOST_AUDITS)]:
        _remove(folder)


def _parts(kind: type) -> dict[str, Any]:
    """Return the types of the fields of a kind of step; none of an array or a number."""
    known = {field.name for field in fields(kind)} if is_dataclass(kind) else {*getattr(kind, "_fields", ())}
    return {name: hint for name, hint in get_type_hints(kind).items() if name in known} if known else {}


def _arrays(step: Any) -> dict[str, Any]:
    """Return the arrays and the numbers of a step by their paths, such as "to_train.distances"; None has none."""
    parts = _parts(type(step))
    if not parts:
        return {} if step is None else {WHOLE: step}
    inner = {name: _arrays(getattr(step, name)) for name in parts}
    return {
        name if rest == WHOLE else f"{name}.{rest}": value
        for name, found in inner.items()
        for rest, value in found.items()
    }


def _made(kind: Any, path: str, arrays: dict[str, Any]) -> Any:
    """Return the step of a kind from its arrays; None for what is absent."""
    parts = _parts(kind)
    if not parts:
        value = arrays.get(path or WHOLE)
        return value if value is None or value.ndim else value.item()
    return kind(**{name: _made(hint, f"{path}.{name}" if path else name, arrays) for name, hint in parts.items()})


def _read(path: Path, kind: type[T]) -> T | None:
    """Return a kept step; None without a whole file."""
    try:
        if not path.is_file():
            return None
        file = NpzFile(path)
        made: T = _made(kind, "", {name: file.array(name) for name in file.names})
    except (DataError, OSError):
        return None
    return made
