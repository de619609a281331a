"""Code of another library runs in a process of its own, and numbers are compared as they should be."""

from math import inf, nan

import pytest
from _library_checks import Library
from _parity import difference, run_library

from finc_eval.core.errors import FincEvalError

NUMPY = Library("numpy", "numpy")


def test_codes_run_in_one_process_on_the_cases_they_are_given():
    codes = {
        "process": "import os\ndef their(x):\n    return os.getpid()",
        "sum": "def their(x):\n    return float(x.sum())",
    }
    found = run_library(NUMPY, codes, {"a": {"x": [1.0, 2.0]}, "b": {"x": [5.0]}})
    assert found["sum"] == {"a": 3.0, "b": 5.0}
    assert found["process"]["a"] == found["process"]["b"]
    with pytest.raises(FincEvalError, match="fails"):
        run_library(NUMPY, {"bad": "def their(x):\n    return 1 / 0"}, {"a": {"x": [1.0]}})


def test_differences_are_relative_except_for_tiny_numbers():
    assert difference([1.0, 2.0], [1.0, 2.2]) == pytest.approx(0.2 / 2.2)
    assert difference([1e-12], [0.0]) == pytest.approx(1e-6)
    assert difference([1.0], [1.0, 1.0]) == difference([nan], [1.0]) == inf
