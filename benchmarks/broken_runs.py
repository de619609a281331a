"""Faults in runs of every verb that writes: kills, full disks, locks that fail, inputs that change.

The folder of temporary files should be a small disk in memory, or "disk full" is left out. Needs Linux.
"""

import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from _record import record

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from faults.runs import FAULTS, Runs
from faults.verbs import SLOW, VERBS

SMALL_DISK = 1 << 28
"""Bytes of the largest disk that is filled."""

EACH = {"killed at a moment": 4, "killed at a change of files": 4}
"""Runs of each verb that are broken by a fault; one by any other."""


def main():
    seed, chosen = 0, sys.argv[1:] or [name for name in VERBS if name not in SLOW]
    disk = os.statvfs(tempfile.gettempdir())
    small = disk.f_blocks * disk.f_frsize <= SMALL_DISK
    counts = {fault: Counter() for fault in FAULTS if small or fault != "disk full"}
    with tempfile.TemporaryDirectory() as folder:
        runs, begun = Runs(Path(folder)), time.monotonic()
        for name in chosen:
            for fault, count in counts.items():
                for number in range(EACH.get(fault, 1)):
                    rng = np.random.default_rng([seed, number, *name.encode(), *fault.encode()])
                    try:
                        told = runs.trial(name, fault, rng)
                    except AssertionError as error:
                        count["faults"] += 1
                        print(f"!! {name} | {fault} {number} | {error}", flush=True)
                        continue
                    count["runs"] += 1
                    count[outcome_of(told)] += 1
            print(f"{name}: {time.monotonic() - begun:.0f} s", flush=True)
    columns = ("runs", "killed", "refused in one sentence", "done all the same", "faults")
    rows = [{"fault": fault, **{column: count[column] for column in columns}} for fault, count in counts.items()]
    if sys.argv[1:]:
        print(*rows, sep="\n")
    else:
        record("broken_runs", rows, f"{len(chosen)} commands, seed {seed}")


def outcome_of(told):
    """Return the column of what happened to a run."""
    if "exit code -9" in told:
        return "killed"
    return "refused in one sentence" if "exit code 3" in told else "done all the same"


if __name__ == "__main__":
    main()
