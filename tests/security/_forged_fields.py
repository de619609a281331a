"""Stored files with one field that somebody forged: the places of all fields, the values, and files that have them."""

import json
import warnings
from copy import deepcopy

import numpy as np
from _files import content, forge

from finc_eval.core.errors import FincEvalError
from finc_eval.core.marks import CHECKSUM, checksum_of

HALF = object()
"""The first half of a list or text."""

VALUES = (0, -1, 2**62, 10**19, float("nan"), 1e300, "", [], HALF, None, True, "x" * 100_000, {"a": [[]]}, [[[-1]]])

NUMBERS = (0, -1, 2**62, float("nan"), 1e300)
"""What an array is filled with."""

HEAD = ("program", "type", "layout", CHECKSUM)


def places(value, path=()):
    """Yield the place of every field, lists and tables included."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in items:
        if path or name not in HEAD:
            yield from places(one, (*path, name))


def one_of_each_kind(value):
    """Return the first place of each kind; the places in a list are of one kind."""
    found = {}
    for path in places(value):
        found.setdefault(tuple("#" if isinstance(one, int) else one for one in path), path)
    return [*found.values()]


def put(data, path, value):
    """Put a value at a place; False if the place has nothing to halve."""
    *above, last = path
    for one in above:
        data = data[one]
    if value is HALF:
        if not isinstance(data[last], list | str) or len(data[last]) < 2:
            return False
        value = data[last][: len(data[last]) // 2]
    data[last] = value
    return True


def forged_json(path, place, value):
    data = json.loads(path.read_text())
    if not put(data, place, value):
        return False
    if CHECKSUM in data:
        data[CHECKSUM] = checksum_of(data)
    path.write_text(json.dumps(data))
    return True


def forged_header(path, place, value):
    done = []
    forge(path, lambda header, _: done.append(put(header, place, value if value is HALF else deepcopy(value))))
    return done[0]


def forged_array(path, place, value):
    def change(_, arrays):
        values = arrays[place]
        if value is HALF:
            arrays[place] = values[: len(values) // 2]
        else:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                arrays[place] = np.full(values.shape, value).astype(values.dtype)

    forge(path, change)
    return True


def fields(path):
    """Return (how to forge, place, values) of every kind of field of a stored file."""
    if path.suffix == ".json":
        return [(forged_json, place, VALUES) for place in one_of_each_kind(json.loads(path.read_text()))]
    _, header, arrays = content(path)
    written = [one for one in VALUES if one == one]  # a header is JSON without NaN
    found = [(forged_header, place, written) for place in one_of_each_kind(header)]
    return found + [(forged_array, name, (*NUMBERS, HALF)) for name in arrays]


def outcome(use, path):
    """Return "" for a right answer or one sentence, else what came."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            use(path)
    except FincEvalError as error:
        return "" if "\n" not in str(error) else f"several lines: {error!s:.300}"
    except BaseException as error:
        return f"{type(error).__name__}: {error!s:.200}"
    return ""
