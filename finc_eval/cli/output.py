"""The output of a verb: the page of its result, the JSON twin of the page, and the table on the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from finc_eval import report
from finc_eval.core.errors import UsageError
from finc_eval.core.record import plain
from finc_eval.core.serialize import Document
from finc_eval.core.storage import file_type


def twin_of(page: Path) -> Path:
    """Return the path of the JSON twin of a page; call it before any work, as it refuses paths that cannot be used."""
    twin = page.with_suffix(".json")
    if twin == page:
        raise UsageError(f"{page} is the name of the JSON twin: call the page {page.stem}.html")
    if file_type(page) is not None:
        raise UsageError(f"{page} is a finc-eval file, not a page: it is not overwritten, choose another name")
    return twin


def emit(result: Document, page: Path | None, as_json: bool, saved_as: tuple[Path, ...] = ()) -> None:
    """Write the page of a result and its JSON twin, and print the result.

    Args:
        result: the result.
        page: HTML file to write; None for neither page nor twin.
        as_json: print the JSON of the result instead of its table.
        saved_as: files that hold the result already, in place of the twin.
    """
    if page is not None and not saved_as:
        saved_as = (twin_of(page),)
        result.to_json(saved_as[0])
    paths = saved_as if page is None else (result.to_html(page), *saved_as)
    if as_json:
        print(result.to_json())
        return
    report.show(result)
    if paths:
        print("", *paths, sep="\n")


def print_json(value: Any) -> None:
    """Print a record, a list of records, or plain JSON types, as JSON."""
    print(json.dumps([plain(one) for one in value] if isinstance(value, list) else plain(value), indent=1))
