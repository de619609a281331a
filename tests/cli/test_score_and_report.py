"""`finc-eval score`, `report` and `schema`: what becomes of a stored comparison."""

import csv
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from _cards import pixel_card
from _verbs import done, run, table_rows

import finc_eval as fe
from finc_eval.core.words import percent


def test_score_writes_a_row_a_sample(folders, compared, tmp_path):
    comparison = compared / "comparison.h5"
    result = run("score", "--comparison", comparison, folders / "gen", "--out", tmp_path / "s.csv", "--verbose")
    assert result.exit_code == 0, result.stderr
    with (tmp_path / "s.csv").open() as file:
        rows = list(csv.reader(file))
    loaded = fe.load(comparison)
    assert rows[0] == ["id", "kind", "kind_name", *(mode.id for mode in loaded.directions)]
    assert len(rows) == 201
    best = max(rows[1:], key=lambda row: float(row[3]))
    assert best[0] == loaded.over[0].tails[0].gen_ids[0]
    embedded = fe.extract(folders / "gen", extractor="pixels", out=tmp_path / "gen.h5")
    scores = dict(zip(embedded.ids, loaded.score(embedded), strict=True))
    places = dict(zip(embedded.ids, loaded.assign(embedded), strict=True))
    for row in rows[1:]:
        kind = loaded.kinds[places[row[0]]]
        assert (row[1], row[2]) == (kind.id, kind.name or "")
        assert [float(score) for score in row[3:]] == pytest.approx(scores[row[0]].tolist(), abs=1e-5)
    counts = {kind.id: sum(row[1] == kind.id for row in rows[1:]) for kind in loaded.kinds}
    # The samples are those of gen, so that the kinds have their shares of it.
    assert counts == {kind.id: kind.shares["gen"].count for kind in loaded.kinds} and sum(counts.values()) == 200
    shown = {cells[0].split(", ")[-1]: cells[1:] for cells in table_rows(result.stdout)}
    assert {name: int(cells[0]) for name, cells in shown.items()} == counts
    first = loaded.kinds[0]
    assert shown[first.id][1:] == [
        percent(part, 1) for part in (counts[first.id] / 200, first.share_gen, first.share_ref)
    ]
    again = run("score", folders / "gen", "--comparison", comparison, "--out", tmp_path / "s.csv", "--json")
    told = json.loads(again.stdout)
    assert {kind["id"]: kind["count"] for kind in told["kinds"]} == counts and told["columns"] == rows[0]
    unsure, many = sum(mode.p_value > 0.05 for mode in loaded.directions), len(loaded.directions)
    assert 1 < unsure < many
    assert told["warnings"] == [f"{unsure} of {many} directions are not significant, and may be chance"]


def test_samples_scored_by_finc_alone_are_of_no_kind(arrays, tmp_path):
    sets = ("--gen", arrays / "gen.npy", "--ref", arrays / "ref.npy", "--features", 20, "--out", tmp_path / "c")
    done("compare", *sets, "--no-clusters", "--modes", 2)
    comparison = tmp_path / "c" / "comparison.h5"
    result = run("score", arrays / "ref.npy", "--comparison", comparison, "--out", tmp_path / "s.csv")
    assert result.exit_code == 0, result.stderr
    assert "note: the comparison has no kinds to assign samples to" in result.stdout and "|-" not in result.stdout
    rows = list(csv.reader((tmp_path / "s.csv").read_text().splitlines()))
    assert len(rows[0]) > 3 and {(row[1], row[2]) for row in rows[1:]} == {("", "")}


def test_a_name_is_no_formula_of_a_spreadsheet(arrays, tmp_path):
    found = fe.compare(arrays / "gen.npy", arrays / "ref.npy", features=50, method="clusters")
    named = replace(found, kinds=(replace(found.kinds[0], name="=1+2"), *found.kinds[1:]))
    named.save(tmp_path / "c.h5")
    done("score", arrays / "gen.npy", "--comparison", tmp_path / "c.h5", "--out", tmp_path / "s.csv")
    rows = list(csv.reader((tmp_path / "s.csv").read_text().splitlines()))
    assert {row[2] for row in rows if row[1] == found.kinds[0].id} == {"'=1+2"}


def test_score_names_what_it_could_not_read(folders, compared, tmp_path):
    comparison, few = compared / "comparison.h5", tmp_path / "few"
    few.mkdir()
    shutil.copy(next((folders / "gen").rglob("*.png")), few / "good.png")
    (few / "bad.png").write_bytes(b"no picture")
    result = run("score", few, "--comparison", comparison, "--out", tmp_path / "s.csv")
    assert result.exit_code == 0, result.stderr
    assert "note: 1 sample of the set could not be read and is left out: bad.png (" in " ".join(result.stdout.split())


def test_a_comparison_without_directions_scores_samples_all_the_same(arrays, tmp_path):
    ref = arrays / "ref.npy"
    done("compare", "--gen", ref, "--ref", ref, "--features", 20, "--out", tmp_path / "c")
    comparison = tmp_path / "c" / "comparison.h5"
    result = run("score", arrays / "gen.npy", "--comparison", comparison, "--out", tmp_path / "s.csv")
    assert result.exit_code == 0, result.stderr
    assert "note: the comparison found no directions: samples have no scores" in result.stdout
    lines = (tmp_path / "s.csv").read_text().splitlines()
    assert lines[0] == "id,kind,kind_name" and len(lines) == 201
    embedded, loaded = np.load(arrays / "gen.npy"), fe.load(comparison)
    assert loaded.score(embedded).shape == (200, 0) and (loaded.assign(embedded) >= 0).all()


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
    for name in ("gen", "ref"):
        (tmp_path / name).mkdir()
        for path in sorted((folders / name).rglob("*.png"))[:40]:
            shutil.copy(path, tmp_path / name)
    run("extract", tmp_path / "gen", "--out", tmp_path / "gen.h5")
    (tmp_path / "gen").rename(tmp_path / "moved")
    out = tmp_path / "c"
    run(
        "compare", "--gen", tmp_path / "gen.h5", "--ref", tmp_path / "ref", "--out", out, "--features", 20, "--modes", 1
    )
    without = (out / "comparison.html").read_text()
    result = run("report", out / "comparison.h5", "--samples", f"gen={tmp_path / 'moved'}")
    assert result.exit_code == 0, result.stderr
    assert (out / "comparison.html").read_text().count("data:image/") > without.count("data:image/")


def test_the_schema_of_a_result_is_printed():
    listed = run("doctor", "schema").stdout.split()
    assert {"comparison", "kinds", "methods", "sweep", "changes"} <= set(listed)
    assert json.loads(run("doctor", "schema", "comparison").stdout)["properties"]["type"]["const"] == "comparison"
    wrong = run("doctor", "schema", "comparisons")
    assert wrong.exit_code == 3 and 'did you mean "comparison"?' in wrong.stderr
