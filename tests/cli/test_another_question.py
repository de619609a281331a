"""A result is never overwritten by another question: of other sets, or by other settings."""

import shutil
from dataclasses import fields

import numpy as np
import pytest
from _every_verb import VERBS_BY_NAME, options_of
from _verbs import run
from PIL import Image

from finc_eval.cli.options import CONFIG, Work
from finc_eval.cli.output import default_folder, with_end
from finc_eval.cli.question import HOW, SETS, WHERE, suffix_of


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Sets of 24 pictures. Two sets are called samples; all have labels, and the same names of files.

    Three of them are files of 24 embeddings, too, for where it does not matter what a result is of.
    """
    folder = tmp_path_factory.mktemp("sets")
    rows = "".join(f"{number:02}.png,{number % 2}\n" for number in range(24))
    for seed, name in enumerate(("gen", "ref", "a/samples", "b/samples", "third")):
        place, rng = folder / name, np.random.default_rng(seed)
        place.mkdir(parents=True)
        for number in range(24):
            pixels = rng.integers(0, 100 + 100 * (number % 2), (8, 8, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(place / f"{number:02}.png")
        (place / "metadata.csv").write_text(f"file_name,label\n{rows}")
        if "/" not in name:
            np.save(folder / f"{name}.npy", rng.normal(size=(24, 4)))
    return folder


@pytest.fixture
def place(sets, tmp_path, monkeypatch, tmp_path_factory):
    shutil.copytree(sets, tmp_path / "w")
    monkeypatch.chdir(tmp_path / "w")
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path_factory.getbasetemp() / "shared-cache"))
    return tmp_path / "w"


def done(command):
    extractor = [] if "--extractor" in command or ".npy" in command else ["--extractor", "pixels"]
    result = run(*command.split(), "--quiet", *extractor)
    assert result.exit_code in (0, 1, 2), result.output
    return result


def files(place):
    return {path: path.read_bytes() for path in sorted(place.rglob("reports/*/*")) if path.is_file()}


QUICK = "compare --gen gen.npy --ref ref.npy --features 20 --modes 1 --no-clusters"
TWO = "compare --gen gen --ref ref --features 20 --modes 1"
NAME = "gen-vs-ref-no-clusters-features20-modes1"
"""Name of the folder of the quick comparison."""

PAIRS = [
    (QUICK, f"{QUICK} --seed 1"),
    (TWO, f"{TWO} --n 20"),
    (f"{TWO} --n 20", TWO),
    (TWO, f"{TWO} --pairs id"),
    (TWO, f"{TWO} --by label"),
    (TWO, f"{TWO} --method ken"),
    (TWO, f"{TWO} --no-rotation"),
    (TWO, f"{TWO} --seed 1"),
    (TWO, f"{TWO} --include 0*,1*,20*"),
    ("compare --gen a/samples --ref ref --features 20", "compare --gen b/samples --ref ref --features 20"),
    ("compare --gen gen --ref a/samples --features 20", "compare --gen gen --ref b/samples --features 20"),
    (f"{TWO} --pairs id", f"{TWO} --pairs id --again third"),
    ("kinds x=gen y=ref", "kinds x=gen y=ref --by label"),
    ("kinds x=gen y=ref", "kinds x=third y=ref"),
    ("leaderboard a=gen.npy --ref ref.npy --metrics fd", "leaderboard a=gen.npy --ref ref.npy --metrics kid"),
    ("leaderboard a=gen b=third --ref ref", "leaderboard a=gen b=a/samples --ref ref"),
    (
        "evaluate --gen gen.npy --ref ref.npy --features 20 --modes 2",
        "evaluate --gen gen.npy --ref ref.npy --features 20 --modes 2 --seed 1",
    ),
    ("evaluate --gen gen --ref ref --features 20", "evaluate --gen gen --ref ref --features 20 --n 20"),
    (
        "gate --gen gen.npy --baseline third.npy --ref ref.npy --policy p.toml",
        "gate --gen gen.npy --baseline third.npy --ref ref.npy --policy p.toml --interim 2",
    ),
    (
        "compare sweep --gen gen --ref ref --parameter rho --features 20 --values 1",
        "compare sweep --gen gen --ref ref --parameter rho --features 20 --values 2",
    ),
    (
        "compare methods --gen gen --ref ref --features 20 --methods finc",
        "compare methods --gen gen --ref ref --features 20 --methods ken",
    ),
]


@pytest.mark.one_of_each(by=lambda case: case.split()[0].replace("evaluate", "compare"))
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_the_first_result_is_still_there_after_another_question(place, first, second):
    (place / "p.toml").write_text("basics.samples = 20\n")
    done(first)
    before = files(place)
    assert before
    done(second)
    after = files(place)
    assert {path: after[path] for path in before} == before
    assert len(after) == 2 * len(before)
    if first == QUICK:
        assert {path.parent.name for path in after} == {NAME, f"{NAME}-seed1"}
        done(second)
        assert files(place).keys() == after.keys()  # the same question has the same folder


@pytest.mark.one_of_each
@pytest.mark.parametrize(("first", "second"), [PAIRS[0], PAIRS[9]])
def test_a_named_folder_refuses_another_question(place, first, second):
    done(f"{first} --out out")
    before = {path: path.read_bytes() for path in (place / "out").iterdir()}
    result = run(*second.split(), "--out", "out", *([] if ".npy" in second else ["--extractor", "pixels"]))
    assert result.exit_code == 3
    (sentence,) = [line for line in result.stderr.splitlines() if line.startswith("finc-eval: ")]
    assert "did not make it, or made it with other settings: choose another --out, or pass --force" in sentence
    assert {path: path.read_bytes() for path in (place / "out").iterdir()} == before
    done(f"{second} --out out --force")


def test_a_default_folder_says_which_settings_differ(place):
    done(f"{TWO} --n 20 --pairs id")
    names = ["gen-vs-ref-extractor-pixels-features20-modes1-n20-pairs-id"]
    assert [path.name for path in (place / "reports").iterdir()] == names
    defaults = '[compare]\nfeatures = 20\nmodes = 1\npairs = "id"\n[extract]\nextractor = "pixels"\n'
    (place / "finc-eval.toml").write_text(defaults)
    assert run("compare", "--gen", "./gen/", "--ref", "ref", "--n", 20, "--features", 20).exit_code == 0
    assert [path.name for path in (place / "reports").iterdir()] == names


def test_files_of_one_name_are_of_one_question(place):
    refusals = [
        ("extract sketch gen --out s.h5 --features 20", "extract sketch gen --out s.h5 --features 30"),
        ("kahm fit gen --out k.h5 --components 3", "kahm fit gen --out k.h5 --components 4"),
        ("extract gen --out g.h5", "extract gen --out g.h5 --include 0*,1*"),
        ("extract gen --out g.h5", "extract gen --out g.h5 --n 10"),
        (
            "metrics --gen gen --ref ref --metrics fd --save-statistics s.npz",
            "metrics --gen gen --ref third --metrics fd --save-statistics s.npz",
        ),
        ("metrics --gen gen --ref ref --metrics fd --out m", "metrics --gen gen --ref ref --metrics kid --out m"),
    ]
    for first, second in refusals:
        done(first)
        result = run(*second.split(), "--extractor", "pixels")
        assert result.exit_code == 3 and "--force" in result.stderr, (second, result.output)


@pytest.mark.parametrize(
    ("settings", "suffix"),
    [
        ({}, ""),
        ({"n": "60"}, "-n60"),
        ({"pairs": "id", "method": "ken"}, "-method-ken-pairs-id"),
        ({"clusters": "False", "plan": "True"}, "-no-clusters-plan"),
        ({"metrics": "fd,kid", "rho": "1.5"}, "-metrics-fd-kid-rho1.5"),
        ({"again": "/home/me/run 2,/home/me/run3.h5"}, "-again-run-2-run3"),
        ({"include": "b/**"}, "-include"),
    ],
)
def test_settings_become_a_short_readable_end_of_a_name(settings, suffix):
    assert suffix_of(settings) == suffix


def test_names_of_folders_keep_their_end_however_long_they_are():
    long = with_end(default_folder(["x" * 300, "y"]), "-n60", "-0123")
    assert long.name.endswith("-n60-0123") and len(long.name) <= 200
    assert with_end(default_folder(["a", "b"]), "-" + "z" * 300, "-0123").name.endswith("-0123")


def test_an_option_that_is_no_part_of_the_question_is_one_of_a_verb_and_in_one_list():
    """All others are a part of it, so that a new option never lets a result be overwritten."""
    left_out = [*SETS, *HOW, *WHERE]
    assert len(set(left_out)) == len(left_out)
    assert {*left_out} <= {option.name for command in VERBS_BY_NAME.values() for option in options_of(command)}
    assert {*HOW} == {*(one.name for one in fields(Work)), CONFIG, "strict"}  # a setting of work changes no number
