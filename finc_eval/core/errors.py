"""The one exception a user is meant to see, and the hint its message often ends in."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class FincEvalError(Exception):
    """A usage or data error.

    Its message is one clear sentence: what was wrong, with the value, and what to do. The command line
    prints it and exits with code 3; anything else that is raised is a fault of the program.
    """


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ' (did you mean "x"?)' with the known word nearest to `word`, or nothing if none is near."""
    matches = difflib.get_close_matches(word, list(known), n=1)
    return f' (did you mean "{matches[0]}"?)' if matches else ""
