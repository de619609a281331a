"""CPU seconds of tests by their room: `pytest --cpu-seconds cpu.csv` writes each test, and prints a table of rooms.

From the setup of a test to the end of its teardown, of its worker and of the processes that ended in it: user and
system time. Fixtures of a session or module count for the test that asks first. Collecting the tests and starting the
workers is not in it.
"""

import csv
import os
from collections import defaultdict
from pathlib import Path

import pytest


def used():
    """Return the CPU seconds of this process and of its ended children."""
    return sum(os.times()[:4])


class CpuSeconds:
    """Plugin of pytest, in the process of the user and in each worker."""

    def __init__(self, path):
        self.path, self.seconds = path, {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        self.start = used()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        if call.when == "teardown":
            report.user_properties.append(("cpu", used() - self.start))
        return report

    def pytest_runtest_logreport(self, report):
        for name, value in report.user_properties:
            if report.when == "teardown" and name == "cpu":
                self.seconds[report.nodeid] = value

    def pytest_terminal_summary(self, terminalreporter):
        rooms = defaultdict(list)
        for test, seconds in self.seconds.items():
            rooms[room_of(test)].append(seconds)
        with Path(self.path).open("w", newline="") as file:
            csv.writer(file).writerows(sorted(self.seconds.items(), key=lambda one: -one[1]))
        terminalreporter.section("CPU seconds by room")
        for room, seconds in sorted(rooms.items(), key=lambda one: -sum(one[1])):
            terminalreporter.line(f"{sum(seconds):8.1f} s {len(seconds):6,} cases  {room}")
        terminalreporter.line(f"{sum(self.seconds.values()):8.1f} s {len(self.seconds):6,} cases  all")


def room_of(test):
    """Return the folder of a test in tests/, or "tests" of a file that is directly there."""
    parts = test.partition("::")[0].split("/")
    return parts[1] if len(parts) > 2 else parts[0]
