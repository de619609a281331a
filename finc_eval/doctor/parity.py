"""Comparison of finc-eval's numbers with those of other libraries, computed from the same arrays.

Each library runs in a process of its own, so that it cannot change the settings of another. Libraries that are not
installed are skipped.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, isnan, nan
from pathlib import Path
from typing import Any, Literal

import numpy as np

from finc_eval.core.errors import DataError, FincEvalError
from finc_eval.core.files.parsed import foreign_json
from finc_eval.core.progress import Progress, silent
from finc_eval.core.record import Record
from finc_eval.doctor.library_checks import CHECKS, Array, Check, Library

Verdict = Literal["agree", "disagree", "not installed", "cannot be run"]

MIN_RELATIVE = 1e-6
"""Size below which numbers are compared by their absolute difference, in units of it."""

LIBRARY_TIMEOUT = 600
"""Number of seconds after which a library is stopped."""


class LibraryError(FincEvalError):
    """Another library cannot be run."""


@dataclass(frozen=True)
class Outcome(Record):
    """Outcome of a check.

    Attributes:
        metric: name of the metric.
        library: name of the library.
        version: version of the library; None if it is not installed.
        ours: first of our numbers; None if it is missing or NaN.
        theirs: first of their numbers; None if it is missing or NaN.
        difference: largest relative difference of all numbers; None if a number is missing.
        verdict: "agree" within the tolerance, "disagree", "not installed", or "cannot be run".
        tolerance: tolerance of the check.
        note: note of the check, command that installs the library, or reason why it cannot be run.
    """

    metric: str
    library: str
    version: str | None
    ours: float | None
    theirs: float | None
    difference: float | None
    verdict: Verdict
    tolerance: float
    note: str


def check_parity(progress: Progress = silent) -> list[Outcome]:
    """Run every check whose library is installed, on fixed random arrays."""
    x, y = random_sets()
    libraries = list(dict.fromkeys(check.library for check in CHECKS))
    outcomes = []
    for done, library in enumerate(libraries):
        progress("parity", done, len(libraries))
        checks = [check for check in CHECKS if check.library == library]
        if library.version is None:
            outcomes += [_outcome(check, "not installed", f"pip install {library.name}") for check in checks]
            continue
        try:
            theirs = run_library(library, {check.metric: check.code for check in checks}, {"random": {"x": x, "y": y}})
        except LibraryError as error:
            outcomes += [_outcome(check, "cannot be run", str(error)) for check in checks]
            continue
        outcomes += [_compared(check, check.ours(x, y), theirs[check.metric]["random"]) for check in checks]
    progress("parity", len(libraries), len(libraries))
    return outcomes


def random_sets() -> tuple[Array, Array]:
    """Return a generated and a reference set: values of float32, which finc-eval keeps, as float64.

    Both programs then start from the same numbers, and the other library computes as exactly as it can.
    """
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.3, 1.2, (300, 24)), rng.normal(0, 1, (400, 24))
    return x.astype(np.float32).astype(np.float64), y.astype(np.float32).astype(np.float64)


def run_library(
    library: Library, codes: Mapping[str, str], cases: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
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
            raise LibraryError(f"{library.name} took more than {LIBRARY_TIMEOUT} s: run it alone to see why") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise LibraryError(f"{library.name} {library.version} fails ({last}): install it again, or another version")
    try:
        found: dict[str, dict[str, Any]] = foreign_json((done.stdout.splitlines() or [""])[-1], library.name)
        return found
    except DataError as error:
        raise LibraryError(f"{library.name} {library.version} gives no numbers: run it alone to see why") from error


def difference(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the largest relative difference of two lists of numbers; infinity if one has a NaN or is longer."""
    if len(ours) != len(theirs):
        return inf
    gaps = [abs(one - other) / max(abs(other), MIN_RELATIVE) for one, other in zip(ours, theirs, strict=True)]
    return inf if any(map(isnan, gaps)) else max(gaps)


def _compared(check: Check, ours: Sequence[float], theirs: Sequence[float]) -> Outcome:
    gap = difference(ours, theirs)
    verdict: Verdict = "agree" if gap <= check.tolerance else "disagree"
    return _outcome(check, verdict, check.note, ours[0], theirs[0], gap)


def _outcome(check: Check, verdict: Verdict, note: str, *numbers: float) -> Outcome:
    """Return the outcome of a check; numbers: ours, theirs and their difference, if the library was run."""
    ours, theirs, gap = (float(one) if isfinite(one) else None for one in numbers or (nan, nan, nan))
    library = check.library
    return Outcome(check.metric, library.name, library.version, ours, theirs, gap, verdict, check.tolerance, note)
