"""The errors that a user is meant to see, the hint that their messages often end in, and the checks of arguments.

    FincEvalError            all of them: the command line prints the message and exits with code 3
    ├── UsageError           an argument, an option or a name is wrong: correct the call
    ├── DataError            samples, embeddings or a file cannot be used: mend or replace them
    ├── IncompatibleError    sets, sketches or results do not belong together
    └── BudgetError          a privacy budget does not allow it

Code that goes on after an error catches the class that it can answer, never the root. Checks have one message each:
what must hold, the value, and the nearest valid choice. They return Python's own numbers, so that numbers of numpy and
torch become JSON.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from math import inf, nan
from numbers import Real
from typing import Any

from finc_eval.core.secrets import redact
from finc_eval.core.words import join_words, plural, shorten, spell_controls


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
        super().__init__(shorten(spell_controls(redact(" ".join(message.splitlines())))))


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


class RemoteError(DataError):
    """An object of a store or web server cannot be had: the fault is not one of its content."""


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


def first_line(error: Exception) -> str:
    """Return the first line of what another library says of an error; the name of its type if it says nothing."""
    return next(filter(None, map(str.strip, str(error).splitlines())), type(error).__name__)


def close_match(word: str, known: Iterable[str]) -> str | None:
    """Return the known word nearest to `word`, or None."""
    if len(word) > 100:  # letters: a comparison takes up to a millisecond
        return None
    return next(iter(difflib.get_close_matches(word, [*islice(known, 3000)], n=1)), None)


SYNONYMS = {"random_state": "seed", "random_seed": "seed", "n_jobs": "workers", "num_workers": "workers"}
"""Our names of the options of other libraries."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ' (did you mean "x"?)' with the known word nearest to `word`, or the known words that contain it."""
    by_lower = {name.lower(): name for name in known}
    nearest = close_match(word.lower(), by_lower)
    matches = [] if nearest is None else [nearest]
    if not matches and len(word) > 2:
        # 4: known words that a hint names where one word is the beginning or a part of them all.
        matches = [lowered for lowered in by_lower if word.lower() in lowered][:4]
    hints = join_words([f'"{by_lower[lowered]}"' for lowered in matches], "or")
    return f" (did you mean {hints}?)" if matches else ""


MAX_COUNT = 2**63 - 1  # largest whole number that arrays and files hold
MAX_SEED = 2**32 - 1  # largest seed that every library takes

MIN_POSITIVE, MAX_POSITIVE = 1e-100, 1e100
"""Smallest and largest positive number of a setting: its square, and one over its square, are numbers, too."""


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Raise UsageError unless the value is one of the choices."""
    if value not in tuple(choices):
        hint = did_you_mean(value, choices) if isinstance(value, str) else ""
        raise UsageError(f"{name} must be one of {', '.join(choices)}, got {value!r}{hint}")


def check_positive(name: str, value: Any, most: float = MAX_POSITIVE, least: float = MIN_POSITIVE) -> float:
    """Return a number from `least` to `most`, both above 0, or raise UsageError."""
    number = _number(value)
    if not 0 < number < inf:
        raise UsageError(f"{name} must be a positive number, got {_show(value)}")
    got = f"{number:g}" if isinstance(number, float) else _show(value)
    if number > most:
        raise UsageError(f"{name} must be at most {most:g}, got {got}")
    if number < least:
        raise UsageError(f"{name} must be at least {least:g}, got {got}")
    return number


def check_finite(name: str, value: Any) -> float:
    """Return a finite number, or raise UsageError."""
    number = _number(value)
    if not -inf < number < inf:
        raise UsageError(f"{name} must be a number, got {_show(value)}")
    return number


def check_count(name: str, value: Any, least: int = 1, most: int = MAX_COUNT) -> int:
    """Return a whole number from `least` to `most`, or raise UsageError."""
    number = _number(value)
    if number != number // 1 or number < least:
        raise UsageError(f"{name} must be a whole number of at least {least}, got {_show(value)}")
    if number > most:
        raise UsageError(f"{name} must be a whole number of at most {most}, got {_show(value)}")
    return int(number)


def check_labels(shape: Sequence[int], samples: int) -> None:
    """Raise DataError unless labels of this shape are one for each sample."""
    if tuple(shape) != (samples,):
        given = plural(shape[0], "label") if len(shape) == 1 else f"labels of shape {tuple(shape)}"
        raise DataError(f"{plural(samples, 'sample')} came with {given}: pass one label per sample")


def check_seed(value: Any) -> int:
    """Return a seed of random numbers, or raise UsageError."""
    return check_count("seed", value, least=0, most=MAX_SEED)


def check_fraction(name: str, value: Any, *, zero: bool = False, one: bool = False) -> float:
    """Return a number between 0 and 1, or raise UsageError; `zero` and `one` allow the ends themselves."""
    number = _number(value)
    if not (0 < number < 1 or (zero and number == 0) or (one and number == 1)):
        raise UsageError(f"{name} must lie between 0 and 1, got {_show(value)}")
    return number


def _number(value: Any) -> float:
    """Return a number of any library as Python's own; NaN for anything else, which no check lets pass."""
    if isinstance(value, bool) or not (isinstance(value, Real) or hasattr(value, "item")):
        return nan
    try:
        number = value.item() if hasattr(value, "item") else value
        return number if type(number) in (int, float) else float(number)
    except (TypeError, ValueError, RuntimeError):  # arrays of several numbers
        return nan


def _show(value: object) -> str:
    return repr(value) if isinstance(value, str) else str(value)
