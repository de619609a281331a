"""`finc-eval compare sweep`, `methods` and `changes`: a row a value, mode, group or change."""

import json
from math import inf

import numpy as np
import pytest
from _cards import pixel_card
from _verbs import run, table_rows

from finc_eval.core.words import percent, points
from finc_eval.demo.planted import gray, shipped_digits
from finc_eval.report.terminal import PLAIN


@pytest.mark.long
def test_a_sweep_of_sigma_prints_a_row_a_value_and_writes_page_and_twin(folders, tmp_path, monkeypatch):
    monkeypatch.setattr("finc_eval.core.progress.LONG", inf)  # on a busy machine short work takes long
    out = tmp_path / "pages"
    images, labels = shipped_digits()
    np.savez(tmp_path / "zeros.npz", arr_0=gray(images[labels == 0][:100]))
    result = run(
        "compare", "sweep", "--gen", tmp_path / "zeros.npz", "--ref", folders / "ref", "--parameter", "sigma",
        "--out", out,
        "--values", "30,10", "--features", 50, "--n", 100, "--verbose",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""  # short work says nothing
    twin = json.loads((out / "sweep-sigma.json").read_text())
    rows = table_rows(result.stdout)
    assert [row[0] for row in rows] == ["10", "30"]
    for row, point in zip(rows, twin["points"], strict=True):
        found = point["comparison"]
        counts = [sum(mode["p_value"] <= 0.05 for mode in found[key]) for key in ("over", "under")]
        assert [int(cell) for cell in row[1:3]] == counts
        assert any(counts)
        shares = [abs(m["share_difference"]) for m in found["over"] + found["under"] if m["p_value"] <= 0.05]
        assert row[3] == (percent(max(shares), 1) if shares else "-")
    assert "sigma 30 is too large" in rows[1][6]
    assert f"compare takes σ = {twin['default']:.4g}" in result.stdout
    assert "compare may find more" in " ".join(result.stdout.split())
    assert str(out / "sweep-sigma.html") in result.stdout
    assert "Directions against σ" in (out / "sweep-sigma.html").read_text()


@pytest.mark.long
def test_a_sweep_of_sigma_takes_fewer_frequencies_by_default(arrays, tmp_path):
    sets = ("--gen", arrays / "gen.npy", "--ref", arrays / "ref.npy", "--out", tmp_path / "s", "--values", "40")
    made = json.loads(run("compare", "sweep", *sets, "--parameter", "sigma", "--json").stdout)
    assert made["points"][0]["comparison"]["settings"]["features"] == 1000


@pytest.mark.long
def test_a_sweep_of_rho_as_json_is_all_there_is_on_stdout(arrays, tmp_path):
    result = run(
        "compare", "sweep", "--gen", arrays / "gen.npy", "--ref", arrays / "ref.npy", "--parameter", "rho",
        "--out", tmp_path, "--features", 60, "--json",
    )  # fmt: skip
    made = json.loads(result.stdout)
    assert [point["value"] for point in made["points"]] == [1, 2, 5, 10]
    assert {point["comparison"]["settings"]["features"] for point in made["points"]} == {60}
    assert (tmp_path / "sweep-rho.json").read_text().strip() == result.stdout.strip()


@pytest.mark.long
def test_methods_prints_the_groups_against_the_methods_and_writes_page_and_twin(folders, caches, tmp_path):
    out = tmp_path / "out"
    result = run(
        "compare", "methods", "--gen", folders / "gen", "--ref", caches / "ref.h5", "--methods", "finc,rarity",
        "--features", 50,
        "--modes", 2, "--novel", 0.4, "--out", out, "--verbose",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    twin = json.loads((out / "methods.json").read_text())
    shown = {row[0]: row[1:] for row in table_rows(result.stdout)}
    for group in twin["groups"]:
        for column, method in enumerate(("finc", "rarity")):
            found = twin["comparisons"][method][group["role"]]
            modes = [(rank, mode) for rank, mode in enumerate(found, 1) if mode["id"] in group["modes"].get(method, ())]
            texts = [f"{rank}. {points(mode['share_difference'])}".translate(PLAIN) for rank, mode in modes]
            texts = [t if m["p_value"] <= 0.05 else f"({t})" for t, (_, m) in zip(texts, modes, strict=True)]
            if group["name"] in shown:
                assert shown[group["name"]][column] == "; ".join(texts)
    assert shown and "|novel:0.4|" in result.stdout
    assert "data:image/" in (out / "methods.html").read_text()


def test_two_extractors_compare_in_both_of_their_spaces(folders, tmp_path):
    sets = ("--gen", folders / "gen", "--ref", folders / "ref", "--features", 20, "--modes", 1, "--n", 40)
    extractors = ("--extractor", pixel_card(tmp_path / "other.toml"), "--extractor", "pixels")
    result = run("compare", *sets, *extractors, "--out", tmp_path / "out", "--verbose")
    assert result.exit_code == 0, result.stderr
    twin = json.loads((tmp_path / "out" / "spaces.json").read_text())
    assert list(twin["comparisons"]) == ["other", "pixels"]
    assert [row[0] for row in table_rows(result.stdout)][:2] == ["other", "pixels"]
    refused = run("compare", *sets, *extractors, "--kinds", tmp_path / "out" / "spaces.h5", "--out", tmp_path / "more")
    assert refused.exit_code == 3 and "belong to a single space: give one extractor" in refused.stderr


def test_changes_follows_the_kinds_between_releases(arrays, tmp_path):
    old, new = (("--old", tmp_path / "old" / "comparison.h5"), ("--new", tmp_path / "new" / "comparison.h5"))
    for name, release, more in (("old", "gen", ()), ("new", "ref", ("--kinds", old[1]))):
        made = run(
            "compare", "--gen", arrays / f"{release}.npy", "--ref", arrays / "ref.npy", "--method", "clusters", *more,
            "--features", 100, "--out", tmp_path / name,
        )  # fmt: skip
        assert made.exit_code == 0, made.stderr
    out = ("--out", tmp_path)
    result = run("compare", "changes", *old, *new, *out, "--verbose")
    assert result.exit_code == 0, result.stderr
    assert "followed: " in result.stdout and "Changes between two releases" in (tmp_path / "changes.html").read_text()
    twin = json.loads((tmp_path / "changes.json").read_text())
    rows = table_rows(result.stdout)
    assert rows and [row[1] for row in rows] == [change["status"] for change in twin["changes"]]
    assert {change["status"] for change in twin["changes"] if change["kind"]["p_value"] <= 0.05} <= {"gone", "shrunk"}
    assert json.loads(run("compare", "changes", *old, *new, *out, "--json").stdout)["changes"] == twin["changes"]
    same = run("compare", "changes", *old, "--new", old[1], *out, "--force")
    unchanged = "The releases do not differ significantly: no share of a kind is significantly larger or smaller"
    assert unchanged in same.stdout
    none = run("compare", "changes", "--old", new[1], *new, *out, "--force")
    assert none.stdout.startswith("The releases do not differ significantly: no kind differs in either comparison")
