"""Gives damaged files to a process that opens them, and watches the clock."""

import json
import os
import queue
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

SECONDS = 20
"""Longest time that a file may take. The slowest valid one takes half a second."""

START_SECONDS = 120
"""Longest time until the process is ready, and has made a valid file."""

FAILURES = ("traceback", "not a sentence", "wrong", "hang", "memory", "crash")
"""Outcomes that are faults; the others are "accepted" and "refused"."""


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
        columns = ("inputs", "refused", "accepted", *FAILURES)
        rows = [
            [kind, str(sum(found.values())), *(str(found[one]) for one in columns[1:])]
            for kind, found in self.counts.items()
        ]
        total = sum(self.counts.values(), Counter())
        rows.append(["all", str(sum(total.values())), *(str(total[one]) for one in columns[1:])])
        lines = [["kind of file", *columns], ["---"] * (1 + len(columns)), *rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)


class Worker:
    """The process that opens files; it is made again after each one that hung or crashed."""

    def __init__(self) -> None:
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        root = Path(__file__).parents[2]
        environment["PYTHONPATH"] = os.pathsep.join([str(root), environment.get("PYTHONPATH", "")])
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).parent / "worker.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
        )  # fmt: skip
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def try_one(self, kind: str, seed: int, index: int) -> tuple[str, str]:
        self._process.stdin.write(json.dumps([kind, seed, index]) + "\n")
        self._process.stdin.flush()
        try:
            line = self._lines.get(timeout=START_SECONDS)
            line = line and self._lines.get(timeout=SECONDS)
        except queue.Empty:
            return "hang", f"more than {SECONDS} s"
        return tuple(json.loads(line)) if line else ("crash", f"exit code {self._process.wait()}")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


def run(tasks: Iterable[tuple[str, int]], seed: int) -> Iterator[tuple[str, int, str, str]]:
    """Open the damaged files with these kinds and numbers."""
    worker = None
    try:
        for kind, index in tasks:
            worker = worker or Worker()
            outcome, text = worker.try_one(kind, seed, index)
            if outcome in ("hang", "crash"):
                worker.stop()
                worker = None
            yield kind, index, outcome, text
    finally:
        if worker:
            worker.stop()
