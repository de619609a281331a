"""Folders that finc-eval keeps for a user, found when they are needed: a container's user may have no home."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from finc_eval.core.doors import known_home, with_home
from finc_eval.core.errors import DataError

CACHE = "FINC_EVAL_CACHE"  # environment variable with the folder of caches

VARIABLES = {"embeddings": CACHE, "weights": "FINC_EVAL_WEIGHTS", "remote": "FINC_EVAL_REMOTE"}
"""Environment variables that name another place for a folder of the user's caches, by its name."""

HOME = "~/.cache/finc-eval"


def user_folder(name: str) -> Path:
    """Return a folder of the user's caches: that of its variable, or else `name` in ~/.cache/finc-eval.

    For a user without a home, it lies in $XDG_CACHE_HOME/finc-eval or $FINC_EVAL_CACHE.

    Raises:
        DataError: the user has no home, and no variable names a place.
    """
    if given := os.environ.get(VARIABLES[name]):
        return with_home(given)
    if (found := known_home(Path(HOME, name))) is not None:
        return found
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / "finc-eval" / name
    if given := os.environ.get(CACHE):
        return Path(given) / name
    raise DataError(
        f"this user has no home (HOME is not set, and the system does not know the user), and a file belongs there: "
        f"set {CACHE} to a folder that can be written"
    )


def known_folder(name: str) -> Path | None:
    """Return what `user_folder` does; None for a user without any place, who has nothing there."""
    try:
        return user_folder(name)
    except DataError:
        return None


def advice_on(path: Path) -> str:
    """Return what to do if a path cannot be written: for a folder of the user's caches, the variable that moves it."""
    with suppress(DataError, ValueError):
        name = path.relative_to(with_home(HOME)).parts[0]
        return f"set {VARIABLES[name]} to a folder that can be written"
    return "check the folder, or choose another"
