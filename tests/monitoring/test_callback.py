"""A monitor never ends a loop: each fault is a warning, and what a tracker missed comes with the next evaluation."""

import copy
import errno
import warnings

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.monitoring.monitor import Monitor

D = 4


class Draw:
    """Samples with new seeds at each call; some calls, by their number, give what is planted."""

    def __init__(self, planted=None):
        self.calls, self.planted = 0, planted or {}

    def __call__(self):
        self.calls += 1
        rows = np.random.default_rng([7, self.calls]).normal(size=(32, D))
        return self.planted.get(self.calls, lambda rows: rows)(rows)


class Kept:
    """A tracker that keeps what it gets, and fails at some of its calls."""

    def __init__(self, fails=(), error=None):
        self.logged, self.calls, self.fails = [], 0, fails
        self.error = error or ConnectionError("no route to host")

    def log(self, values, step=None):
        self.calls += 1
        if self.calls in self.fails:
            raise self.error
        self.logged.append((step, values))


def new_monitor():
    return fe.Monitor(np.random.default_rng(0).normal(size=(120, D)))


def follow(sample, *trackers, steps=(10, 20, 30), **how):
    """Call a callback at each step, and return its monitor and what was told."""
    monitor = new_monitor()
    after_step = fe.MonitorCallback(monitor, sample, *trackers, every=10, **how)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        alarms = [one for step in steps for one in after_step(step)]
    return monitor, alarms, [str(one.message) for one in told]


def broken(count):
    def make(rows):
        rows[:count] = np.nan
        return rows

    return make


def failing(rows):
    yield rows[0]
    raise ZeroDivisionError("of the user")


FAULTS = {  # what the second of three looks gets, and words of the warning
    "nothing": (lambda rows: None, "step 20 has no evaluation"),
    "an empty list": (lambda rows: [], "step 20 has no evaluation: samples is an empty list"),
    "an empty array": (lambda rows: rows[:0], "step 20 has no evaluation: samples must be embeddings of shape (n, d)"),
    "other dimensions": (lambda rows: rows[:, :3], "step 20 has no evaluation: the samples have 3 entries"),
    "another shape": (lambda rows: rows.reshape(-1), "step 20 has no evaluation"),
    "texts": (lambda rows: ["a", "b"], "step 20 has no evaluation"),
    "a path that is not there": (lambda rows: "missing/", "step 20 has no evaluation"),
    "a number": (lambda rows: 3, "step 20 has no evaluation"),
    "complex numbers": (lambda rows: rows * 1j, "step 20 has no evaluation"),
    "an object that fails": (lambda rows: Fails(), "step 20 has no evaluation: RuntimeError: CUDA error"),
    "pictures of floats": (lambda rows: torch.rand(8, 3, 16, 16), "step 20 has no evaluation"),
}


class Fails:
    """An array whose copy to the host fails."""

    shape, ndim, dtype = (32, D), 2, "float32"

    def __array__(self, *_, **__):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")


KINDS = ("empty", "dimensions", "path", "object", "pictures")
"""Words of faults that are unlike others."""


@pytest.mark.one_of_each(by=lambda fault: tuple(word in fault for word in KINDS))
@pytest.mark.parametrize("fault", FAULTS)
def test_a_look_that_fails_is_a_warning_and_the_next_one_is_as_if_it_had_not_been(fault):
    make, words = FAULTS[fault]
    kept = Kept()
    monitor, alarms, told = follow(Draw({2: make}), kept)
    assert monitor.steps == [10, 30] == [step for step, _ in kept.logged] and alarms == []
    assert len(told) == 1 and words in told[0]


def test_a_step_that_comes_again_is_looked_at_once():
    """One global step is called several times where gradients are accumulated."""
    sample, kept = Draw(), Kept()
    monitor, _, told = follow(sample, kept, steps=(9, 10, 10, 10, 11, 20, 20))
    assert monitor.steps == [10, 20] and sample.calls == 2 and len(kept.logged) == 2 and not told


def test_a_step_that_comes_again_after_a_failed_look_is_not_tried_again():
    sample = Draw({1: lambda rows: []})
    monitor, _, told = follow(sample, steps=(10, 10, 20))
    assert monitor.steps == [20] and sample.calls == 2 and len(told) == 1


def test_steps_below_the_last_are_told_once_until_the_training_is_beyond_it():
    sample = Draw()
    monitor, _, told = follow(sample, steps=(10, 20, 30, 10, 20, 30, 40, 20, 50))
    assert monitor.steps == [10, 20, 30, 40, 50] and sample.calls == 5
    assert [one.partition(",")[0] for one in told] == ["step 10 comes after step 30", "step 20 comes after step 40"]


def test_a_monitor_that_was_loaded_goes_on_beyond_its_last_step(tmp_path):
    monitor, _, _ = follow(Draw(), save=tmp_path / "monitor.h5")
    after_step = fe.MonitorCallback(fe.Monitor.load(tmp_path / "monitor.h5"), Draw({}), every=10)
    after_step.sample.calls = 100
    with pytest.warns(UserWarning, match="step 20 comes after step 30"):
        after_step(20)
    assert after_step(30) == []
    after_step(40)
    assert after_step.monitor.steps == [*monitor.steps, 40]


@pytest.mark.parametrize("step", [None, "ten", float("nan"), [10]])
def test_what_is_not_a_step_is_a_warning(step):
    monitor, _, told = follow(Draw(), steps=(10, step, 20))
    assert monitor.steps == [10, 20] and len(told) == 1 and "step must be a number" in told[0]


@pytest.mark.parametrize("step", [torch.tensor(10), np.int64(10), 10.0])
def test_steps_have_the_types_that_trainers_give_them(step):
    assert follow(Draw(), steps=(step, step))[0].steps == [10]


