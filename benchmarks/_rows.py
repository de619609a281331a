"""Rows of a benchmark whose rows take long: each is recorded once it is there, with the digests of its code.

    python benchmarks/kahm_table5.py --minutes 25

A call takes the rows that the record lacks, then those that other code made, and replaces these rows alone: a call that
ends early loses nothing. `--minutes` bounds a call: no row begins after that time.
"""

import json
import time

from _kept import end_of_call
from _record import record, result_of
from _stale import changed_since, code_in_use, states_of


def record_rows(name, settings, one, notes, finish=list):
    """Take the rows of the settings that are missing or stale, as far as the time allows, and record each of them.

    Args:
        name: name of the record.
        settings: columns and values that tell the rows apart, a dict each. JSON keeps them as they are.
        one: function from the values of a setting to the further columns of its row.
        notes: what stands below the table, after the number of rows.
        finish: function from all rows so far to the rows of the table, for columns that compare rows.
    """
    end = end_of_call(__doc__)
    code_in_use()  # digests are those of this moment from now on, whatever becomes of the files
    found = kept(name, settings)
    missing = [setting for setting in settings if key_of(setting) not in found]
    there = [setting for setting in settings if key_of(setting) in found]
    for setting in (*missing, *(old for old in there if changed_since(found[key_of(old)]) != [])):
        if time.monotonic() >= end:
            return
        row = {**setting, **one(*setting.values())}
        print(row, flush=True)
        found[key_of(setting)] = {"row": row, "code": code_in_use()}
        taken = [found[key] for key in map(key_of, settings) if key in found]
        rows = finish([each["row"] for each in taken])
        codes = [each["code"] for each in taken]
        record(name, rows, f"{len(rows)} of {len(settings)} rows; {notes}", codes)


def kept(name, settings):
    """Return the rows of the record by their settings, each with the code that made it."""
    path = result_of(name)
    if not path.exists():
        return {}
    result, keys, found = json.loads(path.read_text()), set(map(key_of, settings)), {}
    for state in states_of(result):
        for row in (result["rows"][number] for number in state["rows"]):
            if (key := key_of({column: row.get(column) for column in settings[0]})) in keys:
                found[key] = {"row": row, "code": state["code"]}
    return found


def key_of(setting):
    return json.dumps(setting)
