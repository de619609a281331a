"""Faults in runs of every verb that writes: kills, full disks, locks that fail, inputs that change.

    python benchmarks/broken_runs.py --minutes 25

Runs are kept, and a second call goes on where the first one ended. Remove runs/broken_runs.jsonl after a change to what
writes files. The folder of temporary files should be a small disk in memory, or "disk full" is left out. Needs Linux.
"""

import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from _kept import rows_of
from _record import record

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from faults.runs import FAULTS, Runs, is_small_disk, killed_at, rival_after_a_kill, rivals
from faults.verbs import AT_EACH_CHANGE, SLOW, VERBS

KILLS = ("killed at a moment", "killed at a change of files")
EACH, TWO, AFTER = "killed at each change of files", "two releases of one budget", "a near copy after a kill"
SEED = 0

ROUNDS = 4
"""Kills of each command, in each way. Every second one at a random moment comes too late."""

RACES = 30
"""Pairs of releases that want all of one budget at once."""

COLUMNS = ("runs", "killed", "refused in one sentence", "done all the same", "faults")


def main():
    small, names = is_small_disk(Path(tempfile.gettempdir())), [name for name in VERBS if name not in SLOW]
    others = [fault for fault in FAULTS if fault not in KILLS and (small or fault != "disk full")]
    tasks = [(fault, number, name) for number in range(ROUNDS) for fault in KILLS for name in names]
    tasks += [(fault, 0, name) for name in names for fault in others]
    counts = {fault: Counter() for fault in (*KILLS, *others, EACH, TWO, AFTER)}
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(Path(folder))
        tasks += [(EACH, number, name) for name in AT_EACH_CHANGE for number in range(runs.whole(name).steps["change"])]
        tasks += [(TWO, number, "private sketch release") for number in range(RACES)]
        changes = runs.whole("private sketch release").steps["change"]
        tasks += [(AFTER, number, "private sketch release") for number in range(changes)]
        settings = [dict(zip(("fault", "number", "command"), task, strict=True)) for task in tasks]
        for row in rows_of("broken_runs", settings, lambda *task: {"outcome": outcome_of(runs, *task)}):
            counts[row["fault"]].update(["runs", row["outcome"]])
    told = [(fault, count) for fault, count in counts.items() if count]
    rows = [{"fault": fault, **{column: count[column] for column in COLUMNS}} for fault, count in told]
    record("broken_runs", rows, f"{len(names)} commands, seed {SEED}")


def outcome_of(runs, fault, number, name):
    """Break a run, and return the column of what happened to it."""
    rng = np.random.default_rng([SEED, number, *name.encode(), *fault.encode()])
    try:
        if fault == TWO:
            told = rivals(runs, rng)
        elif fault == AFTER:
            told = rival_after_a_kill(runs, number)
        else:
            told = runs.trial(name, killed_at(number) if fault == EACH else fault, rng)
    except AssertionError as error:
        print(f"!! {name} | {fault} {number} | {error}", flush=True)
        return "faults"
    if "exit code -9" in told:
        return "killed"
    return "refused in one sentence" if "exit code 3" in told else "done all the same"


if __name__ == "__main__":
    main()
