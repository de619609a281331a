"""An audit that was stopped goes on where it was; its time is told before it begins."""

import os

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.core.digest import sha256_of
from finc_eval.core.run import Run
from finc_eval.embeddings.search.neighbors import Neighbors
from finc_eval.memorization import audit, distances, kept_steps
from finc_eval.memorization.distances import AttackedDistances, SetDistances
from finc_eval.memorization.kept_steps import KeptSteps

pytestmark = pytest.mark.usefixtures("quick_audits")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder of caches of a test."""
    monkeypatch.setenv("FINC_EVAL_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def sets(digits):
    """Three sets of 120 digits."""
    return digits[0][:360].reshape(3, 120, -1)[..., ::8].copy()


def some_distances():
    rng = np.random.default_rng(0)
    near = Neighbors(rng.random((5, 2)), rng.integers(9, size=(5, 2)), 0.96)
    attacked = AttackedDistances(rng.random(4), np.arange(4))
    return SetDistances(near, near._replace(recall=None), attacked, attacked, 1.5)


def test_a_kept_step_is_the_same_and_not_made_again(folder):
    made = some_distances()
    KeptSteps(5000, "key")("gen", SetDistances, lambda: made)
    keep = KeptSteps(5000, "key")
    found = keep("gen", SetDistances, lambda: pytest.fail("it is made again"))
    assert type(found.to_train) is Neighbors and found.radius == 1.5
    assert (found.to_train.recall, found.to_non_members.recall) == (0.96, None)
    assert (found.to_train.indices == made.to_train.indices).all()
    assert (found.members.distances == made.members.distances).all()
    array = keep("hashes", np.ndarray, lambda: np.arange(6, dtype=np.uint8))
    assert (KeptSteps(5000, "key")("hashes", np.ndarray, list) == array).all() and array.dtype == np.uint8
    other = KeptSteps(5000, "other")
    assert other("gen", SetDistances, lambda: made) is made
    keep.remove()
    other.remove()
    assert not [*folder.rglob("*.npz")]


def test_steps_of_the_audits_that_were_stopped_last_are_kept(folder, monkeypatch):
    monkeypatch.setattr(kept_steps, "MOST_AUDITS", 2)
    for number in range(4):
        KeptSteps(5000, str(number))("gen", SetDistances, some_distances)
        (path,) = folder.glob(f"audits-1/{sha256_of(str(number))}")
        os.utime(path, (number, number))
    assert len([*folder.rglob("gen.npz")]) == 2 and path.is_dir()


def test_what_a_kill_left_half_written_stops_no_other_audit(folder, monkeypatch):
    monkeypatch.setattr(kept_steps, "MOST_AUDITS", 1)
    killed, other = (folder / "audits-1" / sha256_of(name) for name in ("killed", "other"))
    killed.mkdir(parents=True)
    (killed / ".gen.npz.4711.tmp").write_bytes(b"half")
    os.utime(killed, (1, 1))
    keep = KeptSteps(5000, "other")
    for name in ("gen", "control"):
        keep(name, SetDistances, some_distances)
    assert not killed.exists() and {path.name for path in other.iterdir()} == {"gen.npz", "control.npz"}
    (other / ".fresh.npz.4711.tmp").write_bytes(b"half")
    keep.remove()
    assert not other.exists()


@pytest.mark.parametrize("damage", [lambda data: data[:-40], lambda data: b"", lambda data: data[:200] + data[210:]])
def test_a_damaged_step_is_made_again(folder, damage):
    KeptSteps(5000, "key")("gen", SetDistances, some_distances)
    (path,) = folder.rglob("gen.npz")
    path.write_bytes(damage(path.read_bytes()))
    again = some_distances()
    assert KeptSteps(5000, "key")("gen", SetDistances, lambda: again) is again


def test_a_stopped_audit_goes_on_with_the_steps_that_it_kept(sets, folder, monkeypatch):
    expected = fe.audit(sets[0], sets[1], sets[2]).to_dict()
    monkeypatch.setattr(kept_steps, "MIN_KEPT_SAMPLES", 100)
    with monkeypatch.context() as stopped:
        stopped.setattr(audit, "holdout_p_value", lambda *_: exec("raise KeyboardInterrupt"))
        with pytest.raises(KeyboardInterrupt):
            fe.audit(sets[0], sets[1], sets[2])
    assert {path.stem for path in folder.rglob("*.npz")} == {"gen", "control", "fresh", "spaced"}
    monkeypatch.setattr(distances, "measure", lambda *_: pytest.fail("it is measured again"))
    result = fe.audit(sets[0], sets[1], sets[2]).to_dict()
    assert {**result, "provenance": None} == {**expected, "provenance": None}
    assert not [*folder.rglob("*.npz")]


def test_the_time_of_an_audit_is_told_with_its_first_stage(sets):
    told = []
    fe.audit(*sets, run=Run(progress=lambda stage, done, total: told.append((stage, stage.part, stage.seconds))))
    assert told[0][0].startswith("1 of 7: ") and told[0][1] < 0.5
    assert len({seconds for _, _, seconds in told}) == 1 and told[0][2] > 0
