"""Measure again how often monitors, looks, gates and pairs find something where nothing differs.

    python benchmarks/nulls.py [--regime "monitor: clusters, 200, 64" … --runs … --jobs … --minutes …]

The regimes are those of monitor.py, looks.py, gate.py and same_ids.py in which nothing differs, without their planted
changes. So they take a fraction of the time, and can be measured after each change of the mathematics. Seeds begin at
100 000: no run repeats a run of another record. *found*: runs with an alarm, a look, a failure or a broken pair.
*worse*: runs of pairs that are called worse. *before* is what the other record says, which has its own commit.
"""

import json

import gate
import looks
import monitor
import same_ids
from _record import record, result_of
from _runs import rate, run

FIRST_SEED, RUNS = 100_000, 200


def of_monitor(regime, seed):
    return {"found": bool(monitor.one(regime, seed, drifts=0)["alarms"])}


def of_looks(regime, seed):
    return {"found": bool(looks.one(regime, seed)["looks"])}


def of_gate(regime, seed):
    return {"found": bool(gate.one(regime, seed)["false"])}


def of_pairs(engine, seed):
    said = same_ids.of_equals(engine, seed)
    return {"found": said["listed"], "worse": bool(said["worse"])}


MEASURED = {
    # record: function of a regime and a seed, columns of the record, regimes
    "monitor": (
        of_monitor,
        {"found": "an alarm, unchanged"},
        (
            "clusters, 200, 64",
            "clusters, 1000, 64",
            "clusters, 5000, 16",
            "heavy tails, 1000, 64",
            "digits, 1000, 64",
            "photographs, 1000, 64",
            monitor.AMONG,
        ),
    ),
    "looks": (of_looks, {"found": "false"}, ("none-200", "none-500")),
    "gate": (
        of_gate,
        {"found": "false failures"},
        ("unchanged", "small", "prompts", "windows", "retrained-3", "looks"),
    ),
    "same_ids": (
        of_pairs,
        {"found": "a list of equals", "worse": "equals worse"},
        (
            "noise of 3/255",
            "noise of 3/255 by e^.7z",
            "JPEG 85",
            "20 % darker",
            "prompts, noise of 3/255",
            "prompts, JPEG 85",
        ),
    ),
}
REGIMES = {f"{name}: {regime}": (name, regime) for name, (_, _, regimes) in MEASURED.items() for regime in regimes}


def one(what, seed):
    name, regime = REGIMES[what]
    return MEASURED[name][0](regime, FIRST_SEED + seed)


def before(name, regime, column):
    """Return what the other record says of a regime."""
    fault, _, size = regime.rpartition("-") if name == "looks" else (regime, "", "")
    rows = json.loads(result_of(name).read_text())["rows"]
    row = next(row for row in rows if next(iter(row.values())) == fault)
    if name == "looks":  # it counts looks, and its runs stand in the other column
        return f"{row[f'{column}, {size}']} looks; runs: {row[f'named, {size}'].split('/')[1]}"
    return row[column]


def report(found):
    """Record each regime with what the other record says of it."""
    rows = []
    for what, runs in found.items():
        name, regime = REGIMES[what]
        row = {"what": what}
        for key, column in MEASURED[name][1].items():
            row |= {key: rate(runs, key), f"{key}, before": before(name, regime, column)}
        rows.append(row)
    record("nulls", rows, "Runs that find something where nothing differs, with 95 % intervals; α = 0.05.")


if __name__ == "__main__":
    run("nulls", list(REGIMES), one, report, RUNS)
