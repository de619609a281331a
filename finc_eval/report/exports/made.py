"""`Made`: the command, or the call from Python, that makes a result again, and the versions that it was made with."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import PurePath
from typing import Any

from finc_eval.core.provenance import Provenance
from finc_eval.embeddings.set_info import SetInfo

ABSOLUTE = re.compile(r"^((?:[^=/]*=)?)(/.*)", re.DOTALL)
"""An absolute path as a word of a command line, alone or after its name: /images/a, a=/images/a, --ref=/images/a."""


@dataclass(frozen=True)
class Made:
    """Making of a result, as pages and texts describe it."""

    command: str
    by_command: bool
    using: str  # versions, device and git state, in a sentence


def how_made(provenance: Provenance, call: str) -> Made:
    """Return the making of a result."""
    command = shareable(provenance.command)
    return Made(command or call, command is not None, using(provenance))


def using(provenance: Provenance) -> str:
    """Return "finc-eval 0.1.0, torch 2.5.1; on cpu; git 0123456789ab; defaults from finc-eval.toml."."""
    first = {"finc-eval": provenance.versions.get("finc-eval", "of an unknown version")}
    parts = [", ".join(f"{name} {version}" for name, version in (first | provenance.versions).items())]
    parts.append(f"on {provenance.device}")
    if provenance.git is not None:
        parts.append(f"git {provenance.git.revision[:12]}")
    if provenance.config is not None:
        parts.append(f"defaults from {PurePath(provenance.config).name}")
    return "; ".join(parts) + "."


def shareable(command: str | None) -> str | None:
    """Return a command line with only the last part of absolute paths, as pages are passed on."""
    if command is None:
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return shlex.join(ABSOLUTE.sub(lambda found: found[1] + PurePath(found[2]).name, word) for word in words)


def call(function: str, *arguments: str, settings: object = None) -> str:
    """Return a call from Python, with the fields of the settings that are not their defaults as keywords."""
    return f"fe.{function}({', '.join([*arguments, *_keywords(settings)])})"


def source(label: str, info: SetInfo) -> str:
    """Return a set as an argument: its place if that is known, else its name as a variable's."""
    return repr(info.place) if info.source is not None else label if label.isidentifier() else "…"


def sources(sets: Mapping[str, SetInfo]) -> str:
    """Return sets by name as one argument."""
    return "{" + ", ".join(f"{label!r}: {source(label, info)}" for label, info in sets.items()) + "}"


def _keywords(settings: object) -> list[str]:
    if settings is None:
        return []
    default: Any = type(settings)()
    values = {one.name: getattr(settings, one.name) for one in fields(default)}
    return [f"{name}={_literal(value)}" for name, value in values.items() if value != getattr(default, name)]


def _literal(value: object) -> str:
    if is_dataclass(value):
        return f"fe.{type(value).__name__}({', '.join(_keywords(value))})"
    return repr(value)
