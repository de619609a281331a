"""`Reading`: which files and values of a set are its samples and prompts, and which numbers are black and white."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from finc_eval.core.doors import with_home
from finc_eval.core.errors import DataError, UsageError, check_choice
from finc_eval.core.record import Record

BRACES = re.compile(
    r"\{(?:([0-9]{1,9})\.\.([0-9]{1,9})|([^{},]*(?:,[^{},]*)+))\}"
)  # a part of a pattern, such as {0..9} or {a,b}
WILDCARD = re.compile(r"[*?\[]")
PIECES = re.compile(r"(?<![^/])\*\*/|\*\*|\*|\?|\[!?+.[^\]]*\]|.", re.DOTALL)
"""Pieces of a pattern; `**/` at its beginning or after a slash is any number of folders."""

MAX_PATTERN_LETTERS = 4000  # letters of the patterns together: a name of 60,000 letters takes a second at worst

Color = Literal["stored", "srgb"]
STORED: Color = "stored"

IMAGE_KEYS = ("image", "images", "img", "imgs", "pixel_values", "pixels", "jpg", "png", "x")
"""Keys under which an item or a batch usually has its images."""

RANGE_SLACK = 0.02  # part of its range by which values of a generator may lie outside


@dataclass(frozen=True)
class Reading(Record):
    """Choice of the files and values of a set that are its samples, and of the numbers for black and white.

    Attributes:
        include: patterns of the names of files that are samples; empty: all. A pattern without "/" is for the last part
            of a name, any other for the whole path in the set; `*` does not match "/", and `**` does.
        exclude: patterns of the names of files that are not samples.
        image_key: name of the images: a key of dictionaries, a column, an array, or what follows the first dot of the
            name of a tar's member.
        range: the numbers that are black and white in arrays, tensors and files of more than 8 bits.
        prompts: column or file of the prompts.
        color: "stored" to take pixels as a file has them; "srgb" to convert them by the color profile that it has.

    Raises:
        UsageError: a pattern is empty, the range is not two increasing finite numbers, or the color is not a choice.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    image_key: str | None = None
    range: tuple[float, float] | None = None
    prompts: str | None = None
    color: Color = STORED

    def __post_init__(self) -> None:
        check_choice("color", self.color, get_args(Color))
        for name in ("include", "exclude"):
            given = getattr(self, name)
            patterns = (given,) if isinstance(given, str) else tuple(given or ())
            if not all(isinstance(pattern, str) and pattern for pattern in patterns):
                raise UsageError(f"{name} must be patterns of file names such as '*_fake.png', got {given!r}")
            if (letters := sum(map(len, patterns))) > MAX_PATTERN_LETTERS:
                most = f"above the {MAX_PATTERN_LETTERS:,} of all its patterns"
                raise UsageError(f"{name} has {letters:,} letters, {most}: shorten the patterns")
            for pattern in patterns:
                _regex(pattern)
            self._store(**{name: patterns})
        if self.image_key is not None and not isinstance(self.image_key, str):
            raise UsageError(f"image_key must be a text, got {self.image_key!r}")
        if self.range is None:
            return
        try:
            low, high = map(float, self.range)
        except (TypeError, ValueError):
            low = high = 0.0
        if not (np.isfinite([low, high]).all() and low < high):
            raise UsageError(f"range must be the numbers of black and white, such as (-1, 1), got {self.range!r}")
        self._store(range=(low, high))

    @property
    def choices(self) -> dict[str, Any]:
        """The same as keywords of `open_source`."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def takes(self, name: str) -> bool:
        """Return whether the patterns choose a file, by its path in the set."""
        chosen = not self.include or any(matches(pattern, name) for pattern in self.include)
        return chosen and not any(matches(pattern, name) for pattern in self.exclude)

    def refuse(self, name: str, *, files: bool = False, keys: bool = False) -> None:
        """Raise UsageError for a choice that a set does not have.

        Patterns choose from `files`, and a key from names of images, `keys`.
        """
        if not files and (self.include or self.exclude):
            raise UsageError(f"include and exclude choose files by their names, and {name} has none: leave them out")
        if not keys and self.image_key is not None:
            raise UsageError(f"image_key chooses among named images, and {name} has no names: leave it out")

    def scaled(self, values: npt.NDArray[Any], who: str) -> npt.NDArray[np.uint8]:
        """Return numbers of the range as brightnesses of 8 bits: round(255 · (x − low) / (high − low))."""
        low, high = self.range or (0, 255)
        numbers: npt.NDArray[np.floating[Any]] = values.astype(np.float64 if values.dtype.itemsize > 4 else np.float32)
        least, most = float(numbers.min(initial=high)), float(numbers.max(initial=low))
        slack = RANGE_SLACK * (high - low)
        if not (low - slack <= least and most <= high + slack):  # NaN is in no range
            raise DataError(
                f"{who} holds values from {least:.4g} to {most:.4g}, outside of the range {low:g} to {high:g}: "
                "pass the range that they have"
            )
        return ((numbers - low) * (255 / (high - low))).round().clip(0, 255).astype(np.uint8)


def matches(pattern: str, name: str) -> bool:
    """Return whether a pattern matches a path with forward slashes, or its last part if the pattern has no slash."""
    return _regex(pattern).match(name if "/" in pattern else name.rpartition("/")[2]) is not None


def split_glob(path: str) -> tuple[Path, str] | None:
    """Divide a path with wildcards into its folder and the pattern below that; None without wildcards."""
    parts = with_home(path).parts
    first = next((number for number, part in enumerate(parts) if WILDCARD.search(part)), None)
    return None if first is None else (Path(*parts[:first]), "/".join(parts[first:]))


def only(pattern: str, names: Iterable[str]) -> list[str]:
    """Return the paths that a pattern matches from their beginning."""
    return [name for name in names if _regex(pattern).match(name)]


@lru_cache(maxsize=2 * MAX_PATTERN_LETTERS)
def _regex(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a pattern, which takes time linear in the length of a name.

    A star takes as little as it can, and never more (`(?>…)`): what the next star reaches from a later place, it also
    reaches from the first. Folders are taken in the same way. Only the last star tries all lengths.
    """
    parts = [[""]]  # texts between the stars, of each part; the parts are divided by any number of folders
    for piece in PIECES.findall(pattern):
        match piece:
            case "**/":
                parts.append([""])
            case "**":
                parts.append(["", ""])
            case "*":
                parts[-1].append("")
            case "?":
                parts[-1][-1] += "[^/]"
            case _ if len(piece) > 1:
                inside = re.sub(r"[\\^\[&~|]", r"\\\g<0>", piece[1:-1].removeprefix("!"))
                parts[-1][-1] += f"(?!/)[{'^' if piece[1] == '!' else ''}{inside}]"
            case _:
                parts[-1][-1] += re.escape(piece)
    *before, (*texts, end) = parts
    last = f"{_starred(texts)}[^/]*{end}" if texts else end
    folders = [*map(_starred, before), rf"{last}\Z"]
    made = "".join([folders[0], *(f"(?>(?:[^/]*+/)*?{folder})" for folder in folders[1:])])
    try:
        return re.compile(made, re.DOTALL)
    except re.error as error:
        raise UsageError(f"the pattern {pattern!r} has a wrong set of letters, {error.msg}: correct it") from error


def _starred(texts: Sequence[str]) -> str:
    return "".join([*texts[:1], *(f"(?>[^/]*?{text})" for text in texts[1:])])


EVERYTHING = Reading()  # the reading of a set whose user chooses nothing
