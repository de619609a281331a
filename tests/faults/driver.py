"""Gives damaged files to a process that opens them, and watches the clock."""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

WORKER = Path(__file__).with_name("worker.py")

SECONDS = 20
"""Longest time that a file may take. The slowest valid one takes half a second."""

START_SECONDS = 120
"""Longest time until the process is ready, and has made a valid file."""

FAILURES = ("traceback", "not a sentence", "wrong", "hang", "memory", "crash")
"""Outcomes that are faults; the others are "accepted" and "refused"."""

COLUMNS = ("refused", "accepted", *FAILURES)

HEAD = f"| kind of file | inputs | {' | '.join(COLUMNS)} |\n|{'---|' * (2 + len(COLUMNS))}"
"""First lines of the table of outcomes."""


def row_of(kind: str, found: Counter) -> str:
    """A line of the table of outcomes."""
    return f"| {kind} | {found.total()} | {' | '.join(str(found[one]) for one in COLUMNS)} |"


@dataclass
class Outcomes:
    """Outcomes of many inputs."""

    counts: dict[str, Counter] = field(default_factory=lambda: defaultdict(Counter))
    faults: list[tuple[str, int, str, str]] = field(default_factory=list)

    def add(self, kind: str, index: int, outcome: str, text: str) -> None:
        self.counts[kind][outcome] += 1
        if outcome in FAILURES:
            self.faults.append((kind, index, outcome, text))

    def table(self) -> str:
        """The counts by kind."""
        total = sum(self.counts.values(), Counter())
        return "\n".join([HEAD, *map(row_of, self.counts, self.counts.values()), row_of("all", total)])


class Worker:
    """The process that opens files; it is made again after each one that hung or crashed."""

    def __init__(self) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = self._start()
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _start(self) -> subprocess.Popen:
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        root = Path(__file__).parents[2]
        environment["PYTHONPATH"] = os.pathsep.join([str(root), str(root / "tests"), environment.get("PYTHONPATH", "")])
        return subprocess.Popen(
            [sys.executable, str(WORKER)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, env=environment,
        )  # fmt: skip

    def _read(self) -> None:
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def kinds(self) -> list[str]:
        """Names of the kinds of files."""
        return json.loads(self._lines.get(timeout=START_SECONDS))

    def try_one(self, kind: str, seed: int, index: int) -> tuple[str, str]:
        self._process.stdin.write(json.dumps([kind, seed, index]) + "\n")
        self._process.stdin.flush()
        try:
            line = self._lines.get(timeout=START_SECONDS)
            line = line and self._lines.get(timeout=SECONDS)
        except queue.Empty:
            return "hang", f"more than {SECONDS} s"
        return tuple(json.loads(line)) if line else ("crash", self._last_words())

    def _last_words(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        return f"exit code {code}: {(self._errors.read().splitlines() or [''])[-1]}"

    def stop(self) -> None:
        """End the process, which removes its files if it can."""
        self._process.stdin.close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def kinds() -> list[str]:
    """Names of the kinds of files that a worker opens."""
    worker = Worker()
    try:
        return worker.kinds()
    finally:
        worker.stop()


def run(
    tasks: Iterable[tuple[str, int]], seed: int, start: Callable[[], Worker] = Worker
) -> Iterator[tuple[str, int, str, str]]:
    """Open the damaged files with these kinds and numbers, in a process that `start` starts."""
    worker = None
    try:
        for kind, index in tasks:
            if worker is None:
                worker = start()
                worker.kinds()
            outcome, text = worker.try_one(kind, seed, index)
            if outcome in ("hang", "crash"):
                worker.stop()
                worker = None
            yield kind, index, outcome, text
    finally:
        if worker:
            worker.stop()
