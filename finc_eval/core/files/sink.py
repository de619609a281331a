"""`Sink`: the file beneath HDF5, which never learns that a write failed: it crashes at exit where it does."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from finc_eval.core.doors.creating import created

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Sink(io.RawIOBase):
    """A new file whose first failure is kept and raised by `check`; what comes after it is thrown away.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self._file = created(path).detach()
        self._error: OSError | None = None

    def check(self) -> None:
        """Raise the error of the first write that failed, if there is one."""
        if self._error is not None:
            raise self._error

    def write(self, data: Buffer, /) -> int:
        """Write all of the data, unless something failed before."""
        left = memoryview(data).cast("B")
        size = len(left)
        try:
            while self._error is None and left:
                left = left[self._file.write(left) :]
        except OSError as error:
            self._error = error
        return size

    def readinto(self, buffer: Buffer, /) -> int:
        """Read into all of the buffer; what was thrown away is zeros."""
        into = memoryview(buffer).cast("B")
        done = self._file.readinto(into)
        into[done:] = bytes(len(into) - done)
        return len(into)

    def truncate(self, size: int | None = None, /) -> int:
        """Set the length of the file."""
        try:
            if self._error is None:
                self._file.truncate(size)
        except OSError as error:
            self._error = error
        return self._file.tell() if size is None else size

    def seek(self, place: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a place."""
        return self._file.seek(place, whence)

    def tell(self) -> int:
        """Return the place."""
        return self._file.tell()

    def readable(self) -> bool:
        """Return True."""
        return True

    def writable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()
