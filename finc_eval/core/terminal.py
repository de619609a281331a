"""Text of others on the terminal: names of files and samples may hold control characters, which are shown, not sent.

A control sequence in a name could clear the screen, change its title, or hide what was printed; a direction mark turns
letters around. A URL may hold a password. Everything that the command line prints passes through `visible`, but for
JSON, which programs read.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from finc_eval.core.doors import fill_streams
from finc_eval.core.places import with_urls
from finc_eval.core.secrets import redact
from finc_eval.core.words import spell_controls


def visible(text: str) -> str:
    r"""Write control characters and direction marks as \u001b, copies as their URLs, and URLs without secrets."""
    return spell_out(redact(text))


def spell_out(text: str) -> str:
    r"""Write control characters and direction marks as \u001b, which is the same in JSON, and copies as their URLs."""
    return spell_controls(with_urls(text))


class _Nowhere(io.StringIO):
    """The stream of a program that was started without one, as by a scheduler: what is printed there is dropped."""

    def write(self, text: str) -> int:
        return len(text)


class VisibleStream(io.TextIOBase):
    """A stream that prints control characters visibly.

    Attributes:
        rich_proxied_file: the stream behind it, to which rich sends its own colors and bars; what rich is given to
            print is made visible before (`report/terminal.py`, `core/progress.py`).
    """

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]  # read-only here
        """Encoding of the stream behind it."""
        return self.rich_proxied_file.encoding

    def write(self, text: str) -> int:
        """Write a text, and return its number of characters."""
        self.rich_proxied_file.write(visible(text))
        return len(text)

    def flush(self) -> None:
        """Send what is written on its way."""
        self.rich_proxied_file.flush()

    def close(self) -> None:
        """Leave the stream behind it, which belongs to others, as it is: Python closes streams that nobody uses."""

    def isatty(self) -> bool:
        """Return whether the stream behind it is a terminal."""
        return self.rich_proxied_file.isatty()

    def fileno(self) -> int:
        """Return the number of the file behind it."""
        return self.rich_proxied_file.fileno()


def print_data(text: str) -> None:
    """Print JSON in ASCII, which programs read, exactly as a file of it would be."""
    print(text, file=getattr(sys.stdout, "rich_proxied_file", sys.stdout))


def print_error(text: str) -> None:
    """Print a line on standard error, if it takes any: what a command ends with does not depend on it."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def output_failure() -> OSError | None:
    """Return the error of standard output if it takes nothing more, and let go of it; None if all is written."""
    failures: list[OSError | None] = []
    for stream in (sys.stderr, sys.stdout):
        failures.append(None)
        try:
            stream.flush()
        except OSError as error:
            failures[-1] = error
            # Python would try again at its end, and complain: what is left goes into a pipe that nobody reads.
            with suppress(OSError):
                os.dup2(os.pipe()[1], stream.fileno())
        except (AttributeError, ValueError):  # no stream, or a closed one
            pass
    return failures[-1]


@contextmanager
def visible_output() -> Iterator[None]:
    """Make standard output and standard error print control characters visibly until the block ends."""
    streams = sys.stdout, sys.stderr
    if None in (sys.stdin, *streams):
        fill_streams()
    for stream in streams:
        # File names need not be text, nor need the terminal know every letter.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = (VisibleStream(stream or _Nowhere()) for stream in streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams
