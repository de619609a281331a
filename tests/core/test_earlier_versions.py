"""Files of other versions of finc-eval: each kind is refused in one sentence that says what to run."""

import json

import numpy as np
import pytest
from _files import forge
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.core.files.file_types import MADE_BY
from finc_eval.demo import example_sets
from finc_eval.gates.baseline import History
from finc_eval.results import RESULTS


def relabeled(path, step):
    """Give a file the number of another layout."""
    if path.suffix == ".json":
        data = json.loads(path.read_text())
        path.write_text(json.dumps(data | {"layout": data["layout"] + step}))
        return
    forge(path, lambda header, arrays: None, step)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A sketch, a board and a history of one baseline, in a folder."""
    folder = tmp_path_factory.mktemp("kept")
    gen, ref = example_sets(300)
    fe.Sketch.reference(ref, features=50).save(folder / "sketch.h5")
    fe.Board(folder / "board").add({"a": gen}, ref, metrics=["fd"])
    np.save(folder / "gen.npy", gen[:150])
    policy = {"kinds": {"lose": 0.9, "min_share": 0.1}}
    verdict = fe.gate(folder / "gen.npy", gen[150:], ref, policy)
    History.open(folder / "history").promote(verdict, folder / "gen.npy", reason="the first")
    return folder


FILES = {
    "sketch.h5": ("sketch", fe.load),
    "board/board.json": ("leaderboard-index", lambda path: fe.Board(path.parent).leaderboard()),
    "board/reference.h5": ("leaderboard-reference", lambda path: fe.Board(path.parent).leaderboard()),
    "history/0001/baseline.json": ("baseline", lambda path: History.open(path.parents[1])),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(("step", "version"), [(-1, "an earlier"), (1, "a later")])
def test_a_kept_file_of_another_version_is_refused_in_one_sentence(kept, name, step, version):
    path, (type_name, open_it) = kept / name, FILES[name]
    before = path.read_bytes()
    relabeled(path, step)
    try:
        with pytest.raises(fe.DataError) as caught:
            open_it(path)
    finally:
        path.write_bytes(before)
    check_sentence(str(caught.value), path, version, f"run {MADE_BY[type_name]} again")
    open_it(path)


@pytest.mark.one_of_each("version", "type_name")
@pytest.mark.parametrize("type_name", RESULTS)
@pytest.mark.parametrize(("step", "version"), [(-1, "an earlier"), (1, "a later")])
def test_a_result_of_another_version_is_refused_in_one_sentence(documents, tmp_path, type_name, step, version):
    result = documents[type_name]
    files = [tmp_path / "result.json"]
    result.to_json(files[0])
    if hasattr(result, "save"):
        result.save(tmp_path / "result.h5")
        files.append(tmp_path / "result.h5")
    for path in files:
        relabeled(path, step)
        again = f"run {MADE_BY[type_name]} again" if type_name in MADE_BY else "make it again"
        with pytest.raises(fe.DataError) as caught:
            fe.load(path)
        check_sentence(str(caught.value), path, version, again)


def check_sentence(text, path, version, again):
    assert text.startswith(f"{path} was written by {version} version of finc-eval (it has ")
    assert text.endswith(f"): {again if version == 'an earlier' else 'update finc-eval'}")
    assert "\n" not in text and len(text.removeprefix(str(path)).split()) <= 25


def test_every_command_that_makes_a_file_again_is_there():
    for command in set(MADE_BY.values()):
        _, *words = command.split()
        shown = CliRunner().invoke(app, [*(word for word in words if not word.startswith("--")), "--help"])
        assert shown.exit_code == 0, command
