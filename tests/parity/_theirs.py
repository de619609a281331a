"""The arrays that finc-eval and other libraries are both given, and the numbers of the others."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from _library_checks import CHECKS
from _parity import random_sets, run_library

KINDS = ["random", "duplicated", "tiny", "real"]


def theirs(check, kind):
    """Return the numbers of the other library of a check for a pair; skip the test without the library."""
    if check.library.version is None:
        pytest.skip(f"needs {check.library.name}: pip install {check.library.name}")
    return _results(check.library)[check.metric][kind]


def pair(kind):
    """Return a generated and a reference set: "random", "duplicated", "tiny" (n = 2), or "real", features of clips."""
    if kind not in _pairs():
        pytest.skip("needs the test assets: set FINC_EVAL_ASSETS to their folder")
    return _pairs()[kind]


ONLY_OF_ENOUGH = """
def their(x, y, of_enough=their):
    return of_enough(x, y) if len(x) >= {} else []
"""


@cache
def _results(library):
    """Run all checks of a library on all pairs that they take, in one process: importing a library takes seconds."""
    cases = {kind: {"x": x, "y": y} for kind, (x, y) in _pairs().items()}
    checks = [check for check in CHECKS if check.library == library]
    codes = {check.metric: check.code + ONLY_OF_ENOUGH.format(check.min_samples) for check in checks}
    return run_library(library, codes, cases)


@cache
def _pairs():
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.3, 1.2, (60, 24)), rng.normal(0, 1, (60, 24))
    found = {
        "random": random_sets(),
        "duplicated": (x[rng.integers(0, 60, 300)], np.concatenate([y, y, x[:30]])),
        "tiny": (rng.normal(0.3, 1.2, (2, 6)), rng.normal(0, 1, (2, 6))),
    }
    if "FINC_EVAL_ASSETS" in os.environ:
        with np.load(Path(os.environ["FINC_EVAL_ASSETS"]) / "ucf101" / "vgg16_relu6_mean.npz") as clips:
            features, label = clips["features"][:, :128], clips["label"]
        found["real"] = (features[label < 8], features[label >= 5])
    return {kind: tuple(rows.astype(np.float32).astype(np.float64) for rows in two) for kind, two in found.items()}