def test_samples_that_are_not_finite_are_an_alarm_and_not_the_end():
    kept = Kept()
    monitor, alarms, told = follow(Draw({2: broken(3), 3: broken(32)}), kept, steps=(10, 20, 30, 40))
    assert [one.text for one in alarms] == [
        "since step 20: samples are not finite (NaN or Inf), and are left out: 3 of 32"
    ]
    assert monitor.steps == [10, 20, 40] and monitor.result.samples == (32, 29, 32)
    assert len(told) == 2 and "32 of 32 samples are not finite" in told[1]
    assert "not finite" in kept.logged[1][1]["course/headline"]


def test_an_alarm_without_a_look_reaches_the_tracker():
    kept = Kept()
    follow(Draw({1: broken(32)}), kept, steps=(10, 20))
    assert [step for step, _ in kept.logged] == [10, 20]
    assert [*kept.logged[0][1]] == ["course/headline"] and "32 of 32" in kept.logged[0][1]["course/headline"]


def test_a_look_that_is_left_out_as_copies_reaches_the_tracker():
    rows, kept = np.random.default_rng(0).normal(size=(120, D)), Kept()
    follow(Draw({2: lambda _: rows[:32]}), kept, steps=(10, 20))
    assert [step for step, _ in kept.logged] == [10, 20]
    assert kept.logged[1][1]["course/headline"].startswith("32 of 32 samples of step 20 are also in the reference")


ERRORS = [
    ConnectionError("no route to host"),
    TimeoutError("timed out"),
    OSError(errno.ENOSPC, "No space left on device"),
    fe.UsageError("of a tracker"),
]


@pytest.mark.one_of_each
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_tracker_that_fails_is_a_warning_and_gets_what_it_missed_with_the_next_look(error):
    failed, well = Kept(fails=(2, 3), error=error), Kept()
    monitor, _, told = follow(Draw(), failed, well, steps=(10, 20, 30, 40, 50))
    steps = [10, 20, 30, 40, 50]
    assert [step for step, _ in failed.logged] == [step for step, _ in well.logged] == monitor.steps == steps
    assert len(told) == 2 and all("will be logged with the next" in one and str(error) in one for one in told)
    for (_, late), (_, soon) in zip(failed.logged, well.logged, strict=True):
        assert {key: late[key] for key in late if "headline" not in key} == {
            key: soon[key] for key in soon if "headline" not in key
        }


def test_a_tracker_that_always_fails_ends_nothing():
    monitor, _, told = follow(Draw(), Kept(fails=range(99)), steps=range(0, 60, 10))
    assert len(monitor.steps) == len(told) == 6


def test_what_cannot_be_saved_is_a_warning_and_the_file_before_stays(tmp_path, monkeypatch):
    path, save = tmp_path / "monitor.h5", Monitor.save

    def full(self, to):
        if self.steps[-1] == 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        save(self, to)

    monkeypatch.setattr(Monitor, "save", full)
    monitor, _, told = follow(Draw(), save=path, steps=(10, 20))
    assert len(told) == 1 and "was not saved to" in told[0] and "No space left" in told[0]
    assert monitor.steps == [10, 20] and fe.Monitor.load(path).steps == [10]


def test_errors_of_the_users_own_function_are_raised():
    def fails():
        raise ZeroDivisionError("of the user")

    after_step = fe.MonitorCallback(new_monitor(), fails, every=10)
    with pytest.raises(ZeroDivisionError, match="of the user"):
        after_step(10)
    lazily = fe.MonitorCallback(
        fe.Monitor([np.full((8, 8, 3), one, np.uint8) for one in range(60)], extractor=fe.Extraction("pixels", n=60)),
        lambda: failing([np.zeros((8, 8, 3), np.uint8)]),
        every=10,
    )
    with pytest.raises(ZeroDivisionError, match="of the user"):
        lazily(10)
    after_step.sample = Draw()
    after_step(10)
    assert after_step.monitor.steps == [10]  # the step was not looked at before


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_who_interrupts_is_heard(interruption):
    with pytest.raises(interruption):
        follow(Draw(), Kept(fails=(1,), error=interruption()))


def test_mistakes_of_the_call_are_said_before_the_training():
    for wrong, words in (({"every": 0}, "every must be"), ({"every": 2.5}, "every must be")):
        with pytest.raises(fe.UsageError, match=words):
            fe.MonitorCallback(new_monitor(), Draw(), **wrong)
    for tracker in (None, [], "wandb"):
        with pytest.raises(fe.UsageError, match="is not a tracker"):
            fe.MonitorCallback(new_monitor(), Draw(), tracker)
    for samples in (Draw()(), "generated/", None):
        with pytest.raises(fe.UsageError, match="sample must be a function"):
            fe.MonitorCallback(new_monitor(), samples)
    for monitor in (fe.Monitor, Draw(), None):
        with pytest.raises(fe.UsageError, match="monitor must be a Monitor"):
            fe.MonitorCallback(monitor, Draw())


def test_a_look_that_fails_half_way_leaves_the_monitor_as_it_was(monkeypatch):
    from finc_eval.monitoring import evaluations

    monitor = new_monitor()
    after_step = fe.MonitorCallback(monitor, Draw(), every=10)
    before = copy.deepcopy({name: one for name, one in vars(monitor.history).items() if name != "classifiers"})
    monkeypatch.setattr(evaluations, "squared_distance", lambda *_: 1 / 0)
    with pytest.warns(UserWarning, match="step 10 has no evaluation: ZeroDivisionError"):
        after_step(10)
    assert all(np.array_equal(getattr(monitor.history, name), one, equal_nan=True) for name, one in before.items())
    assert monitor.history.classifiers.unlike.count == 0
    assert monitor.alarms == [] and monitor.steps == []
