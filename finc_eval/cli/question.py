"""The question of a command: its settings that differ from their defaults. With its sets, they are its job."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

SETS = ("gen", "baseline")
"""Options that name sets with labels of their own; other sets are known by the names of their options."""

HOW = ("device", "batch_size", "workers", "quiet", "config", "strict")
"""Options of how a result is computed: none of them changes a number."""

WHERE = ("out", "force", "as_json", "pictures", "comment", "promote", "reason", "save_statistics")
"""Options of where a result goes, and of how much of it is shown."""

FILES = (".toml", ".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet")
"""Endings of the files that options name; a name with another ending, such as that of a network of timm, is whole."""

in_full: ContextVar[bool] = ContextVar("in_full", default=False)
"""True while a command runs that is asked for all tables and notes: `--verbose`."""


@contextmanager
def asking(parameters: list[Any], values: Mapping[str, Any]) -> Iterator[None]:
    """Let results of the block be of the settings with these values, by the names of their parameters."""
    from finc_eval.core.marks import asked  # with numpy, which helps do not need

    options = {
        parameter.name: parameter
        for parameter in parameters
        if hasattr(parameter, "is_flag") and not parameter.required
    }
    left_out = {*SETS, *HOW, *WHERE}
    parameters_by_name = {
        name: value
        for name, value in values.items()
        if name in options and name not in left_out and (value or value == 0) and value != options[name].default
    }
    token = asked.set(parameters_by_name)
    try:
        yield
    finally:
        asked.reset(token)


def ask(settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """State settings of the command that runs by the names of their options; a file of defaults may give some."""
    from finc_eval.core.marks import asked

    open_parameters = asked.get()
    if not isinstance(open_parameters, dict):
        return
    for name, value in settings.items():
        open_parameters.pop(name, None)
        if name not in HOW and value != defaults.get(name):
            open_parameters[name] = value


def suffix_of(settings: Mapping[str, str]) -> str:
    """Return the end of the name of a folder that says which settings a result is of: "-n60-pairs-id".

    Example:
        >>> from finc_eval.cli.question import suffix_of
        >>> suffix_of({"pairs": "id", "n": "60", "no_rotation": "True", "kinds": "/home/me/old.h5"})
        '-kinds-old-n60-no-rotation-pairs-id'
        >>> suffix_of({"scores": "one=one.csv", "extractor": "dinov2-vits14"})
        '-extractor-dinov2-vits14-scores-one-one'
    """
    return "".join(f"-{_in_words(name, settings[name])}" for name in sorted(settings))


def _in_words(name: str, value: str) -> str:
    words = name.replace("_", "-")
    if value == "True":
        return words
    if value in ("False", "None"):
        return f"no-{words}"
    if re.fullmatch(r"-?[0-9.]+(e-?[0-9]+)?", value):
        return f"{words}{value}"
    return "-".join([words, *filter(None, map(_short, value.split(",")))])


def _short(value: str) -> str:
    """Return a value as a part of a name: of a path, the name of its file alone, without its ending."""
    is_path = "/" in value or "\\" in value or value.endswith(FILES)
    name = Path(value).stem if is_path else value
    return re.sub(r"[^\w.+]+", "-", name).strip("-.")
