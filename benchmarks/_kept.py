"""Tasks of a campaign of many: the outcome of each is kept as a line of JSON.

    python benchmarks/damaged_files.py --minutes 25

A second call goes on with the tasks that have no outcome yet; delete the file of outcomes after a change to the code.
`--minutes` bounds a call: no task begins after that time. A record has the sums; the rows of `_rows.py` are in the
record itself.
"""

import argparse
import json
import time

from _record import HERE

RUNS = HERE / "runs"


class Kept:
    """Rows that are kept in a file.

    Args:
        name: name of the benchmark, and of the file of its rows.
    """

    def __init__(self, name):
        self._path, self._rows = RUNS / f"{name}.jsonl", {}
        self._path.parent.mkdir(exist_ok=True)
        for line in self._path.read_text().splitlines() if self._path.exists() else ():
            one = json.loads(line)
            self._rows[json.dumps(one["setting"])] = one["row"]

    def get(self, setting):
        """Return the row of a setting, or None."""
        return self._rows.get(json.dumps(setting))

    def add(self, setting, row):
        """Keep the row of a setting."""
        self._rows[json.dumps(setting)] = row
        with self._path.open("a") as file:
            file.write(json.dumps({"setting": setting, "row": row}) + "\n")


def end_of_call(epilog):
    """Return when the `--minutes` of the command line are over, by the clock of `time.monotonic`."""
    arguments = argparse.ArgumentParser(epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--minutes", type=float, default=float("inf"), help="nothing begins after that time")
    return time.monotonic() + 60 * arguments.parse_args().minutes


def rows_of(name, settings, one):
    """Return the rows of the settings, in their order, as far as the time allows.

    Args:
        name: name of the benchmark, and of the file of its rows.
        settings: columns and values that tell the rows apart, a dict each. JSON keeps them as they are.
        one: function from the values of a setting to the further columns of its row.
    """
    end, kept = end_of_call(__doc__), Kept(name)
    for setting in settings:
        if kept.get(setting) is None and time.monotonic() < end:
            row = {**setting, **one(*setting.values())}
            kept.add(setting, row)
            print(row, flush=True)
    return [row for setting in settings if (row := kept.get(setting)) is not None]
