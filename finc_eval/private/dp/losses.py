"""Budget that was spent for nothing: the error or the interruption that lost the output says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Note = Callable[[], str]  # function that returns the sentence on a loss, or "" if nothing was spent

_expected: ContextVar[list[Note] | None] = ContextVar("notes on spendings whose output is not written", default=None)


def expect_output(note: Note) -> None:
    """Expect the output of a spending from the block of `note_losses` around this call, if there is one.

    Call it before the spending is written: the write itself may be interrupted.
    """
    if (expected := _expected.get()) is not None:
        expected.append(note)


@contextmanager
def note_losses() -> Iterator[Callable[[], None]]:
    """Add a note to any error or interruption of the block: what the block spent, and that nothing came of it.

    Yields a function to call when the output is written. Of nested blocks the outermost adds the notes: what an inner
    block returned is lost with the outer one.
    """
    outer = _expected.get()
    expected = [] if outer is None else outer
    token = _expected.set(expected)
    try:
        yield expected.clear
    except BaseException as error:
        for sentence in [note() for note in expected] if outer is None else ():
            if sentence:
                error.add_note(sentence)
        raise
    finally:
        _expected.reset(token)
