import csv
import json
import os
import signal
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import VERBS, app, load_verb
from finc_eval.core.words import percent, points
from finc_eval.demo.planted import gray, planted_sets, shipped_digits


def run(verb, *arguments):
    """Run a verb; the verbs that embed use pixels by default, as the sets here are digits."""
    if verb in ("extract", "compare", "sweep", "models", "methods") and "--extractor" not in arguments:
        arguments = (*arguments, "--extractor", "pixels")
    return CliRunner().invoke(app, [verb, *map(str, arguments)])


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two folders of 300 digits: half of gen colored, ref gray."""
    folder = tmp_path_factory.mktemp("sets")
    for name, made in zip(("gen", "ref"), planted_sets(), strict=True):
        type(made)(made.images[:300], made.kinds[:300]).write(folder / name)
    return folder


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))


def test_compare_goes_from_two_folders_to_a_report(folders, tmp_path):
    out = tmp_path / "out"
    result = run("compare", "--gen", folders / "gen", "--ref", folders / "ref", "--out", out, "--features", 200)
    assert result.exit_code == 0, result.stderr
    assert "Over-represented: more in the generated set" in result.stdout
    assert sorted(path.name for path in out.iterdir()) == ["comparison.h5", "comparison.html", "comparison.json"]
    comparison = fe.load(out / "comparison.h5")
    assert comparison.over[0].id in result.stdout
    assert str(comparison.signature) in result.stdout
    assert json.loads((out / "comparison.json").read_text())["signature"] == str(comparison.signature)
    page = (out / "comparison.html").read_text()
    assert comparison.over[0].id in page
    assert "data:image/" in page
    assert "gen: extract" in result.stderr and "score ref" in result.stderr


def test_json_is_all_there_is_on_stdout(folders, tmp_path):
    result = run(
        "compare", "--gen", folders / "gen", "--ref", folders / "ref", "--out", tmp_path / "c",
        "--features", 100, "--json",
    )  # fmt: skip
    assert json.loads(result.stdout)["settings"]["features"] == 100


def test_the_steps_one_by_one_give_what_compare_gives(folders, tmp_path):
    for name in ("gen", "ref"):
        assert run("extract", folders / name, "--out", tmp_path / f"{name}.h5").exit_code == 0
    made = run("sketch", tmp_path / "ref.h5", "--out", tmp_path / "ref.sketch.h5", "--features", 100)
    assert made.exit_code == 0, made.stderr
    like = ("--feature-map-of", tmp_path / "ref.sketch.h5")
    assert run("sketch", tmp_path / "gen.h5", "--out", tmp_path / "gen.sketch.h5", *like).exit_code == 0
    for kind, suffix in (("embeddings", ".h5"), ("sketches", ".sketch.h5")):
        result = run(
            "compare", "--gen", tmp_path / f"gen{suffix}", "--ref", tmp_path / f"ref{suffix}",
            "--features", 100, "--out", tmp_path / kind,
        )  # fmt: skip
        assert result.exit_code == 0, result.stderr
    one, other = (fe.load(tmp_path / kind / "comparison.h5") for kind in ("embeddings", "sketches"))
    mine, others = ({mode.id: mode.excess for mode in found.modes if mode.threshold} for found in (one, other))
    common = mine.keys() & others.keys()
    assert len(common) >= 0.8 * len(mine) > 0
    assert [mine[name] for name in common] == pytest.approx([others[name] for name in common], abs=1e-5)


def test_score_writes_a_row_a_sample(folders, tmp_path):
    comparison = tmp_path / "c" / "comparison.h5"
    run("compare", "--gen", folders / "gen", "--ref", folders / "ref", "--out", tmp_path / "c", "--features", 100)
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
    for row in rows[1:]:
        scores = {mode.id: float(score) for mode, score in zip(loaded.modes, row[3:], strict=True)}
        told = {name: score for name, score in scores.items() if thresholds[name]}
        assert row[1] == max(told, key=told.get)
        inside = [mode.id for mode in loaded.modes if mode.threshold and scores[mode.id] >= mode.threshold]
        assert row[2].split() == inside
    shown = {cells[0].split(", ")[-1]: cells[1:] for cells in table_rows(result.stdout)}
    first = loaded.over[0]
    members = sum(first.id in row[2].split() for row in rows[1:])
    assert shown[first.id][1] == f"{first.threshold:.3f}" and shown[first.id][2].startswith(f"{members} (")
    again = run("score", folders / "gen", "--comparison", comparison, "--out", tmp_path / "s.csv", "--json")
    told = json.loads(again.stdout)
    assert told["modes"][0]["members"] == members and told["columns"] == rows[0]
    assert told["warnings"] == []


def test_score_names_what_it_could_not_read(folders, tmp_path):
    comparison, few = tmp_path / "c" / "comparison.h5", tmp_path / "few"
    run("compare", "--gen", folders / "gen", "--ref", folders / "ref", "--out", tmp_path / "c", "--features", 100)
    few.mkdir()
    (few / "good.png").write_bytes(next((folders / "gen").rglob("*.png")).read_bytes())
    (few / "bad.png").write_bytes(b"no picture")
    result = run("score", few, "--comparison", comparison, "--out", tmp_path / "s.csv")
    assert result.exit_code == 0, result.stderr
    assert "note: 1 sample of the set could not be read and is left out: bad.png (" in " ".join(result.stdout.split())


def test_report_from_another_folder_gives_the_same_page(folders, tmp_path, monkeypatch):
    out, other = tmp_path / "c", tmp_path / "other"
    run("compare", "--gen", folders / "gen", "--ref", folders / "ref", "--out", out, "--features", 100)
    text = (out / "comparison.html").read_bytes()
    other.mkdir()
    (out / "comparison.h5").rename(other / "comparison.h5")
    monkeypatch.chdir(other)
    assert run("report", "comparison.h5").exit_code == 0
    assert (other / "comparison.html").read_bytes() == text and text.count(b"data:image/") > 16
    saved = fe.load(other / "comparison.h5")
    assert set(saved.captions["gen"]) == set(saved.shown_ids("gen")) and b"nearest reference sample: " in text


def test_compare_can_leave_pictures_out(folders, tmp_path):
    sets = ("--gen", folders / "gen", "--ref", folders / "ref", "--features", 100)
    run("compare", *sets, "--out", tmp_path / "c", "--pictures", 0)
    assert "data:image/" not in (tmp_path / "c" / "comparison.html").read_text()
    assert fe.load(tmp_path / "c" / "comparison.h5").kept == {"gen": {}, "ref": {}}
    refused = run("compare", *sets, "--out", tmp_path / "d", "--pictures", 40)
    assert refused.exit_code == 3 and "from 0 to 16" in refused.stderr and not (tmp_path / "d").exists()


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


@pytest.fixture(scope="module")
def caches(folders, tmp_path_factory):
    """The two folders embedded."""
    folder = tmp_path_factory.mktemp("caches")
    for name in ("gen", "ref"):
        fe.extract(folders / name, "pixels", out=folder / f"{name}.h5")
    return folder


def table_rows(text):
    """The cells of the rows of a printed table, without its rules."""
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in text.splitlines() if line[:1] == "│"]


def test_compare_prints_the_headline_and_the_shares_of_significant_modes(caches, tmp_path):
    out = tmp_path / "c"
    result = run("compare", "--gen", caches / "gen.h5", "--ref", caches / "ref.h5", "--out", out, "--features", 100)
    found = fe.load(out / "comparison.h5")
    assert result.stdout.startswith(found.headline)
    shown = {row[1].split(", ")[-1]: row for row in table_rows(result.stdout)}
    assert list(shown) == [mode.id for mode in found.significant()] and shown
    for mode in found.significant():
        row = shown[mode.id]
        assert row[2:4] == [percent(share, 1).removesuffix(" %") for share in (mode.share_gen, mode.share_ref)]
        ends = ", ".join(points(end) for end in mode.share_difference_interval)
        assert row[4] == f"{points(mode.share_difference)} [{ends}]"
    others = len(found.modes) - len(found.significant())
    assert (f"{others} more" in result.stdout) == bool(others)


def test_the_cosine_kernel_goes_from_sketch_to_comparison(caches, tmp_path):
    made = run("sketch", caches / "ref.h5", "--out", tmp_path / "ref.sketch.h5", "--kernel", "cosine")
    assert made.exit_code == 0, made.stderr
    assert made.stdout.strip().endswith("sketch of 300 samples, cosine kernel, 2352 entries per embedding")
    like = ("--feature-map-of", tmp_path / "ref.sketch.h5")
    assert run("sketch", caches / "gen.h5", "--out", tmp_path / "gen.sketch.h5", *like).exit_code == 0
    out = tmp_path / "c"
    result = run("compare", "--gen", tmp_path / "gen.sketch.h5", "--ref", tmp_path / "ref.sketch.h5", "--out", out)
    assert result.exit_code == 0, result.stderr
    assert "cosine kernel: exact, without a bandwidth" in result.stdout and "sigma" not in result.stdout
    assert fe.load(out / "comparison.h5").settings.kernel == "cosine"


def test_features_and_precision_reach_the_comparison(caches, tmp_path):
    made = run(
        "sketch", caches / "ref.h5", "--out", tmp_path / "ref.sketch.h5",
        "--features", 60, "--precision", "bfloat16",
    )  # fmt: skip
    assert made.exit_code == 0, made.stderr
    sketch = fe.load(tmp_path / "ref.sketch.h5")
    assert (sketch.feature_map.features, sketch.precision) == (60, "bfloat16")
    result = run(
        "compare", "--gen", caches / "gen.h5", "--ref", caches / "ref.h5", "--out", tmp_path / "c",
        "--features", "auto", "--sigma", 40, "--precision", "tf32", "--json",
    )  # fmt: skip
    made = json.loads(result.stdout)
    assert made["settings"]["features"] == 1000 and "|prec:tf32|" in made["signature"]


def test_a_sweep_of_sigma_prints_a_row_a_value_and_writes_page_and_twin(folders, tmp_path):
    out = tmp_path / "pages"
    images, labels = shipped_digits()
    np.savez(tmp_path / "zeros.npz", arr_0=gray(images[labels == 0][:300]))
    result = run(
        "sweep", "--gen", tmp_path / "zeros.npz", "--ref", folders / "ref", "--parameter", "sigma", "--out", out,
        "--values", "30,10", "--features", 100,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert "gen: extract" in result.stderr and "sketch ref" in result.stderr and "compare: 2/2" in result.stderr
    twin = json.loads((out / "sweep-sigma.json").read_text())
    rows = table_rows(result.stdout)
    assert [row[0] for row in rows] == ["10", "30"]
    for row, point in zip(rows, twin["points"], strict=True):
        found = point["comparison"]
        counts = [sum(mode["p_value"] <= 0.05 for mode in found[key]) for key in ("over", "under")]
        assert [int(cell) for cell in row[1:3]] == counts
        assert any(counts)
        shares = [abs(m["share_difference"]) for m in found["over"] + found["under"] if m["p_value"] <= 0.05]
        assert row[3] == (percent(max(shares), 1) if shares else "–")
    assert "sigma 30 is too large" in rows[1][6]
    assert f"compare's default: sigma {twin['default']:.4g}" in result.stdout
    assert "compare may find more" in " ".join(result.stdout.split())
    assert str(out / "sweep-sigma.html") in result.stdout
    assert "Modes against σ" in (out / "sweep-sigma.html").read_text()


def test_a_sweep_of_rho_as_json_is_all_there_is_on_stdout(caches, tmp_path):
    result = run(
        "sweep", "--gen", caches / "gen.h5", "--ref", caches / "ref.h5", "--parameter", "rho",
        "--out", tmp_path, "--features", 60, "--json",
    )  # fmt: skip
    made = json.loads(result.stdout)
    assert [point["value"] for point in made["points"]] == [1, 2, 5, 10]
    assert {point["comparison"]["settings"]["features"] for point in made["points"]} == {60}
    assert (tmp_path / "sweep-rho.json").read_text().strip() == result.stdout.strip()


def test_models_prints_the_significant_modes_against_the_sets(folders, caches, tmp_path):
    out = tmp_path / "out"
    result = run(
        "models", "--gen", f"mine={folders / 'gen'}", "--gen", f"theirs={caches / 'ref.h5'}",
        "--ref", caches / "ref.h5", "--features", 100, "--out", out,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    twin = json.loads((out / "models.json").read_text())
    significant = [mode for mode in twin["modes"] if mode["p_value"] <= 0.05]
    rows = table_rows(result.stdout)
    titles = [mode["name"] or mode["id"] for mode in significant]
    assert titles and [row[0].removeprefix("– ") for row in rows] == titles
    for row, mode in zip(rows, significant, strict=True):
        assert row[1] == mode["set_with_most"]
        for cell, label in zip(row[3:], ("mine", "theirs", "ref"), strict=True):
            part = mode["shares"][label]
            ends = [percent(end, 1).removesuffix(" %") for end in (part["share"], *part["interval"])]
            assert cell == f"{ends[0]} [{ends[1]}, {ends[2]}]"
    assert f"{len(twin['modes']) - len(significant)} more" in result.stdout
    assert "data:image/" in (out / "models.html").read_text() and "mine: extract" in result.stderr


def test_models_as_json_is_all_there_is_on_stdout(caches, tmp_path):
    result = run(
        "models", "--gen", f"a={caches / 'gen.h5'}", "--gen", f"b={caches / 'ref.h5'}", "--features", 60,
        "--out", tmp_path / "m", "--json",
    )  # fmt: skip
    assert list(json.loads(result.stdout)["sets"]) == ["a", "b"]


def test_methods_prints_the_groups_against_the_methods_and_writes_page_and_twin(folders, caches, tmp_path):
    out = tmp_path / "out"
    result = run(
        "methods", "--gen", folders / "gen", "--ref", caches / "ref.h5", "--methods", "finc,rarity", "--features", 100,
        "--modes", 3, "--novel", 0.4, "--out", out,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    twin = json.loads((out / "methods.json").read_text())
    shown = {row[0]: row[1:] for row in table_rows(result.stdout)}
    for group in twin["groups"]:
        for column, method in enumerate(("finc", "rarity")):
            found = twin["comparisons"][method][group["role"]]
            modes = [(rank, mode) for rank, mode in enumerate(found, 1) if mode["id"] in group["modes"].get(method, ())]
            texts = [f"{rank}. {points(mode['share_difference'])}" for rank, mode in modes]
            texts = [t if m["p_value"] <= 0.05 else f"({t})" for t, (_, m) in zip(texts, modes, strict=True)]
            if group["name"] in shown:
                assert shown[group["name"]][column] == "; ".join(texts)
    assert shown and "|novel:0.4|" in result.stdout
    assert "data:image/" in (out / "methods.html").read_text() and "rarity: decompose" in result.stderr


def test_compare_takes_a_method_and_its_parameters(caches, tmp_path):
    result = run(
        "compare", "--gen", caches / "gen.h5", "--ref", caches / "ref.h5", "--method", "rarity", "--novel", 0.4,
        "--neighbors", 5, "--modes", 3, "--features", 60, "--out", tmp_path / "c", "--json",
    )  # fmt: skip
    made = json.loads(result.stdout)
    assert made["settings"]["method"] == {"name": "rarity", "novel": 0.4, "neighbors": 5}
    assert made["signature"].startswith("rarity|")


def test_changes_follows_the_modes_between_releases(caches, tmp_path):
    run("sketch", caches / "ref.h5", "--out", tmp_path / "ref.h5", "--features", 100)
    for name, release in (("old", "gen"), ("new", "ref")):
        made = run("compare", "--gen", caches / f"{release}.h5", "--ref", tmp_path / "ref.h5", "--out", tmp_path / name)
        assert made.exit_code == 0, made.stderr
    old, new = (("--old", tmp_path / "old" / "comparison.h5"), ("--new", tmp_path / "new" / "comparison.h5"))
    out = ("--out", tmp_path)
    result = run("changes", *old, *new, *out)
    assert result.exit_code == 0, result.stderr
    significant = {mode.id: mode for mode in fe.load(old[1]).significant()}
    rows = {row[0].split(", ")[-1]: row for row in table_rows(result.stdout)}
    assert rows and set(rows) <= set(significant)
    for name, row in rows.items():
        assert row[1] in ("gone", "shrunk") and row[2] == significant[name].role and row[5].startswith("−")
    assert (
        "modes were followed" in result.stdout
        and "Changes between two releases" in (tmp_path / "changes.html").read_text()
    )
    twin = json.loads((tmp_path / "changes.json").read_text())
    assert [change["id"] for change in twin["changes"]] == list(rows)
    assert json.loads(run("changes", *old, *new, *out, "--json").stdout)["changes"] == twin["changes"]
    same = run("changes", *old, "--new", old[1], *out, "--force")
    assert "Nothing changed: the interval of every change holds zero." in same.stdout
    none = run("changes", "--old", new[1], *new, *out, "--force")
    assert none.stdout.startswith("Nothing changed: no mode is significant in either comparison")


SAME_SETS = ("--gen", "{gen}", "--ref", "{gen}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("extract", "no/such/folder"), "no/such/folder"),
        (("compare", "--gen", "{empty}", "--ref", "{gen}"), "empty"),
        (("compare", "--gen", "{one}", "--ref", "{gen}"), "gen has 1 sample: a comparison needs"),
        (("compare", "--gen", "{bad}", "--ref", "{gen}"), "bad.png"),
        (("compare", *SAME_SETS, "--extractor", "pixel"), "pixels"),
        (("compare", *SAME_SETS, "--rho", "-1"), "rho must be a positive number, got -1.0"),
        (("score", "--comparison", "{text}", "{gen}", "--out", "s.csv"), "text was not written by finc-eval"),
        (("report", "missing.h5"), "missing.h5 does not exist"),
        (("compare", *SAME_SETS, "--out", "{text}"), "text is a file, and --out is a folder"),
        (("compare", *SAME_SETS, "--out", "c.json"), "--out is the folder of several files, got c.json: pass c for"),
        (("sketch", "{text}", "--out", "s.h5"), "text is not a set of samples"),
        (("extract", "{gen}", "--out", "gen"), "--out must end in .h5, got gen: pass gen.h5 for example"),
        (("score", "--comparison", "{text}", "{gone}", "--out", "s.csv"), "gone does not exist"),
        (("compare", *SAME_SETS, "--kernel", "cosin"), "'cosin' is not one of 'gaussian', 'cosine'"),
        (("compare", *SAME_SETS, "--features", "many"), "'many' is not a whole number or auto"),
        (("compare", *SAME_SETS, "--features", "0"), "features must be a whole number of at least 1, got 0"),
        (("compare", *SAME_SETS, "--precision", "float23"), "'float23' is not one of 'float32', 'tf32'"),
        (("compare", *SAME_SETS, "--kernel", "cosine", "--sigma", "3"), "has no bandwidth"),
        (
            ("sketch", "g.h5", "--out", "s.h5", "--feature-map-of", "r.h5", "--seed", "1"),
            "leave --seed out",
        ),
        (("sweep", *SAME_SETS, "--parameter", "tau"), "'tau' is not one of 'sigma', 'rho'"),
        (("sweep", *SAME_SETS, "--parameter", "rho", "--values", "x"), "'x' is not a list of numbers, such as 1,2,5"),
        (("sweep", *SAME_SETS, "--parameter", "rho", "--values", "1,-2"), "--values must be a positive number, got -2"),
        (("sweep", *SAME_SETS, "--parameter", "rho", "--rho", "2"), "a sweep of rho does not use --rho: leave it out"),
        (
            ("sweep", *SAME_SETS, "--parameter", "sigma", "--sigma", "2"),
            "does not use --sigma: leave it out",
        ),
        (("sweep", "--gen", "missing.h5", "--ref", "{gen}", "--parameter", "rho"), "missing.h5"),
        (("sweep", *SAME_SETS, "--parameter", "rho", "--out", "s.json"), "got s.json: pass s for example"),
        (("compare", *SAME_SETS, "--method", "kem"), "'kem' is not one of 'finc', 'clusters', 'ken', 'rarity', 'fld'"),
        (("compare", *SAME_SETS, "--method", "ken", "--no-rotation"), "belongs to finc, not to ken"),
        (("compare", *SAME_SETS, "--novel", "0.2"), "--novel belongs to rarity and fld, not to finc"),
        (("methods", *SAME_SETS, "--methods", "finc,finc"), "method 'finc' is named twice"),
        (("methods", *SAME_SETS, "--methods", ""), "--methods must be one of finc, clusters, ken, rarity, fld, got ''"),
        (("models", "--gen", "a=", "--gen", "b={gen}"), "is not of the form NAME=PATH"),
        (("models", "--gen", "a={gen}", "--gen", "a={gen}"), "two models are called 'a'"),
        (("models", "--gen", "a={gen}", "--gen", "b=missing.h5"), "missing.h5"),
        (("models", "--gen", "a={gen}"), "at least two sets are needed"),
        (("models", "--gen", "ref={gen}", "--gen", "a={gen}"), 'a model cannot be called "ref"'),
        (("changes", "--old", "missing.h5", "--new", "{text}"), "missing.h5 does not exist"),
        (("changes", "--old", "{text}", "--new", "{text}"), "text was not written by finc-eval"),
    ],
)
def test_what_a_user_gets_wrong_is_one_sentence_and_exit_code_3(folders, tmp_path, arguments, message):
    (tmp_path / "empty").mkdir()
    for name, content in (("one", None), ("bad", b"no image")):
        (tmp_path / name).mkdir()
        if content is None:
            Image.new("RGB", (28, 28)).save(tmp_path / name / "a.png")
        else:
            (tmp_path / name / "bad.png").write_bytes(content)
    (tmp_path / "text").write_text("hello")
    places = {name: tmp_path / name for name in ("empty", "one", "bad", "text", "gone")} | {"gen": folders / "gen"}
    result = run(*(argument.format(**places) for argument in arguments), *(
        ("--out", tmp_path / "c") if arguments[0] == "compare" and "--out" not in arguments else ()
    ))  # fmt: skip
    assert result.exit_code == 3
    complaint = [line for line in result.stderr.splitlines() if line.startswith("finc-eval: ")]
    if not complaint:  # a word that is not a choice: Typer refuses it in a box
        complaint = [" ".join(result.stderr.split("Error")[-1].replace("│", " ").split())]
        assert "Invalid value for '--" in complaint[0]
    assert len(complaint) == 1
    assert message in complaint[0]
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "c").exists()


def test_a_page_does_not_take_the_place_of_embeddings(caches):
    before = (caches / "gen.h5").read_bytes()
    result = run(
        "models", "--gen", f"a={caches / 'gen.h5'}", "--gen", f"b={caches / 'ref.h5'}", "--out", caches / "gen.h5"
    )
    assert result.exit_code == 3 and "--out is the folder of several files" in result.stderr
    assert (caches / "gen.h5").read_bytes() == before


def test_scores_by_another_extractor_are_refused(folders, tmp_path):
    card = (Path(str(files("finc_eval.extractors.cards"))) / "pixels.toml").read_text().split("[golden]")[0]
    (tmp_path / "other.toml").write_text(card.replace('"pixels"', '"other"', 1).replace("std = [1", "std = [2"))
    run("compare", "--gen", folders / "gen", "--ref", folders / "ref", "--out", tmp_path / "c", "--features", 50)
    made = run("extract", folders / "gen", "--extractor", tmp_path / "other.toml", "--out", tmp_path / "other.h5")
    assert made.exit_code == 0, made.stderr
    result = run(
        "score",
        "--comparison",
        tmp_path / "c" / "comparison.h5",
        tmp_path / "other.h5",
        "--out",
        tmp_path / "s.csv",
    )
    assert result.exit_code == 3
    assert "was embedded with other@" in result.stderr and "the comparison with pixels@" in result.stderr
    assert not (tmp_path / "s.csv").exists()


def command(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-c", "from finc_eval.cli import main; main()", *map(str, arguments)],
        capture_output=True,
        text=True,
        **options,
    )


def test_unknown_flags_are_errors_with_exit_code_3():
    result = command("compare", "--generated", "a")
    assert result.returncode == 3
    assert "--generated" in result.stderr


def test_help_teaches_and_loads_nothing_heavy():
    code = (
        "import sys, finc_eval, finc_eval.cli\n"
        "try: finc_eval.cli.main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'torchvision', 'timm', 'faiss', 'scipy', 'matplotlib', 'h5py'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    result = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    for verb in (verb for verbs in VERBS.values() for verb in verbs):
        assert f" {verb} " in result.stdout


@pytest.mark.parametrize("name", [name for verbs in VERBS.values() for name in verbs])
def test_the_list_of_verbs_has_the_first_line_of_each_help(name):
    line = next(verbs[name] for verbs in VERBS.values() if name in verbs)
    help_text = " ".join(load_verb(name).help.split("\n\n")[0].split())
    assert line == help_text or line == help_text.split(". ")[0] + "."


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "--help"),
        ("compare", "--gem", "a"),
        ("sweep", "--parameter", "x"),
        ("metrics", "--help"),
        ("audit", "--help"),
        ("private-sketch", "release", "--help"),
    ],
)
def test_help_and_wrong_options_of_a_verb_do_not_wait_for_torch(arguments):
    code = "import sys, finc_eval.cli\ntry: finc_eval.cli.main()\nfinally: assert 'torch' not in sys.modules"
    result = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert result.returncode == (0 if "--help" in arguments else 3), result.stderr
    assert "AssertionError" not in result.stderr


def test_a_sweep_of_sigma_takes_fewer_frequencies_by_default(caches, tmp_path):
    sets = ("--gen", caches / "gen.h5", "--ref", caches / "ref.h5", "--out", tmp_path / "s", "--values", "40")
    made = json.loads(run("sweep", *sets, "--parameter", "sigma", "--json").stdout)
    assert made["points"][0]["comparison"]["settings"]["features"] == 1000


def test_settings_come_from_a_file_and_the_command_line_takes_precedence(caches, tmp_path):
    (tmp_path / "s.toml").write_text('[compare]\nfeatures = 60\nrho = 2.0\nmethod = {name = "finc"}\n')
    sets = ("--gen", caches / "gen.h5", "--ref", caches / "ref.h5", "--out", tmp_path / "c")
    made = run("compare", *sets, "--config", tmp_path / "s.toml", "--rho", 3, "--json")
    settings = json.loads(made.stdout)["settings"]
    assert (settings["features"], settings["rho"], settings["modes"]) == (60, 3, 10)


def test_the_schema_of_a_result_is_printed(caches, tmp_path):
    listed = run("schema").stdout.split()
    assert {"comparison", "models", "methods", "sweep", "changes"} <= set(listed)
    assert json.loads(run("schema", "comparison").stdout)["properties"]["type"]["const"] == "comparison"
    wrong = run("schema", "comparisons")
    assert wrong.exit_code == 3 and 'did you mean "comparison"?' in wrong.stderr


def test_importing_the_api_needs_neither_faiss_nor_timm_nor_torchvision():
    code = (
        "import sys, finc_eval as fe\n"
        "[getattr(fe, name) for name in fe.__all__]\n"
        "assert not {'faiss', 'timm', 'torchvision'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_pipe_that_nobody_reads_does_not_end_as_a_regression():
    reading, writing = os.pipe()
    os.close(reading)
    code = "from finc_eval.cli import main; main()"
    command = [sys.executable, "-c", code, "schema", "comparison"]
    process = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (process.returncode, process.stderr) == (141, "")


def test_ctrl_c_ends_quietly_and_the_same_command_goes_on(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (60_000, 28, 28, 3), np.uint8)
    np.savez(tmp_path / "many.npz", arr_0=images)
    files = str(tmp_path / "many.npz"), "--out", str(tmp_path / "many.h5")
    arguments = ["extract", *files, "--extractor", "pixels"]
    process = subprocess.Popen(
        [sys.executable, "-c", "from finc_eval.cli import main; main()", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A background job of a shell inherits an ignored SIGINT, and so would this process.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while process.poll() is None and not (tmp_path / "many.h5.part").exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate()
    assert process.returncode == 130, stderr
    assert "interrupted; finished work is kept, and the same command goes on from there" in stderr
    assert "Traceback" not in stderr
    assert not (tmp_path / "many.h5").exists()
    again = command(*arguments)
    assert again.returncode == 0, again.stderr
    assert fe.EmbeddingCache(tmp_path / "many.h5").n == 60_000


def test_file_names_that_are_no_text_are_printed_all_the_same(folders, tmp_path):
    samples = tmp_path / "set"
    samples.mkdir()
    (samples / "good.png").write_bytes(next((folders / "gen").rglob("*.png")).read_bytes())
    (samples / "bad\udcff.png").write_bytes(b"no picture")
    command = [sys.executable, "-c", "from finc_eval.cli import main; main()", "extract", str(samples)]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    pixels = ["--extractor", "pixels"]
    result = subprocess.run([*command, *pixels], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert r"unreadable: bad\udcff.png: no image that can be recognized" in result.stdout


def test_damaged_embeddings_are_said_to_be_damaged(folders, tmp_path):
    whole, cut = tmp_path / "gen.h5", tmp_path / "cut.h5"
    assert run("extract", folders / "gen", "--out", whole).exit_code == 0
    cut.write_bytes(whole.read_bytes()[:20_000])
    result = run("compare", "--gen", cut, "--ref", folders / "ref", "--out", tmp_path / "c")
    assert result.exit_code == 3
    assert "cut.h5 is damaged (it has" in result.stderr


def test_embeddings_of_an_own_card_ask_for_its_path_when_a_folder_is_beside_them(folders, tmp_path):
    own, made = tmp_path / "mine.toml", tmp_path / "gen.h5"
    own.write_text((files("finc_eval.extractors.cards") / "pixels.toml").read_text().replace("pixels", "mine", 1))
    assert run("extract", folders / "gen", "--out", made, "--extractor", own).exit_code == 0
    sides = ["compare", "--gen", str(made), "--ref", str(folders / "ref"), "--out", str(tmp_path / "c")]
    result = CliRunner().invoke(app, sides)
    assert result.exit_code == 3
    assert "made with a card of your own, mine: pass its path as --extractor" in result.stderr
    assert CliRunner().invoke(app, [*sides, "--extractor", str(own), "--features", "100"]).exit_code == 0


def test_a_mistake_of_ours_is_neither_a_pass_nor_a_regression(monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("finc_eval.cli.app.LazyGroup.invoke", broken)
    ended = run("doctor")
    assert ended.exit_code == 3
    assert "ZeroDivisionError: a bug" in ended.stderr and "please report the lines above" in ended.stderr
