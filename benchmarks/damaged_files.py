"""100 000 damaged and forged files of every kind that finc-eval opens, and what became of each.

Each kind gets at least so many; then those that are opened fast get more. An argument ends it after so many minutes.
"""

import sys
import time
from collections import Counter
from pathlib import Path

from _record import record

import finc_eval.cli.app  # noqa: F401  its code is part of the record

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from faults.driver import COLUMNS, FAILURES, Outcomes, kinds, run

INPUTS, AT_LEAST, SEED = 100_000, 100, 220


class Tasks:
    """Kinds and numbers of files, the kind that took the least time first."""

    def __init__(self, names, until):
        self.seconds, self.numbers, self.until = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0), until

    def __iter__(self):
        while sum(self.numbers.values()) < INPUTS and time.monotonic() < self.until:
            few = [name for name, number in self.numbers.items() if number < AT_LEAST]
            name = min(few or self.seconds, key=(self.numbers if few else self.seconds).get)
            begun = time.monotonic()
            yield name, self.numbers[name]
            self.seconds[name] += time.monotonic() - begun
            self.numbers[name] += 1


def main():
    minutes = float(sys.argv[1]) if sys.argv[1:] else 60 * 24
    tasks, outcomes = Tasks(kinds(), time.monotonic() + 60 * minutes), Outcomes()
    for count, found in enumerate(run(tasks, SEED), 1):
        outcomes.add(*found)
        if found[2] in FAILURES:
            print("!!", *found, sep=" | ", flush=True)
        if count % 5000 == 0:
            print(count, flush=True)
    counts = outcomes.counts | {"all": sum(outcomes.counts.values(), Counter())}
    rows = [
        {"kind of file": kind, "inputs": f"{found.total():,}", **{column: f"{found[column]:,}" for column in COLUMNS}}
        for kind, found in counts.items()
    ]
    record("damaged_files", rows, f"seed {SEED}")


if __name__ == "__main__":
    main()
