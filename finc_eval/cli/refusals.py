"""Refusals by the system: a path that it does not open, and memory that it does not give."""

from __future__ import annotations

import errno

from finc_eval.core.errors import DataError

SHORT_OF_MEMORY = "it takes more memory than there is: pass less, or allow more (ulimit -v)"
NO_ROOM = ("failed to map segment", "allocate memory", "bad_alloc")
"""Words of the loader of libraries, the system, PyTorch and C++ where memory is short."""


def refused_by_system(error: OSError) -> str:
    """Return the sentence on a path that the system does not open: the program is not at fault."""
    why = (error.strerror or type(error).__name__).lower()
    return str(DataError(f"{error.filename} cannot be used ({why}): check the path, and who may read and write there"))


def is_short_of_memory(error: BaseException) -> bool:
    """Return whether an error says that no memory is left."""
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    is_of_libraries = isinstance(error, ImportError | OSError | RuntimeError)
    return isinstance(error, MemoryError) or (is_of_libraries and any(words in str(error) for words in NO_ROOM))
