"""Mistakes of a user, or ours: one sentence and exit code 3."""

import shutil

import pytest
from _cards import pixel_card
from _verbs import done, run
from PIL import Image
from typer.testing import CliRunner

from finc_eval.cli.app import app

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
        (("extract", "sketch", "{text}", "--out", "s.h5"), "text is not a set of samples"),
        (("extract", "{gen}", "--out", "gen"), "--out must end in .h5, got gen: pass gen.h5 for example"),
        (("score", "--comparison", "{text}", "{gone}", "--out", "s.csv"), "gone does not exist"),
        (("compare", *SAME_SETS, "--kernel", "cosin"), "'cosin' is not one of 'gaussian', 'cosine'"),
        (("compare", *SAME_SETS, "--features", "many"), "'many' is not a whole number or auto"),
        (("compare", *SAME_SETS, "--features", "0"), "features must be a whole number of at least 1, got 0"),
        (("compare", *SAME_SETS, "--precision", "float23"), "'float23' is not one of 'float32', 'tf32'"),
        (("compare", *SAME_SETS, "--kernel", "cosine", "--sigma", "3"), "has no bandwidth"),
        (("extract", "sketch", "g.h5", "--out", "s.h5", "--feature-map-of", "r.h5", "--seed", "1"), "leave --seed out"),
        (("compare", "sweep", *SAME_SETS, "--parameter", "tau"), "'tau' is not one of 'sigma', 'rho'"),
        (
            ("compare", "sweep", *SAME_SETS, "--parameter", "rho", "--values", "x"),
            "'x' is not a list of numbers, such as 1,2,5",
        ),
        (
            ("compare", "sweep", *SAME_SETS, "--parameter", "rho", "--values", "1,-2"),
            "--values must be a positive number, got -2",
        ),
        (
            ("compare", "sweep", *SAME_SETS, "--parameter", "rho", "--rho", "2"),
            "a sweep of rho does not use --rho: leave it out",
        ),
        (
            ("compare", "sweep", *SAME_SETS, "--parameter", "sigma", "--sigma", "2"),
            "does not use --sigma: leave it out",
        ),
        (("compare", "sweep", "--gen", "missing.h5", "--ref", "{gen}", "--parameter", "rho"), "missing.h5"),
        (("compare", "sweep", *SAME_SETS, "--parameter", "rho", "--out", "s.json"), "got s.json: pass s for example"),
        (("compare", *SAME_SETS, "--method", "kem"), "'kem' is not one of 'finc', 'clusters', 'ken', 'rarity', 'fld'"),
        (("compare", *SAME_SETS, "--method", "ken", "--no-rotation"), "belongs to finc, not to ken"),
        (("compare", *SAME_SETS, "--novel", "0.2"), "--novel belongs to rarity and fld, not to finc"),
        (("compare", "methods", *SAME_SETS, "--methods", "finc,finc"), "method 'finc' is named twice"),
        (
            ("compare", "methods", *SAME_SETS, "--methods", ""),
            "--methods must be one of finc, clusters, ken, rarity, fld, got ''",
        ),
        (("kinds", "--gen", "a=", "--gen", "b={gen}"), "is not of the form NAME=PATH"),
        (("kinds", "--gen", "a={gen}", "--gen", "a={gen}"), "two models are called 'a'"),
        (("kinds", "--gen", "a={gen}", "--gen", "b=missing.h5"), "missing.h5"),
        (("kinds", "--gen", "a={gen}"), "at least two sets are needed"),
        (("kinds", "--gen", "ref={gen}", "--gen", "a={gen}"), 'a model cannot be called "ref"'),
        (("compare", "changes", "--old", "missing.h5", "--new", "{text}"), "missing.h5 does not exist"),
        (("compare", "changes", "--old", "{text}", "--new", "{text}"), "text was not written by finc-eval"),
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
        "kinds", "--gen", f"a={caches / 'gen.h5'}", "--gen", f"b={caches / 'ref.h5'}", "--out", caches / "gen.h5"
    )
    assert result.exit_code == 3 and "--out is the folder of several files" in result.stderr
    assert (caches / "gen.h5").read_bytes() == before


def test_damaged_embeddings_are_said_to_be_damaged(folders, tmp_path):
    whole, cut = tmp_path / "gen.h5", tmp_path / "cut.h5"
    done("extract", folders / "gen", "--out", whole)
    cut.write_bytes(whole.read_bytes()[:20_000])
    result = run("compare", "--gen", cut, "--ref", folders / "ref", "--out", tmp_path / "c")
    assert result.exit_code == 3
    assert "cut.h5 is damaged (it has" in result.stderr


def test_embeddings_of_an_own_card_ask_for_its_path_when_a_folder_is_beside_them(folders, tmp_path):
    own, made = pixel_card(tmp_path / "mine.toml"), tmp_path / "gen.h5"
    done("extract", folders / "gen", "--out", made, "--extractor", own)
    sides = ("--gen", made, "--ref", folders / "ref", "--out", tmp_path / "c")
    result = CliRunner().invoke(app, ["compare", *map(str, sides)])  # without --extractor
    assert result.exit_code == 3
    assert "made with a card of your own, mine: pass its path as --extractor" in result.stderr
    done("compare", *sides, "--extractor", own, "--features", 20)


def test_a_mistake_of_ours_is_neither_a_pass_nor_a_regression(monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("finc_eval.cli.app.LazyGroup.invoke", broken)
    ended = run("doctor")
    assert ended.exit_code == 3
    assert "ZeroDivisionError: a bug" in ended.stderr and "please report the lines above" in ended.stderr


def test_file_names_that_are_no_text_are_printed_all_the_same(folders, tmp_path):
    samples = tmp_path / "set"
    samples.mkdir()
    shutil.copy(next((folders / "gen").rglob("*.png")), samples / "good.png")
    (samples / "bad\udcff.png").write_bytes(b"no picture")
    assert r"unreadable: bad\udcff.png: no image that can be recognized" in done("extract", samples).stdout


def test_a_second_set_does_not_replace_the_first():
    result = CliRunner().invoke(app, ["compare", "--gen", "a.npy", "--gen", "b.npy", "--ref", "c.npy"])
    assert result.exit_code == 3
    assert "--gen is given 2 times" in " ".join(result.stderr.split())
