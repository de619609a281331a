"""Columns of metadata that hold numbers: which are measurements, and why verbs do not compare the others."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.words import join_words, quote
from finc_eval.embeddings.base import Embeddings
from finc_eval.naming.columns import registered_columns
from finc_eval.naming.properties import LOOK_COLUMN, TEXT_COLUMNS
from finc_eval.naming.texture import Array
from finc_eval.naming.traits import TRAITS, Trait

Rows = Mapping[str, NDArray[np.int64]]  # indices of samples in each set
Parts = tuple[tuple[Trait, ...], dict[str, Array]]  # traits, and values by set, shape (samples, traits)

LEAST_KNOWN = 0.9
"""Least part of the samples that must have a number: in place of the others' numbers, more would be made up."""

MOST_CODES = 20
"""Distinct whole numbers up to which a column is of codes, such as 0 and 1 or ratings of 1 to 5."""

MOST_COLUMNS = 20
"""Columns of metadata that are compared: each makes the looks a little harder to find."""

TRUTHS = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True, eq=False)
class NumbersOfSet:
    """Numbers of some samples of a set in a column.

    Attributes:
        values: the numbers, shape (n,); NaN for a sample without a number.
        strange: the first text that is not a number; None without such a text.
        are_numbers: whether most of the texts that are given are numbers, or "True" and "False".
    """

    values: Array
    strange: str | None
    are_numbers: bool

    @classmethod
    def of(cls, samples: Embeddings, name: str, rows: NDArray[np.int64]) -> NumbersOfSet:
        """Read the column of the samples with the indices `rows`, shape (n,)."""
        values, missing = samples.column(name), {"", *samples.missing_as(name)}
        texts = ["" if values[row] in missing else values[row] for row in rows.tolist()]
        given = [text for text in texts if text]
        if given and all(text.lower() in TRUTHS for text in given):
            return cls(np.array([TRUTHS.get(text.lower(), np.nan) for text in texts]), None, are_numbers=True)
        numbers = np.array([_number(text) for text in texts], np.float64)
        strange = [text for text, number in zip(texts, numbers, strict=True) if text and number == np.inf]
        numbers[~np.isfinite(numbers)] = np.nan
        return cls(numbers, strange[0] if strange else None, len(strange) <= (1 - LEAST_KNOWN) * len(given))

    @property
    def known(self) -> Array:
        """The numbers of the samples that have a number."""
        return self.values[~np.isnan(self.values)]

    @property
    def are_enough(self) -> bool:
        """True if all texts are numbers, and few are missing."""
        return self.strange is None and len(self.known) > 0 and len(self.known) >= LEAST_KNOWN * len(self.values)

    def filled(self) -> Array:
        """Return the numbers, and for samples without a number those of other samples, at random: by the same law."""
        numbers, is_known = self.values.copy(), ~np.isnan(self.values)
        numbers[~is_known] = np.random.default_rng(0).choice(self.known, int((~is_known).sum()))
        return numbers


def _number(text: str) -> float:
    """Return the number that a text is, NaN for none, and infinity for a text of another kind."""
    try:
        number = float(text or "nan")
    except ValueError:
        return np.inf
    return number if np.isfinite(number) else np.nan


def read_column(samples: Embeddings, name: str, rows: NDArray[np.int64]) -> Array | None:
    """Return the numbers of a column; None if a sample has another text, or too many have no number.

    Samples that lack a number take that of another sample, at random: their law is that of the others. `rows` has the
    indices of the samples, and the result their numbers, shape (n,).
    """
    found = NumbersOfSet.of(samples, name, rows)
    return found.filled() if found.are_enough else None


def read_numbers(sets: Mapping[str, Embeddings], rows: Rows) -> Parts | None:
    """Read the columns of metadata that hold numbers in all sets; None without any."""
    found = {
        name: numbers
        for name, numbers in _numbers_by_column(sets, rows).items()
        if len(numbers) == len(sets) and all(each.are_enough for each in numbers.values())
    }
    traits_of = {name: look_of_column(name, numbers) for name, numbers in found.items()}
    # In the order of the looks of pictures, by which one of them names what several show.
    order = [*(column.name for column in registered_columns()), *(trait.name for trait in TRAITS)]
    in_order = [f"{LOOK_COLUMN}{name}" for name in order]
    looks = {name: trait for name in in_order if (trait := traits_of.get(name)) is not None}
    others = [name for name, numbers in found.items() if name not in looks and _are_measured(numbers)][:MOST_COLUMNS]
    names = [*looks, *others]
    if not names:
        return None
    traits = [*looks.values(), *map(_trait_of, others)]
    return tuple(traits), {label: np.column_stack([found[name][label].filled() for name in names]) for label in sets}


