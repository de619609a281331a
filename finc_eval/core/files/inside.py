"""`inside`: the path of a file that another file names, which stays in the folder of that file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from finc_eval.core.doors.reading import check_regular
from finc_eval.core.errors import DataError

FORBIDDEN = "\\:\0"
"""Characters of drives, addresses, streams and other systems' paths, which the files of finc-eval never need."""


def inside(folder: str | Path, name: Any) -> Path:
    """Return the path of a file that another file of a folder names.

    Whoever wrote the file chose the name, and must not choose a place outside the folder by it.

    Args:
        folder: folder that the caller named.
        name: path relative to it, with forward slashes; its links may lead to other places of the folder alone.

    Raises:
        DataError: the name is not such a path, or there is anything but a file.
    """
    if not isinstance(name, str) or any(part in ("", ".", "..") for part in name.split("/")):
        raise _outside(folder, name)
    if any(letter in name for letter in FORBIDDEN):
        raise _outside(folder, name)
    path = Path(folder, name)
    try:
        if not path.resolve().is_relative_to(Path(folder).resolve()):
            raise _outside(folder, name)
        check_regular(path)
    except FileNotFoundError:
        return path
    except (OSError, RuntimeError, ValueError) as error:  # a link in a circle, a name that no system takes
        raise _outside(folder, name) from error
    return path


def _outside(folder: str | Path, name: Any) -> DataError:
    return DataError(
        f"{folder} names the file {name!r:.100}, which must lie in that folder: get it from its source again"
    )
