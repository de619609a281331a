"""Another library on the same arrays, in a process of its own, so that neither changes the other's settings."""

import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

KINDS = ["random", "duplicated", "tiny", "real"]


def theirs(package, code, cases):
    """What the function `their` that `code` defines returns for each of the cases, named dictionaries of arguments.

    The test is skipped without the package.
    """
    if find_spec(package) is None:
        pytest.skip(f"needs the package {package}")
    with tempfile.TemporaryDirectory() as folder:
        arrays = Path(folder) / "arrays.npz"
        np.savez(arrays, **{f"{case}/{name}": value for case, given in cases.items() for name, value in given.items()})
        begin = f"import json, numpy as np\narrays = np.load({str(arrays)!r})\n"
        each = f"{{case: their(**{{n: arrays[f'{{case}}/{{n}}'] for n in names}}) for case, names in {_names(cases)}}}"
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", f"{begin}{code}\nprint(json.dumps({each}))"],
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@cache
def theirs_on_pairs(package, code):
    """`theirs` of the x and y of every pair, in one process."""
    return theirs(package, code, {kind: {"x": x, "y": y} for kind, (x, y) in _pairs().items()})


def pair(kind):
    """A generated and a reference set: "random", "duplicated", "tiny" (n = 2), or "real", features of clips.

    Of float32's values, which finc-eval keeps, in float64, so that both sides start from the same numbers and the
    other library computes as exactly as it can.
    """
    if kind not in _pairs():
        pytest.skip("needs the test assets: set FINC_EVAL_ASSETS to their folder")
    return _pairs()[kind]


@cache
def _pairs():
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.3, 1.2, (60, 24)), rng.normal(0, 1, (60, 24))
    found = {
        "random": (rng.normal(0.3, 1.2, (300, 24)), rng.normal(0, 1, (400, 24))),
        "duplicated": (x[rng.integers(0, 60, 300)], np.concatenate([y, y, x[:30]])),
        "tiny": (rng.normal(0.3, 1.2, (2, 6)), rng.normal(0, 1, (2, 6))),
    }
    if "FINC_EVAL_ASSETS" in os.environ:
        with np.load(Path(os.environ["FINC_EVAL_ASSETS"]) / "ucf101" / "vgg16_relu6_mean.npz") as clips:
            features, label = clips["features"][:, :128], clips["label"]
        found["real"] = (features[label < 8], features[label >= 5])
    return {kind: tuple(rows.astype(np.float32).astype(np.float64) for rows in two) for kind, two in found.items()}


def _names(cases):
    return [(case, list(given)) for case, given in cases.items()]
