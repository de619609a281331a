"""A user without a home, a disk without locks, a full disk behind the output: each is one sentence."""

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import finc_eval as fe
from finc_eval import load_card, open_source
from finc_eval.core import storage
from finc_eval.core.errors import DataError, FincEvalError
from finc_eval.core.places import VARIABLES, known_folder, user_folder, with_urls
from finc_eval.core.storage import disk_errors, only_writer_of, write_text
from finc_eval.extractors.fetch import fetch_weights
from finc_eval.extractors.weights import cached
from finc_eval.private.synthesis.files import read_columns

VERBS = {
    "the version": "--version",
    "the help": "--help",
    "the help of a verb": "metrics --help",
    "the installation": "doctor",
    "a schema": "doctor schema scores",
    "a metric": "metrics --gen x.npy --ref y.npy --metrics fd",
    "a metric as JSON": "metrics --gen x.npy --ref y.npy --metrics fd --json",
}


@pytest.fixture
def homeless(monkeypatch):
    for name in ("HOME", "FINC_EVAL_CACHE", "FINC_EVAL_REMOTE", "XDG_CACHE_HOME", "FINC_EVAL_WEIGHTS"):
        monkeypatch.delenv(name, raising=False)

    def expanduser(path):
        if str(path).startswith("~"):
            raise RuntimeError("Could not determine home directory.")
        return path

    monkeypatch.setattr(Path, "expanduser", expanduser)


def run(command, folder, stdout):
    for name, seed in (("x.npy", 0), ("y.npy", 1)):
        np.save(folder / name, np.random.default_rng(seed).normal(size=(60, 4)))
    program = "import sys; sys.argv[0] = 'finc-eval'; from finc_eval.cli.app import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *command.split()], stdout=stdout, stderr=subprocess.PIPE, text=True, cwd=folder
    )


@pytest.mark.one_of_each
@pytest.mark.parametrize("command", VERBS.values(), ids=VERBS)
def test_a_full_disk_behind_the_output_is_one_sentence(command, tmp_path):
    with Path("/dev/full").open("w") as full:
        done = run(command, tmp_path, full)
    assert done.returncode == 3
    assert "standard output cannot be written (no space left on device)" in done.stderr
    assert "mistake in finc-eval" not in done.stderr and "Traceback" not in done.stderr


@pytest.mark.by_turns(3)
@pytest.mark.long
@pytest.mark.one_of_each
@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", ">&-", "2>&-"])
def test_a_program_without_streams_does_its_work_and_prints_nothing_where_none_is(closed, tmp_path):
    for name, seed in (("x.npy", 0), ("y.npy", 1)):
        np.save(tmp_path / name, rows(seed))
    program = "import sys; sys.argv[0] = 'finc-eval'; from finc_eval.cli.app import main; main()"
    command = "metrics --gen x.npy --ref y.npy --metrics kid --out scores"
    line = f'{sys.executable} -c "{program}" {command} {closed}'
    done = subprocess.run(line, shell=True, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert bool(done.stdout) == (">&- " not in f"{closed} ".replace("2>&-", ""))
    assert fe.load(tmp_path / "scores" / "scores.json")["kid_mean"].value is not None


@pytest.mark.one_of_each
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_wrong_options_end_with_their_code_though_no_stream_takes_a_word(unbuffered, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    program = "from finc_eval.cli.app import main; main()"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-c", program, "metrics", "--gen", "no"], stdout=full, stderr=full)
    assert done.returncode == 3


def test_a_user_without_a_home_needs_none_until_a_file_belongs_there(homeless):
    assert known_folder("weights") is None
    assert with_urls("a text") == "a text"
    with pytest.raises(DataError, match="set FINC_EVAL_CACHE to a folder"):
        user_folder("weights")


PATHS_OF_A_HOME = {
    "samples": lambda: open_source("~/images"),
    "a pattern": lambda: open_source("~/images/*.png"),
    "shards": lambda: open_source("~/images-{00..01}.tar"),
    "videos": lambda: open_source("~/clips", clip=load_card("motion").clip),
    "a card": lambda: load_card("~/own.toml"),
    "weights": lambda: load_card("~/own.safetensors"),
    "embeddings": lambda: fe.metrics("~/x.npy", "~/y.npy"),
}


@pytest.mark.parametrize("what", PATHS_OF_A_HOME)
def test_a_path_in_a_home_that_is_not_there_is_one_sentence(what, homeless):
    with pytest.raises(FincEvalError, match="begins with a user who has no home here: name the folder itself"):
        PATHS_OF_A_HOME[what]()


def rows(seed, n=60):
    return np.random.default_rng(seed).normal(size=(n, 4)).astype("f4")


IN_A_HOME = {
    "a result": lambda x, y: (fe.compare(x, y, features=20).save("~/r.h5"), fe.load("~/r.h5"), fe.load("~/r.json")),
    "a page": lambda x, y: fe.compare(x, y, features=20).to_html("~/r.html"),
    "a sketch": lambda x, y: (fe.Sketch.reference(x, features=20).save("~/s.h5"), fe.Sketch.load("~/s.h5")),
    "embeddings": lambda x, y: (fe.extract(PIXELS, "pixels", out="~/e.h5"), fe.EmbeddingCache("~/e.h5")),
    "arrays": lambda x, y: (np.save(Path.home() / "x.npy", x), fe.metrics("~/x.npy", y, "fd")),
    "a policy": lambda x, y: (put("g.toml", "kinds.moved = 0.9"), fe.gate(x, y, x, "~/g.toml")),
    "metadata": lambda x, y: (put("t.csv", "id,a\n0,b\n"), fe.extract(PIXELS, "pixels", metadata="~/t.csv")),
    "a board": lambda x, y: fe.Board("~/board").add({"a": x}, y),
    "a ledger": lambda x, y: (fe.privacy.Ledger.create("~/l", 1, 1e-5), fe.privacy.Ledger("~/l")),
    "a private table": lambda x, y: (put("t.csv", "a\n1\n"), read_columns("~/t.csv")),
    "its description": lambda x, y: (
        put("t.toml", '[[columns]]\nname = "a"\nvalues = ["b", "c"]'),
        fe.privacy.Table.load("~/t.toml"),
    ),
}
PIXELS = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 3)).astype("u1")


