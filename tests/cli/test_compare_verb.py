"""`finc-eval compare`, from two folders, embeddings or sketches to a report."""

import json

import numpy as np
import pytest
from _verbs import done, run, table_rows

import finc_eval as fe
from finc_eval.core.words import percent, plural, points
from finc_eval.report.terminal import PLAIN, wrap


def test_compare_goes_from_two_folders_to_a_report(compared_once):
    result, out = compared_once
    assert sorted(path.name for path in out.iterdir()) == ["comparison.h5", "comparison.html", "comparison.json"]
    comparison = fe.load(out / "comparison.h5")
    lines = result.stdout.splitlines()
    assert len(lines) <= 12 and max(map(len, lines)) <= 120
    told = [line for sentence in comparison.says.values() for line in wrap(sentence)]
    assert lines[: len(told)] == told  # the answer first, and last where its files are
    assert lines[-1] == f"{out}/comparison.html (also .json and .h5)"
    assert str(comparison.signature) not in result.stdout and "sigma" not in result.stdout
    assert json.loads((out / "comparison.json").read_text())["signature"] == str(comparison.signature)
    page = (out / "comparison.html").read_text()
    assert comparison.kinds[0].id in page and comparison.over[0].id in page
    assert "data:image/" in page
    assert result.stderr == ""  # short work says nothing


def test_json_is_all_there_is_on_stdout(arrays, tmp_path):
    sets = ("--gen", arrays / "gen.npy", "--ref", arrays / "ref.npy", "--out", tmp_path / "c")
    few = ("--features", 20, "--modes", 1, "--no-clusters")
    assert json.loads(done("compare", *sets, *few, "--json").stdout)["settings"]["features"] == 20


@pytest.mark.long
def test_the_steps_one_by_one_give_what_compare_gives(folders, tmp_path):
    for name in ("gen", "ref"):
        assert run("extract", folders / name, "--out", tmp_path / f"{name}.h5", "--n", 80).exit_code == 0
    made = run("extract", "sketch", tmp_path / "ref.h5", "--out", tmp_path / "ref.sketch.h5", "--features", 50)
    assert made.exit_code == 0, made.stderr
    like = ("--feature-map-of", tmp_path / "ref.sketch.h5")
    assert run("extract", "sketch", tmp_path / "gen.h5", "--out", tmp_path / "gen.sketch.h5", *like).exit_code == 0
    for kind, suffix in (("embeddings", ".h5"), ("sketches", ".sketch.h5")):
        result = run(
            "compare", "--gen", tmp_path / f"gen{suffix}", "--ref", tmp_path / f"ref{suffix}",
            "--features", 50, "--pictures", 0, "--out", tmp_path / kind,
        )  # fmt: skip
        assert result.exit_code == 0, result.stderr
    one, other = (fe.load(tmp_path / kind / "comparison.h5") for kind in ("embeddings", "sketches"))
    mine, others = ({mode.id: mode.excess for mode in found.directions} for found in (one, other))
    common = mine.keys() & others.keys()
    assert len(common) >= 0.8 * len(mine) > 0
    assert [mine[name] for name in common] == pytest.approx([others[name] for name in common], abs=1e-5)
    mine, others = ([(kind.id, kind.share_gen, kind.share_ref) for kind in found.kinds] for found in (one, other))
    assert mine == others


def test_compare_can_leave_pictures_out(folders, tmp_path):
    sets = ("--gen", folders / "gen", "--ref", folders / "ref", "--features", 20, "--n", 40, "--modes", 1)
    done("compare", *sets, "--out", tmp_path / "c", "--pictures", 0)
    assert "data:image/" not in (tmp_path / "c" / "comparison.html").read_text()
    assert fe.load(tmp_path / "c" / "comparison.h5").kept == {"gen": {}, "ref": {}}
    refused = run("compare", "--gen", "gone", "--ref", "gone", "--pictures", 40)
    assert refused.exit_code == 3 and "from 0 to 16" in refused.stderr, "refused before any set is opened"