def _trait_of(name: str) -> Trait:
    """Return the words for a column of metadata."""
    low, high, lower, higher = (f"{word} in {quote(name)}" for word in ("low", "high", "lower", "higher"))
    return Trait(f"column {name}", low, high, lower, higher)


def look_of_column(name: str, numbers: Mapping[str, NumbersOfSet]) -> Trait | None:
    """Return the look of pictures, or the registered column, that a column of metadata holds; None for all others."""
    look = name.removeprefix(LOOK_COLUMN) if name.startswith(LOOK_COLUMN) else None
    is_flag = all(bool(np.isin(each.known, (0, 1)).all()) for each in numbers.values())
    asked = {column.name: column for column in registered_columns()}
    if look in asked:
        return asked[look].trait(is_flag)
    return next((trait for trait in TRAITS if trait.name == look), None)


def say_left_out(sets: Mapping[str, Embeddings], rows: Rows, used: Collection[str | None] = ()) -> list[str]:
    """Return a sentence on each column of numbers that is not compared, with the reason; none if all are.

    Texts, numbers of rows, and columns that say the same of all samples get no sentence.

    Args:
        sets: the sets, by label.
        rows: indices of the samples that are looked at, by label.
        used: columns that the caller uses in another way, such as by value.
    """
    said, compared = [], 0
    for name, numbers in _numbers_by_column(sets, rows).items():
        if look_of_column(name, numbers) is not None:
            continue
        why = None if name in used else _why_left_out(numbers, list(sets))
        is_compared = name not in used and why is None and _are_measured(numbers)
        compared += is_compared
        if is_compared and compared > MOST_COLUMNS:
            why = f": at most {MOST_COLUMNS} columns of metadata are"
        said += [] if why is None else [f"{start_of_note(name)}{why}"]
    return said


def start_of_note(name: str) -> str:
    """Return how the sentence on a column that is not compared begins."""
    return f"the column {quote(name)} is not compared"


def column_of_note(text: str) -> str | None:
    """Return the quoted column that a sentence of `start_of_note` is about; None for other sentences."""
    found = re.search("the column (“[^”]*”) is not compared", text)
    return found and found[1]


def _numbers_by_column(sets: Mapping[str, Embeddings], rows: Rows) -> dict[str, dict[str, NumbersOfSet]]:
    """Read each column that may hold numbers, of the sets that have it; labels, texts and groups are left out."""
    names = dict.fromkeys(name for samples in sets.values() for name in samples.columns)
    others = {"label", *TEXT_COLUMNS, *(samples.grouping for samples in sets.values())}
    return {
        name: {
            label: NumbersOfSet.of(samples, name, rows[label])
            for label, samples in sets.items()
            if name in samples.columns
        }
        for name in names
        if name not in others
    }


def _why_left_out(numbers: Mapping[str, NumbersOfSet], labels: Sequence[str]) -> str | None:
    """Return why, or in which sets, a column is not compared; None if it is, or if its numbers say nothing of samples.

    `labels` are those of all sets.
    """
    given = [each for each in numbers.values() if len(each.known)]
    values = np.concatenate([each.known for each in given]) if given else np.empty(0)
    are_numbers = all(each.are_numbers for each in numbers.values()) and not _are_numbers_of_rows(given)
    if len(np.unique(values)) < 2 or not are_numbers:
        return None
    without = [label for label in labels if label not in numbers]
    if not _are_measured(numbers):
        if without:
            return None  # settings that only a generator has
        return " as a number: its few values are read as codes, which only name kinds"
    where = " in all sets: " if len(labels) > 2 else ": "
    if without:
        return f"{where}{join_words(without)} {'does' if len(without) == 1 else 'do'} not have it"
    for label, each in numbers.items():
        if each.strange is not None:
            return f"{where}{each.strange[:40]!r} of {label} is not a number"
    few = [label for label, each in numbers.items() if not each.are_enough]
    return f"{where}more than a tenth of the samples of {join_words(few)} have no number" if few else None


def _are_numbers_of_rows(given: Sequence[NumbersOfSet]) -> bool:
    """Return whether numbers are whole and all different within each set, as seeds and numbers of rows are."""
    return all(
        bool((each.known == np.round(each.known)).all()) and len(np.unique(each.known)) == len(each.known)
        for each in given
    )


def _are_measured(numbers: Mapping[str, NumbersOfSet]) -> bool:
    """Return whether numbers measure something: whole ones may be codes, of few values, or numbers of rows."""
    given = [each for each in numbers.values() if len(each.known)]
    if not given or _are_numbers_of_rows(given):
        return False
    values = np.concatenate([each.known for each in given])
    is_whole = bool((values == np.round(values)).all())
    return len(np.unique(values)) > (MOST_CODES if is_whole else 2)
