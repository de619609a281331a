"""Rows of a benchmark whose rows take long: each is recorded once it is there.

    python benchmarks/kahm_table5.py --minutes 25

A call takes the rows that the record lacks: one that ends early loses nothing. Delete the record to take all of them
again. `--minutes` bounds a call: no row begins after that time.
"""

import json
import time

from _kept import end_of_call
from _record import record, result_of, undated


def record_rows(name, settings, one, notes, finish=list):
    """Take the rows of the settings that are missing, as far as the time allows, and record each of them.

    Args:
        name: name of the record.
        settings: columns and values that tell the rows apart, a dict each. JSON keeps them as they are.
        one: function from the values of a setting to the further columns of its row.
        notes: what stands below the table, after the number of rows.
        finish: function from all rows so far to the rows of the table, for columns that compare rows.
    """
    end, found = end_of_call(__doc__), kept(name, settings)
    for setting in settings:
        if key_of(setting) in found:
            continue
        if time.monotonic() >= end:
            return
        found[key_of(setting)] = row = {**setting, **one(*setting.values())}
        print(row, flush=True)
        rows = finish([found[key] for key in map(key_of, settings) if key in found])
        record(name, rows, f"{len(rows)} of {len(settings)} rows; {notes}", resumed=True)


def kept(name, settings):
    """Return the rows of the record by their settings."""
    rows = json.loads(result_of(name).read_text())["rows"] if result_of(name).exists() else ()
    found = {key_of({column: row.get(column) for column in settings[0]}): undated(row) for row in rows}
    return {key: row for key, row in found.items() if key in set(map(key_of, settings))}


def key_of(setting):
    return json.dumps(setting)
