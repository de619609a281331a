"""The same arrays through finc-eval and through other libraries: do they agree, and if not, by how much?

Each library runs in a process of its own, so that neither changes the other's settings. Only what is installed is run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, isnan
from pathlib import Path
from typing import Any, Literal

import numpy as np

from finc_eval.core.errors import FincEvalError
from finc_eval.core.progress import Progress, silent
from finc_eval.doctor.oracles import CHECKS, Array, Check, Library

Verdict = Literal["agree", "disagree", "not installed", "cannot be run"]

NEGLIGIBLE = 1e-6
"""Numbers below it are compared by their absolute difference, in units of it."""

SECONDS = 600
"""After which a library is given up."""


@dataclass(frozen=True)
class Outcome:
    """What became of a check.

    Attributes:
        metric, library: of the check.
        version: of the library; None where it is not installed.
        ours, theirs: the first of the numbers; None where there is none, or a NaN.
        difference: the largest relative difference of any; None where one of the numbers is missing.
        verdict: "agree" within the tolerance, "disagree", "not installed", or "cannot be run".
        tolerance: of the check.
        note: of the check, or how to install the library, or why it cannot be run.
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
    x, y = random_pair()
    libraries = list(dict.fromkeys(check.library for check in CHECKS))
    outcomes = []
    for done, library in enumerate(libraries):
        progress("parity", done, len(libraries))
        checks = [check for check in CHECKS if check.library == library]
        if library.version is None:
            outcomes += [_not_run(check, "not installed", f"pip install {library.name}") for check in checks]
            continue
        try:
            theirs = answers(library, {check.metric: check.code for check in checks}, {"random": {"x": x, "y": y}})
        except FincEvalError as error:
            outcomes += [_not_run(check, "cannot be run", str(error)) for check in checks]
            continue
        outcomes += [_outcome(check, check.ours(x, y), theirs[check.metric]["random"]) for check in checks]
    progress("parity", len(libraries), len(libraries))
    return outcomes


def random_pair() -> tuple[Array, Array]:
    """A generated and a reference set: float32's values, which finc-eval keeps, in float64.

    So both sides start from the same numbers, and the other library computes as exactly as it can.
    """
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.3, 1.2, (300, 24)), rng.normal(0, 1, (400, 24))
    return x.astype(np.float32).astype(np.float64), y.astype(np.float32).astype(np.float64)


def answers(
    library: Library, codes: Mapping[str, str], cases: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """What the function `their` of each code returns for each case, by the names of both, from one process.

    Args:
        library: whose code it is, for messages.
        codes: Python that defines `their`, by name; numpy is there as np.
        cases: by name, the arguments of `their`, arrays or what numpy makes arrays of.

    Raises:
        FincEvalError: the code fails.
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
        # -P: a file of the user's called like a library is not meant.
        command = [sys.executable, "-P", "-W", "ignore", "-c", "\n".join(script)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise FincEvalError(f"{library.name} took more than {SECONDS} s: run it alone to see why") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["without a word"])[-1]
        raise FincEvalError(f"{library.name} {library.version} fails ({last}): install it again, or another version")
    found: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def difference(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The largest relative difference of two lists of numbers; infinite where one has a NaN or is longer."""
    if len(ours) != len(theirs):
        return inf
    gaps = [abs(one - other) / max(abs(other), NEGLIGIBLE) for one, other in zip(ours, theirs, strict=True)]
    return inf if any(map(isnan, gaps)) else max(gaps)


def _outcome(check: Check, ours: Sequence[float], theirs: Sequence[float]) -> Outcome:
    gap = difference(ours, theirs)
    first, others, finite_gap = (float(value) if isfinite(value) else None for value in (ours[0], theirs[0], gap))
    return Outcome(
        check.metric,
        check.library.name,
        check.library.version,
        first,
        others,
        finite_gap,
        "agree" if gap <= check.tolerance else "disagree",
        check.tolerance,
        check.note,
    )


def _not_run(check: Check, verdict: Verdict, note: str) -> Outcome:
    version = check.library.version
    return Outcome(check.metric, check.library.name, version, None, None, None, verdict, check.tolerance, note)
