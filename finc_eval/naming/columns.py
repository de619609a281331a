"""Columns that a user registers: a function of a picture, and words for little and for much of what it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from finc_eval.core.errors import UsageError, check_choice, did_you_mean
from finc_eval.core.words import join_words, quote
from finc_eval.naming.digests import digest_of
from finc_eval.naming.kept_values import KeptColumn, keep_values, known_values
from finc_eval.naming.texture import Array
from finc_eval.naming.traits import LOOKS_OF_CLIPS, TRAITS, Trait

Bad = Literal["less", "more"]

RESERVED = ("repeat", "repeats", "new kinds", "distance", "diversity", "diversity within prompts", "fit", "not finite",
            "side")  # fmt: skip
"""Names of other things that verbs measure."""

MOST_LETTERS = 100  # letters of a name, and of words: a sentence has about as many

_REGISTERED: dict[str, RegisteredColumn] = {}


@dataclass(frozen=True, eq=False)
class RegisteredColumn:
    """A column that a user registered; two of them are equal if they are the same object."""

    name: str
    function: Callable[[Image.Image], Any]
    less: str | None = None
    more: str | None = None
    low: str | None = None
    high: str | None = None
    bad: Bad | None = None
    brings: tuple[str, ...] = ()

    @property
    def digest(self) -> str | None:
        """Digest of the code of the function, as it is now; None if it uses what no digest holds."""
        return digest_of(self.function)

    def trait(self, is_flag: bool) -> Trait:
        """Return what is measured; `is_flag`: whether samples have it or not, rather than more or less of it."""
        bad = {None: 0, "less": -1, "more": 1}[self.bad]
        named, least = quote(self.name), 0.5 if is_flag else None
        if is_flag:
            low, high = self.low or self.less or f"without {named}", self.high or self.more or f"with {named}"
            less, more = self.less or f"less often {high}", self.more or f"more often {high}"
        else:
            low, high = self.low or f"low in {named}", self.high or f"high in {named}"
            less, more = self.less or f"lower in {named}", self.more or f"higher in {named}"
        # A share varies by half at most, and by nearly nothing where few of a reference have it: half is the unit.
        spread = 0.5 if is_flag else 0.0
        return Trait(self.name, low, high, less, more, least, self.brings, bad=bad, least_spread=spread, is_asked=True)


def register_column(
    name: str,
    function: Callable[[Image.Image], Any],
    *,
    less: str | None = None,
    more: str | None = None,
    low: str | None = None,
    high: str | None = None,
    bad: Bad | None = None,
    brings: Sequence[str] = (),
) -> None:
    """Register a measurement of pictures, which all verbs then compare, limit, follow and name as they do looks.

    Comparisons, gates, leaderboards, monitors and paired runs measure it of the pictures that they look at, at most
    1,000 of a set, and say it in its words. A set without pictures, such as an array of embeddings, does not have it.
    Register a name again to replace its function: values of another function are measured anew.

    Args:
        name: name of the column, such as "redness".
        function: function of a picture in RGB (a PIL image; of a clip the middle frame) that returns a number, or True
            or False for what a picture has or has not.
        less: what a whole set with less of it is called, as in "the set is on average less red".
        more: what a whole set with more of it is called, such as "redder".
        low: what a picture with little of it is called; default: low in the name.
        high: what a picture with much of it is called; default: high in the name.
        bad: the side that is worse, "less" or "more", for which two runs with the same ids are judged; default: none.
        brings: names of looks and columns that change with it, and are not said beside it, such as "saturation".

    Raises:
        UsageError: the name is taken, the function cannot be called, or words are not texts. Verbs raise it where the
            function fails, or returns what is not a finite number, and name the sample.

    Example:
        >>> import numpy as np
        >>> import finc_eval as fe
        >>> def redness(image):
        ...     red, green, blue = np.asarray(image, float).mean((0, 1))
        ...     return red - (green + blue) / 2
        >>> fe.register_column("redness", redness, less="less red", more="redder", brings=["warmth", "green"])
        >>> fe.unregister_column("redness")
    """
    looks = [trait.name for trait in (*TRAITS, *LOOKS_OF_CLIPS)]
    if not isinstance(name, str) or not name.strip() or len(name) > MOST_LETTERS or not name.isprintable():
        raise UsageError(f"a column must have a name of 1 to {MOST_LETTERS} printable letters, got {name!r}")
    if name in (*looks, *RESERVED) or name.startswith(("column ", "kind ")):
        raise UsageError(f"the name {name!r} is taken: give the column a name of its own, such as {'my ' + name!r}")
    if not callable(function):
        raise UsageError(f"the function of the column {name!r} must be callable with a PIL image, got {function!r}")
    words = {"less": less, "more": more, "low": low, "high": high}
    for key, word in words.items():
        is_text = isinstance(word, str) and word.strip() and word.isprintable() and len(word) <= MOST_LETTERS
        if word is not None and not is_text:
            raise UsageError(f"{key} must be a few words for pictures, such as 'redder', got {word!r}")
    if bad is not None:
        check_choice("bad", bad, ("less", "more"))
    brought = (brings,) if isinstance(brings, str) else tuple(brings or ())
    known = [*looks, *_REGISTERED]
    if strange := [look for look in brought if look not in known]:
        raise UsageError(
            f"brings names {strange[0]!r}, which is not a look or a registered column"
            f"{did_you_mean(str(strange[0]), known)}: take {join_words(known, 'or')}"
        )
    _REGISTERED[name] = RegisteredColumn(name, function, less, more, low, high, bad, brought)


def unregister_column(name: str) -> None:
    """Forget a column that `register_column` registered.

    Args:
        name: name of the column.

    Raises:
        UsageError: no column with this name is registered.

    Example:
        >>> import finc_eval as fe
        >>> fe.register_column("width", lambda image: image.width, less="narrower", more="wider than before")
        >>> fe.unregister_column("width")
    """
    if name not in _REGISTERED:
        known = join_words([*_REGISTERED]) or "none"
        raise UsageError(
            f"no column is registered as {name!r}{did_you_mean(str(name), _REGISTERED)}: known are {known}"
        )
    del _REGISTERED[name]


def registered_columns() -> tuple[RegisteredColumn, ...]:
    """Return the registered columns, in the order in which they were registered."""
    return tuple(_REGISTERED.values())


def is_look(trait: str) -> bool:
    """Return whether a trait, by its name, is built in, rather than registered or a column of metadata."""
    return any(look.name == trait for look in (*TRAITS, *LOOKS_OF_CLIPS))


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """Values of a registered column for some samples."""

    values: Array  # shape (n,)
    is_flag: bool  # whether all of them are True or False


class ColumnMeasurer:
    """Measures registered columns of some samples, but what is known of their pixels."""

    def __init__(
        self, columns: Sequence[RegisteredColumn], ids: Sequence[str], content: NDArray[np.uint64] | None
    ) -> None:
        """Look for what is known.

        Args:
            columns: the columns.
            ids: ids of the samples, which errors name.
            content: digest of the pixels of each sample, shape (n,); None if it is unknown: all is measured.
        """
        self._ids, self._content = ids, None if content is None else content.tolist()
        self._columns = tuple(columns)
        self._digests = [None if content is None else column.digest for column in self._columns]
        self._values = np.full((len(self._columns), len(ids)), np.nan)
        self._flags = np.ones(len(self._columns), bool)
        self._fresh: list[KeptColumn] = [{} for _ in self._columns]
        for place, digest in enumerate(self._digests):
            known: KeptColumn = {} if digest is None else known_values(digest)
            for sample, key in enumerate(self._content or ()):
                if key in known:
                    self._values[place, sample] = known[key][0]
                    self._flags[place] &= known[key][1]

    @property
    def missing(self) -> NDArray[np.int64]:
        """Numbers of the samples that lack a value of any column."""
        return np.flatnonzero(np.isnan(self._values).any(0))

    def add(self, samples: Sequence[int], images: Sequence[Image.Image]) -> None:
        """Measure the pictures of some samples, given by their numbers, in the columns that are not known of them."""
        for place, column in enumerate(self._columns):
            for sample, image in zip(samples, images, strict=True):
                if np.isnan(self._values[place, sample]):
                    value, is_flag = _measure(column, image, self._ids[sample])
                    self._values[place, sample] = value
                    self._flags[place] &= is_flag
                    if self._content is not None:
                        self._fresh[place][self._content[sample]] = value, is_flag

    def keep(self) -> None:
        """Keep what was measured, for the code and the pixels that a digest holds."""
        for digest, fresh in zip(self._digests, self._fresh, strict=True):
            if digest is not None:
                keep_values(digest, fresh)
        self._fresh = [{} for _ in self._columns]

    @property
    def found(self) -> dict[RegisteredColumn, ColumnValues]:
        """Values of each column."""
        each = zip(self._columns, self._values, self._flags, strict=True)
        return {column: ColumnValues(values, bool(is_flag)) for column, values, is_flag in each}


def _measure(column: RegisteredColumn, image: Image.Image, sample: str) -> tuple[float, bool]:
    """Return the value of a picture, and whether it is True or False rather than a number."""
    try:
        found = column.function(image.convert("RGB"))  # a copy, which the function may change
    except Exception as error:
        raise UsageError(
            f"the function of the column {column.name!r} failed on the sample {sample!r}: "
            f"{type(error).__name__}: {error}"
        ) from error
    try:
        value = found.item() if hasattr(found, "item") else found  # arrays and tensors of one number
        number = float(value) if isinstance(value, Real | np.bool_) else np.nan
    except (ValueError, RuntimeError, OverflowError, TypeError):
        number = np.nan
    if not np.isfinite(number):
        raise UsageError(
            f"the function of the column {column.name!r} returned {_shown(found)} for the sample {sample!r}: return a "
            "finite number, or True or False"
        )
    return number, isinstance(value, bool | np.bool_)


def _shown(returned: object) -> str:
    text = repr(returned)
    return text if len(text) <= 60 else f"{type(returned).__name__} {text[:60]}…"


def join_columns(
    sets: Sequence[dict[RegisteredColumn, ColumnValues]], sizes: Sequence[int]
) -> tuple[tuple[Trait, ...], list[Array]]:
    """Return the traits of the columns that all sets have, and their values in each set, shape (n, columns)."""
    shared = [column for column in sets[0] if all(column in found for found in sets)] if sets else []
    traits = tuple(column.trait(all(found[column].is_flag for found in sets)) for column in shared)
    values = [np.array([found[column].values for column in shared], np.float64) for found in sets]
    return traits, [table.reshape(len(shared), size).T for table, size in zip(values, sizes, strict=True)]
