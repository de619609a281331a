"""Faults in runs of every verb that writes: kills, full disks, locks that fail, inputs that change.

The folder of temporary files should be a small disk in memory, or "disk full" is left out. An argument ends it after so
many minutes. Needs Linux.
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

KILLS = ("killed at a moment", "killed at a change of files")
SEED = 0


def main():
    until = time.monotonic() + 60 * (float(sys.argv[1]) if sys.argv[1:] else 60 * 24)
    disk, names = os.statvfs(tempfile.gettempdir()), [name for name in VERBS if name not in SLOW]
    small = disk.f_blocks * disk.f_frsize <= SMALL_DISK
    others = [fault for fault in FAULTS if fault not in KILLS and (small or fault != "disk full")]
    tasks = [(fault, number, name) for number in range(3) for fault in KILLS for name in names]
    tasks += [(fault, 0, name) for name in names for fault in others]
    counts = {fault: Counter() for fault in (*KILLS, *others)}
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(Path(folder))
        for fault, number, name in tasks:
            if time.monotonic() > until:
                break
            rng = np.random.default_rng([SEED, number, *name.encode(), *fault.encode()])
            try:
                outcome = outcome_of(runs.trial(name, fault, rng))
            except AssertionError as error:
                outcome = "faults"
                print(f"!! {name} | {fault} {number} | {error}", flush=True)
            counts[fault].update(["runs", outcome])
            print(fault, number, name, outcome, flush=True)
    columns = ("runs", "killed", "refused in one sentence", "done all the same", "faults")
    rows = [{"fault": fault, **{column: count[column] for column in columns}} for fault, count in counts.items()]
    record("broken_runs", rows, f"{len(names)} commands, seed {SEED}")


def outcome_of(told):
    """Return the column of what happened to a run."""
    if "exit code -9" in told:
        return "killed"
    return "refused in one sentence" if "exit code 3" in told else "done all the same"


if __name__ == "__main__":
    main()
