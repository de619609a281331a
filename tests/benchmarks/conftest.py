"""The benchmarks' own modules, which are scripts and not installed, for the tests of those that compute something."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
