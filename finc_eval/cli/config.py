"""`finc-eval.toml`: defaults of options for repeated runs, in one table for each class of settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from finc_eval.core.errors import DataError, did_you_mean
from finc_eval.core.files.parsed import read_toml
from finc_eval.core.provenance import config_in_use
from finc_eval.core.record import CONFIG_NAME, Configured
from finc_eval.extractors.catalog import load_card

T = TypeVar("T", bound=Configured)

TABLES = ("run", "extract", "compare", "methods", "sketch", "kinds", "leaderboard", "audit")
"""Tables of the file: the `table` of every class of settings that a verb takes."""


def config_file(given: Path | None) -> Path | None:
    """Return the file of defaults: the one that was given, or finc-eval.toml in the working folder, or None."""
    here = Path(CONFIG_NAME)
    return given or (here if here.exists() else None)


def read_defaults(cls: type[Any], path: Path | None) -> Any:
    """Return the settings of a class from the file of defaults; None if the file lacks its table."""
    if path is None or not issubclass(cls, Configured):
        return None
    content = read_toml(path)
    for name, value in content.items():
        if name not in TABLES:
            raise DataError(f"{path}: unknown table [{name}]{did_you_mean(name, TABLES)}: use {', '.join(TABLES)}")
        if not isinstance(value, dict):
            raise DataError(f"{path}: {name} must be a table, got {value!r}: write [{name}] on a line of its own")
    return cls.read(path) if cls.table in content else None


def refuse_network_of(settings: object, given: Path | None) -> None:
    """Raise DataError if a file that nobody named chooses a network by its card.

    A network in TorchScript is a program, and the working folder may be a colleague's.

    Args:
        settings: settings from the file of defaults.
        given: the file, if the caller named it.
    """
    card = getattr(settings, "extractor", None)
    if given is None and str(card).endswith(".toml") and load_card(str(card)).loader.kind != "pixels":
        raise DataError(
            f"{CONFIG_NAME} of this folder chooses the network of {card}: pass that card as --extractor if you trust it"
        )


def default_keys(cls: type[Configured], path: Path | None) -> set[str]:
    """Return the keys that the file of defaults has in the table of a class."""
    return set() if path is None else set(read_toml(path).get(cls.table, {}))


@contextmanager
def record_defaults(path: Path | None) -> Iterator[None]:
    """Let every result that is made in the block name the file of defaults in its provenance."""
    token = config_in_use.set(None if path is None else str(path))
    try:
        yield
    finally:
        config_in_use.reset(token)
