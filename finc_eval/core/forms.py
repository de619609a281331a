"""Forms of names: texts that people or machines write in several ways, such as "café" in two Unicode forms.

One matcher for file names, labels, prompts and classes. Texts that only spaces and canonical Unicode forms tell apart
are one text. Texts that differ in looser forms, such as case, are joined if only one text of each
set fits; else a note names them.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import PurePosixPath

from finc_eval.core.words import plural

UNSEEN = re.compile("[\xad\u200b\u200e\u200f\u2060\ufe0e\ufe0f\ufeff]")
"""Characters that show nothing, which editors and web pages leave in texts."""

TYPOGRAPHY = str.maketrans(
    dict.fromkeys("‘’‚‛`´′", "'") | dict.fromkeys("“”„‟«»″", '"') | dict.fromkeys("‐‑‒–—―−", "-")
)
"""Quotation marks and dashes of word processors, and the marks of keyboards."""

NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]\d{1,2})?")
"""Numbers as programs write them, such as 1e+05 for 100000 in R. Without a sign, 1e5 may be part of an identifier."""

ZEROS = re.compile(r"(?<![\d.])0+(?=\d)")  # zeros before a whole number within a text, such as class_03
QUOTED = re.compile("(?s)(['\"])(.*)\\1")


def plain_text(text: str) -> str:
    """Return a text in its canonical Unicode form (NFC), without unseen characters, with single spaces inside alone."""
    if text.isascii() and text.isalnum():  # most labels
        return text
    return " ".join(unicodedata.normalize("NFC", UNSEEN.sub("", text)).split())


def _slashed(text: str) -> str:
    return plain_text(text).replace("\\", "/")


def _compatible(text: str) -> str:
    return plain_text(unicodedata.normalize("NFKC", _slashed(text)))


def _unquoted(text: str) -> str:
    text = _compatible(text.translate(TYPOGRAPHY)).translate(TYPOGRAPHY)
    return plain_text(quoted[2]) if (quoted := QUOTED.fullmatch(text)) else text


def _number(text: str) -> str:
    text = _unquoted(text)
    if NUMBER.fullmatch(text) is None:
        return ZEROS.sub("", text)
    number = format(Decimal(text), "f")  # all digits, without rounding
    number = number.rstrip("0").rstrip(".") if "." in number else number
    return number if number.strip("-0") else "0"


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", _number(text).casefold())


def _unpunctuated(text: str) -> str:
    text = _folded(text)
    return plain_text(text.replace("_", " ").rstrip(".")) or text


FORMS: Mapping[str, Callable[[str], str]] = {
    "Unicode form": lambda text: unicodedata.normalize("NFC", text),
    "spaces": plain_text,
    "backslashes": _slashed,
    "Unicode form (compatible characters)": _compatible,
    "quotation marks or dashes": _unquoted,
    "the way a number is written": _number,
    "upper and lower case": _folded,
    "underscores or the full stop at the end": _unpunctuated,
}
"""Forms in which texts may be alike that are not equal, each looser than the one before it."""


FORMS_OF_FILES: Mapping[str, Callable[[str], str]] = {
    **FORMS,
    "their folder": lambda name: _unpunctuated(name).rpartition("/")[2],
    "their suffix": lambda name: PurePosixPath(_unpunctuated(name)).stem,
}
"""Forms in which names of files may be alike. Files are never joined by them: an error names the difference."""


def loose(text: str) -> str:
    """Return the loosest form of a text: texts that differ in it have different names."""
    return _unpunctuated(text)


def difference_of_form(first: str, second: str) -> str | None:
    """Return what alone distinguishes two texts, such as "upper and lower case"; None if they differ in more."""
    return next((how for how, form in FORMS.items() if form(first) == form(second)), None)


class KnownNames:
    """Public list of names that finds a name in any of its forms.

    The list alone decides what is unique: a text is found or not whatever the other texts are.

    Example:
        >>> from finc_eval.core.forms import KnownNames
        >>> known = KnownNames(["east", "west"])
        >>> known.place(" West"), known.place("north")
        (1, None)
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._tables: list[tuple[Callable[[str], str], dict[str, int]]] = []
        forms: tuple[Callable[[str], str], ...] = (str, *FORMS.values())
        for form in forms:
            written = [form(name) for name in names]
            often = Counter(written)
            self._tables.append((form, {text: number for number, text in enumerate(written) if often[text] == 1}))

    def place(self, text: str) -> int | None:
        """Return the place of the name that a text writes; None if it writes none of them, or several."""
        return next((table[key] for form, table in self._tables if (key := form(text)) in table), None)


