"""Progress of long work, as one callable: `progress(stage, done, total)`.

The library draws bars in notebooks, and is silent elsewhere unless it is handed another one; the command line hands it
`terminal()`.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from finc_eval.core.terminal import visible

Progress = Callable[[str, int, int], None]

SECONDS_BETWEEN_LINES = 10.0


def silent(stage: str, done: int, total: int) -> None:
    """Show nothing."""


class NotebookBars:
    """A `Progress` that draws one bar per stage in a notebook, and nothing anywhere else."""

    def __init__(self) -> None:
        self._bars: dict[str, Any] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Draw how much of a stage is done."""
        bar = self._bars.get(stage)
        if bar is None:
            bar = self._bars[stage] = _notebook_bar(stage, total)
        if bar is None:
            del self._bars[stage]
            return
        bar.total = total
        bar.update(done - bar.n)
        if done >= total:
            bar.close()
            del self._bars[stage]


def _notebook_bar(stage: str, total: int) -> Any:
    """Return a new bar; None outside a notebook, or without tqdm."""
    # A kernel has these loaded, so that nobody else pays for an import.
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is None:
        return None
    with suppress(ImportError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without ipywidgets the bar is a line of text
        from tqdm.auto import tqdm

        return tqdm(total=total, desc=visible(stage))
    return None


automatic = NotebookBars()
"""Progress of calls that name none."""


@contextmanager
def terminal() -> Iterator[Progress]:
    """Yield a `Progress` that draws on standard error.

    One bar per stage on a terminal. Where standard error is a file or a pipe (CI logs), a plain line when a
    stage begins, when it ends, and every ten seconds between.
    """
    if not sys.stderr.isatty():
        yield _lines()
        return

    # Only the command line draws bars; importing the library should not pay for rich.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, TaskID] = {}

        def draw(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(visible(stage), total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield draw


def _lines() -> Progress:
    last_line: dict[str, float] = {}

    def write(stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        due = stage not in last_line or now - last_line[stage] >= SECONDS_BETWEEN_LINES
        if due or done == total:
            last_line[stage] = now
            print(f"{stage}: {done}/{total}", file=sys.stderr, flush=True)

    return write
