"""Results in trackers: each of the real packages, offline, read back by its own reader where it has one."""

import logging
import re
import textwrap
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from _loops import looks_in_tensorboard, looks_in_wandb, needed

import finc_eval as fe
from finc_eval.demo import example_sets


@pytest.fixture(scope="module")
def course():
    rng = np.random.default_rng(0)

    def look(spread):
        pixels = rng.integers(0, 256, (64, 8, 8, 3), dtype=np.uint8)
        return fe.EmbeddingSet(spread * rng.normal(size=(64, 6)), images=[*pixels])

    monitor = fe.Monitor(rng.normal(size=(300, 6)))
    for step in (10, 20, 30, 40):
        monitor.update(step, look(0.5))
    return monitor.result


def value_of(course, name):
    return next(one.values[-1] for one in course.followed if one.name == name)


class Kept:
    """A tracker that keeps what it gets."""

    def __init__(self):
        self.logged = []

    def log(self, values, step=None):
        self.logged.append((step, values))


def test_a_course_is_logged_with_its_last_look(course):
    kept = Kept()
    fe.log_to(kept, course)
    ((step, values),) = kept.logged
    assert step == 40 and values["course/diversity"] == value_of(course, "diversity")
    assert "samples are less diverse" in values["course/headline"]


def test_every_type_of_result_can_be_logged(documents):
    for name, result in documents.items():
        if name == "sketch":
            continue
        kept = Kept()
        fe.log_to(kept, result, step=7)
        ((step, values),) = kept.logged
        assert step == 7 or name in ("course", "trainings"), name
        assert values[f"{name}/headline"] == result.headline
        assert sum(isinstance(one, float) for one in values.values()) > 0, name


def test_a_callback_looks_now_and_then_and_logs():
    rng, kept = np.random.default_rng(1), Kept()
    monitor = fe.Monitor(rng.normal(size=(100, 4)))
    after_step = fe.MonitorCallback(monitor, lambda: rng.normal(size=(32, 4)), kept, every=10)
    for step in range(25):
        after_step(step)
    assert [step for step, _ in kept.logged] == monitor.steps == [0, 10, 20]


def test_a_callback_knows_the_prompts_of_its_samples():
    rng, prompts = np.random.default_rng(1), [f"prompt {one // 4}" for one in range(32)]
    monitor = fe.Monitor(rng.normal(size=(100, 4)))
    fe.MonitorCallback(monitor, lambda: rng.normal(size=(32, 4)), prompts=prompts)(0)
    assert value_of(monitor.result, "diversity within prompts") > 0


class Clocked:
    """A run with the rule of W&B: a step below its own is dropped, and each row without a step moves its own on."""

    def __init__(self):
        self.step, self.rows, self.clocks = 0, [], {}

    def define_metric(self, name, step_metric=None):
        self.clocks[name] = step_metric

    def log(self, values, step=None):
        if step is None or step >= self.step:
            self.rows.append(values)
            self.step = self.step + 1 if step is None else step


EVERY, LAST = 10, 60


def loop(*trackers, log):
    """A loop that logs twice a step, whose own clock is ahead of the steps, and a look at each tenth step."""
    rng = np.random.default_rng(1)
    monitor = fe.Monitor(rng.normal(size=(100, 4)))
    after_step = fe.MonitorCallback(monitor, lambda: rng.normal(size=(32, 4)), *trackers, every=EVERY)
    for step in range(0, LAST + 1, 5):
        log({"loss": 1.0}, step)
        log({"lr": 0.1}, step)
        after_step(step)
    assert monitor.steps == LOOKED
    return monitor


LOOKED = [*range(0, LAST + 1, EVERY)]


def test_looks_arrive_in_a_run_whose_own_step_is_ahead():
    run = Clocked()
    loop(run, log=lambda values, step: run.log(values))
    assert [row["course/step"] for row in run.rows if "course/diversity" in row] == LOOKED
    assert run.clocks == {"course/step": None, "course/*": "course/step"}


def test_the_trainer_of_the_docs_follows_a_run_that_begins_later():
    """The example of docs/monitor_loops.md, with stand-ins of the packages; `make loops` has the packages."""
    page = (Path(__file__).parents[2] / "docs" / "monitor_loops.md").read_text()
    (example,) = re.findall(r"^    class Watch\(.*?wandb, every=50\)\)\)$", page, re.M | re.S)
    rng, added, wandb = np.random.default_rng(1), [], ModuleType("wandb")
    wandb.run, wandb.log = None, lambda values, step=None: None
    exec(  # the page itself is the test
        textwrap.dedent(example),
        {
            "fe": fe,
            "wandb": wandb,
            "transformers": SimpleNamespace(TrainerCallback=object),
            "trainer": SimpleNamespace(add_callback=added.append),
            "monitor": fe.Monitor(rng.normal(size=(100, 4))),
            "sample": lambda: rng.normal(size=(32, 4)),
        },
    )
    wandb.run = Clocked()
    for step in range(1, 101):
        added[0].on_step_end(None, SimpleNamespace(is_world_process_zero=True, global_step=step), None, model=None)
    assert [row["course/step"] for row in wandb.run.rows] == [50, 100]


def test_a_result_is_logged_at_a_step_of_its_own_clock():
    run = Clocked()
    scores = fe.metrics(*example_sets(300), ["rke"])
    fe.log_to(run, scores, step=7)
    fe.log_to(run, scores)
    assert run.rows[0]["scores/step"] == 7 and "scores/step" not in run.rows[1]
    assert run.clocks["scores/*"] == "scores/step"


