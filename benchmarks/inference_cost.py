"""Time of a comparison of 50 000 + 50 000 rows by older code and by this code, in turn.

    git worktree add /tmp/old REVISION && python benchmarks/inference_cost.py --before /tmp/old

d = 256, r = 2000, every comparison in a process of its own (`busy_machine.py` has it). The ratio is the median of the
ratios of neighboring runs, so that other work on the machine falls on both alike.
"""

import argparse
import statistics
from pathlib import Path

from _record import record
from busy_machine import ROOT, seconds

N = 50_000


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--before", type=Path, help="working tree of older code")
    arguments.add_argument("--repetitions", type=int, default=3)
    options = arguments.parse_args()
    if options.before is None:
        print("there is nothing to compare with: pass --before and a working tree of older code")
        return
    pairs = []
    for _ in range(options.repetitions):
        pairs.append([seconds(code, N) for code in (options.before.resolve(), ROOT)])
        print("before {:.1f} s, now {:.1f} s".format(*pairs[-1]), flush=True)
    before, now = (statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = statistics.median(new / old for old, new in pairs)
    row = {"rows a set": N, "before, s": round(before, 1), "now, s": round(now, 1), "now / before": round(ratio, 2)}
    record("inference_cost", [row], f"median of {options.repetitions}, taken in turn; d = 256, r = 2000")


if __name__ == "__main__":
    main()
