"""Code of other libraries, run on the arrays that finc-eval is given, each library in a process of its own."""

import subprocess
import sys
import tempfile
from math import inf, isnan
from pathlib import Path

import numpy as np

from finc_eval.core.errors import FincEvalError
from finc_eval.core.files.parsed import foreign_json

MIN_RELATIVE = 1e-6
"""Size below which numbers are compared by their absolute difference, in units of it."""

LIBRARY_TIMEOUT = 600
"""Number of seconds after which a library is stopped."""


def random_sets():
    """Return a generated and a reference set: values of float32, which finc-eval keeps, as float64.

    Both programs then start from the same numbers, and the other library computes as exactly as it can.
    """
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.3, 1.2, (300, 24)), rng.normal(0, 1, (400, 24))
    return x.astype(np.float32).astype(np.float64), y.astype(np.float32).astype(np.float64)


def run_library(library, codes, cases):
    """Run code of a library in one process, and return the results by name of the code and name of the case.

    Args:
        library: library, to name in messages.
        codes: Python code by name. Each defines a function `their`; numpy is available as np.
        cases: arguments of `their` by name of the case: arrays, or what numpy makes arrays of.
    """
    with tempfile.TemporaryDirectory() as folder:
        arrays = Path(folder) / "arrays.npz"
        np.savez(arrays, **{f"{case}/{name}": value for case, given in cases.items() for name, value in given.items()})
        script = [
            "import json",
            "import numpy as np",
            f"arrays = np.load({str(arrays)!r})",
            f"cases = {[(case, list(given)) for case, given in cases.items()]!r}",
            "given = lambda case, names: {name: arrays[f'{case}/{name}'] for name in names}",
            "results = {}",
        ]
        for name, code in codes.items():
            script += [code, f"results[{name!r}] = {{case: their(**given(case, names)) for case, names in cases}}"]
        script.append("print(json.dumps(results))")
        # -P and another folder: no file where the user stands shadows a library, or configures one.
        command = [sys.executable, "-P", "-W", "ignore", "-c", "\n".join(script)]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=LIBRARY_TIMEOUT,
                check=False,
                cwd=folder,
            )
        except subprocess.TimeoutExpired:
            raise FincEvalError(f"{library.name} took more than {LIBRARY_TIMEOUT} s: run it alone to see why") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise FincEvalError(f"{library.name} {library.version} fails ({last}): install it again, or another version")
    return foreign_json((done.stdout.splitlines() or [""])[-1], library.name)


def difference(ours, theirs):
    """Return the largest relative difference of two lists of numbers; infinity if one has a NaN or is longer."""
    if len(ours) != len(theirs):
        return inf
    gaps = [abs(one - other) / max(abs(other), MIN_RELATIVE) for one, other in zip(ours, theirs, strict=True)]
    return inf if any(map(isnan, gaps)) else max(gaps)
