"""Time of the same comparison on an idle machine and beside two processes that spin.

On a busy machine, threads that wait for each other at every step of a small decomposition wait for the scheduler. Each
comparison (20 000 × 256 rows against as many, defaults) runs in a process of its own. The two spinning processes are
plain loops. `--before PATH` adds the same for the code in another working tree:

    git worktree add /tmp/old REVISION && python benchmarks/busy_machine.py --before /tmp/old

What counts is the ratio of busy to idle. On two cores beside two spinning processes, 2 is a fair share.
"""

import argparse
import os
import statistics
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from _record import record

ROOT = Path(__file__).resolve().parent.parent
SPINNING, REPETITIONS = 2, 3
COMPARISON = """
import sys
import time
import numpy as np
import finc_eval as fe

def mixture(n, dim, clusters, seed):
    centers = np.random.default_rng(0).standard_normal((20, dim), np.float32)
    rng = np.random.default_rng(seed)
    return centers[rng.integers(0, clusters, n)] + rng.standard_normal((n, dim), np.float32) / 2

n = int(sys.argv[1])
gen, ref = mixture(n, 256, 20, 1), mixture(n, 256, 15, 2)
fe.compare(gen[:500], ref[:500], features=100)  # imports and first uses are not timed
start = time.perf_counter()
fe.compare(gen, ref)
print(time.perf_counter() - start)
"""


@contextmanager
def spinning(count):
    """Processes that keep the machine busy."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def seconds(code, n=20_000):
    """The time of one comparison of n rows a set with the code in this folder."""
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    run = subprocess.run(
        [sys.executable, "-c", COMPARISON, str(n)],
        env=environment | {"PYTHONPATH": str(code)},
        cwd=code,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(run.stdout)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--before", type=Path, help="working tree of older code")
    arguments.add_argument("--repetitions", type=int, default=REPETITIONS)
    options = arguments.parse_args()
    trees = {"now": ROOT} if options.before is None else {"before": options.before.resolve(), "now": ROOT}
    times = {(label, busy): [] for label in trees for busy in (False, True)}
    for _ in range(options.repetitions):  # in turn, so that other work on the machine falls on all alike
        for label, code in trees.items():
            for busy in (False, True):
                with spinning(SPINNING * busy):
                    times[label, busy].append(seconds(code))
                print(label, "busy" if busy else "idle", f"{times[label, busy][-1]:.1f} s", flush=True)
    rows = []
    for label in trees:
        idle, busy = (statistics.median(times[label, state]) for state in (False, True))
        rows.append(
            {"code": label, "idle, s": round(idle, 1), "busy, s": round(busy, 1), "ratio": round(busy / idle, 1)}
        )
    note = f"median of {options.repetitions}, taken in turn; 20 000 × 256 rows a set; {SPINNING} spinning processes"
    record("busy_machine", rows, note)


if __name__ == "__main__":
    main()
