"""The wing of privacy, `finc_eval.private`: its parts are looked up by name, so that the package works without it."""

from __future__ import annotations

from importlib.util import find_spec
from pkgutil import resolve_name
from typing import Any

from finc_eval.core.errors import DataError

WING = "finc_eval.private"


def has_wing() -> bool:
    """Return whether this copy of the package has the wing."""
    return find_spec(WING) is not None


def part_of_wing(name: str) -> Any:
    """Return a part of the wing, such as "reference.sketch:PrivateSketch".

    Raises:
        DataError: this copy of the package has no wing.
    """
    if not has_wing():
        raise DataError(f"{name} is in {WING}, which this copy of finc-eval lacks: install finc-eval whole")
    return resolve_name(f"{WING}.{name}")
