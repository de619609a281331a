"""Kernel affine hull machines: models of classes, classifier, membership score, fabricated data, federated classes.

The public names, listed in `kahm.pyi`, of the wing `finc_eval.private`. Each loads on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub("finc_eval", __file__)
