"""Results in trackers of experiments: W&B, MLflow, TensorBoard, trackio, accelerate, and what has their methods.

A tracker has a clock of its own, and a loop may be ahead of it. MLflow, TensorBoard and trackio take any step at any
time. W&B drops steps below its own, so there the step of an evaluation is a number of its own, `course/step`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from inspect import signature
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from PIL import Image

from finc_eval.core.errors import UsageError
from finc_eval.gallery.thumbnails import row_of

if TYPE_CHECKING:
    from finc_eval.core.serialize import Document

STEP = "step"  # column of the step of a row
FORBIDDEN = re.compile(r"[^\w\-. /:]+")  # characters that MLflow refuses in names


METHODS = ("add_scalar", "log_metrics", "log")  # methods by which an object is known as a tracker


class _Logged(NamedTuple):
    type_name: str
    numbers: Mapping[str, float]
    text: Mapping[str, str]
    pictures: Mapping[str, Image.Image]
    step: int | None


def log_to(tracker: object, result: Document, step: int | None = None) -> None:
    """Log the numbers of a result, its first sentences, and its pictures by step, to a tracker of experiments.

    A course of a monitor is logged with its last evaluation: call it after each. All other results are logged whole.

    Args:
        tracker: a run of W&B (`wandb.init()`), the module `mlflow`, `SummaryWriter` of TensorBoard, the module
            `trackio`, an `Accelerator` with trackers, or any object with `add_scalar`, `log_metrics` or `log`.
        result: any result, such as `monitor.result`, or of `compare`, `metrics` or `leaderboard`.
        step: step of the training, in W&B as the number `course/step`; default: the last step of a course.

    Raises:
        UsageError: the tracker has none of these methods.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> class Tracker:
        ...     def log(self, values, step=None):
        ...         self.values = values
        >>> tracker = Tracker()
        >>> fe.log_to(tracker, fe.metrics(*example_sets(300), "rke"))
        >>> tracker.values["scores/rke/value"] > 1
        True
    """
    last = max(_steps(result), default=None)
    at = step if step is not None else None if last is None else int(last)
    _send(tracker, _logged(result, last, at))


def log_looks(tracker: object, course: Document, after: float = -np.inf, now: float | None = None) -> Iterator[float]:
    """Log the evaluations of a course after a step, the earliest first, and yield the step of each that is logged.

    The first sentences go with the last evaluation, or with the step `now`, whose evaluation was left out.

    Raises:
        UsageError: the object is not a tracker.
    """
    steps = _steps(course)
    for step in steps:
        if step > after:
            logged = _logged(course, step, int(step))
            _send(tracker, logged if step == steps[-1] else logged._replace(text={}))
            yield step
    if now is not None:
        _send(tracker, _logged(course, None, int(now))._replace(numbers={}, pictures={}))


def check_tracker(tracker: object) -> None:
    """Raise UsageError for an object that is not a tracker."""
    if not any(hasattr(tracker, method) for method in METHODS):
        raise UsageError(
            f"a {type(tracker).__name__} is not a tracker: pass a run of W&B, mlflow, a SummaryWriter, trackio, an "
            "Accelerator, or an object with a method log(values, step)"
        )


def _steps(result: Document) -> list[float]:
    """Return the steps of the rows of a result, in ascending order."""
    return sorted({row[STEP] for row in result._cell_rows() if STEP in row})


def _logged(result: Document, step: float | None, at: int | None) -> _Logged:
    """Return what is logged of a step of a result: all of it, if it has no steps."""
    name = result.type_name
    text = {f"{name}/headline": result.headline}
    return _Logged(name, dict(_numbers(result, step)), text, dict(_pictures(result, step)), at)


def _send(tracker: Any, logged: _Logged) -> None:
    """Log to a tracker by its methods."""
    check_tracker(tracker)
    tracker = _inner(tracker)
    if several := [*getattr(tracker, "trackers", ())]:
        for each in several:
            _to_one_of_accelerate(each, logged)
    elif hasattr(tracker, "add_scalar"):
        _to_writer(tracker, logged)
    elif hasattr(tracker, "define_metric"):
        _to_wandb(tracker, logged)
    elif hasattr(tracker, "log_metrics"):
        _to_mlflow(tracker, logged)
    else:
        _to_log(tracker, logged)


def _inner(tracker: Any) -> Any:
    """Return the run behind the module `wandb`, and the run or writer behind a logger of Lightning."""
    if isinstance(tracker, ModuleType):
        run = getattr(tracker, "run", None)
        return run if hasattr(run, "define_metric") else tracker
    inner = getattr(tracker, "experiment", None) if hasattr(tracker, "log_metrics") else None
    return inner if hasattr(inner, "add_scalar") or hasattr(inner, "define_metric") else tracker


def _numbers(result: Document, last: float | None) -> Iterator[tuple[str, float]]:
    """Yield the numbers of the table, of the last step where rows have one, with their names."""
    for number, row in enumerate(result._cell_rows()):
        if row.get(STEP) != last:
            continue
        name = next((str(row[key]) for key in ("name", "kind.name", "id", "type") if row.get(key)), str(number))
        name = f"{row['training']}: {name}" if row.get("training") else name
        for key in row if last is None else ["value"]:
            ending = f"/{key}" if last is None else ""  # a name is not the beginning of another: MLflow makes folders
            if _is_number(row[key]):
                yield FORBIDDEN.sub("", f"{result.type_name}/{name}{ending}"), float(row[key])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))


def _pictures(result: Document, last: float | None) -> Iterator[tuple[str, Image.Image]]:
    """Yield a row of the pictures of the last step, if the result has pictures by step."""
    by_step: Mapping[Any, Mapping[str, Any]] = getattr(result, "pictures", None) or {}
    row = row_of([*by_step.get(last, {}).values()])
    if row is not None:
        yield f"{result.type_name}/kinds", row


def _to_writer(writer: Any, logged: _Logged) -> None:
    """Log to a writer of TensorBoard."""
    for name, value in logged.numbers.items():
        writer.add_scalar(name, value, logged.step)
    for name, words in logged.text.items():
        if hasattr(writer, "add_text"):
            writer.add_text(name, words, logged.step)
    for name, image in logged.pictures.items():
        if hasattr(writer, "add_image"):
            writer.add_image(name, np.asarray(image), logged.step, dataformats="HWC")


def _to_wandb(run: Any, logged: _Logged) -> None:
    """Log to W&B with a clock of its own: W&B drops a step below that of the run.

    An evaluation waits in the row that is open, and does not end it. Else W&B would drop what the loop logs at the same
    step. If the loop has not moved on since the evaluation before, that evaluation is written first.
    """
    clock = f"{logged.type_name}/{STEP}"
    values = {**logged.numbers, **logged.text, **_images("wandb", logged)}
    if logged.step is not None:
        values[clock] = logged.step
        run.define_metric(clock)
        run.define_metric(f"{logged.type_name}/*", step_metric=clock)
    if "commit" not in signature(run.log).parameters:
        run.log(values)
        return
    if _WAITING.get(run) == run.step:
        run.log({}, step=run.step + 1)
    run.log(values, commit=False)
    _WAITING[run] = run.step


_WAITING: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
"""Step of each run of W&B at which its last evaluation waits to be written: only the loop's next step writes it."""


