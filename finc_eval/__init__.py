"""finc-eval: which kinds of images does one generative model make more often than another?

The public names, listed in `__init__.pyi`. Each loads on first use, so that importing the package stays fast.
"""

from importlib.metadata import version

import lazy_loader

__version__ = version("finc-eval")
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
