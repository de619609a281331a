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
    monkeypatch.setattr(_stale, "changed_since", lambda state, name: state["code"])
    states = [{"code": ["a.py"], "rows": [0, 2]}, {"code": [], "rows": [1]}, {"code": None, "rows": [3]}]
    rows = [{}] * 4
    assert _stale.judged({"rows": rows, "states": states}) == (["a.py"], "2 of 4 rows, ", "1 of 4 rows, ")
    assert _stale.judged({"rows": rows[:2], "states": states[:1]}) == (["a.py"], "", None)
    assert _stale.judged({"rows": rows[:1], "code": None}) == ([], "", "")


def test_a_record_of_fewer_rows_replaces_nothing(folder, capsys):
    _record.record("name", [{"n": 1}, {"n": 2}])
    before = (folder / "README.md").read_text()
    _record.record("name", [{"n": 3}])
    assert [row["n"] for row in json.loads(_record.result_of("name").read_text())["rows"]] == [1, 2]
    assert (folder / "README.md").read_text() == before
    assert "name.json has 2 rows, these are 1, and is left as it is: delete it first" in capsys.readouterr().out


def test_each_regime_keeps_the_row_of_more_runs_and_says_whose_it_is(folder):
    def taken(**counts):
        _record.claims.clear()
        _record.claim({name: _record.Runs({f"code of {count}": "0"}, count, 400) for name, count in counts.items()})
        _record.record("name", [{"regime": name, "n": count} for name, count in counts.items() if count])
        return json.loads(_record.result_of("name").read_text())

    taken(null=400, power=20)
    found = taken(null=5, power=20, later=0)
    assert [row["n"] for row in found["rows"]] == [400, 20]
    found = taken(later=3, null=500, power=0)
    assert found["rows"] == [{"regime": name, "n": n} for name, n in (("later", 3), ("null", 500), ("power", 20))]
    assert found["runs"] == {"later": 3, "null": 500, "power": 20}
    assert [one["code"] for one in found["states"]] == [{f"code of {n}": "0"} for n in (3, 500, 20)]


@pytest.mark.parametrize(("count", "kept"), [(399, 1), (400, 2)])
def test_a_row_that_does_not_say_its_runs_gives_way_to_as_many_as_there_ought_to_be(folder, count, kept):
    _record.record("name", [{"regime": "null", "n": 1}])
    _record.claim({"null": _record.Runs({}, count, 400)})
    _record.record("name", [{"regime": "null", "n": 2}])
    assert json.loads(_record.result_of("name").read_text())["rows"] == [{"regime": "null", "n": kept}]


def test_rows_of_several_regimes_are_replaced_by_as_many_runs_alone(folder, capsys):
    for count in (400, 5, 500):
        _record.claim({"null": _record.Runs({}, count, 400)})
        _record.record("name", [{"size": 3, "n": count}])
    assert "name.json has more runs of null" in capsys.readouterr().out
    assert json.loads(_record.result_of("name").read_text())["rows"] == [{"size": 3, "n": 500}]