def own_steps(run):
    return lambda values, step: run.log(values)


def explicit_steps(run):
    return lambda values, step: run.log(values, step=step)


def steps_ahead(run):
    return lambda values, step: run.log(values, step=64 * step)


@pytest.mark.one_of_each(by=lambda how: how == "None")
@pytest.mark.parametrize("how", [steps_ahead, own_steps, explicit_steps, None])
def test_all_looks_arrive_in_wandb_and_nothing_of_the_loop_is_lost(how, tmp_path, monkeypatch):
    wandb = needed("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = wandb.init(mode="offline", dir=str(tmp_path), project="test")
    loop(run, log=how(run) if how else lambda values, step: None)
    folder = Path(run.dir).parent
    run.finish()
    looks, others = looks_in_wandb(folder)
    assert looks == LOOKED
    for key in ("loss", "lr"):
        assert sum(key in row for row in others) == (13 if how else 0)


def test_all_looks_arrive_in_tensorboard(tmp_path):
    needed("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        loop(writer, log=lambda values, step: [writer.add_scalar(key, one, 64 * step) for key, one in values.items()])
    assert looks_in_tensorboard(tmp_path) == LOOKED


def test_all_looks_arrive_in_mlflow(tmp_path, monkeypatch):
    mlflow = needed("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(tmp_path.as_uri())
    mlflow.set_experiment("test")
    with mlflow.start_run() as run:
        loop(mlflow, log=lambda values, step: mlflow.log_metrics(values, step=64 * step))
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "course/diversity")
    assert [one.step for one in history] == LOOKED


def test_all_looks_arrive_in_trackio(tmp_path, monkeypatch):
    trackio = started_trackio(tmp_path, monkeypatch)
    loop(trackio, log=lambda values, step: trackio.log(values))
    trackio.finish()
    from trackio.sqlite_storage import SQLiteStorage

    logged = SQLiteStorage.get_logs("test", "one")
    assert sorted(one["step"] for one in logged if "course/diversity" in one) == LOOKED
    assert sum("loss" in one for one in logged) == 13


def started_trackio(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    trackio = needed("trackio")
    try:
        trackio.init(project="test", name="one")
    except Exception as error:  # its server may not start without a network
        pytest.skip(f"trackio does not start here: {error}")
    return trackio


def test_what_is_no_tracker_is_refused(course):
    with pytest.raises(fe.UsageError, match="a list is not a tracker"):
        fe.log_to([], course)


def test_tensorboard(course, tmp_path):
    needed("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        fe.log_to(writer, course)
    read = EventAccumulator(str(tmp_path))
    read.Reload()
    (scalar,) = read.Scalars("course/diversity")
    assert scalar.step == 40 and scalar.value == pytest.approx(value_of(course, "diversity"))
    assert len(read.Images("course/kinds")) == 1 and "course/headline/text_summary" in read.Tags()["tensors"]


def test_mlflow(course, tmp_path, monkeypatch):
    mlflow = needed("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(tmp_path.as_uri())
    mlflow.set_experiment("test")
    with mlflow.start_run() as run:
        fe.log_to(mlflow, course)
        fe.log_to(mlflow, fe.metrics(*example_sets(300), ["rke"]))
    metrics = mlflow.get_run(run.info.run_id).data.metrics
    assert metrics["course/diversity"] == value_of(course, "diversity") and metrics["scores/rke/value"] > 1
    assert [*tmp_path.rglob("headline-40.txt")] and [*tmp_path.rglob("kinds-40.png")]


def test_wandb(course, tmp_path, monkeypatch):
    """Its offline file has names and numbers as text, in records that no public reader reads."""
    wandb = needed("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = wandb.init(mode="offline", dir=str(tmp_path), project="test")
    fe.log_to(run, course)
    folder = Path(run.dir).parent
    run.finish()
    looks_in_wandb(folder)  # waits until it is written
    written = next(folder.rglob("*.wandb")).read_bytes()
    assert b"course/diversity" in written and repr(value_of(course, "diversity")).encode() in written
    assert b"samples are less diverse" in written and [*tmp_path.rglob("*.png")]


def test_trackio(course, tmp_path, monkeypatch):
    trackio = started_trackio(tmp_path, monkeypatch)
    fe.log_to(trackio, course)
    trackio.finish()
    from trackio.sqlite_storage import SQLiteStorage

    logged = SQLiteStorage.get_logs("test", "one")
    found = next(one for one in logged if "course/diversity" in one)
    assert found["step"] == 40 and found["course/diversity"] == pytest.approx(value_of(course, "diversity"))


def test_accelerate(course, tmp_path, monkeypatch):
    accelerate, mlflow = (needed("accelerate"), needed("mlflow"))
    needed("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tmp_path.as_uri())
    mlflow.set_tracking_uri(tmp_path.as_uri())
    records, handler = [], logging.Handler()
    monkeypatch.setattr(handler, "emit", records.append)
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    accelerator = accelerate.Accelerator(log_with=["tensorboard", "mlflow"], project_dir=str(tmp_path), cpu=True)
    accelerator.init_trackers("test")
    fe.log_to(accelerator, course)
    run = mlflow.active_run().info.run_id
    accelerator.end_training()
    assert mlflow.get_run(run).data.metrics["course/diversity"] == value_of(course, "diversity")
    assert not [record for record in records if "dropped" in record.getMessage()]
    read = EventAccumulator(str(tmp_path / "test"))
    read.Reload()
    assert read.Scalars("course/diversity")[0].step == 40
    assert len(read.Images("course/kinds")) == 1 and "course/headline/text_summary" in read.Tags()["tensors"]
