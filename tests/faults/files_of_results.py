"""Files of results, boards, gates and monitors: how each is made, opened and used."""

import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from faults.content import N, numbers, pictures, sets

import finc_eval as fe
from finc_eval.gates.baseline import History
from finc_eval.gates.policy import Policy
from finc_eval.leaderboards.entry import ENTRY
from finc_eval.leaderboards.reference import BoardReference


@cache
def comparison():
    """Return a comparison, which is made once for all kinds of its files."""
    return fe.compare(*sets(), features=15, sigma=2.0, modes=2)


def make_comparison(path):
    comparison().save(path)
    path.with_suffix(".json").unlink()


def make_methods(path):
    images = np.random.default_rng(0).integers(0, 256, (N, 6, 6, 3), dtype=np.uint8)
    gen, ref = (fe.EmbeddingSet(rows, images=images) for rows in sets())
    fe.compare_methods(gen, ref, ["finc"], features=15, sigma=2.0, modes=2).showing(2).save(path)
    path.with_suffix(".json").unlink()


def use_pictured(path):
    found = fe.load(path)
    page = found.to_html(path.with_suffix(".html"))
    return found.to_json(), page.read_text()


def use_comparison(path):
    found = fe.load(path)
    assert isinstance(found, fe.Comparison)
    if found.feature_map.dim == 6:
        found.score(sets()[0])
    page = found.to_html(path.with_suffix(".html"))
    return found.to_json(), [mode.direction.tolist() for mode in found.directions], page.read_text()


def make_result(path):
    comparison().to_json(path)


def make_scores(path):
    fe.metrics(*sets(), ["fid", "mmd"]).to_json(path)


def make_audit(path):
    fe.audit(numbers(200), numbers(200, seed=1), numbers(200, seed=2), pairs=5).to_json(path)


def use_result(path):
    found = fe.load(path)
    found.to_html(path.with_suffix(".html"))
    return found.to_json(), repr(found)


@cache
def files_of_a_board():
    """Return the bytes of the files of a board of two models, which is made once for all kinds of its files."""
    gen, ref = sets()
    with TemporaryDirectory() as folder:
        fe.Board(folder).add({"gen": gen, "other": ref[:40]}, ref, metrics=("kid",))
        return {path.relative_to(folder): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def small_board(path):
    """A board of two models in a folder beside this path."""
    folder = path.with_suffix(".board")
    for name, content in files_of_a_board().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return fe.Board(folder)


def made_part(path, name):
    shutil.copy(small_board(path).folder / name, path)
    shutil.rmtree(path.with_suffix(".board"))


def use_entry(path):
    entry, _ = ENTRY.read(path)
    tallies = [run.tally.effective().members.tolist() for run in entry.runs]
    return ENTRY.text(entry), tallies, [run.measures["kid"].estimate() is not None for run in entry.runs]


def use_reference(path):
    found = BoardReference.load(path)
    return str(found.signature), found.tally.members.tolist(), found.examples, found.settings, found.kinds.digest


def make_index(path):
    made_part(path, "board.json")


def use_index(path):
    board = path.with_suffix(".board")
    if not board.exists():
        small_board(path)
    shutil.copy(path, board / "board.json")
    return fe.Board(board).leaderboard().to_json()


GOLDEN = {"a": np.random.default_rng(0).integers(0, 256, (16, 16, 3), np.uint8)}


def make_floor(path):
    for _ in range(3):
        fe.Golden(path).add(GOLDEN, GOLDEN)


def use_floor(path):
    copy = path.with_suffix(".copy")
    shutil.copy(path, copy)
    night = fe.Golden(copy).add(GOLDEN, GOLDEN)
    return [(one.id, one.shows, one.known) for one in night.pairs], night.sentence


def make_leaderboard(path):
    small_board(path).leaderboard().to_json(path)
    shutil.rmtree(path.with_suffix(".board"))


def make_evaluation(path):
    fe.evaluate(*sets(), features=15).to_json(path)


POLICY = {"kinds": {"lose": 0.5, "new": 0.02}, "metrics": {"kid": {"worse": 0.1, "most": 2.0}}}


def make_verdict(path):
    fe.gate(sets()[0], numbers(seed=2), sets()[1], POLICY).to_json(path)


def make_policy(path):
    path.write_text(
        'alpha = 0.05\nkinds.lose = 0.5\nkinds.new = 0.02\nkinds.min_share = "auto"\nmetrics.kid.worse = "noise"\n'
        '[slices.cats]\ncolumn = "label"\nonly = ["cat"]\nkinds.lose = 0.5\n'
    )


def use_policy(path):
    return Policy.of(path)


def make_bundle(path):
    history = History.open(path.with_suffix(".history"))
    gen, ref = sets()
    verdict = fe.gate(gen, history.folder, ref, POLICY, first=True)
    history.promote(verdict, gen, reason="the first")
    shutil.copy(history.folder / "0001" / "baseline.json", path)


def use_bundle(path):
    """A history with a damaged file."""
    folder = path.with_suffix(".history")
    shutil.copytree(path.parent.parent / "valid" / folder.name, folder, dirs_exist_ok=True)
    shutil.copy(path, folder / "0001" / "baseline.json")
    return History.open(folder).latest.checksum


def make_kinds(path):
    fe.kinds(dict(zip(("gen", "ref"), sets(), strict=True))).save(path)


def use_kinds(path):
    found = fe.load(path)
    assert not isinstance(found, fe.Comparison)
    if len(found.divided.tree.axes.origin) == 6:
        found.assign(sets()[0])
        found.count(dict(zip(("gen", "ref"), sets(), strict=True)))
    found.to_html(path.with_suffix(".html"))
    return found.to_json(), found.shares, found.difference


def make_monitor(path):
    monitor = fe.Monitor(fe.EmbeddingSet(sets()[0], images=[*pictures(N)]))
    monitor.update(1, fe.EmbeddingSet(sets()[1], images=[*pictures(N)]))
    monitor.save(path)


def use_monitor(path):
    monitor = fe.Monitor.load(path)
    if monitor.basis.dim == 6:
        monitor.update(max(monitor.steps, default=0) + 1, sets()[0])
    monitor.to_html(path.with_suffix(".html"))
    return monitor.alarms, monitor.history.scores.tobytes(), monitor.names, monitor.result.keep
