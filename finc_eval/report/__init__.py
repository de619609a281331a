"""What people read of a result: its page, its notebook view and its terminal table.

One module per type of result, each with `page`, `fragment` and `show`, all from the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from finc_eval.core.serialize import Document

MODULES = {
    "comparison": "comparison",
    "methods": "methods",
    "models": "models",
    "sweep": "sweep",
    "changes": "changes",
    "scores": "scores",
    "audit": "audit",
    "membership-score": "membership",
    "private-score": "private",
    "private-comparison": "private",
}
"""The module that draws each type of result."""


def page(result: Document, samples: Mapping[str, Any]) -> str:
    """Return the page of a result as HTML.

    Args:
        result: the result.
        samples: where the samples of a set are now, by label, if not where they were embedded from.
    """
    return str(_module(result).page(result, samples))


def fragment(result: Document) -> str:
    """Return the part of a result's page that a notebook shows."""
    return str(_module(result).fragment(result))


def show(result: Document) -> None:
    """Print the table of a result on standard output."""
    _module(result).show(result)


def _module(result: Document) -> Any:
    return import_module(f"finc_eval.report.{MODULES[result.type_name]}")
