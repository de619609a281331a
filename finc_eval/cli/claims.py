"""Claims: no two commands at once make files of one name, which would cost the later one its work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from finc_eval.core.locks import only_writer_of
from finc_eval.core.storage import disk_errors


@contextmanager
def claims() -> Iterator[None]:
    """Hold what is claimed in the block until it ends."""
    with ExitStack() as held:
        held.callback(_claims.reset, _claims.set(held))
        yield


def claim(path: Path) -> None:
    """Claim the name of a file for the command that runs, and make its folder, which goes again if it stays empty.

    Raises:
        DataError: another process has claimed it, or the folder cannot be written to.
    """
    if held := _claims.get():
        held.enter_context(_only_command_of(path))


@contextmanager
def _only_command_of(path: Path) -> Iterator[None]:
    made = [folder for folder in path.parents if not folder.exists()]
    try:
        with ExitStack() as held:
            with disk_errors(path):
                held.enter_context(only_writer_of(path))
            yield
    finally:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()


_claims: ContextVar[ExitStack | None] = ContextVar("_claims", default=None)
