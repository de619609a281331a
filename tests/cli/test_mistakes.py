"""Mistakes of a user, or ours, that need files of their own; tests/newcomer has the table of all others."""

import errno
import shutil

import pytest
from _cards import pixel_card
from _verbs import done, run
from typer.testing import CliRunner

from finc_eval.cli.app import app
from finc_eval.cli.refusals import SHORT_OF_MEMORY


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


@pytest.mark.long
def test_embeddings_of_an_own_card_ask_for_its_path_when_a_folder_is_beside_them(folders, tmp_path):
    own, made = pixel_card(tmp_path / "mine.toml"), tmp_path / "gen.h5"
    done("extract", folders / "gen", "--out", made, "--extractor", own)
    sides = ("--gen", made, "--ref", folders / "ref", "--out", tmp_path / "c")
    result = CliRunner().invoke(app, ["compare", *map(str, sides)])  # without --extractor
    assert result.exit_code == 3
    assert "made with a card of your own, mine: pass its path as --extractor" in result.stderr
    done("compare", *sides, "--extractor", own, "--features", 20, "--pictures", 0, "--no-clusters")


def test_a_mistake_of_ours_is_neither_a_pass_nor_a_regression(monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("finc_eval.cli.app.LazyGroup.invoke", broken)
    ended = run("doctor")
    assert ended.exit_code == 3
    assert "ZeroDivisionError: a bug" in ended.stderr and "please report the lines above" in ended.stderr


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you tried"),
        RuntimeError("std::bad_alloc"),
    ],
)
def test_memory_that_is_short_is_one_sentence(monkeypatch, error):
    def broken(*_):
        raise error

    monkeypatch.setattr("finc_eval.cli.app.LazyGroup.invoke", broken)
    ended = run("doctor")
    assert ended.exit_code == 3
    assert ended.stderr == f"finc-eval: {SHORT_OF_MEMORY}\n"


def test_file_names_that_are_no_text_are_printed_all_the_same(folders, tmp_path):
    samples = tmp_path / "set"
    samples.mkdir()
    shutil.copy(next((folders / "gen").rglob("*.png")), samples / "good.png")
    (samples / "bad\udcff.png").write_bytes(b"no picture")
    assert r"unreadable: bad\udcff.png: no image that can be recognized" in done("extract", samples).stdout


def test_a_second_set_does_not_replace_the_first():
    result = CliRunner().invoke(app, ["compare", "--gen", "a.npy", "--gen", "b.npy", "--ref", "c.npy"])
    assert result.exit_code == 3
    assert "--gen takes one value, and is given 'a.npy' and 'b.npy': give it once" in result.stderr
