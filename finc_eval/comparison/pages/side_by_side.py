"""Outline of several comparisons side by side, which their pages share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from finc_eval.comparison.pages.comparison import titles
from finc_eval.comparison.settings import Settings
from finc_eval.comparison.side_by_side import SideBySide
from finc_eval.report.exports.outline import Outline, call, source, unreadable


def outline_of(result: SideBySide, by: str, made: Sequence[str], settings: Settings, **own: Any) -> Outline:
    """Return what comparisons side by side say in all outputs.

    Args:
        result: the comparisons.
        by: what differs between them, as the end of the title.
        made: name of the function that makes them again, and its arguments after the two sets.
        settings: settings of that call, without what differs between them.
        own: what each type says in its own way, as fields of the outline.
    """
    names, (function, *arguments) = titles(result.first), made
    sets = {"gen": result.first.gen, "ref": result.first.ref}
    return Outline(
        title=f"{names[0]} against {names[1]}{by}",
        sets={name: info.n for name, info in zip(names, sets.values(), strict=True)},
        signatures=[*dict.fromkeys(comparison.signature for comparison in result.rows.values())],
        call=call(function, *(source(label, info) for label, info in sets.items()), *arguments, settings=settings),
        failures=unreadable(sets),
        **own,
    )
