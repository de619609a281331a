"""100 000 damaged and forged files of every kind that finc-eval opens, and what became of each.

    python benchmarks/damaged_files.py --minutes 25

Each kind gets at least so many; then those that are opened fast get more. Portions of files are kept, and a second call
goes on where the first one ended. Remove runs/damaged_files.jsonl after a change to a reader.
"""

import sys
import time
from collections import Counter, deque
from itertools import islice
from pathlib import Path

from _kept import Kept, end_of_call
from _record import record

import finc_eval.cli.app  # noqa: F401  its code is part of the record

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from faults.driver import COLUMNS, FAILURES, kinds, run

INPUTS, PORTION, SEED = 100_000, 50, 220

AT_LEAST = 2
"""Portions that each kind gets."""


def next_kind(rows):
    """Return the kind with too few portions, or else the one that took the least time so far."""
    few = [kind for kind, own in rows.items() if len(own) < AT_LEAST]
    return few[0] if few else min(rows, key=lambda kind: sum(row["seconds"] for row in rows[kind]))


def told(outcomes):
    """Return how often each outcome was seen, and the seconds that it took; print the faults."""
    begun, counts = time.monotonic(), Counter()
    for kind, index, outcome, text in outcomes:
        counts[outcome] += 1
        if outcome in FAILURES:
            print("!!", kind, index, outcome, text, sep=" | ", flush=True)
    return {**counts, "seconds": time.monotonic() - begun}


def main():
    end, kept, rows, tasks = end_of_call(__doc__), Kept("damaged_files"), {kind: [] for kind in kinds()}, deque()
    opened = run(iter(tasks.popleft, None), SEED)  # by one process, as long as it lives
    while sum(map(len, rows.values())) * PORTION < INPUTS:
        kind = next_kind(rows)
        setting = {"kind": kind, "portion": len(rows[kind])}
        if (row := kept.get(setting)) is None:
            if time.monotonic() > end:
                break
            first = setting["portion"] * PORTION
            tasks.extend((kind, index) for index in range(first, first + PORTION))
            row = told(islice(opened, PORTION))
            kept.add(setting, row)
            print(setting, row, flush=True)
        rows[kind].append(row)
    opened.close()
    counts = {kind: sum(map(Counter, own), Counter()) for kind, own in rows.items()}
    counts["all"] = sum(counts.values(), Counter())
    table = [
        {
            "kind of file": kind,
            "inputs": f"{sum(found[outcome] for outcome in COLUMNS):,}",
            **{outcome: f"{found[outcome]:,}" for outcome in COLUMNS},
        }
        for kind, found in counts.items()
    ]
    record("damaged_files", table, f"seed {SEED}")


if __name__ == "__main__":
    main()
