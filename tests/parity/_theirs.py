"""The arrays that finc-eval and other libraries are both given, and the numbers of the others."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from _parity import function_of, random_sets

KINDS = ["random", "duplicated", "tiny", "real"]


def theirs(check, kind):
    """Return the numbers of the other library of a check for a pair; skip the test without the library."""
    if check.library.version is None:
        pytest.skip(f"needs {check.library.name}: pip install {check.library.name}")
    x, y = pair(kind)
    return function_of(check.code)(x, y) if len(x) >= check.min_samples else []


def pair(kind):
    """Return a generated and a reference set: "random", "duplicated", "tiny" (n = 2), or "real", features of clips."""
    if kind not in _pairs():
        pytest.skip("needs the test assets: set FINC_EVAL_ASSETS to their folder")
    return _pairs()[kind]


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
            features, label = clips["features"][::3, :128], clips["label"][::3]
        found["real"] = (features[label < 8], features[label >= 5])
    return {kind: tuple(rows.astype(np.float32).astype(np.float64) for rows in two) for kind, two in found.items()}