def test_compare_prints_the_headline_and_the_shares_of_significant_kinds(arrays, tmp_path):
    out = tmp_path / "c"
    result = run(
        "compare", "--gen", arrays / "gen.npy", "--ref", arrays / "ref.npy", "--out", out, "--features", 20, "--verbose"
    )
    assert result.exit_code == 0, result.output
    found = fe.load(out / "comparison.h5")
    assert result.stdout.startswith(f"{found.headline}\n")
    assert result.stdout.rstrip().splitlines()[-3:] == [
        str(out / f"comparison{end}") for end in (".html", ".json", ".h5")
    ]
    shown = {row[0].split(", ")[-1].removeprefix("* "): row for row in table_rows(result.stdout)}
    assert found.significant()
    for kind in found.significant():
        row = shown[kind.id]
        assert row[1:3] == [percent(share, 1).removesuffix(" %") for share in (kind.share_gen, kind.share_ref)]
        assert row[3].startswith(f"{points(kind.share_difference)} [".translate(PLAIN))
    others = len(found.kinds) - len(found.significant())
    assert f"{plural(others, 'kind')} that" in result.stdout


def test_the_cosine_kernel_goes_from_sketch_to_comparison(arrays, tmp_path):
    dim = np.load(arrays / "ref.npy").shape[1]
    made = run("extract", "sketch", arrays / "ref.npy", "--out", tmp_path / "ref.sketch.h5", "--kernel", "cosine")
    assert made.exit_code == 0, made.stderr
    assert made.stdout.strip().endswith(f"sketch of 200 samples, cosine kernel, {dim} entries per embedding")
    like = ("--feature-map-of", tmp_path / "ref.sketch.h5")
    assert run("extract", "sketch", arrays / "gen.npy", "--out", tmp_path / "gen.sketch.h5", *like).exit_code == 0
    out = tmp_path / "c"
    sets = ("--gen", tmp_path / "gen.sketch.h5", "--ref", tmp_path / "ref.sketch.h5")
    done("compare", *sets, "--out", out, "--modes", 1, "--no-clusters")
    assert fe.load(out / "comparison.h5").settings.kernel == "cosine"


def test_features_and_precision_reach_the_comparison(arrays, tmp_path):
    made = run(
        "extract", "sketch", arrays / "ref.npy", "--out", tmp_path / "ref.sketch.h5",
        "--features", 60, "--precision", "float64",
    )  # fmt: skip
    assert made.exit_code == 0, made.stderr
    sketch = fe.load(tmp_path / "ref.sketch.h5")
    assert (sketch.feature_map.features, sketch.precision) == (60, "float64")
    result = run(
        "compare", "--gen", arrays / "gen.npy", "--ref", arrays / "ref.npy", "--out", tmp_path / "c", "--modes", 1,
        "--features", "auto", "--sigma", 40, "--precision", "float64", "--no-clusters", "--json",
    )  # fmt: skip
    made = json.loads(result.stdout)
    assert made["settings"]["features"] == 1000 and "|prec:float64|" in made["signature"]


def test_compare_takes_a_method_and_its_parameters(arrays, tmp_path):
    result = run(
        "compare", "--gen", arrays / "gen.npy", "--ref", arrays / "ref.npy", "--method", "rarity", "--novel", 0.4,
        "--neighbors", 5, "--modes", 3, "--features", 60, "--out", tmp_path / "c", "--json",
    )  # fmt: skip
    made = json.loads(result.stdout)
    assert made["settings"]["method"] == {"name": "rarity", "novel": 0.4, "neighbors": 5}
    assert made["signature"].startswith("rarity|")


def test_settings_come_from_a_file_and_the_command_line_takes_precedence(arrays, tmp_path):
    (tmp_path / "s.toml").write_text('[compare]\nfeatures = 60\nrho = 2.0\nmethod = {name = "finc"}\n')
    sets = ("--gen", arrays / "gen.npy", "--ref", arrays / "ref.npy", "--out", tmp_path / "c")
    made = run("compare", *sets, "--config", tmp_path / "s.toml", "--rho", 3, "--json")
    settings = json.loads(made.stdout)["settings"]
    assert (settings["features"], settings["rho"], settings["modes"]) == (60, 3, 10)
