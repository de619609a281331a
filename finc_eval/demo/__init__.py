"""The demo: real digits with planted differences, through the path that a user's own folders take."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
