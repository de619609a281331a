"""finc-eval: which kinds of images does one generative model make more often than another?

The public names, listed in `__init__.pyi`. Each loads on first use, so that importing the package stays fast.
"""

import os
from importlib.metadata import version

import lazy_loader

# Before torch loads: its threads then sleep while they wait for each other, and do not spin. On a busy machine the
# spinning ones keep those they wait for from running (benchmarks/busy_machine.py). Whoever has set it keeps that.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__version__ = version("finc-eval")
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
