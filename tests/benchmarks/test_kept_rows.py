"""Rows of a benchmark are recorded one by one with their code, and a record is never replaced by a smaller one."""

import json
import sys

import _record
import _rows
import _stale
import pytest

SETTINGS = [{"form": "plain", "ε": 1}, {"form": "plain", "ε": 2.5}, {"form": "other", "ε": ""}]
PAGE = "<!-- name -->\n<!-- end -->\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of benchmarks with a page that has a place for the record."""
    monkeypatch.setattr(_record, "HERE", tmp_path)
    monkeypatch.setattr(_record, "claims", {})
    (tmp_path / "README.md").write_text(PAGE)
    return tmp_path


@pytest.fixture
def take(folder, monkeypatch):
    """Take the rows of SETTINGS by code of a name; return the record, and the settings that were computed."""
    monkeypatch.setattr(_rows, "changed_since", lambda state: [name for name in state["code"] if name != take.code])

    def take(*options, settings=SETTINGS, code="today"):
        take.code = code
        monkeypatch.setattr(sys, "argv", ["benchmark", *options])
        monkeypatch.setattr(_rows, "code_in_use", lambda: {code: "0123456789ab"})
        computed = []

        def one(form, epsilon):
            computed.append((form, epsilon))
            return {"made by": code}

        _rows.record_rows("name", settings, one, "notes")
        return json.loads(_record.result_of("name").read_text()), computed

    return take


def test_rows_that_are_there_are_not_taken_again(take, folder):
    first, computed = take(settings=SETTINGS[1:])
    assert computed == [("plain", 2.5), ("other", "")]
    second, computed = take()
    assert computed == [("plain", 1)]
    assert second["rows"] == [{"form": "plain", "ε": 1, "made by": "today"}, *first["rows"]]
    assert (folder / "README.md").read_text().count("| today |") == 3 and "3 of 3 rows; notes" in second["notes"]


def test_a_call_that_ends_early_keeps_the_rows_of_other_code_and_says_whose_they_are(take, monkeypatch):
    take(settings=SETTINGS[:2], code="before")
    ends = iter([0, 0, 0, 61, 61])
    monkeypatch.setattr(_rows.time, "monotonic", lambda: next(ends))
    result, computed = take("--minutes", "1")
    assert computed == [("other", ""), ("plain", 1)], "missing rows come first"
    assert [row["made by"] for row in result["rows"]] == ["today", "before", "today"]
    assert result["states"] == [
        {"code": {"today": "0123456789ab"}, "rows": [0, 2]},
        {"code": {"before": "0123456789ab"}, "rows": [1]},
    ]


def test_no_row_begins_after_the_time(take):
    before, _ = take(settings=SETTINGS[:1])
    assert take("--minutes", "0") == (before, [])


def test_the_rows_of_other_code_are_counted(monkeypatch):
    monkeypatch.setattr(_stale, "changed_since", lambda state: state["code"])
    states = [{"code": ["a.py"], "rows": [0, 2]}, {"code": [], "rows": [1]}]
    assert _stale.judged({"rows": [{}, {}, {}], "states": states}) == (["a.py"], "2 of 3 rows, ")
    assert _stale.judged({"rows": [{}, {}], "states": states[:1]}) == (["a.py"], "")
    assert _stale.judged({"rows": [{}], "code": None}) == (None, "")


def test_a_record_of_fewer_rows_replaces_nothing(folder, capsys):
    _record.record("name", [{"n": 1}, {"n": 2}])
    before = (folder / "README.md").read_text()
    _record.record("name", [{"n": 3}])
    assert [row["n"] for row in json.loads(_record.result_of("name").read_text())["rows"]] == [1, 2]
    assert (folder / "README.md").read_text() == before
    assert "name.json has 2 rows, these are 1, and is left as it is: delete it first" in capsys.readouterr().out


def test_a_record_of_fewer_runs_replaces_nothing(folder, capsys):
    _record.claim({}, {"null": 400, "power": 20})
    _record.record("name", [{"n": 1}])
    _record.claim({}, {"null": 5, "power": 20})
    _record.record("name", [{"n": 2}])
    assert "name.json has more runs of null" in capsys.readouterr().out
    _record.claim({}, {"null": 500, "power": 20})
    _record.record("name", [{"n": 3}])
    assert json.loads(_record.result_of("name").read_text())["rows"] == [{"n": 3}]


def test_a_record_that_does_not_know_its_runs_is_not_replaced_by_some(folder, capsys):
    _record.record("name", [{"n": 1}])
    _record.claim({}, {"null": 5})
    _record.record("name", [{"n": 2}])
    assert "does not say how many runs it has" in capsys.readouterr().out
    assert json.loads(_record.result_of("name").read_text())["rows"] == [{"n": 1}]
