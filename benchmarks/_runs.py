"""Runs of a benchmark: each regime in several processes, every run kept as a line of JSON, resumable.

    python benchmarks/inference_null.py --regime zipf-500-10000 --runs 400 --jobs 2

Runs are numbered, and the number is the seed. A second call continues where the first ended, so a long benchmark can
be taken in portions: `--minutes` bounds each regime. `--fresh` forgets the runs of these regimes, which is right once
the code has changed. The row of a regime is recorded from all of its runs that are there, unless the one that is
recorded already has more.
"""

import argparse
import json
import time
import traceback
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import suppress
from multiprocessing import get_context

import torch
from _kept import RUNS
from _record import Runs, claim
from scipy import stats

from finc_eval.core.errors import DataError

AGAIN, NEXT_SEED = 10, 1_000_000
"""Draws of sets that are refused, and the step of the seed from one to the next."""


def run(name, regimes, one, report, runs):
    """Complete the runs of the regimes that were asked for, and report all that are there.

    Args:
        name: name of the benchmark, and of the folder of its runs.
        regimes: names of its regimes.
        one: function of the script, from the name of a regime and a seed to the figures of a run.
        report: function from {regime: its runs}, those with runs only.
        runs: default number of runs of a regime, or {regime: number}.
    """
    arguments = argparse.ArgumentParser(epilog=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument(
        "--regime", nargs="*", choices=regimes, metavar="NAME", help=f"of {', '.join(regimes)}".replace("%", "%%")
    )
    arguments.add_argument("--runs", type=int, help="number of runs of each regime")
    arguments.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    arguments.add_argument("--minutes", type=float, default=float("inf"), help="most minutes for each regime")
    arguments.add_argument("--fresh", action="store_true", help="forget the runs of these regimes first")
    options = arguments.parse_args()
    one_thread = {"initializer": torch.set_num_threads, "initargs": (1,)}
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn"), **one_thread) as pool:
        for regime in options.regime or (regimes if options.regime is None else ()):
            wanted = options.runs or number_of(runs, regime)
            if options.fresh:
                path_of(name, regime).unlink(missing_ok=True)
            try:
                complete(pool, name, regime, one, wanted, options)
            except Exception:
                traceback.print_exc()
            print(regime, len(kept(name, regime)), "runs", flush=True)
    found = {regime: kept(name, regime) for regime in regimes}
    claim({key: Runs(len(taken), number_of(runs, key)) for key, taken in found.items()})
    if any(found.values()):
        report({regime: taken for regime, taken in found.items() if taken})


def number_of(runs, regime):
    return runs if isinstance(runs, int) else runs[regime]


def complete(pool, name, regime, one, wanted, options):
    """Add the runs that are missing, until the time is over."""
    done = {run["seed"] for run in kept(name, regime)}
    seeds = iter([seed for seed in range(wanted) if seed not in done])
    end, pending = time.monotonic() + 60 * options.minutes, {}
    path_of(name, regime).parent.mkdir(parents=True, exist_ok=True)
    with path_of(name, regime).open("a") as file:
        while True:
            while (
                len(pending) < 2 * options.jobs and time.monotonic() < end and (seed := next(seeds, None)) is not None
            ):
                pending[pool.submit(timed, one, regime, seed)] = seed
            if not pending:
                return
            for future in wait(pending, return_when=FIRST_COMPLETED).done:
                line = {"seed": pending.pop(future), **future.result()}
                file.write(json.dumps(line) + "\n")
                file.flush()


def timed(one, regime, seed):
    """Return the figures of a run, and how long it took.

    Sets that are refused, such as those of one large group, are drawn again.
    """
    start = time.perf_counter()
    for again in range(AGAIN):
        with suppress(DataError):
            figures = one(regime, seed + again * NEXT_SEED)
            return {**figures, "seconds": round(time.perf_counter() - start, 2)}
    raise RuntimeError(f"the sets of {regime} were refused {AGAIN} times from seed {seed} on")


def path_of(name, regime):
    return RUNS / name / f"{regime}.jsonl"


def kept(name, regime):
    """Return the runs of a regime so far."""
    path = path_of(name, regime)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def rate(runs, key):
    """Return how many runs have this, of those that say, with the 95 % interval of Clopper and Pearson."""
    values = [run[key] for run in runs if run.get(key) is not None]
    return counted(sum(map(bool, values)), len(values))


def counted(count, total):
    """Return a count out of a total with its 95 % interval, or nothing of nothing."""
    if not total:
        return ""
    low, high = stats.binomtest(count, total).proportion_ci(method="exact")
    return f"{count}/{total} [{low:.3f}, {high:.3f}]"
