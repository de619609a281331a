"""Pictures that are not those that were embedded: their pairs are left out and named, and all others are measured."""

from itertools import product

import numpy as np
import pytest
from _runs_of_scenes import judge_pairs, noise, scenes
from PIL import Image

import finc_eval as fe
from finc_eval.core.errors import DataError
from finc_eval.same_ids import kept, pairs

N = 24
OLD = scenes(N)


@pytest.fixture(autouse=True)
def own_caches(monkeypatch, tmp_path):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "caches"))


def embedded(folder, pictures):
    """Save pictures as files, and return the path of their embeddings."""
    folder.mkdir()
    for row, one in enumerate(pictures):
        Image.fromarray(one).save(folder / f"{row:04d}.png")
    fe.extract(str(folder), "pixels", out=f"{folder}.h5")
    return f"{folder}.h5"


def compare(gen, ref, **options):
    return judge_pairs(gen, ref, **options)


def change(path):
    Image.fromarray(OLD[0]).save(path)


DAMAGES = {
    "another picture": change,
    "gone": lambda path: path.unlink(),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:100]),
}


def test_pairs_of_changed_files_are_left_out_and_named_and_all_others_are_measured(tmp_path):
    """Each damage in a file of each side."""
    new = noise(OLD, 2)
    new[9] = new[9] * 0
    gen, ref = embedded(tmp_path / "gen", new), embedded(tmp_path / "ref", OLD)
    whole, rows = compare(gen, ref), (3, 5, 7, 12, 16, 23)
    for row, (side, damage) in zip(rows, product(("gen", "ref"), DAMAGES.values()), strict=True):
        damage(tmp_path / side / f"{row:04d}.png")
    found = compare(gen, ref)
    assert found.unread == tuple(f"{row:04d}.png" for row in rows)
    assert "6 further pairs are left out" in found.sentences["changed"]
    assert (found.n, found.broken, found.reasons) == (N - 6, ["0009.png"], {"0009.png": "black"})
    others = ~np.isin(whole.ids, found.unread)
    for name, values in found.measured.items():
        if name != "distance":  # in parts of a median over all pairs
            assert values == pytest.approx(np.array(whole.measured[name])[others])


def test_what_was_not_measured_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "TOGETHER", 20)
    gen, ref = embedded(tmp_path / "gen", noise(OLD, 2)), embedded(tmp_path / "ref", OLD)
    path = tmp_path / "gen" / "0003.png"
    before = path.read_bytes()
    change(path)
    assert compare(gen, ref).unread == ("0003.png",)
    path.write_bytes(before)
    assert compare(gen, ref).unread == ()


def left_out(found):
    return (found.verdict, found.unread, found.broken)


def test_a_run_with_pairs_that_cannot_be_read_is_not_clean_and_no_gate_passes_it(tmp_path):
    gen, ref = embedded(tmp_path / "gen", noise(OLD, 2)), embedded(tmp_path / "ref", OLD)
    assert left_out(compare(gen, ref)) == ("clean", (), [])
    limits = {"by_id": {"broken": 3, "worse": 0}}
    third = embedded(tmp_path / "third", noise(OLD, 1, 5))
    change(tmp_path / "gen" / "0003.png")
    found = compare(gen, ref)
    assert left_out(found) == ("undecided", ("0003.png",), [])
    assert found.sentences["verdict"] == f"Undecided: 1 of {N} pairs cannot be read as embedded."
    verdict = fe.gate(gen, ref, third, limits)
    assert (verdict.overall, verdict.exit_code) == ("undecided", 2)
    assert {one.rule: one.verdict for one in verdict.limits} == {"by_id.broken": "undecided", "by_id.worse": "held"}


def test_where_many_pairs_cannot_be_read_nothing_is_said_to_be_as_good(tmp_path):
    gen, ref = embedded(tmp_path / "gen", noise(OLD, 2)), embedded(tmp_path / "ref", OLD)
    assert compare(gen, ref).not_worse
    for row in range(8, 20):
        (tmp_path / "gen" / f"{row:04d}.png").unlink()
    found = compare(gen, ref)
    assert (found.verdict, len(found.unread), found.not_worse) == ("undecided", 12, [])


def test_pictures_that_cannot_be_read_come_first_and_the_others_are_measured_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(pairs, "READ_TOGETHER", 10)
    gen, ref = embedded(tmp_path / "gen", noise(OLD, 2)), embedded(tmp_path / "ref", OLD)
    for row in range(12):  # more than are read together
        (tmp_path / "gen" / f"{row:04d}.png").unlink()
    found = compare(gen, ref)
    assert (found.verdict, len(found.unread), found.n) == ("undecided", 12, N - 12)
    assert "mse" in found.measured


def test_a_changed_file_of_a_further_run_leaves_the_floor_without_its_pair(tmp_path):
    gen, ref = embedded(tmp_path / "gen", noise(OLD, 2)), embedded(tmp_path / "ref", OLD)
    again = [embedded(tmp_path / name, noise(OLD, 1, seed)) for name, seed in (("one", 5), ("two", 6))]
    change(tmp_path / "one" / "0003.png")
    found = compare(gen, ref, again=again)
    assert (found.n, found.unread, found.broken) == (N, (), [])
    assert found.changed > 0.95


def test_a_further_run_without_pictures_is_refused_where_the_others_have_them(tmp_path):
    gen, ref, again = (embedded(tmp_path / name, noise(OLD, 1, seed)) for seed, name in enumerate(("a", "b", "c")))
    for one in (tmp_path / "c").iterdir():
        one.unlink()
    with pytest.raises(DataError, match="the pictures of a run in again are not at hand"):
        compare(gen, ref, again=[again])
    for one in (tmp_path / "a").iterdir():
        one.unlink()
    assert [*compare(gen, ref, again=[again]).measured] == ["distance"]
