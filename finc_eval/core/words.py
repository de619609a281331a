"""Numbers and lists as sentences and tables write them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import floor, isfinite
from typing import Literal

CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff]"
)
"""Control characters but tab and newline, line separators, marks that change the direction of text or show nothing, and
codes that are not characters, which XML forbids."""

SET_NAMES: dict[Literal["gen", "ref"], str] = {"gen": "generated set", "ref": "reference set"}
"""Names of the two sets of a comparison."""

MAX_LETTERS = 2000  # letters of a sentence at most: the longest that are meant name all extractors, in about 1,300


def spell_controls(text: str) -> str:
    r"""Write control characters and direction marks as \u001b, which is the same in JSON."""
    return CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def one_line(text: str) -> str:
    r"""Write control characters as `spell_controls` does, and the ends of lines as \n, so that a text is one line."""
    return spell_controls(text).replace("\n", "\\n")


def shorten(line: str) -> str:
    """Leave out the middle of a line that is too long to be read: the name of a sample can have millions of letters."""
    half = MAX_LETTERS // 2
    return line if len(line) <= MAX_LETTERS else f"{line[:half]} … {line[-half:]}"


def percent(value: float, decimals: int = 0) -> str:
    """Write a share between 0 and 1 in percent; a share that would round to nothing becomes "< 1 %"."""
    smallest = 10.0**-decimals
    return f"< {smallest:g} %" if 0 < 100 * value < smallest / 2 else f"{100 * value:.{decimals}f} %"


def figure(value: float | None, form: str = ".4g") -> str:
    """Write a number as pages and tables do, with "−" for minus and "–" for none. CSV and JSON do not."""
    return "–" if value is None else format(value, form).replace("-", "−")


def in_percent(value: float, digits: int = 3) -> str:
    """Write a part, which may be negative or beyond 1, in percent with some digits: "0.123 %", "−3,430 %"."""
    number = 100 * value
    if not isfinite(number):
        return f"{figure(number, 'g')} %"
    whole = len(f"{abs(number):.0f}") if abs(number) >= 1 else 0
    text = f"{number:,.{max(digits - whole, 0)}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{'0' if text == '-0' else text.replace('-', '−')} %"


NEARLY_ALL = 0.9  # share that an interval must lie above for "nearly all": fewer than 1 in 10 has it not

UNSURE = 3.0
"""Ratio of the ends of an interval from which only its lower end is said.

