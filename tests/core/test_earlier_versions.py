"""Files of other versions of finc-eval: read for one release, or refused in one sentence that says what to run."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from _files import forge
from typer.testing import CliRunner

import finc_eval as fe
from finc_eval.cli.app import app
from finc_eval.core.files.file_types import MADE_BY
from finc_eval.demo import example_sets
from finc_eval.embeddings.writer import with_columns
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
    gen, ref = (rows[:, ::8] for rows in example_sets(300))
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


EARLIER = Path(__file__).parent / "earlier"
"""Files that finc-eval wrote at 7d9bb1d8, before its files became plain HDF5: they are read for one more release."""


def check_earlier_cache(path):
    with fe.EmbeddingCache(path) as cache:
        rows = (np.arange(70) / 4).reshape(10, 7)[[row for row in range(10) if row != 2]]
        np.testing.assert_array_equal(cache, rows[:, :5])
        np.testing.assert_array_equal(cache.output("logits"), rows[:, 5:])
        np.testing.assert_array_equal(cache[[7, 0]], rows[[7, 0], :5])
        assert cache.ids == [f"{row:03}.png" for row in range(9) if row != 2] + ["\udcff.png"]
        assert (cache.labels, cache.column("a.b/c")[0], cache.content.tolist()[-1]) == ([*"abdefghij"], "é", 9)
        assert (cache.failures, cache.extractor, cache.damage()) == ([("002.png", "no image")], "pixels", None)


CHECKS = {
    "cache.h5": check_earlier_cache,
    "sketch.h5": lambda path: fe.Sketch.load(path).n == 60 or pytest.fail("another sketch"),
    "private_sketch.h5": lambda path: fe.privacy.PrivateSketch.load(path).m > 0 or pytest.fail("another sketch"),
    "models.h5": lambda path: fe.kahm.load_models(path).classes == ("0", "é") or pytest.fail("other models"),
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_file_of_the_layout_before_is_read(tmp_path, name):
    shutil.copy(EARLIER / name, tmp_path / name)
    CHECKS[name](tmp_path / name)


@pytest.mark.parametrize("name", CHECKS)
def test_damage_of_a_file_of_the_layout_before_is_found(tmp_path, name):
    whole = (EARLIER / name).read_bytes()
    rng, found = np.random.default_rng(0), 0
    for number in range(30):
        data = bytearray(whole)
        if number % 3:
            data[rng.integers(100 if number % 3 == 1 else 512, len(data))] ^= 1 << int(rng.integers(8))
        else:
            del data[rng.integers(len(data)) :]
        (tmp_path / name).write_bytes(data)
        try:
            CHECKS[name](tmp_path / name)
        except fe.DataError as error:
            found += 1
            assert "\n" not in str(error) and str(tmp_path / name) in str(error)
    assert found >= 10


def test_columns_on_a_cache_of_the_layout_before_make_a_file_of_this_one(tmp_path):
    shutil.copy(EARLIER / "cache.h5", tmp_path / "cache.h5")
    with fe.EmbeddingCache(tmp_path / "cache.h5") as cache:
        with_columns(cache, {"more": [*"123456789"]}).close()
    assert (tmp_path / "cache.h5").read_bytes().startswith(b"\x89HDF")
    with fe.EmbeddingCache(tmp_path / "cache.h5") as cache:
        assert cache.columns == ("label", "a.b/c", "more") and cache.column("more") == [*"123456789"]
    check_earlier_cache(tmp_path / "cache.h5")
