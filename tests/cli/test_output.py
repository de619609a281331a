"""The output of verbs: pages with their JSON twins, and records as JSON."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from _pages import a_comparison

import finc_eval as fe
from finc_eval.cli.output import emit, print_json, twin_of
from finc_eval.core.errors import UsageError


def test_a_page_does_not_overwrite_what_was_computed(tmp_path):
    assert twin_of(tmp_path / "page.html") == tmp_path / "page.json"
    fe.Sketch.reference(np.eye(30, dtype=np.float32), features=4).save(tmp_path / "ref.h5")
    with pytest.raises(UsageError, match=r"ref\.h5 is a finc-eval file, not a page"):
        twin_of(tmp_path / "ref.h5")


def test_a_result_has_a_page_and_a_twin_with_the_json_that_is_printed(tmp_path, capsys):
    emit(a_comparison(), tmp_path / "page.html", as_json=True)
    assert capsys.readouterr().out.strip() == (tmp_path / "page.json").read_text(encoding="utf-8").strip()
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    emit(a_comparison(), None, as_json=False)
    assert str(a_comparison().signature) in capsys.readouterr().out


@dataclass(frozen=True)
class Found:
    """A record with a path that is not text, and a number that JSON does not have."""

    path: Path = Path("a\udcff")
    share: float = float("nan")


@pytest.mark.parametrize("value", [Found(), [Found(), Found()], {"name": "x"}])
def test_records_are_printed_as_json(value, capsys):
    print_json(value)
    found = {"path": "a\udcff", "share": None}
    expected = found if isinstance(value, Found) else [found] * 2 if isinstance(value, list) else value
    assert json.loads(capsys.readouterr().out) == expected