def named(wanted: Iterable[str], names: Sequence[str]) -> list[str]:
    """Return what of `names` each wanted name is in any of its forms; a name that is not found stays as it is."""
    known = KnownNames(names)
    return [name if (number := known.place(name)) is None else names[number] for name in wanted]


@dataclass(frozen=True)
class SameNames:
    """Texts of several sets that are one name, and sentences on them.

    Attributes:
        spelling: the spelling that stands for a text, of the texts that are written otherwise.
        notes: sentences with an example each: on texts that count as one, and on texts that are kept apart.
    """

    spelling: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def of(self, texts: Sequence[str]) -> list[str]:
        """Return texts with one spelling for each name."""
        return [self.spelling.get(text, text) for text in texts] if self.spelling else list(texts)


def join_names(sets: Mapping[str, Collection[str]], what: str) -> SameNames:
    """Find the texts of sets, by label, that are one name; `what` calls them in sentences, such as "label".

    The spelling of most sets stands for the others, or else that of the last set.

    Example:
        >>> from finc_eval.core.forms import join_names
        >>> found = join_names({"gen": ["Cat", "dog"], "ref": ["cat", "dog"]}, "label")
        >>> found.spelling
        {'Cat': 'cat'}
        >>> print(found.notes[0].partition(": ")[2])
        'Cat' of gen and 'cat' of ref differ in upper and lower case
    """
    texts_of = {label: {text for text in texts if text} for label, texts in sets.items()}
    alike: dict[str, set[str]] = defaultdict(set)
    for text in set().union(*texts_of.values()):
        alike[loose(text)].add(text)
    spelling: dict[str, str] = {}
    joined: list[tuple[str, str]] = []
    apart: list[tuple[str, str]] = []
    for texts in alike.values():
        if len(texts) == 1:
            continue
        ranked = sorted(texts, key=lambda text: _rank(text, texts_of))
        groups: dict[str, list[str]] = defaultdict(list)
        for text in ranked:
            groups[plain_text(text)].append(text)
        unique = all(len({plain_text(text) for text in texts & names}) < 2 for names in texts_of.values())
        for group in [ranked] if unique else groups.values():
            spelling |= dict.fromkeys(group[1:], group[0])
            joined += [(other, group[0]) for other in group[1:]]
        held = {len({plain_text(text) for text in texts & names}) for names in texts_of.values()} - {0}
        if not unique and min(held) < len(groups):
            apart.append((ranked[0], next(group[0] for group in list(groups.values())[1:])))
    return SameNames(spelling, tuple(_sentences(joined, apart, texts_of, what)))


def _rank(text: str, texts_of: Mapping[str, Collection[str]]) -> tuple[int, int, str]:
    """Return the place of a spelling among others: the spelling of most sets first, or else that of the last set."""
    holders = [number for number, names in enumerate(texts_of.values()) if text in names]
    return -len(holders), -holders[-1], text


def _sentences(
    joined: Sequence[tuple[str, str]],
    apart: Sequence[tuple[str, str]],
    texts_of: Mapping[str, Collection[str]],
    what: str,
) -> list[str]:
    def shown(pair: tuple[str, str]) -> str:
        first, second = pair
        holder = next(label for label, names in texts_of.items() if first in names)
        other = next((label for label, names in texts_of.items() if second in names and first not in names), holder)
        return f"{first!r:.60} of {holder} and {second!r:.60} of {other} differ in {difference_of_form(first, second)}"

    sentences = []
    if joined:
        count = len({second for _, second in joined})
        verbs = ("is", "counts") if count == 1 else ("are", "count")
        each = "one" if count == 1 else "one each"
        sentences.append(
            f"{plural(count, 'value')} of {what} {verbs[0]} written in several ways, and {verbs[1]} as {each}: "
            f"{shown(joined[0])}"
        )
    if apart:
        sentences.append(
            f"values of {what} are alike and are kept apart, as a set has both: {shown(apart[0])}; if they are one, "
            "write them alike"
        )
    return sentences
