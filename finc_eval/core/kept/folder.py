"""`KeptFolder`: a folder to which commands add over months. What is added appears whole, and others' files are safe."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from finc_eval.core.digest import sha256_of_file
from finc_eval.core.doors import PRIVATE_FILE, PRIVATE_FOLDER, inside, open_to_change
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.storage import alone_with, check_own_folder, disk_errors, only_writer_of

NUMBER = re.compile(r"[0-9]{4,}")  # name of a numbered part


@dataclass(frozen=True)
class KeptFolder:
    """A folder to which commands add over months: the models of a board, the baselines of a generator.

    Files are written whole (`write_whole`, `write_together`, `Sealed`). A part is a folder of files that never change;
    it appears by one renaming, when all of its files are on the disk. A kill leaves what was there, or what was added,
    and the same command goes on.

    Attributes:
        path: the folder, which need not exist.
        names: names of its files and folders besides the numbered parts.
    """

    path: Path
    names: tuple[str, ...] = ()

    def at(self, name: object) -> Path:
        """Return the path of a file that lies in the folder; DataError for a name or a link that leads elsewhere."""
        return inside(self.path, name)

    def has(self, name: str) -> bool:
        """Return whether there is a file or folder of this name."""
        return (self.path / name).exists()

    def names_in(self, folder: str, ending: str) -> list[str]:
        """Return the names, below `path`, of the files of a folder of it that end so, in their order."""
        return sorted(path.relative_to(self.path).as_posix() for path in (self.path / folder).glob(f"*{ending}"))

    @property
    def numbered(self) -> list[str]:
        """Names of the numbered parts, in the order in which they were added."""
        found = [path.name for path in self.path.iterdir()] if self.path.is_dir() else []
        return sorted(filter(NUMBER.fullmatch, found), key=int)

    def check_own(self) -> None:
        """Raise UsageError if the folder has other files than its own; hidden files do not count."""
        check_own_folder(self.path, (*self.names, *self.numbered))

    def alone(self, name: str) -> AbstractContextManager[None]:
        """Wait for other processes that change what a file of this name lists, and hold them off."""
        return alone_with(self.path / name)


@contextmanager
def new_part(folder: Path, taken: str) -> Iterator[Path]:
    """Yield a temporary folder that becomes a part when the block ends well, and is removed otherwise.

    Its owner alone can read it. What a kill left of the same part is removed first.

    Args:
        folder: path of the part.
        taken: what to say to a command for which the part is there already.
    """
    temporary = folder.with_name(f".{folder.name}.tmp")
    with disk_errors(folder), only_writer_of(folder):
        if folder.exists():
            raise UsageError(f"{folder} exists, and {taken}")
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(PRIVATE_FOLDER)
        try:
            yield temporary
            for path in temporary.iterdir():
                path.chmod(PRIVATE_FILE)
                with open_to_change(path) as file:  # a power cut must not leave the part with half of a file
                    os.fsync(file.fileno())
            temporary.replace(folder)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def check_digests(folder: Path, digests: Mapping[str, str], changed: str) -> None:
    """Raise DataError, which says what it means that a file `changed`, unless files have the digests that are listed.

    Every name is checked before a file is read: no message may say what another file of this machine holds.
    """
    for file, digest in [(inside(folder, name), digest) for name, digest in digests.items()]:
        if not file.exists() or sha256_of_file(file) != digest:
            raise DataError(f"{file} {changed}")
