"""The long run: python tests/faults --inputs 20000."""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from faults.driver import HEAD, Outcomes, kinds, row_of, run


def main() -> int:
    parser = argparse.ArgumentParser(description="Open damaged and forged files of every kind.")
    parser.add_argument("--inputs", type=int, default=20_000, help="number of files, over all kinds")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the damage")
    parser.add_argument("--kind", action="append", help="kind of file; default: all")
    parser.add_argument("--only", type=int, help="number of the one input to open")
    options = parser.parse_args()
    chosen = options.kind or kinds()
    numbers = range(-(-options.inputs // len(chosen))) if options.only is None else [options.only]
    outcomes, begun = Outcomes(), time.monotonic()
    print(HEAD)
    for found in run(((kind, number) for kind in chosen for number in numbers), options.seed):
        outcomes.add(*found)
        kind, number, *_ = found
        if options.only is not None:
            print(*found)
        if number == numbers[-1]:
            print(row_of(kind, outcomes.counts[kind]), flush=True)
    print(row_of("all", sum(outcomes.counts.values(), Counter())))
    print(f"\n{time.monotonic() - begun:.0f} s, seed {options.seed}")
    places = Counter((kind, outcome, text) for kind, _, outcome, text in outcomes.faults)
    first = {(kind, outcome, text): index for kind, index, outcome, text in reversed(outcomes.faults)}
    for place, count in places.most_common():
        print(f"{count} x {' | '.join(place)} (first: {first[place]})")
    return 1 if outcomes.faults else 0


if __name__ == "__main__":
    sys.exit(main())
