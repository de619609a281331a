"""`MonitorCallback`: a monitor in a training loop, which evaluates samples now and then and logs to trackers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from finc_eval.core.errors import FincEvalError, UsageError, check_count, check_finite
from finc_eval.monitoring.followed import Alarm
from finc_eval.monitoring.monitor import Monitor
from finc_eval.monitoring.steps import step_text
from finc_eval.report.exports.trackers import check_tracker, log_looks

EVERY = 50  # steps from one evaluation to the next


class MonitorCallback:
    """A monitor in a training loop: call it after each step with the number of the step.

    It never ends the training. An evaluation that fails, a tracker that cannot be reached and a file that cannot be
    written are warnings; evaluations that a tracker missed are logged with the next evaluation. A step that comes
    again, as under gradient accumulation, is looked at once. Errors of `sample` itself are raised.

    Args:
        monitor: the monitor.
        sample: function that draws samples of the generator with new seeds, as `Monitor.update` takes them.
        trackers: trackers to log to, as `log_to` takes them.
        every: steps from one evaluation to the next.
        prompts: prompt of each sample, if `sample` always draws samples of the same prompts; default: their column.
        save: file that keeps the monitor after each evaluation, for `Monitor.load`; default: none.
        fixed: function that draws pictures of the same prompts and seeds each time, as `Monitor.update` takes them.

    Raises:
        UsageError: the monitor, `sample` or a tracker is not one, or `every` is not a positive whole number.

    Example:
        >>> import numpy as np
        >>> import finc_eval as fe
        >>> rng = np.random.default_rng(0)
        >>> monitor = fe.Monitor(rng.normal(size=(200, 4)))
        >>> after_step = fe.MonitorCallback(monitor, lambda: rng.normal(size=(64, 4)), every=50)
        >>> for step in range(101):
        ...     alarms = after_step(step)
        >>> monitor.steps
        [0.0, 50.0, 100.0]
    """

    def __init__(
        self,
        monitor: Monitor,
        sample: Callable[[], object],
        *trackers: object,
        every: int = EVERY,
        prompts: Sequence[str] | None = None,
        save: str | Path | None = None,
        fixed: Callable[[], object] | None = None,
    ) -> None:
        if not isinstance(monitor, Monitor):
            raise UsageError(f"monitor must be a Monitor, got {type(monitor).__name__}: pass fe.Monitor(reference)")
        for name, function in {"sample": sample, **({} if fixed is None else {"fixed": fixed})}.items():
            if not callable(function):
                raise UsageError(
                    f"{name} must be a function that draws samples, got {type(function).__name__}: pass a lambda"
                )
        for tracker in trackers:
            check_tracker(tracker)
        self.monitor, self.sample, self.trackers, self.every = monitor, sample, trackers, check_count("every", every)
        self.prompts, self.save, self.fixed = prompts, save, fixed
        steps = monitor.steps
        self._last = steps[-1] if steps else float("-inf")
        self._logged = [self._last] * len(trackers)  # step of the last evaluation that each tracker has
        self._is_behind = False

    def __call__(self, step: float) -> list[Alarm]:
        """Evaluate samples if it is time, log the evaluation, and return the new alarms."""
        try:
            step = check_finite("step", step)
        except UsageError as error:
            _warn(str(error))
            return []
        if not self._is_time(step):
            return []
        samples, fixed = _Watched(self.sample()), None if self.fixed is None else self.fixed()
        self._last = step
        try:
            alarms = self.monitor.update(step, samples.given, prompts=self.prompts, fixed=fixed)
        except Exception as error:
            if error is samples.error:  # it is one of the user's own, raised as the samples were drawn
                raise
            _warn(f"step {step_text(step)} has no evaluation: {_say(error)}")
            return []
        for number in range(len(self.trackers)):
            self._log(number, None if step in self.monitor.steps else step)
        if self.save is not None:
            self._save(self.save)
        return alarms

    def _is_time(self, step: float) -> bool:
        """Return whether to evaluate now: neither at a step that has an evaluation, nor at an earlier step."""
        last = max([self._last, *self.monitor.steps[-1:]])
        if step % self.every or step == last:
            return False
        if step < last and not self._is_behind:
            _warn(
                f"step {step_text(step)} comes after step {step_text(last)}, so the next evaluation waits until the "
                "training is beyond that: load the monitor that was saved with the checkpoint"
            )
        self._is_behind = step < last
        return not self._is_behind

    def _log(self, number: int, now: float | None) -> None:
        """Log what a tracker, by its number, has not yet; a failure is a warning."""
        tracker = self.trackers[number]
        try:
            for step in log_looks(tracker, self.monitor.result, self._logged[number], now):
                self._logged[number] = step
        except Exception as error:
            _warn(
                f"{_name_of(tracker)} did not take this evaluation, which will be logged with the next: {_say(error)}"
            )

    def _save(self, path: str | Path) -> None:
        try:
            self.monitor.save(path)
        except Exception as error:
            _warn(f"the monitor was not saved to {path}: {_say(error)}")


class _Watched:
    """Samples of a user's function, and the error that it raised while they were drawn."""

    def __init__(self, samples: object) -> None:
        self.error: BaseException | None = None
        self.given = self._draw(samples) if isinstance(samples, Iterator) else samples

    def _draw(self, samples: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from samples
        except Exception as error:
            self.error = error
            raise


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=4)


def _name_of(tracker: object) -> str:
    return str(getattr(tracker, "__name__", type(tracker).__name__))


def _say(error: Exception) -> str:
    """Return the sentence of an error; of other packages with the name of its type."""
    return str(error) if isinstance(error, FincEvalError) else f"{type(error).__name__}: {error}"
