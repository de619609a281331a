"""Folders that finc-eval keeps for a user, found when they are needed: a container's user may have no home."""

from __future__ import annotations

import os
from pathlib import Path

from finc_eval.core.doors import with_home
from finc_eval.core.errors import DataError

CACHE = "FINC_EVAL_CACHE"  # environment variable with the folder of caches

HOME = "~/.cache/finc-eval"


def user_folder(variable: str | None, name: str) -> Path:
    """Return a folder of the user's caches: $variable, or else `name` in ~/.cache/finc-eval.

    For a user without a home, it lies in $XDG_CACHE_HOME/finc-eval or $FINC_EVAL_CACHE.

    Raises:
        DataError: the user has no home, and no variable names a place.
    """
    if variable is not None and (given := os.environ.get(variable)):
        return with_home(given)
    try:
        return Path(HOME).expanduser() / name
    except RuntimeError:
        pass
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / "finc-eval" / name
    if given := os.environ.get(CACHE):
        return Path(given) / name
    raise DataError(
        f"this user has no home (HOME is not set, and the system does not know the user), and a file belongs there: "
        f"set {CACHE} to a folder that can be written"
    )


def known_folder(variable: str | None, name: str) -> Path | None:
    """Return what `user_folder` does; None for a user without any place, who has nothing there."""
    try:
        return user_folder(variable, name)
    except DataError:
        return None
