"""Progress of long work, as one callable: `progress(stage, done, total)`.

The library draws bars in notebooks, and is silent elsewhere unless it is handed another one; the command line hands it
`terminal()`, which says of a long stage, from its first batch, how long it will take. Short work says nothing.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from functools import partial
from itertools import accumulate
from typing import Any, Self

from finc_eval.core.terminal import VisibleStream, visible
from finc_eval.core.words import duration

Progress = Callable[[str, int, int], None]

LONG = 10.0  # seconds that a stage must take to be announced, and that lie between two lines of a log


SEEN_SECONDS = 0.5  # seconds from which the speed of a stage is measured well enough to be shown

MEASURED_PART = 0.05
"""Part of a whole work from which on its speed is measured well enough: stages of small sets take other parts of it."""


class Stage(str):
    """Name of a stage, with what is known of its time."""

    shorter: tuple[str, int] | None  # an option, and how much of the stage there is with it: ("--n 2000", 12000)
    cost: float | None  # seconds on a core with 10,000 embeddings of 384 entries a set, roughly; None if unknown
    part: float | None  # part of a whole work that is done at present, by the costs of its stages
    seconds: float | None  # seconds of the whole work, as its first batches let expect; None if they were not measured

    def __new__(cls, name: str, shorter: tuple[str, int] | None = None, cost: float | None = None) -> Self:
        """Return the name, which is a string."""
        stage = super().__new__(cls, name)
        stage.shorter, stage.cost, stage.part, stage.seconds = shorter, cost, None, None
        return stage

    @classmethod
    def of_parts(cls, name: str, parts: Iterable[str]) -> Self:
        """Return a stage that consists of others, whose costs add up."""
        return cls(name, cost=sum(getattr(part, "cost", None) or 1.0 for part in parts))


def divide_stage(progress: Progress, stage: str, sizes: Sequence[int]) -> list[Progress]:
    """Return the progress of each part of a stage, in any unit; over the parts, the progress of the stage goes on."""
    whole = sum(sizes)

    def part(start: int, size: int, _: str, done: int, total: int) -> None:
        progress(stage, start + size * done // max(total, 1), whole)

    return [partial(part, end - size, size) for end, size in zip(accumulate(sizes), sizes, strict=True)]


class Plan:
    """Progress that says of each stage its place among all of a work, and how much of the whole is done.

    A stage of the plan may consist of several, whose names begin with its own.

    Args:
        progress: progress of the whole.
        stages: how the names of all stages begin, in order, with their costs.
        seconds: seconds of the whole, as first batches let expect; default: it is measured while it is done.
    """

    def __init__(self, progress: Progress, stages: Sequence[str], seconds: float | None = None) -> None:
        self._progress, self._stages, self._seconds = progress, stages, seconds
        self._costs = [getattr(stage, "cost", None) or 1.0 for stage in stages]
        self._place, self._stage, self._spent, self._cost = -1, "", 0.0, 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Tell how far a stage is."""
        number = next((number for number, name in enumerate(self._stages) if stage.startswith(name)), None)
        if number is None:
            self._progress(stage, done, total)
            return
        if stage != self._stage:
            self._spent = self._spent + self._cost if number == self._place else 0.0
            self._place, self._stage = number, stage
            cost = None if stage == self._stages[number] else getattr(stage, "cost", None)
            self._cost = cost or self._costs[number]
        shown = Stage(f"{number + 1} of {len(self._stages)}: {stage}", getattr(stage, "shorter", None), self._cost)
        spent = min(self._spent + self._cost * done / max(total, 1), self._costs[number])
        shown.part, shown.seconds = (sum(self._costs[:number]) + spent) / sum(self._costs), self._seconds
        self._progress(shown, done, total)


WHOLE = 1000  # length of the bar of a whole work


def whole_of(stage: str, done: int, total: int) -> tuple[str, int, int]:
    """Return the name of the whole, how much is done and how much there is: of a work, or else of a stage alone."""
    part = getattr(stage, "part", None)
    return (stage, done, total) if part is None else ("", round(WHOLE * part), WHOLE)


def silent(stage: str, done: int, total: int) -> None:
    """Show nothing."""


