"""A path that the system does not open is one sentence, wherever a verb takes it, and nothing is lost by it."""

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from _guarded import guarded, is_sentence, load_all
from PIL import Image

import finc_eval as fe
from finc_eval.core.errors import DataError

INPUTS = {
    "extract": "extract {} --extractor pixels --out o.h5 --quiet",
    "extract, metadata": "extract set --extractor pixels --out o.h5 --quiet --metadata {}",
    "extract, card": "extract set --extractor {} --out o.h5 --quiet",
    "extract, out": "extract set --extractor pixels --out {}.h5 --quiet",
    "merge": "extract merge {} --out m.h5",
    "merge, out": "extract merge s.1-of-2.h5 --out {}.h5",
    "compare": "compare --gen {} --ref ref.npy --features 20 --out o --quiet",
    "compare, config": "compare --gen gen.npy --ref ref.npy --features 20 --out o --quiet --config {}",
    "compare, out": "compare --gen gen.npy --ref ref.npy --features 20 --out {} --quiet",
    "sketch": "extract sketch {} --out k.h5 --quiet",
    "metrics": "metrics --gen {} --ref ref.npy --metrics kid --quiet",
    "kinds": "kinds a={} b=gen.npy --quiet --out o",
    "report": "report {}",
    "gate": "gate --gen {} --baseline gen.npy --ref ref.npy --policy gate.toml --out o --quiet",
    "gate, baseline": "gate --gen gen.npy --baseline {} --ref ref.npy --policy gate.toml --out o --quiet",
    "gate, policy": "gate --gen gen.npy --baseline gen.npy --ref ref.npy --policy {} --out o --quiet",
    "gate, out": "gate --gen gen.npy --baseline gen.npy --ref ref.npy --policy gate.toml --out {} --quiet",
    "board": "leaderboard add {} two=gen.npy --ref ref.npy --metrics kid --quiet",
    "board, model": "leaderboard add board two={} --ref ref.npy --metrics kid --quiet",
    "board, render": "leaderboard render {}",
    "ledger": "private sketch release --data ref.npy --public gen.npy --dims 3 --epsilon 1 --ledger {} --out q.h5",
    "new ledger": "private sketch release --data ref.npy --public gen.npy --dims 3 --epsilon 1 --ledger {} --budget 3 "
    "--out q.h5",
    "cache": "extract cache verify {}",
}
"""A command, and where its path stands."""


def closed(path, mode=0):
    path.mkdir()
    shutil.copy(path.with_name("gen.npy"), path / "x.npy")
    path.chmod(mode)
    return path.name


PATHS = {
    "a closed file": lambda place: ((place / "x").touch(), (place / "x").chmod(0), "x")[-1],
    "a closed folder": lambda place: closed(place / "x"),
    "a folder that lists its files alone": lambda place: closed(place / "x", 0o444),
    "a folder that does not list its files": lambda place: closed(place / "x", 0o111),
    "a file in a closed folder": lambda place: f"{closed(place / 'x')}/x.npy",
    "a name that is too long": lambda place: "n" * 300,
    "a path that is too long": lambda place: "n/" * 2500 + "x",
    "a link to itself": lambda place: ((place / "x").symlink_to("x"), "x")[-1],
    "a file in a file": lambda place: "gen.npy/x",
    "no text": lambda place: os.fsdecode(b"\xff\xfe"),
    "the home of nobody": lambda place: "~nosuchuser/x",
}

CASES = [
    pytest.param(command, path, marks=[pytest.mark.long] * ((row - column) % len(PATHS) > 0), id=f"{command}: {path}")
    for row, command in enumerate(INPUTS)
    for column, path in enumerate(PATHS)
]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder, random = tmp_path_factory.mktemp("home"), np.random.default_rng(0)
    for name in ("gen", "ref"):
        np.save(folder / f"{name}.npy", random.standard_normal((60, 4)).astype(np.float32))
    (folder / "set").mkdir()
    for number in range(4):
        Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(folder / "set" / f"{number}.png")
    (folder / "gate.toml").write_text("[kinds]\nlose = 0.5\nmin_share = 0.1\n")
    fe.extract(folder / "set", "pixels", folder / "s.h5", shard="1/2").close()
    load_all()
    return folder


@pytest.fixture
def place(home, tmp_path):
    yield shutil.copytree(home, tmp_path / "place")
    for path in [tmp_path / "place", *(tmp_path / "place").rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)


