"""The errors that a user is meant to see, and the hint that their messages often end in.

    FincEvalError            all of them: the command line prints the message and exits with code 3
    ├── UsageError           an argument, an option or a name is wrong: correct the call
    ├── DataError            samples, embeddings or a file cannot be used: mend or replace them
    ├── IncompatibleError    sets, sketches or results do not belong together
    └── BudgetError          a privacy budget does not allow it

Code that goes on after an error catches the class that it can answer, never the root.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice

from finc_eval.core.secrets import redact
from finc_eval.core.words import join_words, spell_controls

MAX_MESSAGE = 2000  # Letters of a message at most. The longest that are meant name all extractors, in about 1,300.


class FincEvalError(Exception):
    """An error that the user can mend; anything else that is raised is a fault of the program.

    The message is one clear sentence: what was wrong, with the value, and what to do. It stays on one line, whatever it
    quotes; the middle of a very long message is left out. Control characters are spelled out, and passwords and
    signatures of URLs are cut.

    Example:
        >>> import finc_eval as fe
        >>> try:
        ...     fe.Settings(rho=-1)
        ... except fe.FincEvalError as error:
        ...     print(error)
        rho must be a positive number, got -1
    """

    def __init__(self, message: str = "") -> None:
        line = spell_controls(redact(" ".join(message.splitlines())))
        half = MAX_MESSAGE // 2
        super().__init__(line if len(line) <= MAX_MESSAGE else f"{line[:half]} … {line[-half:]}")


class UsageError(FincEvalError):
    """An argument, an option or a name is wrong.

    Example:
        >>> import finc_eval as fe
        >>> fe.Settings(kernel="cosin")
        Traceback (most recent call last):
        finc_eval.core.errors.UsageError: kernel must be one of gaussian, cosine, got 'cosin' (did you mean "cosine"?)
    """


class DataError(FincEvalError):
    """Samples, embeddings or a file cannot be used.

    Example:
        >>> import finc_eval as fe
        >>> fe.load("missing.h5")
        Traceback (most recent call last):
        finc_eval.core.errors.DataError: missing.h5 does not exist
    """


class IncompatibleError(FincEvalError):
    """Sets, sketches or results do not belong together.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets(100)
        >>> fe.compare(gen[:, :50], ref)
        Traceback (most recent call last):
        finc_eval.core.errors.IncompatibleError: gen has 50 entries per embedding and ref 784: ...
    """


class BudgetError(FincEvalError):
    """A privacy budget does not allow what was asked for.

    Example:
        >>> import finc_eval as fe
        >>> issubclass(fe.BudgetError, fe.FincEvalError)
        True
    """


MAX_HINTS = 4  # known words that a hint names where one word is the beginning or a part of them all

MAX_HINT_LETTERS, MAX_COMPARED = 100, 3000
"""Letters of a word that is compared with others, and number of the others: each takes up to a millisecond."""


def close_match(word: str, known: Iterable[str]) -> str | None:
    """Return the known word nearest to `word`, or None."""
    if len(word) > MAX_HINT_LETTERS:
        return None
    return next(iter(difflib.get_close_matches(word, [*islice(known, MAX_COMPARED)], n=1)), None)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ' (did you mean "x"?)' with the known word nearest to `word`, or the known words that contain it."""
    by_lower = {one.lower(): one for one in known}
    nearest = close_match(word.lower(), by_lower)
    matches = [] if nearest is None else [nearest]
    if not matches and len(word) > 2:
        matches = [one for one in by_lower if word.lower() in one][:MAX_HINTS]
    hints = join_words([f'"{by_lower[one]}"' for one in matches], "or")
    return f" (did you mean {hints}?)" if matches else ""
