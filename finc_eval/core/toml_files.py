"""TOML files that a person wrote."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from finc_eval.core.errors import DataError


def read_toml(path: str | Path) -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises:
        DataError: the file does not exist, or cannot be read as TOML.
    """
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as TOML ({error}): check its syntax") from error