def put(name, text):
    (Path.home() / name).write_text(text)


@pytest.mark.filterwarnings("ignore:metadata do not fit")
@pytest.mark.parametrize("what", IN_A_HOME)
def test_files_in_a_home_are_read_and_written_there(what, tmp_path, monkeypatch):
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "work")
    IN_A_HOME[what](rows(0), rows(1))
    assert any((tmp_path / "home").iterdir()) and not any((tmp_path / "work").iterdir())


def test_a_name_alone_that_begins_with_a_wave_is_that_of_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fe.Sketch.reference(rows(0), features=20).save("~s.h5")
    assert fe.load("~s.h5").n == 60 and (tmp_path / "~s.h5").is_file()


def test_a_user_without_a_home_extracts_into_a_file_with_a_place(homeless, tmp_path):
    for source in (PIXELS, iter(PIXELS)):
        assert len(fe.extract(source, "pixels", out=tmp_path / "e.h5", n=20, force=True)) == 20
    with pytest.raises(DataError, match="set FINC_EVAL_CACHE to a folder"):
        fe.extract(PIXELS, "pixels")


def test_weights_are_fetched_for_a_user_without_a_home_where_a_variable_says(homeless, tmp_path, monkeypatch):
    card = load_card("inception-fid")
    assert cached(card.weights) is None
    with pytest.raises(DataError, match="set FINC_EVAL_CACHE to a folder"):
        fetch_weights(card)
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    assert cached(card.weights) is None
    (tmp_path / "weights").mkdir()
    data = b"the weights"
    stated = replace(
        card.weights, file="own.pth", urls=("https://host/as-published.pth",), sha256=hashlib.sha256(data).hexdigest()
    )
    for place in ("weights/as-published.pth", "torch/hub/checkpoints/own.pth"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_bytes(data)
        assert cached(stated) == tmp_path / place
        (tmp_path / place).unlink()


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"FINC_EVAL_REMOTE": "/r"}, "/r"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/finc-eval/remote"),
        ({"FINC_EVAL_CACHE": "/c"}, "/c/remote"),
        ({"FINC_EVAL_CACHE": "/c", "XDG_CACHE_HOME": "/x"}, "/x/finc-eval/remote"),
        ({"FINC_EVAL_REMOTE": "/r", "FINC_EVAL_CACHE": "/c"}, "/r"),
    ],
)
def test_variables_name_the_places_of_a_user_without_a_home(variables, folder, homeless, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert user_folder("remote") == Path(folder)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_disk_that_refuses_locks_has_a_way_out(number, tmp_path, monkeypatch):
    import filelock

    def refuse(self, *args, **options):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
    with pytest.raises(DataError, match=r"does not lock files.*FINC_EVAL_LOCKS=0"), only_writer_of(tmp_path / "a"):
        pass
    monkeypatch.setenv(storage.LOCKS, "0")
    with only_writer_of(tmp_path / "a"):
        write_text(tmp_path / "a", "kept")
    assert (tmp_path / "a").read_text() == "kept"


@pytest.mark.parametrize(("name", "variable"), VARIABLES.items())
def test_a_home_that_cannot_be_written_names_the_variable_of_the_folder(name, variable, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv(variable, raising=False)
    with (
        pytest.raises(DataError, match=f"Permission denied.*: set {variable} to a folder"),
        disk_errors(user_folder(name) / "a file"),
    ):
        raise PermissionError(errno.EACCES, "Permission denied")
    with pytest.raises(DataError, match="check the folder, or choose another"), disk_errors(tmp_path / "a file"):
        raise PermissionError(errno.EACCES, "Permission denied")


OF_ARRAYS = [
    "doctor",
    "metrics --gen x.npy --ref y.npy --metrics fd,kid",
    "compare --gen x.npy --ref y.npy --features 20 --modes 2",
    "kinds a=x.npy b=y.npy",
    "leaderboard --ref y.npy a=x.npy --out board",
    "leaderboard add board --ref y.npy b=x.npy",
    "gate --gen x.npy --baseline x.npy --ref y.npy --policy gate.toml",
    "audit --gen x.npy --train y.npy --holdout z.npy",
    "evaluate --gen x.npy --ref y.npy --features 20 --modes 2",
    "kahm fit labeled.npz --out models.h5",
    "private generate --data t.csv --table t.toml --ledger l --budget 9 --epsilon 1 --steps 1 --out o.csv",
    "extract images --extractor pixels --out e.h5",
]
STRANGER = """
import json, sys
from typer.testing import CliRunner
from finc_eval.cli.app import app
from finc_eval.memorization import attacks
attacks.PERMUTATIONS = 9
for command in sys.argv[1:]:
    done = CliRunner().invoke(app, [*command.split(), "--quiet"] if " " in command else [command])
    print(json.dumps([command, done.exit_code, done.stderr + repr(done.exception)]))
"""


def inputs_of_verbs(folder):
    for name, seed in (("x", 0), ("y", 1), ("z", 2)):
        np.save(folder / f"{name}.npy", rows(seed, 120))
    np.savez(folder / "labeled.npz", embeddings=np.concatenate([rows(3), rows(4) + 3]), labels=["a"] * 60 + ["b"] * 60)
    (folder / "gate.toml").write_text("kinds.moved = 0.9")
    (folder / "t.csv").write_text("a,ill\n" + "1,no\n2,yes\n" * 50)
    (folder / "t.toml").write_text(
        'label = "ill"\n[[columns]]\nname = "a"\nvalues = ["1", "2"]\n[[columns]]\nname = "ill"\nvalues = ["no", "yes"]'
    )
    (folder / "images").mkdir()
    for number, pixels in enumerate(PIXELS):
        Image.fromarray(pixels).save(folder / "images" / f"{number}.png")


@pytest.mark.long
@pytest.mark.one_of_each
@pytest.mark.parametrize("home", ["none", "read-only", "not there"])
def test_a_user_without_a_name_runs_every_verb_on_arrays(home, monkeypatch):
    if os.name != "posix" or os.geteuid() or shutil.which("setpriv") is None:
        pytest.skip("another user is set by root alone")
    with tempfile.TemporaryDirectory(prefix="stranger-", ignore_cleanup_errors=True) as place:
        folder = Path(place)
        inputs_of_verbs(folder)
        (folder / "home").mkdir(mode=0o555)
        folder.chmod(0o777)
        for name in ("HOME", "FINC_EVAL_CACHE", "FINC_EVAL_REMOTE", "XDG_CACHE_HOME", "FINC_EVAL_WEIGHTS", "TMPDIR"):
            monkeypatch.delenv(name, raising=False)
        if home != "none":
            monkeypatch.setenv("HOME", str(folder / "home") if home == "read-only" else "/nonexistent")
        needs_a_place = "extract images --extractor pixels"
        program = [sys.executable, "-c", STRANGER, *OF_ARRAYS, needs_a_place]
        stranger = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"]
        done = subprocess.run([*stranger, *program], capture_output=True, text=True, cwd=folder)
        if not done.stdout and done.returncode:
            pytest.skip("this installation is not for other users")
        found = [json.loads(line) for line in done.stdout.splitlines()]
        assert [command for command, code, _ in found if code == 0] == OF_ARRAYS, found
        command, code, said = found[-1]
        assert (command, code) == (needs_a_place, 3) and "set FINC_EVAL_CACHE to a folder" in said
