"""`MonitorCallback`: a monitor in a training loop, which looks now and then and logs to trackers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from finc_eval.core.errors import check_count
from finc_eval.monitoring.followed import Alarm
from finc_eval.monitoring.monitor import Monitor
from finc_eval.report.exports.trackers import log_to

EVERY = 50  # steps from one look to the next


class MonitorCallback:
    """A monitor in a training loop: call it after each step with the number of the step.

    Args:
        monitor: the monitor.
        sample: function that draws samples of the generator with new seeds, as `Monitor.update` takes them.
        trackers: trackers to log to, as `log_to` takes them.
        every: steps from one look to the next.
        prompts: prompt of each sample, if `sample` always draws samples of the same prompts; default: their column.

    Raises:
        UsageError: `every` is not a positive whole number.

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
    ) -> None:
        self.monitor, self.sample, self.trackers, self.every = monitor, sample, trackers, check_count("every", every)
        self.prompts = prompts

    def __call__(self, step: int) -> list[Alarm]:
        """Look if it is time, log the look, and return the new alarms."""
        if step % self.every:
            return []
        alarms = self.monitor.update(step, self.sample(), prompts=self.prompts)
        for tracker in self.trackers:
            log_to(tracker, self.monitor.result)
        return alarms
