"""Settings in TOML files: one table a class of settings, read by the class itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from finc_eval.core.errors import DataError, did_you_mean
from finc_eval.core.files.parsed import read_toml
from finc_eval.core.record import Record, read_table

CONFIG_NAME = "finc-eval.toml"
"""Name of the file of defaults that the command line looks for in the working folder."""


@dataclass(frozen=True)
class Configured(Record):
    """Settings that a table of a TOML file can hold."""

    table: ClassVar[str]
    """Name of that table."""

    @classmethod
    def read(cls, path: str | Path, table: str | None = None) -> Self:
        """Read settings from a table of a TOML file; by default, the table of the class, such as "compare".

        Raises:
            DataError: the file cannot be read, lacks the table, or has a key or value that is not valid.
        """
        name, content = table or cls.table, read_toml(path)
        if not isinstance(content.get(name), dict):
            hint = did_you_mean(name, content)
            raise DataError(f"{path} has no table [{name}]{hint}: add it")
        cls.check_keys(content[name], f"{path} [{name}]")
        return read_table(cls, content[name], f"{path} [{name}]")

    @classmethod
    def check_keys(cls, table: Mapping[str, Any], where: str) -> None:
        """Refuse keys that deserve a better sentence than "unknown key"."""
