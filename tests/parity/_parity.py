"""Code of other libraries, run on the arrays that finc-eval is given."""

from math import inf, isnan

import numpy as np

MIN_RELATIVE = 1e-6
"""Size below which numbers are compared by their absolute difference, in units of it."""


def random_sets():
    """Return a generated and a reference set: values of float32, which finc-eval keeps, as float64.

    Both programs then start from the same numbers, and the other library computes as exactly as it can.
    """
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.3, 1.2, (300, 24)), rng.normal(0, 1, (400, 24))
    return x.astype(np.float32).astype(np.float64), y.astype(np.float32).astype(np.float64)


def function_of(code):
    """Return the function `their` that code of another library defines; numpy is available to it as np."""
    names = {"np": np}
    exec(code, names)
    return names["their"]


def difference(ours, theirs):
    """Return the largest relative difference of two lists of numbers; infinity if one has a NaN or is longer."""
    if len(ours) != len(theirs):
        return inf
    gaps = [abs(one - other) / max(abs(other), MIN_RELATIVE) for one, other in zip(ours, theirs, strict=True)]
    return inf if any(map(isnan, gaps)) else max(gaps)
