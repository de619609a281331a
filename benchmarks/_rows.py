"""Rows of a benchmark whose rows take long: each is kept as a line of JSON, with the digests of the code that made it.

    python benchmarks/kahm_table5.py --minutes 25

A second call takes the kept rows that today's code made, and goes on with the others. `--minutes` bounds a call: no row
begins after that time.
"""

import argparse
import json
import time

from _record import HERE
from _stale import changed_since, code_in_use

RUNS = HERE / "runs"


def rows_of(name, settings, one):
    """Return the rows of the settings, in their order, as far as the time allows.

    Args:
        name: name of the benchmark, and of the file of its rows.
        settings: columns and values that tell the rows apart, a dict each. JSON keeps them as they are.
        one: function from the values of a setting to the further columns of its row.
    """
    arguments = argparse.ArgumentParser(epilog=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--minutes", type=float, default=float("inf"), help="no row begins after that time")
    end = time.monotonic() + 60 * arguments.parse_args().minutes
    code_in_use()  # digests are those of this moment from now on, whatever becomes of the files
    path = RUNS / f"{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    found = {json.dumps(setting): None for setting in settings}
    if path.exists():
        for kept in map(json.loads, path.read_text().splitlines()):
            if (key := json.dumps(kept["setting"])) in found and not changed_since(kept):
                found[key] = kept["row"]
    with path.open("a") as file:
        for setting in settings:
            key = json.dumps(setting)
            if found[key] is None and time.monotonic() < end:
                found[key] = row = {**setting, **one(*setting.values())}
                file.write(json.dumps({"setting": setting, "row": row, "code": code_in_use()}) + "\n")
                file.flush()
                print(row, flush=True)
    return [row for row in found.values() if row is not None]
