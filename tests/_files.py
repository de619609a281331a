"""Files of finc-eval with another content, as someone who forges them would write it: all checksums are right."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from finc_eval.core.files.stored import Stated, StoredFile, stated_in
from finc_eval.core.files.writing import fill_file

Arrays = dict[str, np.ndarray]


def content(path: Path) -> tuple[Stated, dict[str, Any], Arrays]:
    """Type and layout, the header and all arrays of a file."""
    stated = stated_in(path)
    with StoredFile(path, *stated) as file:
        return stated, file.header, {name: file.stored(name).whole() for name in file.arrays}


def forge(path: Path, change: Callable[[dict[str, Any], Arrays], None], step: int = 0) -> Path:
    """Write the file again with a header and arrays that `change` has altered, and with a layout of so much more."""
    stated, header, arrays = content(path)
    change(header, arrays)
    with fill_file(path, stated.type_name, stated.layout + step) as file:
        file.header |= header
        for name, values in arrays.items():
            file.array(name, values)
    return path
