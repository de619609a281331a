"""Copies of the reference or of the training set: seen at once, exact or near, and never in the step to keep."""

import copy

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.embeddings.opening import open_embeddings
from finc_eval.monitoring.evidence.copies import PROJECTED, Originals

D, CHANGE = 12, 4
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # exact copies are left out, with a warning


def draw(seed, n=64):
    return np.random.default_rng(seed).normal(size=(n, D)).astype(np.float32)


REFERENCE, TRAIN = draw(1, 300), draw(2, 400)


def copied(rng, originals, count, noise):
    rows = originals[rng.choice(len(originals), count, replace=False)]
    return rows + noise * rng.normal(size=rows.shape).astype(np.float32)


@pytest.fixture(scope="module")
def monitors():
    return {"reference": fe.Monitor(REFERENCE), "training set": fe.Monitor(REFERENCE, train=TRAIN)}


@pytest.mark.parametrize("noise", [0, 0.05], ids=["exact", "near"])
@pytest.mark.parametrize("of", ["reference", "training set"])
def test_copies_have_an_alarm_with_their_share_and_no_step_with_them_is_kept(monitors, of, noise):
    monitor, rng = copy.deepcopy(monitors[of]), np.random.default_rng(3)
    originals = REFERENCE if of == "reference" else TRAIN
    for step in range(10):
        rows = draw(100 + step)
        if step >= CHANGE:
            rows[:20] = copied(rng, originals, 20, noise)
        monitor.update(step, rows)
    alarm = next(one for one in monitor.alarms if one.name == "copies")
    assert alarm.since == CHANGE and alarm.step <= CHANGE + 2 and f"copies of the {of}" in alarm.text
    # Held-out samples of the reference are no originals: near copies of these are not seen.
    least = 20 / 64 * (1 if noise == 0 or of == "training set" else 2 / 3) - 0.08
    assert least < alarm.after < 20 / 64 + 0.08 and alarm.before < 0.05
    assert monitor.keep is not None and monitor.keep < CHANGE and "it copies" in monitor.result.why
    found = monitor.findings[0]
    assert (found.kind, found.name) == ("copy", f"copies of the {of}") and found.text == alarm.text
    assert next(iter(monitor.result.says)) == "copies" and "No alarm" not in monitor.result.headline


def test_a_training_set_that_holds_the_reference_leaves_its_held_out_samples_out():
    monitor = fe.Monitor(REFERENCE, train=np.concatenate([REFERENCE, TRAIN]))
    for step in range(8):
        monitor.update(step, draw(200 + step))
    assert monitor.alarms == [] and len(monitor.basis.originals.rows) == 600


def test_a_training_set_of_another_extractor_is_refused_in_a_sentence():
    with pytest.raises(fe.IncompatibleError, match="training set has 4 entries per embedding, and the reference 12"):
        fe.Monitor(REFERENCE, train=TRAIN[:, :4])


@pytest.mark.parametrize("spread", [0.3, 0.7])
def test_samples_of_a_dense_part_of_the_law_are_no_copies(spread):
    """Half of the samples lie closely together: a generator that makes more of these copies nothing."""
    rng = np.random.default_rng(4)

    def drawn(n, dense):
        rows = rng.normal(size=(n, D)).astype(np.float32)
        rows[: int(dense * n)] *= spread
        return rows

    monitor = fe.Monitor(drawn(300, 0.5))
    for step in range(8):
        monitor.update(step, drawn(64, 1.0))
    assert all(alarm.name != "copies" for alarm in monitor.alarms)


def test_near_samples_of_held_out_and_new_samples_are_as_many():
    """The rate of one law: of 600 new samples in 4 dimensions, as many are near an original as of 600 held-out ones."""
    rng = np.random.default_rng(5)
    rates = []
    for _ in range(20):
        rows = rng.normal(size=(160, 4)).astype(np.float32)
        originals = open_embeddings({"a": rows[:100]}, None, Run(), ())["a"]
        held = open_embeddings({"a": rows[100:130]}, None, Run(), ())["a"].rows_at(np.arange(30))
        found = Originals.of(originals, held, 0, Run(), is_train=False)
        new = open_embeddings({"a": rows[130:]}, None, Run(), ())["a"].rows_at(np.arange(30))
        rates.append((found.are_near(held).mean(), found.are_near(new).mean()))
    held, new = np.mean(rates, 0)
    assert 0.01 < held < 0.3 and abs(held - new) < 4 * np.sqrt(2 * held / 600)


def test_rows_of_many_entries_are_projected_and_come_back_from_a_file(tmp_path):
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(120, 2 * PROJECTED)).astype(np.float32)
    monitor = fe.Monitor(rows)
    monitor.save(tmp_path / "monitor.h5")
    again = fe.Monitor.load(tmp_path / "monitor.h5").basis.originals
    originals = monitor.basis.originals
    assert originals.rows.shape == (80, PROJECTED) and again.rows.equal(originals.rows)
    every = open_embeddings({"a": rows}, None, Run(), ())["a"].rows_at(np.arange(120))
    assert originals.are_near(every).sum() == again.are_near(every).sum() == 80
