"""`finc-eval score`, `report` and `schema`: what becomes of a stored comparison."""

import csv
import json
import shutil

from _cards import pixel_card
from _verbs import done, run, table_rows

import finc_eval as fe


def test_score_writes_a_row_a_sample(folders, compared, tmp_path):
    comparison = compared / "comparison.h5"
    result = run("score", "--comparison", comparison, folders / "gen", "--out", tmp_path / "s.csv")
    assert result.exit_code == 0, result.stderr
    with (tmp_path / "s.csv").open() as file:
        rows = list(csv.reader(file))
    loaded = fe.load(comparison)
    assert rows[0] == ["id", "best_mode", "member_of", *(mode.id for mode in loaded.modes)]
    assert len(rows) == 301
    best = max(rows[1:], key=lambda row: float(row[3]))
    assert best[0] == loaded.over[0].tails[0].gen_ids[0]
    thresholds = {mode.id: mode.threshold for mode in loaded.modes}
    assert None in thresholds.values()
    embedded = fe.extract(folders / "gen", extractor="pixels", out=tmp_path / "gen.h5")
    members_of = dict(zip(embedded.ids, loaded.members(embedded), strict=True))
    for row in rows[1:]:
        scores = {mode.id: float(score) for mode, score in zip(loaded.modes, row[3:], strict=True)}
        told = {name: score for name, score in scores.items() if thresholds[name]}
        assert row[1] == max(told, key=told.get)
        inside = [mode.id for mode, member in zip(loaded.modes, members_of[row[0]], strict=True) if member]
        assert row[2].split() == inside
    shown = {cells[0].split(", ")[-1]: cells[1:] for cells in table_rows(result.stdout)}
    first = loaded.over[0]
    members = sum(first.id in row[2].split() for row in rows[1:])
    assert shown[first.id][1] == f"{first.threshold:.3f}" and shown[first.id][2].startswith(f"{members} (")
    again = run("score", folders / "gen", "--comparison", comparison, "--out", tmp_path / "s.csv", "--json")
    told = json.loads(again.stdout)
    assert told["modes"][0]["members"] == members and told["columns"] == rows[0]
    unsure, many = len(loaded.modes) - len(loaded.significant()), len(loaded.modes)
    assert 1 < unsure < many
    assert told["warnings"] == [f"{unsure} of {many} modes are not significant, and may be chance"]


def test_score_names_what_it_could_not_read(folders, compared, tmp_path):
    comparison, few = compared / "comparison.h5", tmp_path / "few"
    few.mkdir()
    shutil.copy(next((folders / "gen").rglob("*.png")), few / "good.png")
    (few / "bad.png").write_bytes(b"no picture")
    result = run("score", few, "--comparison", comparison, "--out", tmp_path / "s.csv")
    assert result.exit_code == 0, result.stderr
    assert "note: 1 sample of the set could not be read and is left out: bad.png (" in " ".join(result.stdout.split())


def test_a_comparison_without_modes_scores_samples_all_the_same(folders, tmp_path):
    ref = folders / "ref"
    done("compare", "--gen", ref, "--ref", ref, "--features", 100, "--out", tmp_path / "c")
    comparison = tmp_path / "c" / "comparison.h5"
    result = run("score", folders / "gen", "--comparison", comparison, "--out", tmp_path / "s.csv")
    assert result.exit_code == 0, result.stderr
    assert "note: the comparison found no modes" in result.stdout and "┃" not in result.stdout
    lines = (tmp_path / "s.csv").read_text().splitlines()
    assert lines[0] == "id,best_mode,member_of" and len(lines) == 301 and lines[1].endswith(",,")
    embedded = fe.extract(folders / "gen", extractor="pixels")
    loaded = fe.load(comparison)
    assert loaded.score(embedded).shape == loaded.members(embedded).shape == (300, 0)


def test_scores_by_another_extractor_are_refused(folders, compared, tmp_path):
    other = pixel_card(tmp_path / "other.toml", ("std = [1", "std = [2"))
    done("extract", folders / "gen", "--extractor", other, "--out", tmp_path / "other.h5")
    comparison = compared / "comparison.h5"
    result = run("score", "--comparison", comparison, tmp_path / "other.h5", "--out", tmp_path / "s.csv")
    assert result.exit_code == 3
    assert "was embedded with other@" in result.stderr and "the comparison with pixels@" in result.stderr
    assert not (tmp_path / "s.csv").exists()


def test_report_from_another_folder_gives_the_same_page(compared, tmp_path, monkeypatch):
    other = tmp_path / "other"
    text = (compared / "comparison.html").read_bytes()
    other.mkdir()
    (compared / "comparison.h5").rename(other / "comparison.h5")
    monkeypatch.chdir(other)
    assert run("report", "comparison.h5").exit_code == 0
    assert (other / "comparison.html").read_bytes() == text and text.count(b"data:image/") > 16
    saved = fe.load(other / "comparison.h5")
    assert set(saved.captions["gen"]) == set(saved.shown_ids("gen")) and b"nearest reference sample: " in text


def test_report_takes_samples_that_have_moved(folders, tmp_path):
    moved = tmp_path / "moved"
    (folders / "gen").rename(moved)
    try:
        run("extract", moved, "--out", tmp_path / "gen.h5")
    finally:
        moved.rename(folders / "gen")
    out = tmp_path / "c"
    run("compare", "--gen", tmp_path / "gen.h5", "--ref", folders / "ref", "--out", out, "--features", 100)
    without = (out / "comparison.html").read_text()
    result = run("report", out / "comparison.h5", "--samples", f"gen={folders / 'gen'}")
    assert result.exit_code == 0, result.stderr
    assert (out / "comparison.html").read_text().count("data:image/") > without.count("data:image/")


def test_the_schema_of_a_result_is_printed():
    listed = run("schema").stdout.split()
    assert {"comparison", "models", "methods", "sweep", "changes"} <= set(listed)
    assert json.loads(run("schema", "comparison").stdout)["properties"]["type"]["const"] == "comparison"
    wrong = run("schema", "comparisons")
    assert wrong.exit_code == 3 and 'did you mean "comparison"?' in wrong.stderr