class Head(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


def without_privileges():
    """Let permissions hold for this process, even if it is the root's (capset of Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).capset(ctypes.byref(Head(0x20080522, 0)), ctypes.byref((ctypes.c_uint32 * 6)()))


def is_told(text):
    """Whether the last line of an output says what was wrong, and no line is of a traceback."""
    return is_sentence(text.splitlines()[-1]) or re.search(
        r"(cannot be read|unreadable|not embeddings)[^\n]*\n?$", text
    )


@pytest.mark.by_turns(4)
@pytest.mark.one_of_each
@pytest.mark.parametrize("command, path", CASES)
def test_a_path_that_cannot_be_opened_is_one_sentence(place, tmp_path, command, path):
    name = PATHS[path](place)
    code, text = guarded(INPUTS[command], place, tmp_path / "told", seconds=60, name=name, before=without_privileges)
    # A gate of few samples is undecided, which is 2.
    assert code in (0, 2) or (code == 3 and ("Invalid value" in text or is_told(text))), f"{code}: {text}"


def test_a_cache_that_may_not_be_read_is_not_taken_for_a_file_that_may_be_overwritten(place, tmp_path):
    words = "extract set --extractor pixels --quiet"
    assert guarded(words, place, tmp_path / "told", seconds=60)[0] == 0
    (cache,) = (place / "cache").glob("*.h5")
    cache.chmod(0)
    code, text = guarded(words, place, tmp_path / "told", seconds=60, before=without_privileges)
    assert code == 3 and is_sentence(text) and "--force" not in text, f"{code}: {text}"
    assert f"{cache.name} cannot be read (permission denied): check who may read it" in text


def test_python_is_told_which_folder_of_samples_is_closed(place):
    closed(place / "x")
    told = place / "told"
    child = os.fork()
    if not child:
        without_privileges()
        try:
            fe.open_source(place / "x")
        except DataError as error:
            told.write_text(str(error))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert "cannot be read (permission denied): check who may read it" in told.read_text()


READ_ONLY = {
    "outputs": ("extract set --extractor pixels --out d/o.h5 --quiet", "d"),
    "results": ("compare --gen gen.npy --ref ref.npy --features 20 --out d --quiet", "d"),
    "the working folder": ("compare --gen gen.npy --ref ref.npy --features 20 --quiet", "."),
    "the folder of caches": ("extract set --extractor pixels --quiet", "cache"),
    "a ledger's folder": (
        "private sketch release --data ref.npy --public gen.npy --dims 3 --epsilon 1 --ledger d/l --budget 3 "
        "--out q.h5 --quiet",
        "d",
    ),
    "a release's folder": (
        "private sketch release --data ref.npy --public gen.npy --dims 3 --epsilon 1 --ledger l --budget 3 "
        "--out d/q.h5 --quiet",
        "d",
    ),
    "a board": ("leaderboard add d two=gen.npy --ref ref.npy --metrics kid --quiet", "d"),
    "a history": ("gate --first --gen gen.npy --baseline d --ref ref.npy --policy gate.toml --out . --quiet", "d"),
}
"""A command, and the folder to which it may not write."""


def files_in(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.one_of_each
@pytest.mark.parametrize("what", READ_ONLY)
def test_a_folder_that_cannot_be_written_to_is_one_sentence_and_stays_as_it_is(place, tmp_path, what):
    words, folder = READ_ONLY[what]
    for name in ("d", "cache"):
        (place / name).mkdir()
    (place / folder).chmod(0o555)
    before = files_in(place / folder)
    code, text = guarded(words, place, tmp_path / "told", seconds=60, before=without_privileges)
    assert code == 3 and is_told(text) and "cannot be written" in text, f"{code}: {text}"
    assert files_in(place / folder) == before
    assert not (place / "l").exists()  # nothing is spent


@pytest.mark.parametrize(
    "words",
    [
        "extract set --extractor pixels --out o.h5 --quiet",
        "extract merge s.1-of-2.h5 --out o.h5 --quiet",
        "compare --gen gen.npy --ref ref.npy --features 20 --out o --quiet",
        pytest.param("metrics --gen gen.npy --ref ref.npy --metrics kid --quiet", marks=pytest.mark.long),
    ],
)
def test_inputs_that_cannot_be_written_to_are_read(place, tmp_path, words):
    (place / "o").mkdir()
    for path in (place / "set").iterdir():
        path.chmod(0o444)
    for path in (*place.glob("*.npy"), *place.glob("*.h5")):
        path.chmod(0o444)
    (place / "set").chmod(0o555)
    code, text = guarded(words, place, tmp_path / "told", seconds=60, before=without_privileges)
    assert code in (0, 3) and "mistake" not in text and ("merge" in words) == (code == 3), f"{code}: {text}"


@pytest.mark.long
def test_a_full_pipe_of_readers_is_no_mistake_of_a_path():
    """Nobody reads the output: an error of the system without a path stays what it was."""
    finc_eval = Path(sys.executable).with_name("finc-eval")
    if not finc_eval.exists():
        pytest.skip("the command is not installed")
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run([finc_eval, "doctor", "extractors", "list"], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert ended.returncode == 141 and b"cannot be used" not in ended.stderr
