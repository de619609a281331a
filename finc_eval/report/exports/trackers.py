"""Results in trackers of experiments: W&B, MLflow, TensorBoard, trackio, accelerate, and what has their methods."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from PIL import Image

from finc_eval.core.errors import UsageError
from finc_eval.gallery.thumbnails import row_of

if TYPE_CHECKING:
    from finc_eval.core.serialize import Document

STEP = "step"  # column of the step of a row
FORBIDDEN = re.compile(r"[^\w\-. /:]+")  # characters that MLflow refuses in names


class _Logged(NamedTuple):
    numbers: Mapping[str, float]
    text: Mapping[str, str]
    pictures: Mapping[str, Image.Image]
    step: int | None


def log_to(tracker: object, result: Document, step: int | None = None) -> None:
    """Log the numbers of a result, its first sentences, and its pictures by step, to a tracker of experiments.

    A course of a monitor is logged with its last look: call it after each look. All other results are logged whole.

    Args:
        tracker: a run of W&B (`wandb.init()`), the module `mlflow`, `SummaryWriter` of TensorBoard, the module
            `trackio`, an `Accelerator` with trackers, or any object with `add_scalar`, `log_metrics` or `log`.
        result: any result, such as `monitor.result`, or of `compare`, `metrics` or `leaderboard`.
        step: step of the training; default: the last step of a course.

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
    last = max((row[STEP] for row in result._cell_rows() if STEP in row), default=None)
    at = step if step is not None else None if last is None else int(last)
    text = {f"{result.type_name}/headline": result.headline}
    logged = _Logged(dict(_numbers(result, last)), text, dict(_pictures(result, last)), at)
    if hasattr(tracker, "add_scalar"):
        _to_writer(tracker, logged)
    elif hasattr(tracker, "log_metrics"):
        _to_mlflow(tracker, logged)
    elif hasattr(tracker, "log"):
        _to_log(tracker, logged)
    else:
        raise UsageError(
            f"a {type(tracker).__name__} is not a tracker: pass a run of W&B, mlflow, a SummaryWriter, trackio, an "
            "Accelerator, or an object with a method log(values, step)"
        )


def _numbers(result: Document, last: float | None) -> Iterator[tuple[str, float]]:
    """Yield the numbers of the table, of the last step where rows have one, with their names."""
    for place, row in enumerate(result._cell_rows()):
        if row.get(STEP) != last:
            continue
        name = next((str(row[key]) for key in ("name", "kind.name", "id", "type") if row.get(key)), str(place))
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


def _to_mlflow(tracker: Any, logged: _Logged) -> None:
    """Log to MLflow, or to a logger with its `log_metrics`; texts and pictures are files of the run."""
    tracker.log_metrics(dict(logged.numbers), step=logged.step)
    end = "" if logged.step is None else f"-{logged.step}"
    for name, words in logged.text.items():
        if hasattr(tracker, "log_text"):
            tracker.log_text(words, f"{name}{end}.txt")
    for name, image in logged.pictures.items():
        if hasattr(tracker, "log_image"):
            tracker.log_image(image, f"{name}{end}.png")


def _to_log(tracker: Any, logged: _Logged) -> None:
    """Log to W&B, trackio, accelerate, or an object with their `log`; pictures as the package of the tracker has them.

    A tracker that is a module, such as trackio, is its own package.
    """
    package = str(getattr(tracker, "__name__", type(tracker).__module__)).partition(".")[0]
    images: dict[str, Any] = {}
    if package in ("wandb", "trackio") and logged.pictures:
        module = __import__(package)
        images = {name: module.Image(np.asarray(image)) for name, image in logged.pictures.items()}
    several = [*getattr(tracker, "trackers", ())]  # of accelerate
    tracker.log({**logged.numbers, **({} if several else logged.text), **images}, step=logged.step)
    for one in several:
        if getattr(one, "name", "") != "mlflow":  # it drops each text with a warning
            one.log(dict(logged.text), step=logged.step)
        if logged.pictures and hasattr(one, "log_images"):
            form = {"dataformats": "NHWC"} if getattr(one, "name", "") == "tensorboard" else {}
            one.log_images(
                {name: np.asarray(image)[None] for name, image in logged.pictures.items()}, step=logged.step, **form
            )
