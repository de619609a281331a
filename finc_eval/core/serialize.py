"""Results as JSON: one way to write them, for comparisons, tables of models and sweeps."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from finc_eval.core.storage import write_text


class Document(ABC):
    """A result that is a dictionary of plain JSON types."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON types; `schema` numbers the layout."""

    def to_json(self, path: str | Path | None = None) -> str:
        """`to_dict` as JSON text, also written to `path` if one is given."""
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False)
        if path is not None:
            write_text(path, text + "\n")
        return text
