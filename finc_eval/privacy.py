"""Differential privacy: private reference data, synthetic data, and the ledger of spent budget.

The public names, listed in `privacy.pyi`, of the wing `finc_eval.private`. Each loads on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub("finc_eval", __file__)
