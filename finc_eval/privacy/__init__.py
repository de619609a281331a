"""Differential privacy: private reference data, synthetic data, and the ledger of spent budget.

The public names, listed in `__init__.pyi`. Each loads on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
