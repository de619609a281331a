import csv
import json
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
from finc_eval.cli import app
from finc_eval.demo.planted import planted_sets


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two folders of 300 digits: half of gen coloured, ref grey."""
    folder = tmp_path_factory.mktemp("sets")
    for name, made in zip(("gen", "ref"), planted_sets(), strict=True):
        type(made)(made.images[:300], made.kinds[:300]).write(folder / name)
    return folder


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "cache"))


def test_compare_goes_from_two_folders_to_a_report(folders, tmp_path):
    out = tmp_path / "out" / "c.h5"
    result = run("compare", "--gen", folders / "gen", "--ref", folders / "ref", "--out", out, "--features", 200)
    assert result.exit_code == 0, result.stderr
    assert "More in gen than in ref" in result.stdout
    comparison = fe.load(out)
    assert comparison.modes[0].id in result.stdout
    assert str(comparison.signature) in result.stdout
    assert json.loads(out.with_suffix(".json").read_text())["signature"] == str(comparison.signature)
    page = out.with_suffix(".html").read_text()
    assert comparison.modes[0].id in page
    assert "data:image/" in page
    assert "extract gen" in result.stderr and "score ref" in result.stderr


def test_json_is_all_there_is_on_stdout(folders, tmp_path):
    result = run(
        "compare", "--gen", folders / "gen", "--ref", folders / "ref", "--out", tmp_path / "c.h5",
        "--features", 100, "--json",
    )  # fmt: skip
    assert json.loads(result.stdout)["settings"]["features"] == 100


def test_the_steps_one_by_one_give_what_compare_gives(folders, tmp_path):
    for name in ("gen", "ref"):
        assert run("extract", folders / name, "--out", tmp_path / f"{name}.h5").exit_code == 0
    made = run("sketch", "--embeddings", tmp_path / "ref.h5", "--out", tmp_path / "ref.sketch.h5", "--features", 100)
    assert made.exit_code == 0, made.stderr
    like = ("--like", tmp_path / "ref.sketch.h5")
    assert run("sketch", "--embeddings", tmp_path / "gen.h5", "--out", tmp_path / "gen.sketch.h5", *like).exit_code == 0
    for kind, suffix in (("embeddings", ".h5"), ("sketches", ".sketch.h5")):
        result = run(
            "compare", "--gen", tmp_path / f"gen{suffix}", "--ref", tmp_path / f"ref{suffix}",
            "--features", 100, "--out", tmp_path / f"{kind}.h5",
        )  # fmt: skip
        assert result.exit_code == 0, result.stderr
    one, other = fe.load(tmp_path / "embeddings.h5"), fe.load(tmp_path / "sketches.h5")
    assert [m.id for m in one.all_modes] == [m.id for m in other.all_modes]
    assert one.modes[0].excess == pytest.approx(other.modes[0].excess, abs=1e-5)


def test_score_writes_a_row_a_sample(folders, tmp_path):
    comparison = tmp_path / "c.h5"
    run("compare", "--gen", folders / "gen", "--ref", folders / "ref", "--out", comparison, "--features", 100)
    result = run("score", "--comparison", comparison, "--samples", folders / "gen", "--out", tmp_path / "s.csv")
    assert result.exit_code == 0, result.stderr
    with (tmp_path / "s.csv").open() as file:
        rows = list(csv.reader(file))
    loaded = fe.load(comparison)
    assert rows[0] == ["id", *(mode.id for mode in loaded.all_modes)]
    assert len(rows) == 301
    best = max(rows[1:], key=lambda row: float(row[1]))
    assert best[0] == loaded.modes[0].tails[0].gen_ids[0]


def test_report_takes_samples_that_have_moved(folders, tmp_path):
    moved = tmp_path / "moved"
    (folders / "gen").rename(moved)
    try:
        run("extract", moved, "--out", tmp_path / "gen.h5")
    finally:
        moved.rename(folders / "gen")
    run(
        "compare", "--gen", tmp_path / "gen.h5", "--ref", folders / "ref", "--out", tmp_path / "c.h5", "--features", 100
    )
    without = (tmp_path / "c.html").read_text()
    result = run("report", "--comparison", tmp_path / "c.h5", "--gen-samples", folders / "gen")
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "c.html").read_text().count("data:image/") > without.count("data:image/")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("extract", "no/such/folder"), "no/such/folder"),
        (("compare", "--gen", "{empty}", "--ref", "{gen}"), "empty"),
        (("compare", "--gen", "{one}", "--ref", "{gen}"), "gen has 1 samples"),
        (("compare", "--gen", "{bad}", "--ref", "{gen}"), "bad.png"),
        (("compare", "--gen", "{gen}", "--ref", "{gen}", "--extractor", "pixel"), "pixels"),
        (("compare", "--gen", "{gen}", "--ref", "{gen}", "--rho", "-1"), "rho must be a positive number, got -1.0"),
        (("score", "--comparison", "{text}", "--samples", "{gen}", "--out", "s.csv"), "HDF5"),
        (("report", "--comparison", "missing.h5"), "missing.h5 does not exist"),
        (("compare", "--gen", "{gen}", "--ref", "{gen}", "--out", "{text}"), "not overwritten"),
        (("compare", "--gen", "{gen}", "--ref", "{gen}", "--out", "c.json"), "c.json is the name of the JSON twin"),
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
    places = {name: tmp_path / name for name in ("empty", "one", "bad", "text")} | {"gen": folders / "gen"}
    result = run(*(argument.format(**places) for argument in arguments), *(
        ("--out", tmp_path / "c.h5") if arguments[0] == "compare" and "--out" not in arguments else ()
    ))  # fmt: skip
    assert result.exit_code == 3
    complaint = [line for line in result.stderr.splitlines() if line.startswith("finc-eval: ")]
    assert len(complaint) == 1
    assert message in complaint[0]
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "c.h5").exists()


def test_scores_by_another_extractor_are_refused(folders, tmp_path):
    card = (Path(str(files("finc_eval.extractors"))) / "pixels.toml").read_text().split("[golden]")[0]
    (tmp_path / "other.toml").write_text(card.replace('"pixels"', '"other"', 1).replace("std = [1", "std = [2"))
    run("compare", "--gen", folders / "gen", "--ref", folders / "ref", "--out", tmp_path / "c.h5", "--features", 50)
    made = run("extract", folders / "gen", "--extractor", tmp_path / "other.toml", "--out", tmp_path / "other.h5")
    assert made.exit_code == 0, made.stderr
    result = run(
        "score", "--comparison", tmp_path / "c.h5", "--samples", tmp_path / "other.h5", "--out", tmp_path / "s.csv"
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
    for verb in ("extract", "sketch", "compare", "score", "report", "demo"):
        assert verb in result.stdout


def test_importing_the_api_needs_neither_faiss_nor_timm_nor_torchvision():
    code = (
        "import sys, finc_eval as fe\n"
        "[getattr(fe, name) for name in fe.__all__]\n"
        "assert not {'faiss', 'timm', 'torchvision'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_ctrl_c_ends_quietly_and_the_same_command_goes_on(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (60_000, 28, 28, 3), np.uint8)
    np.savez(tmp_path / "many.npz", arr_0=images)
    arguments = ["extract", str(tmp_path / "many.npz"), "--out", str(tmp_path / "many.h5")]
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
    assert "interrupted" in stderr
    assert "Traceback" not in stderr
    assert not (tmp_path / "many.h5").exists()
    again = command(*arguments)
    assert again.returncode == 0, again.stderr
    assert fe.EmbeddingCache(tmp_path / "many.h5").n == 60_000