Measured on 454 planted parts of photographs, of the classes for choosing (`benchmarks/shares.py`): the estimate is
within 40 % of the planted share in 367 of 372 intervals up to this ratio, and in 37 of 82 wider intervals.
"""


def percent_of(share: float, interval: tuple[float, float] | None, decimals: int = 0, beyond: float = 0.0) -> str:
    """Write an estimated share in words, as far as its interval allows.

    Args:
        share: estimate, between 0 and 1.
        interval: interval of the share; None for a share that was counted.
        decimals: decimals of the percentage.
        beyond: share of the other set: "at least" that much says nothing.

    Example:
        >>> percent_of(0.25, (0.2, 0.3)), percent_of(0.25, (0.12, 0.6)), percent_of(0.97, (0.93, 0.99))
        ('25 %', 'at least 12 %', 'nearly all')
        >>> percent_of(0.25, (0.0, 0.6)), percent_of(1.0, (0.99, 1.0))
        ('some', 'all')
    """
    if interval is not None and is_nearly_all(interval):
        return "all" if share == 1 else "nearly all"
    if interval is None or sure_share(share, interval) == share:
        return percent(share, decimals)
    least = rounded_down(sure_share(share, interval), decimals)
    return f"at least {least}" if float(least.removesuffix(" %")) > round(100 * beyond, decimals) else "some"


def rounded_down(share: float, decimals: int = 0) -> str:
    """Write a lower bound of a share in percent, rounded down.

    Example:
        >>> rounded_down(0.0155), rounded_down(0.29)
        ('1 %', '29 %')
    """
    # 1e-9: rounding of the multiplication.
    return f"{floor(100 * share * 10**decimals + 1e-9) / 10**decimals:.{decimals}f} %"


def sure_share(share: float, interval: tuple[float, float] | None) -> float:
    """Return an estimated share, or the lower end of its interval if that is wide; see `UNSURE`."""
    return share if interval is None or interval[1] <= UNSURE * interval[0] else interval[0]


def is_nearly_all(interval: tuple[float, float] | None) -> bool:
    """Return whether an interval of a share lies above `NEARLY_ALL`."""
    return interval is not None and interval[0] > NEARLY_ALL


def predicate(name: str) -> str:
    """Return what is said of a set by the name of a look: "is darker", "has repeated frames"."""
    return f"has {name.removeprefix('with ')}" if name.startswith("with ") else f"is {name}"


def say_part(name: str, own: str, other: str, *, is_more: bool) -> str:
    """Say that a part of the generated set looks so; a look that it has less of is a fact of the reference.

    `own` and `other` are the shares of the generated set and of the reference in words; see `percent_of`.

    Example:
        >>> say_part("blurred", "12 %", "1 %", is_more=True)
        '12 % of the generated set is blurred (reference 1 %)'
        >>> say_part("noisy", "0 %", "2 %", is_more=False)
        '2 % of the reference is noisy, but none of the generated set'
    """
    if is_more:
        return f"{own[0].upper()}{own[1:]} of the generated set {predicate(name)} (reference {other})"
    part = "none" if own == "0 %" else own if own.startswith("<") else f"only {own}"
    return f"{other[0].upper()}{other[1:]} of the reference {predicate(name)}, but {part} of the generated set"


def say_whole(name: str, interval: tuple[float, float] | None, set_name: str) -> str:
    """Say that a whole set looks otherwise; `interval` is that of the part of it beyond the middle of both sets.

    If all photographs are a little darker, the values are nearly the same as if half of them are much darker.
    So only a set that surely lies beyond the middle nearly as a whole is said to have changed as a whole.

    Example:
        >>> say_whole("darker", (0.5, 0.7), "the set")
        'the set is on average darker'
        >>> say_whole("darker", (0.95, 0.99), "the set")
        'nearly all of the set is darker'
    """
    if is_nearly_all(interval):
        return f"nearly all of {set_name} {predicate(name)}"
    verb, _, rest = predicate(name).partition(" ")
    return f"{set_name} {verb} on average {rest}"


def points(value: float) -> str:
    """Write a difference of shares in percentage points, with its sign: "+9.6"."""
    return figure(100 * value, "+.1f") if abs(value) >= 5e-4 else "0.0"


def percent_range(ends: tuple[float, float], null: float = 0.0) -> str:
    """Write an interval of shares in percent without the sign, "9, 15"; it never prints a value that it leaves out.

    Args:
        ends: ends of the interval.
        null: share that an end gets more digits not to print, such as 0.5 for chance.
    """
    return ", ".join(f"{100 * end:.{_decimals(100 * end, 100 * null)}f}" for end in ends)


def _decimals(value: float, null: float) -> int:
    """Return the fewest decimals, at most 5, with which a value reads unlike another value."""
    if value == null:
        return 0
    return next((digits for digits in range(5) if f"{value:.{digits}f}" != f"{null:.{digits}f}"), 5)


def plural(count: int, thing: str) -> str:
    """Return "1 kind" or "2 kinds", "1 class" or "2 classes", "1 entry" or "2 entries"."""
    if count != 1:
        thing = f"{thing[:-1]}ies" if thing.endswith("ry") else f"{thing}es" if thing.endswith("s") else f"{thing}s"
    return f"{count:,} {thing}"


def join_sizes(numbers: Sequence[int]) -> str:
    """Write the sizes of several sets: "5 × 1,000 + 2,000", or of sets of more than four sizes their sum."""
    sizes = Counter(numbers)
    terms = [f"{times} × {size:,}" if times > 1 else f"{size:,}" for size, times in sizes.items()]
    return " + ".join(terms) if len(terms) <= 4 else f"{sum(numbers):,}"


def duration(seconds: float) -> str:
    """Write a duration roughly: "40 seconds", "12 minutes", "3 hours"."""
    for length, unit in ((3600, "hour"), (60, "minute")):
        if seconds >= 1.5 * length:
            return plural(round(seconds / length), unit)
    return plural(10 * round(seconds / 10) if seconds >= 20 else max(1, round(seconds)), "second")


def quote(text: str) -> str:
    """Return the text in quotation marks; marks inside it become single."""
    return f"“{text.translate(str.maketrans('“”', '‘’'))}”"


def join_first(words: Sequence[str], most: int) -> str:
    """Join the first words into one list for a sentence, and say how many more there are.

    Example:
        >>> join_first(["a", "b", "c", "d"], 2)
        'a, b and 2 more'
    """
    return join_words([*words[:most], *([f"{len(words) - most:,} more"] if len(words) > most else [])])


def join_words(words: Sequence[str], last: str = "and") -> str:
    """Return "a", "a and b" or "a, b and c"; `last` is the word before the last item."""
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def say_repeated(values: int, times: int, nearly: str = "", *, are_pictures: bool, is_counted: bool) -> str:
    """Say that unlike samples are repeated in a set, all of whose samples were counted, or some.

    Example:
        >>> say_repeated(3, 40, are_pictures=True, is_counted=False)
        '3 pictures, repeated about 40 times in all'
    """
    thing, count = "picture" if are_pictures else "sample", f"{'about ' * (not is_counted)}{times:,}"
    if values == 1:
        return f"{nearly}one {thing}, {count} times"
    return f"{values:,} {thing}s, {nearly}repeated {count} times in all"
