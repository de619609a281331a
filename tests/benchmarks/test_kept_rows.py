"""Rows of a benchmark are recorded one by one, say when they were measured, and are never replaced by fewer."""

import json
import sys
from pathlib import Path

import _record
import _rows
import pytest

SETTINGS = [{"form": "plain", "ε": 1}, {"form": "plain", "ε": 2.5}, {"form": "other", "ε": ""}]
ROOT = Path(__file__).parents[2]
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
    """Take the rows of SETTINGS at a commit; return the record, and the settings that were computed."""

    def take(*options, settings=SETTINGS, commit="abc1234"):
        monkeypatch.setattr(sys, "argv", ["benchmark", *options])
        monkeypatch.setattr(_record, "commit_of_now", lambda: commit)
        computed = []

        def one(form, epsilon):
            computed.append((form, epsilon))
            return {"length": len(form)}

        _rows.record_rows("name", settings, one, "notes")
        return json.loads(_record.result_of("name").read_text()), computed

    return take


def test_rows_that_are_there_are_not_taken_again_and_keep_their_commit(take):
    _, computed = take(settings=SETTINGS[1:])
    assert computed == [("plain", 2.5), ("other", "")]
    found, computed = take(commit="def5678")
    assert computed == [("plain", 1)]
    assert [row["measured"].split()[0] for row in found["rows"]] == ["def5678", "abc1234", "abc1234"]
    assert [row["length"] for row in found["rows"]] == [5, 5, 5] and "3 of 3 rows; notes" in found["notes"]


def test_no_row_begins_after_the_time(take, monkeypatch):
    before, _ = take(settings=SETTINGS[:1])
    ends = iter([0, 0, 61])
    monkeypatch.setattr(_rows.time, "monotonic", lambda: next(ends))
    found, computed = take("--minutes", "1")
    assert computed == [("plain", 2.5)] and found["rows"][0] == before["rows"][0]


def test_a_record_says_its_commit_date_versions_and_class_of_machine_and_its_table_begins_with_them(
    folder, monkeypatch
):
    monkeypatch.setattr(_record, "commit_of_now", lambda: "abc1234")
    monkeypatch.setattr(sys, "argv", [str(ROOT / "benchmarks" / "name.py"), "--regime", "a regime"])
    _record.record("name", [{"n": 1}])
    found = json.loads(_record.result_of("name").read_text())
    assert found["commit"] == "abc1234" and len(found["date"]) == 10
    assert found["command"] == "python benchmarks/name.py --regime 'a regime'"
    assert set(found["versions"]) == {"python", "torch"} and "CPU cores" in found["machine"]
    assert f"<!-- name -->\nmeasured at abc1234 on {found['date']}" in (folder / "README.md").read_text()


def test_a_table_names_the_commits_of_the_rows_and_the_columns_that_it_shows():
    days = ("aaaaaaa on 2026-11-23", "bbbbbbb on 2026-11-22", "ccccccc on 2026-11-23")
    rows = [{"n": n, "s": 2 * n, "measured": day} for n, day in enumerate(days)]
    result = {"commit": "ccccccc", "date": "2026-11-23", "machine": "2 CPU cores, 1 threads", "rows": rows}
    assert _record.table(result, ("s",), "^[01] ") == (
        "measured at bbbbbbb on 2026-11-22; aaaaaaa on 2026-11-23\n\n| s |\n|---|\n| 0 |\n| 2 |\n"
    )


def test_the_records_of_the_repository_are_dated_and_name_no_code():
    for path in (ROOT / "benchmarks" / "results").glob("*.json"):
        found = json.loads(path.read_text())
        assert {"commit", "date", "versions", "machine"} <= set(found) and not {"code", "states"} & set(found), (
            path.name
        )
        python, script, *_ = found["command"].split()
        assert python == "python" and (ROOT / script).is_file(), path.name


def test_a_record_of_fewer_rows_replaces_nothing(folder, capsys):
    _record.record("name", [{"n": 1}, {"n": 2}])
    before = (folder / "README.md").read_text()
    _record.record("name", [{"n": 3}])
    assert [row["n"] for row in json.loads(_record.result_of("name").read_text())["rows"]] == [1, 2]
    assert (folder / "README.md").read_text() == before
    assert "name.json has 2 rows, these are 1, and is left as it is: delete it first" in capsys.readouterr().out


def test_each_regime_keeps_the_row_of_more_runs_and_says_when_it_was_measured(folder, monkeypatch):
    def taken(**counts):
        monkeypatch.setattr(_record, "commit_of_now", lambda: "-".join(map(str, counts.values())))
        _record.claims.clear()
        _record.claim({name: _record.Runs(count, 400) for name, count in counts.items()})
        _record.record("name", [{"regime": name, "n": count} for name, count in counts.items() if count])
        return json.loads(_record.result_of("name").read_text())

    taken(null=400, power=20)
    found = taken(null=5, power=20, later=0)
    assert [row["n"] for row in found["rows"]] == [400, 20]
    found = taken(later=3, null=500, power=0)
    rows = [("later", 3, "3-500-0"), ("null", 500, "3-500-0"), ("power", 20, "400-20")]
    assert [(row["regime"], row["n"], row["measured"].split()[0]) for row in found["rows"]] == rows
    assert found["runs"] == {"later": 3, "null": 500, "power": 20}


def test_the_last_row_sums_the_rows_that_are_kept_and_the_new_ones(folder):
    def taken(**counts):
        _record.claims.clear()
        _record.claim({name: _record.Runs(count, 400) for name, count in counts.items()})
        rows = [{"regime": name, "n": count} for name, count in counts.items() if count]
        _record.record("name", rows, total=lambda every: {"regime": "all", "n": sum(row["n"] for row in every)})
        return {row["regime"]: row["n"] for row in json.loads(_record.result_of("name").read_text())["rows"]}

    assert taken(null=30, power=20) == {"null": 30, "power": 20, "all": 50}
    assert taken(null=40, power=0) == {"null": 40, "power": 20, "all": 60}
    assert taken(null=10, power=0) == {"null": 40, "power": 20, "all": 60}


@pytest.mark.parametrize(("count", "kept"), [(399, 1), (400, 2)])
def test_a_row_that_does_not_say_its_runs_gives_way_to_as_many_as_there_ought_to_be(folder, count, kept):
    _record.record("name", [{"regime": "null", "n": 1}])
    _record.claim({"null": _record.Runs(count, 400)})
    _record.record("name", [{"regime": "null", "n": 2}])
    assert json.loads(_record.result_of("name").read_text())["rows"][0]["n"] == kept


def test_rows_of_several_regimes_are_replaced_by_as_many_runs_alone(folder, capsys):
    for count in (400, 5, 500):
        _record.claim({"null": _record.Runs(count, 400)})
        _record.record("name", [{"size": 3, "n": count}])
    assert "name.json has more runs of null" in capsys.readouterr().out
    assert json.loads(_record.result_of("name").read_text())["rows"][0]["n"] == 500
