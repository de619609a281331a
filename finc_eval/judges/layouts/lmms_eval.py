"""Layout of lmms-eval: a line a sample, with `doc_id`, `filtered_resps`, `input` and metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from finc_eval.core.files.csv_text import gather_columns
from finc_eval.judges.layouts.scored import Row, Scored, needed, score_in
from finc_eval.judges.tables import NamedColumns, text_of

LOGGED = ("doc_id", "doc", "target", "resps", "filtered_resps", "doc_hash", "input", "arguments", "token_counts")
"""Keys of lmms-eval's lines that are not metrics."""


def is_lmms(table: NamedColumns) -> bool:
    """Return whether a table is a log of samples of lmms-eval."""
    return {"doc_id", "filtered_resps"} <= table.columns.keys()


def read_lmms(table: NamedColumns) -> Scored:
    """Return all numbers of samples that are metrics."""
    ids = [text_of(needed(doc, table.place(row), "doc_id")) for row, doc in enumerate(table.columns["doc_id"])]
    prompts = [_prompt_of(row, id) for row, id in zip(table.rows(), ids, strict=True)]
    if len({*prompts}) < len(prompts):  # one question about many pictures does not say which sample it is
        prompts = ids
    rows = [
        {"id": id, "prompt": prompt, **dict(_numbers(row, table.place(place)))}
        for place, (row, id, prompt) in enumerate(zip(table.rows(), ids, prompts, strict=True))
    ]
    columns = gather_columns(rows, table.name)
    return Scored(columns, tuple(column for column in columns if column not in ("id", "prompt")), has_names=False)


def _prompt_of(row: Row, id: str) -> str:
    """Return the prompt of a logged sample, or else the text that the model was given."""
    doc = row.get("doc")
    found = doc.get("prompt") if isinstance(doc, Mapping) else None
    return next((text for text in (found, row.get("input")) if isinstance(text, str) and text), id)


def _numbers(values: Mapping[str, Any], where: str, before: str = "") -> Iterator[tuple[str, float]]:
    """Yield numbers that are not ids, also of tables one level down, by their names."""
    for key, value in values.items():
        if not before and key in LOGGED:
            continue
        if isinstance(value, Mapping) and not before:
            yield from _numbers(value, where, f"{key}.")
        elif isinstance(value, bool | int | float) and key not in ("id", "index") and not key.endswith("_id"):
            yield f"{before}{key}", score_in(value, where, f"{before}{key}")