class NotebookBars:
    """A `Progress` that draws one bar for a work, or for a stage without a place in one, in a notebook only."""

    def __init__(self) -> None:
        self._bars: dict[str, Any] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Draw how much of a work or stage is done; nothing outside a notebook, or without tqdm."""
        # A kernel has IPython loaded, and with it what tqdm needs, so that nobody else pays for an import.
        shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
        if shell is None or getattr(shell(), "kernel", None) is None:
            return
        work, now, end = whole_of(stage, done, total)
        bar = self._bars.get(work)
        if bar is not None and now < bar.n:  # another work, perhaps in another cell, after one that was interrupted
            bar.close()
            bar = None
        if bar is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # without ipywidgets the bar is a line of text
                try:
                    from tqdm.auto import tqdm
                except ImportError:
                    return
                bar = self._bars[work] = tqdm(total=end, desc=visible(stage), leave=False)
        bar.total = end
        bar.set_description(visible(stage), refresh=False)
        bar.update(now - bar.n)
        if now >= end:
            bar.close()
            del self._bars[work]


automatic = NotebookBars()  # progress of calls that name none


class Pace:
    """Measures how fast a stage is."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self._work: str | None = None
        self._start, self._first, self._before, self._last = 0.0, 0, 0, 0
        self._announced: set[str] = set()

    def seconds_left(self, stage: str, done: int, total: int) -> float | None:
        """Return the time left at the speed so far; None if it is not known."""
        now, expected = time.monotonic(), getattr(stage, "seconds", None)
        work, done, total = whole_of(stage, done, total)
        if work != self._work or done < self._last:
            self._work, self._before, self._first = work, done, done
        self._last = done
        if self._first == self._before:  # the first batch, which is slower, is measured to its end alone
            self._start, self._first = now, done
        took, least = now - self._start, 0 if work else MEASURED_PART * total
        if done - self._first <= least or took < SEEN_SECONDS:
            return None if expected is None else expected * (total - done) / total
        return took / (done - self._first) * (total - done)

    def announcement(self, stage: str, done: int, total: int, left: float | None) -> str | None:
        """Return how long a stage will take; None if it is short, or was said before."""
        work, done, total = whole_of(stage, done, total)
        if left is None or left < LONG or work in self._announced:
            return None
        self._announced.add(work)
        if not work:
            return f"{stage}: about {duration(left)} left in all"
        each, shorter = left / (total - done), getattr(stage, "shorter", None)
        before = f", {self._before:,} of them done" if self._before else ""
        text = f"{stage}{before}: about {duration(each * (total - self._before))}"
        if shorter is not None and 2 * shorter[1] <= total:
            text += f"; {shorter[0]} takes {duration(each * shorter[1])}"
        return text


@contextmanager
def terminal() -> Iterator[Progress]:
    """Yield a `Progress` that draws on standard error.

    One bar on a terminal, for all stages of a work. Where standard error is a file or a pipe (CI logs), plain lines,
    the first after ten seconds, and each next one later. Long work is announced with its duration.
    """
    if not sys.stderr.isatty():
        yield _lines()
        return

    # Only the command line draws bars; importing the library should not pay for rich.
    from rich.console import Console, RenderableType
    from rich.progress import BarColumn, TaskID, TextColumn
    from rich.progress import Progress as Bars

    pace = Pace()

    class LateBars(Bars):
        def get_renderables(self) -> Iterable[RenderableType]:
            # 2.0: duration of commands that draw no bar.
            return super().get_renderables() if time.monotonic() - pace.begun > 2.0 else ()

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[known]}"))
    # The bar itself goes to the stream below, which makes nothing visible; what others print meanwhile does not.
    console = Console(file=getattr(sys.stderr, "rich_proxied_file", sys.stderr))
    with (
        LateBars(*columns, console=console, transient=True, redirect_stdout=False) as bars,
        redirect_stderr(VisibleStream(sys.stderr)),
    ):
        shown: list[tuple[str, TaskID]] = []

        def draw(stage: str, done: int, total: int) -> None:
            left = pace.seconds_left(stage, done, total)
            text = pace.announcement(stage, done, total, left)
            if text is not None:
                bars.console.print(visible(text), markup=False, highlight=False)
            work, now, end = whole_of(stage, done, total)
            if not shown or shown[0][0] != work:
                if shown:
                    bars.remove_task(shown.pop()[1])
                shown.append((work, bars.add_task("", total=end, known="")))
            known = ", ".join(filter(None, (f"{done:,} of {total:,}" if total > 1 else "", _left(stage, left))))
            bars.update(shown[0][1], description=visible(stage), completed=now, total=end, known=known)

        yield draw


def _left(stage: str, left: float | None) -> str:
    """Return the time left in words; "" if it is not known."""
    return f"{duration(left)} left{' in all' if getattr(stage, 'part', None) is not None else ''}" if left else ""


def _lines() -> Progress:
    pace = Pace()
    last = pace.begun

    def write(stage: str, done: int, total: int) -> None:
        nonlocal last
        left, now = pace.seconds_left(stage, done, total), time.monotonic()
        text = pace.announcement(stage, done, total, left)
        # 300.0: lines of a log become rarer, but not so rare that a server ends the job, as some do after ten minutes
        # of silence.
        if text is None and now - last >= min(max(LONG, (now - pace.begun) / 4), 300.0):
            of = f": {done:,} of {total:,}" if total > 1 else ""  # a single step says its name
            text = f"{stage}{of}" + (f", {_left(stage, left)}" if left else "")
        if text is not None:
            last = now
            print(text, file=sys.stderr, flush=True)

    return write
