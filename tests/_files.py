"""Files of finc-eval with another content, as someone who forges them would write it: all checksums are right."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from finc_eval.core.files.front import Front, front_of
from finc_eval.core.files.reading import StoredFile
from finc_eval.core.files.writing import fill_file

Arrays = dict[str, np.ndarray]


def content(path: Path) -> tuple[Front, dict[str, Any], Arrays]:
    """The front, the header and all arrays of a file."""
    front = front_of(path)
    with StoredFile(path, front.type_name, front.layout) as file:
        return front, file.header, {name: file.stored(name).whole() for name in file.arrays}


def forge(path: Path, change: Callable[[dict[str, Any], Arrays], None]) -> Path:
    """Write the file again with a header and arrays that `change` has altered."""
    front, header, arrays = content(path)
    change(header, arrays)
    with fill_file(path, front.type_name, front.layout) as file:
        file.header |= header
        for name, values in arrays.items():
            file.array(name, values)
    return path
