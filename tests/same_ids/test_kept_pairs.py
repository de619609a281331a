"""Measured pairs are kept by the content of their pictures: a stopped run goes on, and shards add."""

import numpy as np
import pytest
from _runs_of_scenes import judge_pairs
from PIL import Image

import finc_eval as fe
from finc_eval.naming import measured
from finc_eval.same_ids import kept, pair_looks, pairs
from finc_eval.same_ids.kept import KeptPairs, folder_of_pairs

N = 60


class StoppedError(Exception):
    """End of a run that was killed."""


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "caches"))
    monkeypatch.setattr(kept, "TOGETHER", 20)
    monkeypatch.setattr(pairs, "READ_TOGETHER", 10)


@pytest.fixture
def counted(monkeypatch):
    """Sizes of the batches that were measured."""
    sizes, measure = [], pairs.measure_pictures
    monkeypatch.setattr(pairs, "measure_pictures", lambda *both: (sizes.append(len(both[0])), measure(*both))[1])
    return sizes


def run_of(seed, chosen=range(N)):
    images = np.random.default_rng(0).integers(0, 256, (N, 16, 16, 3))
    own = np.clip(images + np.random.default_rng(seed).integers(-4, 5, images.shape), 0, 255).astype(np.uint8)
    rows = own.reshape(N, -1)[:, :12].astype(np.float32)
    chosen = list(chosen)
    return fe.EmbeddingSet(
        rows[chosen], ids=[f"{one}.png" for one in chosen], images=[Image.fromarray(own[one]) for one in chosen]
    )


def compare(new, old, **options):
    return judge_pairs(new, old, **options)


def test_a_run_that_was_stopped_goes_on_and_says_the_same(counted):
    def stop(stage, done, total):
        if stage == pairs.PAIRS and done >= 40:
            raise StoppedError

    with pytest.raises(StoppedError):
        compare(run_of(1), run_of(2), run=fe.Run(progress=stop))
    assert sum(counted) == 40
    again = compare(run_of(1), run_of(2))
    assert sum(counted) == 40 + 20
    for path in folder_of_pairs().iterdir():
        path.unlink()
    assert compare(run_of(1), run_of(2)).to_dict() == again.to_dict()
    assert sum(counted) == 60 + N


def test_looks_are_of_pairs_drawn_by_their_ids_so_that_shards_add(monkeypatch):
    sizes, measure = [], pair_looks.measure_looks
    monkeypatch.setattr(pair_looks, "measure_looks", lambda images: (sizes.append(len(images)), measure(images))[1])
    monkeypatch.setattr(pair_looks.PairLooks, "take", lambda *_: None)  # they are measured for the pairs alone
    monkeypatch.setattr(measured, "LOOKED", 20)
    for part in (range(30), range(30, N)):
        assert compare(run_of(1, part), run_of(2, part)).n == 30
    assert sum(sizes) == 2 * (20 + 20)
    whole = compare(run_of(1), run_of(2))
    assert sum(sizes) == 2 * (20 + 20)
    assert any(one.what == "look" for one in [*whole.worse, *whole.not_worse, *whole.undecided])


def test_shards_add_whatever_their_order(counted):
    for part in (range(0, N, 2), range(1, N, 2)):
        compare(run_of(1, reversed(part)), run_of(2, part))
    measured = sum(counted)
    whole = compare(run_of(1), run_of(2))
    assert sum(counted) == measured == N
    assert len(whole.table["id"]) == N


def damage(path, how):
    data = path.read_bytes()
    if how == "another layout":
        np.savez(path, names=np.array(["mse"]), keys=np.zeros((3, 2), np.uint64), values=np.zeros((3, 1)))
    else:
        flipped = data[:900] + bytes([data[900] ^ 1]) + data[901:]
        path.write_bytes({"cut": data[:-400], "text": b"no archive", "one byte": flipped}[how])


def test_a_damaged_file_is_measured_again(counted):
    first = compare(run_of(1), run_of(2))
    for times, how in enumerate(("cut", "text", "another layout", "one byte"), 2):
        for path in folder_of_pairs().iterdir():
            damage(path, how)
        assert compare(run_of(1), run_of(2)).to_dict() == first.to_dict(), how
        assert sum(counted) == times * N, how


def test_another_picture_of_the_same_id_is_measured(counted):
    compare(run_of(1), run_of(2))
    compare(run_of(3), run_of(2))
    assert sum(counted) == 2 * N


def test_a_set_of_few_pairs_keeps_nothing(monkeypatch):
    monkeypatch.setattr(kept, "TOGETHER", N + 1)
    compare(run_of(1), run_of(2))
    assert not folder_of_pairs().exists()


def test_a_folder_that_cannot_be_written_is_a_warning(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="measured pairs are not kept"):
        compare(run_of(1), run_of(2))


def test_equal_pairs_of_one_set_share_what_is_measured():
    keys = np.array([[1, 2], [3, 4], [1, 2]], np.uint64).repeat(20, 0)
    first = KeptPairs(keys, 60, ["mse"])
    first.add(np.arange(60), np.arange(60.0)[:, None])
    second = KeptPairs(keys, 60, ["mse"])
    assert len(second.missing) == 0
    assert second.values[0] == second.values[45]


WRONG = {
    "one number": {"values": np.array(5.0)},
    "texts": {"values": np.array([["a"]] * 3)},
    "fewer values": {"values": np.zeros((2, 1))},
    "whole numbers": {"values": np.zeros((3, 1), int)},
    "keys of another type": {"keys": np.zeros((3, 2))},
    "keys that are one": {"keys": np.array(7, np.uint64)},
    "names that are numbers": {"names": np.array([1])},
    "other names": {"names": np.array(["y"])},
    "objects": {"values": np.array([[None]] * 3, object)},
    "nothing": {},
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_among_the_kept_pairs_is_passed_over(case):
    folder = folder_of_pairs()
    folder.mkdir(parents=True)
    whole = {"names": np.array(["x"]), "keys": np.zeros((3, 2), np.uint64), "values": np.zeros((3, 1))}
    keys = np.arange(60, dtype=np.uint64).reshape(30, 2)
    np.savez(folder / "a.npz", **(whole | WRONG[case] if WRONG[case] else {}))
    (folder / "b.npz").write_bytes(b"not a zip")
    np.savez(folder / "z.npz", **(whole | {"keys": keys[:3]}))
    assert KeptPairs(keys, 30, ["x"]).missing.tolist() == list(range(3, 30))
