"""Damaged and forged files of every kind: each is read rightly, or refused in one sentence.

`python tests/faults` opens many more, and prints a table.
"""

import os
import subprocess
import sys

import pytest
from _forks import forked
from faults import worker
from faults.driver import Worker, run
from faults.kinds import KINDS


class Fork:
    """A fork of the tests, with what the driver uses of `subprocess.Popen`."""

    def __init__(self, work, errors):
        (its_input, own_input), (own_output, its_output) = os.pipe(), os.pipe()

        def begin():
            for place, descriptor in enumerate((its_input, its_output, errors.fileno())):
                os.dup2(descriptor, place)
            os.close(own_input)
            sys.stdin = os.fdopen(0)
            work()

        self._process = forked(begin)
        os.close(its_input)
        os.close(its_output)
        self.stdin, self.stdout = os.fdopen(own_input, "w"), os.fdopen(own_output)

    def wait(self, seconds=120):
        self._process.join(seconds)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("the fork", seconds)
        return self._process.exitcode

    def kill(self):
        self._process.kill()


class ForkedWorker(Worker):
    """The process as a fork of the tests, which have imported already what takes it two seconds to import."""

    def _start(self):
        return Fork(worker.main, self._errors)


@pytest.mark.parametrize("inputs", [len(KINDS), pytest.param(300, marks=pytest.mark.long)])
def test_damaged_files_are_refused_in_one_sentence_or_read_rightly(inputs):
    tasks = [(list(KINDS)[number % len(KINDS)], number // len(KINDS)) for number in range(inputs)]
    found = list(run(tasks, seed=1, start=ForkedWorker))
    faults = [
        (kind, number, outcome, text) for kind, number, outcome, text in found if outcome not in ("accepted", "refused")
    ]
    assert faults == []
    assert len(found) == inputs
    assert {outcome for _, _, outcome, _ in found} == {"accepted", "refused"}


@pytest.mark.long
def test_a_reader_that_hangs_crashes_or_believes_damage_is_found(tmp_path, monkeypatch):
    """The driver itself: a worker whose readers are broken on purpose."""
    broken = tmp_path / "broken.py"
    broken.write_text(
        "import os, time\n"
        "from faults import kinds, worker\n"
        "def use(path):\n"
        "    first = path.read_bytes()[0]\n"
        "    if first % 4 == 0: time.sleep(60)\n"
        "    if first % 4 == 1: os._exit(7)\n"
        "    if first % 4 == 2: raise KeyError(first)\n"
        "make = lambda path: path.write_bytes(bytes([3]) * 9)\n"
        "damage = lambda data, rng: bytes([int(rng.integers(0, 4))]) * 8\n"
        "kinds.KINDS.clear()\n"
        "kinds.KINDS['x'] = kinds.Kind('.x', make, lambda path: (use(path), path.read_bytes()), damage, True)\n"
        "worker.main()\n"
    )
    monkeypatch.setattr("faults.driver.WORKER", broken)
    monkeypatch.setattr("faults.driver.SECONDS", 1)
    # The numbers that seed 3 draws are 0, 3, 1 and 2.
    outcomes = [outcome for _, _, outcome, _ in run([("x", number) for number in range(4)], seed=3)]
    assert outcomes == ["hang", "wrong", "crash", "traceback"]