def _to_mlflow(tracker: Any, logged: _Logged) -> None:
    """Log to MLflow, or to a logger with its `log_metrics`; texts and pictures are files of the run."""
    tracker.log_metrics(dict(logged.numbers), step=logged.step)
    if _package(tracker) != "mlflow":  # methods of other loggers have the same names and other arguments
        return
    end = "" if logged.step is None else f"-{logged.step}"
    for name, words in logged.text.items():
        tracker.log_text(words, f"{name}{end}.txt")
    for name, image in logged.pictures.items():
        tracker.log_image(image, f"{name}{end}.png")


def _to_log(tracker: Any, logged: _Logged) -> None:
    """Log to trackio, or an object with its `log`: rows have the steps that they are given."""
    tracker.log({**logged.numbers, **logged.text, **_images(_package(tracker), logged)}, step=logged.step)


def _to_one_of_accelerate(tracker: Any, logged: _Logged) -> None:
    """Log to a tracker of accelerate, or to the run or writer behind it; on other processes it does nothing."""
    inner = getattr(tracker, "tracker", None)
    if hasattr(inner, "add_scalar") or hasattr(inner, "define_metric"):
        _send(inner, logged)
        return
    is_mlflow = getattr(tracker, "name", "") == "mlflow"  # it drops each text with a warning
    tracker.log({**logged.numbers, **({} if is_mlflow else logged.text)}, step=logged.step)
    if logged.pictures and hasattr(tracker, "log_images"):
        tracker.log_images({name: np.asarray(image)[None] for name, image in logged.pictures.items()}, step=logged.step)


def _package(tracker: Any) -> str:
    """Return the package of a tracker; a tracker that is a module, such as trackio, is its own package."""
    return str(getattr(tracker, "__name__", type(tracker).__module__)).partition(".")[0]


def _images(package: str, logged: _Logged) -> dict[str, Any]:
    """Return the pictures as a package has them, if it is there and takes any."""
    module = sys.modules.get(package) if package in ("wandb", "trackio") else None
    if module is None:
        return {}
    return {name: module.Image(np.asarray(image)) for name, image in logged.pictures.items()}
