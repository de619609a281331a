"""finc-eval: which kinds of images does one generative model make more often than another?

The public names are in `__init__.pyi`, and completion shows them; `__all__` are those that most people need. Each
loads on first use, so that importing the package stays fast.
"""

import os
from importlib.metadata import version

import lazy_loader

# Before torch loads: its threads then sleep while they wait for each other, and do not spin. On a busy machine the
# spinning ones keep those they wait for from running (benchmarks/busy_machine.py). Whoever has set it keeps that.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__version__ = version("finc-eval")
__getattr__, __dir__, _ = lazy_loader.attach_stub(__name__, __file__)

__all__ = [
    "Board",
    "BudgetError",
    "Comparison",
    "DataError",
    "EmbeddingCache",
    "EmbeddingSet",
    "Extraction",
    "FincEvalError",
    "IncompatibleError",
    "Kinds",
    "Monitor",
    "Policy",
    "Run",
    "Settings",
    "Sketch",
    "UsageError",
    "Verdict",
    "audit",
    "compare",
    "compare_methods",
    "compare_releases",
    "evaluate",
    "extract",
    "gate",
    "kahm",
    "kinds",
    "leaderboard",
    "load",
    "metrics",
    "privacy",
]
