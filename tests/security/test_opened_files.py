"""What is not a file, and what never ends, is refused in one sentence wherever a file is read."""

import ast
import io
import os
import re
import shutil
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from _guarded import SPECIAL, guarded, is_sentence, load_all
from _trees import nodes_of
from PIL import Image

import finc_eval as fe
from finc_eval.cli.options import config_file
from finc_eval.core import doors as reading
from finc_eval.core.doors import NotAFileError, at_most, lines_of, open_file, open_to_change, pin, read_bytes, read_text
from finc_eval.core.errors import DataError
from finc_eval.embeddings.array_files import READERS, read_arrays
from finc_eval.samples.opening import open_source

PACKAGE = Path(fe.__file__).parent

POLICY = "[kinds]\nlose = 0.5\nmin_share = 0.1\n"

SETS = "--gen gen.npy --ref ref.npy --quiet"

COMMANDS = {
    "compare, .npy": ("compare --gen {} --ref ref.npy --out out --quiet", "x.npy"),
    "compare, .npz": ("compare --gen {} --ref ref.npy --out out --quiet", "x.npz"),
    "compare, .pt": ("compare --gen gen.npy --ref {} --out out --quiet", "x.pt"),
    "compare, .safetensors": ("compare --gen {} --ref ref.npy --out out --quiet", "x.safetensors"),
    "compare, .parquet": ("compare --gen {} --ref ref.npy --out out --quiet", "x.parquet"),
    "compare, .h5": ("compare --gen {} --ref ref.npy --out out --quiet", "x.h5"),
    "compare, no suffix": ("compare --gen {} --ref ref.npy --out out --quiet", "x"),
    "compare, defaults": ("compare --gen gen.npy --ref ref.npy --out out --quiet", "finc-eval.toml"),
    "compare, --config": ("compare --gen gen.npy --ref ref.npy --out out --quiet --config {}", "x.toml"),
    "metrics, statistics": ("metrics --gen gen.npy --ref {} --metrics fd --quiet", "x.npz"),
    "extract, .zip": ("extract {} --extractor pixels --out out.h5 --quiet", "x.zip"),
    "extract, .tar": ("extract {} --extractor pixels --out out.h5 --quiet", "x.tar"),
    "extract, shards": ("extract x-{{0..0}}.tar --extractor pixels --out out.h5 --quiet", "x-0.tar"),
    "extract, metadata.csv": ("extract set --extractor pixels --out out.h5 --quiet", "set/metadata.csv"),
    "extract, dataset.json": ("extract set --extractor pixels --out out.h5 --quiet", "set/dataset.json"),
    "extract, --metadata .csv": ("extract set --extractor pixels --out out.h5 --quiet --metadata {}", "x.csv"),
    "extract, --metadata .jsonl": ("extract set --extractor pixels --out out.h5 --quiet --metadata {}", "x.jsonl"),
    "extract, --metadata .parquet": ("extract set --extractor pixels --out out.h5 --quiet --metadata {}", "x.parquet"),
    "extract, card": ("extract set --extractor {} --out out.h5 --quiet", "./x.toml"),
    "extract, Hugging Face": ("extract hf --extractor pixels --out out.h5 --quiet", "hf/data-00000-of-00001.arrow"),
    "report, .json": ("report {}", "x.json"),
    "report, .h5": ("report {}", "x.h5"),
    "score": ("score gen.npy --comparison {} --out out.csv --quiet", "x.h5"),
    "sketch": ("extract sketch ref.npy --feature-map-of {} --out out.h5 --quiet", "x.h5"),
    "merge": ("extract merge {} --out out.h5", "x.h5"),
    "gate, policy": ("gate --gen gen.npy --ref ref.npy --baseline gen.npy --policy {} --out out --quiet", "x.toml"),
    "gate, baseline.json": (
        "gate --gen gen.npy --ref ref.npy --baseline history --policy gate.toml --out out --quiet",
        "history/0001/baseline.json",
    ),
    "leaderboard, index": ("leaderboard render board", "board/board.json"),
    "leaderboard, reference": ("leaderboard render board", "board/reference.h5"),
    "leaderboard, entry": ("leaderboard render board", "board/entries/one.json"),
    "private-sketch, data": (
        "private sketch release --data {} --public gen.npy --dims 3 --epsilon 1 --ledger new --budget 3 --out out.h5",
        "x.npy",
    ),
    "private-sketch, ledger": (
        "private sketch release --data ref.npy --public gen.npy --dims 3 --epsilon 1 --ledger {} --out out.h5",
        "ledger.jsonl",
    ),
    "dp-generate, data": (
        "private generate --data {} --table table.toml --epsilon 1 --ledger new --budget 3 --out out.csv",
        "x.csv",
    ),
    "dp-generate, description": (
        "private generate --data gen.csv --table {} --epsilon 1 --ledger new --budget 3 --out out.csv",
        "x.toml",
    ),
    "kahm": ("kahm classify gen.npy --models {} --out out.csv --quiet", "x.h5"),
}
"""A command, and the path that leads to no file: "{}" in the command."""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with sets, a board and a history; it is copied for each command."""
    folder, random = tmp_path_factory.mktemp("home"), np.random.default_rng(0)
    for name in ("gen", "ref"):
        np.save(folder / f"{name}.npy", random.standard_normal((60, 4)).astype(np.float32))
    (folder / "set").mkdir()
    for number in range(4):
        Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(folder / "set" / f"{number}.png")
    (folder / "hf").mkdir()
    (folder / "hf" / "state.json").write_text('{"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}')
    (folder / "hf" / "dataset_info.json").write_text("{}")
    (folder / "gen.csv").write_text("a\n1\n2\n")
    (folder / "gate.toml").write_text(POLICY)
    (folder / "table.toml").write_text('[[columns]]\nname = "a"\nvalues = ["1", "2"]\n')
    load_all()
    told = folder.with_name("told")
    for words in (
        "leaderboard add board one=gen.npy two=ref.npy --ref ref.npy --metrics kid --quiet",
        "gate --first --gen gen.npy --baseline history --ref ref.npy --policy gate.toml --out first --quiet",
    ):
        code, text = guarded(words, folder, told, seconds=60)
        assert code in (0, 1, 2), text
    return folder


REFUSED = r" is a (pipe|device|socket), not |must lie in that folder"
"""Words about what is not a file, or about a link that leads out of the folder of a board, a history or a set."""

CASES = [
    pytest.param(
        command, kind, id=f"{command}: {kind}", marks=[pytest.mark.long] * ((number - place) % len(SPECIAL) > 0)
    )
    for number, command in enumerate(COMMANDS)
    for place, kind in enumerate(SPECIAL)
]
"""Each command with each kind; among the quick tests, kinds take turns."""


@pytest.mark.by_turns(4)
@pytest.mark.one_of_each
@pytest.mark.parametrize("command, kind", CASES)
def test_a_verb_refuses_what_is_not_a_file_in_one_sentence(home, tmp_path, command, kind):
    words, name = COMMANDS[command]
    place = tmp_path / "place"
    shutil.copytree(home, place)
    path = place / name
    path.unlink(missing_ok=True)
    SPECIAL[kind](path)
    code, text = guarded(words.format(name), place, tmp_path / "told")
    assert code == 3 and is_sentence(text), f"{code}: {text}"
    assert kind == "folder" or re.search(REFUSED, text), text


@pytest.mark.one_of_each
@pytest.mark.parametrize(
    "words", ["compare --gen /dev/stdin --ref ref.npy", "report /dev/stdin", "extract sketch /dev/stdin"]
)
def test_standard_input_is_refused_with_what_to_do(home, tmp_path, words):
    take, give = os.pipe()
    stdin = os.dup(0)
    try:
        os.dup2(take, 0)
        code, text = guarded(f"{words} --out {tmp_path / 'out.h5'}", home, tmp_path / "told")
    finally:
        os.dup2(stdin, 0)
        for one in (stdin, take, give):
            os.close(one)
    assert code == 3 and is_sentence(text), text
    assert "is a pipe, not a file: write its content to a file, and pass that" in text or "report" in words, text


def test_a_sample_that_becomes_a_pipe_after_the_folder_was_listed_is_a_sample_that_cannot_be_read(home, tmp_path):
    shutil.copytree(home / "set", tmp_path / "set")
    opened_set = open_source(tmp_path / "set")
    (tmp_path / "set" / "1.png").unlink()
    os.mkfifo(tmp_path / "set" / "1.png")
    (tmp_path / "set" / "2.png").unlink()
    (tmp_path / "set" / "2.png").symlink_to("/dev/zero")
    errors = {sample.id: sample.error for sample in opened_set.samples()}
    assert errors == {"0.png": None, "1.png": "a pipe, not a file", "2.png": "a device, not a file", "3.png": None}


@pytest.mark.parametrize("suffix", sorted(READERS))
def test_arrays_are_read_of_the_file_that_was_asked_whatever_takes_its_name_then(tmp_path, suffix, monkeypatch):
    """Between two looks at a name it may lead elsewhere: the file is asked again when it is open."""
    path, real = tmp_path / f"x{suffix}", reading.check_regular
    path.write_bytes(b"x" * 100)

    def swapped(asked, state=None, **options):
        real(asked, state, **options)
        if state is None and path.is_file():
            path.unlink()
            os.mkfifo(path)

    monkeypatch.setattr(reading, "check_regular", swapped)
    with pytest.raises(DataError, match="is a pipe, not a file"):
        read_arrays(path)


def test_a_text_is_read_no_further_than_the_limit_whatever_size_it_states(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_MAX_DECODED", "1MB")
    path = tmp_path / "grows.json"
    path.write_bytes(b" " * 2_000_000)
    with pytest.raises(DataError, match=r"2 MB when decoded, above the 1 MB of FINC_EVAL_MAX_DECODED"):
        read_bytes(path)

    class Endless(io.RawIOBase):
        read_bytes = 0

        def read(self, size=-1):
            self.read_bytes += size
            assert self.read_bytes < 5_000_000, "it is read beyond the limit"
            return b"x" * size

    with pytest.raises(ValueError, match="more than 3 MB"):
        at_most(Endless(), 3_000_000)


@pytest.mark.parametrize("given", ["/proc/self/maps", "/proc/self/status"])
@pytest.mark.skipif(sys.platform != "linux", reason="files without a size")
def test_a_file_that_states_no_size_is_bounded_as_well(given, monkeypatch):
    assert Path(given).stat().st_size == 0
    assert read_text(given)
    monkeypatch.setenv("FINC_EVAL_MAX_DECODED", "100")
    with pytest.raises(DataError, match="has more than 100 bytes: make it smaller, or set FINC_EVAL_MAX_DECODED"):
        read_text(given)


def test_an_endless_line_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n" + "1" * 3_000_000)
    with pytest.raises(ValueError, match="a line has more than"):
        list(lines_of(tmp_path / "x.csv"))
    (tmp_path / "y.csv").write_bytes(b"a,b\r\n1,2\r\n")
    assert list(lines_of(tmp_path / "y.csv")) == ["a,b\r\n", "1,2\r\n"]


def test_a_pinned_path_stays_with_its_file(tmp_path):
    (tmp_path / "x").write_text("first")
    with pin(tmp_path / "x") as place:
        (tmp_path / "x").unlink()
        (tmp_path / "x").write_text("second")
        assert Path(place).read_text() == "first"


def test_a_file_to_change_is_not_found_behind_a_link(tmp_path):
    (tmp_path / "victim").write_text("kept")
    (tmp_path / "link").symlink_to("victim")
    with pytest.raises(OSError, match="link"):
        open_to_change(tmp_path / "link")
    assert open_file(tmp_path / "link").read() == b"kept"


def test_a_device_is_not_opened_at_all(monkeypatch):
    """Some devices act when they are opened."""
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("opened"))
    with pytest.raises(NotAFileError, match="/dev/zero is a device, not a file: pass a file"):
        open_file("/dev/zero")


def test_a_pipe_in_the_place_of_the_defaults_is_not_passed_over(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert config_file(None) is None
    os.mkfifo("finc-eval.toml")
    assert config_file(None) == Path("finc-eval.toml")


@pytest.mark.parametrize("suffix", sorted(READERS))
def test_a_pipe_by_the_name_of_an_array_is_taken_for_one_and_refused(tmp_path, suffix):
    os.mkfifo(tmp_path / f"x{suffix}")
    with pytest.raises(DataError, match="is a pipe, not a file"):
        fe.compare(tmp_path / f"x{suffix}", np.zeros((9, 2)))


# The doors are the only ones

BARE = {"open", "read_text", "read_bytes", "write_text", "write_bytes", "savefig", "tofile"}
"""Functions and methods that open a path."""

OF_LIBRARIES = {
    ("np", "load"),
    ("np", "save"),
    ("np", "savez"),
    ("np", "savez_compressed"),
    ("np", "memmap"),
    ("np", "fromfile"),
    ("format", "open_memmap"),
    ("torch", "load"),
    ("torch", "save"),
    ("zipfile", "ZipFile"),
    ("tarfile", "open"),
    ("av", "open"),
    ("Image", "open"),
    ("h5py", "File"),
    ("parquet", "ParquetFile"),
    ("os", "open"),
    ("shutil", "copy"),
    ("shutil", "copyfile"),
    ("shutil", "copytree"),
    ("shutil", "move"),
}
"""Functions of libraries that open what they are given: a path, or a file."""

NAMES = {"ZipFile", "ParquetFile", "load_file", "safe_open", "load_from_disk"}
"""The same, imported by themselves."""

REVIEWED = {
    "core/doors.py": {"os.open": 3},
    "core/files/archives.py": {"zipfile.ZipFile": 1, "archive.open": 1, "tarfile.open": 1},  # of opened files
    "core/files/npz.py": {"np.memmap": 1},  # of an opened file
    "core/files/parquet.py": {"parquet.ParquetFile": 3},  # of an opened file
    "core/files/foreign_hdf5.py": {"np.memmap": 2},  # of an opened file, and of a temporary file without a name
    "core/files/hdf5.py": {"h5py.File": 2, "h5g.open": 1},  # of an opened file, and of a Sink
    "conventions/altered.py": {"Image.open": 1},  # of memory
    "embeddings/array_files.py": {"np.memmap": 1},  # of memory
    "embeddings/stored/turned.py": {"np.savez": 1},  # into an opened file
    "demo/planted.py": {"files().open": 1, "np.load": 1},  # of the package itself
    "core/files/tensors.py": {"torch.load": 1, "load_file": 1},  # of a pinned path
    "extractors/catalog.py": {"files().read_text": 1},  # of the package itself
    "extractors/cells.py": {"path.read_text": 1},  # of the package itself
    "extractors/imagenet.py": {"files().read_text": 1},  # of the package itself
    "measures/protocols/card.py": {"files().read_text": 1},  # of the package itself
    # of pinned paths, and of an opened file
    "extractors/networks/tensors.py": {"torch.load": 1, "load_file": 1, "zipfile.ZipFile": 1},
    "core/isolation.py": {"Path().read_text": 1},  # of /proc/self
    "core/files/png_texts.py": {"Image.open": 1},  # of bytes
    "gallery/thumbnails.py": {"Image.open": 1},  # of bytes: the reader of all kept pictures
    "gates/baseline.py": {"np.memmap": 1, "ZipFile": 1, "file.open": 1},  # of created files
    "golden/pictures.py": {"Image.open": 1},  # of bytes
    "gates/pipelines.py": {"Path().open": 1},  # appends to what the environment names
    "memorization/views.py": {"Image.open": 1},  # of bytes
    "measures/gaussians/reference_statistics.py": {"np.savez": 1},  # of a created file
    "measures/running.py": {"np.memmap": 1},  # of a temporary file without a name
    "cli/verbs/kahm.py": {"np.savez": 1},  # of a created file
    "private/dp/ledger.py": {"os.open": 1},  # a folder
    "private/synthesis/files.py": {"np.savez_compressed": 1},  # of a created file
    "naming/kept_values.py": {"np.savez": 1},  # of a created file
    "same_ids/kept.py": {"np.savez": 1},  # of a created file
    "memorization/kept_steps.py": {"np.savez": 1},  # of a created file
    "samples/hugging_face.py": {"load_from_disk": 1},  # of a folder whose files are asked before
    "samples/grids.py": {"samples.open": 1},  # of a source, which opens its own files
    "samples/images.py": {"Image.open": 3},  # of bytes
    "samples/animations/decode.py": {"Image.open": 2},  # of a stream
    "samples/video.py": {"av.open": 1},  # of a stream
}
"""Calls outside of the doors, by module: each was looked at, and opens nothing by a path that others may choose."""

OWN_OPEN = {"", "files", "_files", "Bundle", "History", "GateSets", "reading"}
"""Objects and modules of finc-eval whose functions of these names go through a door; "" is the object itself."""


def name_of(node):
    """Name of a called function, with that of the object or module that has it."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}".removeprefix("self.")
    if isinstance(node, ast.Call):
        return f"{name_of(node.func)}()"
    if isinstance(node, ast.BinOp):
        return name_of(node.left)
    return "?"


def opening_calls(nodes):
    """Name of each call that opens a path, from its last two words."""
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        *_, owner, name = ("", *name_of(node.func).split("."))
        if isinstance(node.func, ast.Name):
            if name in NAMES or name == "open":
                yield name
        elif (owner, name) in OF_LIBRARIES or (name in BARE and owner not in OWN_OPEN):
            yield f"{owner}.{name}"


def test_nothing_is_opened_but_through_the_doors():
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        calls = Counter(opening_calls(nodes_of(path)))
        if calls:
            found[path.relative_to(PACKAGE).as_posix()] = dict(calls)
    assert found == REVIEWED


@pytest.mark.parametrize(
    "line",
    [
        "open(path)",
        "path.open('rb')",
        "(folder / 'x').open()",
        "Path(path).read_text()",
        "path.read_bytes()",
        "temporary.write_text(text)",
        "np.load(path)",
        "Image.open(path)",
        "torch.load(path)",
        "zipfile.ZipFile(path)",
        "tarfile.open(path)",
        "av.open(path)",
        "shutil.copyfile(a, b)",
        "os.open(path, 0)",
    ],
)
def test_a_call_that_opens_a_path_is_found(line):
    assert list(opening_calls(ast.walk(ast.parse(line))))
