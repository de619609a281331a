"""JSON and TOML in files: read whole, and checked to be what the formats allow."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from math import inf, isfinite
from pathlib import Path
from typing import Any

from finc_eval.core import doors as reading
from finc_eval.core.errors import DataError, first_line
from finc_eval.core.files.on_disk import on_disk
from finc_eval.core.memory import BYTES_PER_TEXT_BYTE, check_decoded

MAX_DIGITS = 20  # digits of the largest whole number that is read, with its sign: 64 bits have as many
MAX_DEPTH = 50  # lists and tables within each other in foreign JSON; what is deeper could not be written as a text

JSON_BYTES = {",": 64, "[": 80, "{": 64, ":": 128}
"""Bytes that lists, tables and their values take in memory, by the sign that each of them needs in JSON: Python's own
sizes, rounded up."""

MAX_TOML_LETTERS = 1 << 18  # letters of a text in TOML: tomllib takes up to a second for them

LONG_KEY = re.compile(r"""(?<![\w-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){8}""")
"""A key of more than 8 words, such as a.b.c: the time of tomllib grows with the square of their number."""

MALFORMED = (ValueError, RecursionError)  # errors of parsers on text that is not of their format, or nested endlessly


def parse_json(text: str | bytes, where: str = "the text") -> Any:
    """Parse JSON; DataError for anything else, for NaN, infinity, and what takes too much memory."""
    check_decoded(json_size(text), where)
    try:
        return json.loads(text, parse_float=_finite, parse_int=_whole, parse_constant=_refuse)
    except MALFORMED as error:
        raise DataError(f"{where} cannot be read as JSON ({_words(error)}): it is damaged, make it again") from error


def foreign_json(text: str | bytes, where: str) -> Any:
    """Parse JSON of another program, which may hold NaN and infinity; DataError for anything else."""
    check_decoded(json_size(text), where)
    try:
        value = json.loads(text)
        _check_depth(value)
        return value
    except MALFORMED as error:
        raise DataError(f"{where} cannot be read as JSON ({_words(error)}): repair it, or take it away") from error


def json_size(text: str | bytes) -> int:
    """Return how many bytes the values in JSON take at most."""
    counts = ((text.count(sign) if isinstance(text, str) else text.count(sign.encode())) for sign in JSON_BYTES)
    return 4 * len(text) + sum(size * count for size, count in zip(JSON_BYTES.values(), counts, strict=True))


def json_lines(text: str, where: str) -> Iterator[Any]:
    """Yield what each line holds that is not empty; see `foreign_json`."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield foreign_json(line, f"{where}: line {number}")


def json_table(text: str | bytes, where: str = "the text") -> dict[str, Any]:
    """Parse JSON that must be a table of keys and values; see `parse_json`."""
    table = parse_json(text, where)
    if not isinstance(table, dict):
        raise DataError(f"{where} must be a JSON object, and is {type(table).__name__}: make it again")
    return table


def read_json(path: str | Path) -> Any:
    """Read a JSON file; see `parse_json`."""
    return parse_json(read_text(path, "JSON"), str(path))


def read_toml(path: str | Path, what: str = "a TOML file") -> dict[str, Any]:
    """Read a TOML file; DataError, which says `what` it should be, for anything else."""
    return parse_toml(read_text(path, what), str(path), what)


def parse_toml(text: str, where: str, what: str = "a TOML file") -> dict[str, Any]:
    """Parse TOML; DataError for anything else, and for too many letters or too long a key."""
    if len(text) > MAX_TOML_LETTERS:
        raise DataError(f"{where} has {len(text):,} letters, above the {MAX_TOML_LETTERS:,} of {what}: make it shorter")
    if long_key := LONG_KEY.search(text):
        raise DataError(f"{where} has a key of more than 8 words ({long_key[0]:.20}…): use at most 8 words in {what}")
    try:
        table = tomllib.loads(text)
        _check_numbers(table)
        return table
    except MALFORMED as error:
        raise DataError(f"{where} cannot be read as {what} ({_words(error)}): correct it") from error


def toml_value(value: str | float | bool) -> str:
    """Return a text, a number or a truth value as TOML, which `parse_toml` turns into the same.

    Raises:
        DataError: TOML cannot hold it, such as half of a surrogate pair, or an infinite number.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        forms = [f"{value:g}", repr(value)] if isinstance(value, float) else [str(value)]
    else:
        # TOML's texts have the escapes of JSON's; it refuses the character of the key Delete, and halves of pairs.
        plain = json.dumps(value, ensure_ascii=False).replace("\x7f", r"\u007f")
        forms = [plain, '"' + "".join(rf"\U{ord(letter):08X}" for letter in value) + '"']
    for form in forms:
        with suppress(DataError, UnicodeEncodeError):  # the file is UTF-8
            if parse_toml(f"value = {form.encode().decode()}", "the text")["value"] == value:
                return form
    raise DataError(f"{value!r:.100} cannot be written in TOML: use plain letters, or a finite number")


def toml_comment(text: str) -> str:
    """Return a text as a comment in TOML, on one line, without what `parse_toml` would take for a long key."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return "# " + (plain.replace(".", " ") if LONG_KEY.search(plain) else plain)


def read_text(path: str | Path, what: str = "a text in UTF-8", newline: str | None = None) -> str:
    """Read a text file in UTF-8; DataError, which says `what` it should be, for anything else; `newline` as in `open`.

    In CSV, the ends of lines belong to quoted values: it is read with "".
    """
    try:
        return reading.read_text(on_disk(path), newline=newline, copies=BYTES_PER_TEXT_BYTE)
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist") from error
    except (reading.NotAFileError, UnicodeDecodeError) as error:
        what_it_is = error.kind if isinstance(error, reading.NotAFileError) else "a binary file"
        raise DataError(f"{path} is {what_it_is}, not {what}: pass another file") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({_words(error)}): make it again") from error


def _finite(text: str) -> float:
    if not isfinite(number := float(text)):
        raise ValueError(f"{text[:20]} is not a finite number")
    return number


def _whole(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"the number {text[:20]}… is too large")
    return int(text)


def _check_numbers(value: Any, key: str = "") -> None:
    if isinstance(value, dict):
        for name, inside in value.items():
            _check_numbers(inside, f"{key}.{name}" if key else name)
    elif isinstance(value, list):
        for inside in value:
            _check_numbers(inside, key)
    elif isinstance(value, int | float) and not abs(value) < (10**MAX_DIGITS if isinstance(value, int) else inf):
        raise ValueError(f'"{key}" must be a finite number')


def _check_depth(value: Any, left: int = MAX_DEPTH) -> None:
    if isinstance(value, dict | list):
        if not left:
            raise ValueError("nested too deeply")
        for inside in value.values() if isinstance(value, dict) else value:
            _check_depth(inside, left - 1)


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is not a number in JSON")


def _words(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else first_line(error)
