"""The floor of golden pictures: a file with a line of JSON for each pair and night, and for each accepted night.

A note names the line of each row that cannot be read, and the row is left out. Rows of one night follow each other; an
id that comes again begins another night. A lock is held while the whole file is replaced, so that a kill leaves all
finished nights and no part of another.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from finc_eval.core.doors import create_file, read_bytes, without_links
from finc_eval.core.errors import DataError
from finc_eval.core.files.parsed import json_table
from finc_eval.core.memory import BYTES_PER_TEXT_BYTE
from finc_eval.core.places import out_path
from finc_eval.core.storage import refresh, write_whole
from finc_eval.core.words import plural
from finc_eval.embeddings.same_names import SUFFIX
from finc_eval.golden.measured import SOUND
from finc_eval.golden.nights import MEASURES, Array, as_kept
from finc_eval.same_ids.shown import OTHER_OWN, OTHER_STRUCTURE

RANGES = {
    "psnr": (0.0, 200.0),
    "ssim": (-1.0, 1.0),
    "structure": (0.0, 1.0),
    "thumb": (-1.0, 1.0),
    "light": (-255.0, 255.0),
    "red_blue": (-510.0, 510.0),
    "detail": (-20.0, 20.0),
}
"""Least and largest value of each measure in a row."""

MAX_TEXT = 1000  # letters of a name in a row
NOTED_LINES = 3  # damaged lines that have a note each; the others are counted
VERDICTS = ("green", "amber", "red")
BEGINS = (b'{"night"', b'{"accept"')  # first bytes of our lines


@dataclass(frozen=True, eq=False)
class PairRow:
    """A pair in a night, as it was kept.

    Attributes:
        values: measures in the order of `MEASURES`; None for pictures that could not be compared.
        p: rank of the pair in its night, as a p-value; NaN if it had none. `all_p` is that of the mean of all pairs.
        beyond: whether the pair lay beyond all nights before. `all_beyond` is that of the mean of all pairs.
        verdict: verdict of the night.
    """

    night: str
    machine: str | None
    id: str
    shows: str
    values: Array | None
    gen: str
    ref: str
    p: float = np.nan
    all_p: float = np.nan
    beyond: bool = False
    all_beyond: bool = False
    verdict: str = "green"

    def to_line(self) -> str:
        """Return the row as a line of JSON."""
        numbers = (
            dict.fromkeys(MEASURES)
            if self.values is None
            else dict(zip(MEASURES, as_kept(self.values).tolist(), strict=True))
        )
        ranks = {name: None if np.isnan(value) else value for name, value in (("p", self.p), ("all_p", self.all_p))}
        return json.dumps(
            {"night": self.night, "machine": self.machine, "id": self.id, "shows": self.shows}
            | numbers
            | {"gen": self.gen, "ref": self.ref, "verdict": self.verdict}
            | ranks
            | {"beyond": self.beyond, "all_beyond": self.all_beyond}
        )


@dataclass(eq=False)
class PastNight:
    """A night of the floor: its rows by id, and whether a person has accepted it."""

    name: str
    machine: str | None
    rows: dict[str, PairRow] = field(default_factory=dict)
    is_accepted: bool = False

    def row_of(self, name: str) -> PairRow | None:
        """Return the row of a pair; of a pair that was saved in another format, the only row without its suffix."""
        if (row := self.rows.get(name)) is not None:
            return row
        bare = SUFFIX.sub("", name)
        alike = [row for other, row in self.rows.items() if SUFFIX.sub("", other) == bare]
        return alike[0] if len(alike) == 1 else None

    @property
    def verdict(self) -> str:
        """Verdict of the night, as it was kept."""
        return next(iter(self.rows.values())).verdict

    @property
    def is_broken(self) -> bool:
        """True for a night with a pair that is red by itself, which is not a normal night."""
        return any(row.shows not in SOUND for row in self.rows.values())


@dataclass(frozen=True, eq=False)
class Floor:
    """Contents of a floor: its nights in order, the night from which each machine has a new state, and damaged lines.

    Attributes:
        begins: number of the first night of the accepted state, by machine.
        notes: sentences on lines that cannot be read.
    """

    nights: list[PastNight]
    begins: dict[str | None, int]
    notes: tuple[str, ...] = ()


def place_of_floor(path: str | Path) -> Path:
    """Return the path of a floor on the local disk, where links lead to; a floor behind a URL is fetched."""
    floor_path = out_path(path)
    refresh(floor_path)
    return without_links(floor_path)


def content_of(path: Path) -> bytes:
    """Return the bytes of a floor; none if it does not exist yet."""
    try:
        return read_bytes(path, copies=BYTES_PER_TEXT_BYTE)
    except FileNotFoundError:
        return b""


def add_lines(path: Path, content: bytes, lines: Sequence[str]) -> None:
    """Replace a floor by the same with further lines; what it held stays as it is, damaged lines included."""
    between = b"\n" if content and not content.endswith(b"\n") else b""
    added = "".join(f"{line}\n" for line in lines).encode()
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    with write_whole(path) as temporary, create_file(temporary) as file:
        file.write(content + between + added)
        if mode is not None:
            temporary.chmod(mode)


def read_floor(content: bytes, where: str) -> Floor:
    """Read a floor from its bytes.

    Raises:
        DataError: it is another file, which must not be written to.
    """
    nights: list[PastNight] = []
    begins: dict[str | None, int] = {}
    bad: list[tuple[int, str]] = []
    lines = content.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            line_read = json_table(line.decode(), "it")
            if "accept" in line_read:
                _accept(nights, begins, _text(line_read, "accept"), _machine(line_read))
            else:
                _take(nights, row_of(line_read))
        except (DataError, ValueError) as error:
            bad.append((number, _why(error)))
    if bad and not nights and not any(line.startswith(BEGINS) for line in lines):
        raise DataError(f"{where} is not a floor of golden pictures, and nothing is added to it: name another file")
    return Floor(nights, begins, tuple(_notes(bad, where)))


def _why(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    text = str(error)
    return text.partition("(")[2].rpartition(")")[0] if text.startswith("it cannot be read as JSON") else text


def _notes(bad: Sequence[tuple[int, str]], where: str) -> Iterator[str]:
    name = Path(where).name
    for number, why in bad[:NOTED_LINES]:
        yield f"Line {number:,} of {name} is left out, as it cannot be read ({why:.200})."
    if more := len(bad[NOTED_LINES:]):
        yield f"{plural(more, 'more line')} of {name} {'is' if more == 1 else 'are'} left out, too."


def _take(nights: list[PastNight], row: PairRow) -> None:
    """Put a row into its night: the last night, or a new night if the name or machine is another, or it has the id."""
    last = nights[-1] if nights else None
    if last is None or (last.name, last.machine) != (row.night, row.machine) or row.id in last.rows:
        last = PastNight(row.night, row.machine)
        nights.append(last)
    last.rows[row.id] = row


def row_of(line: Mapping[str, Any]) -> PairRow:
    """Return a row from plain JSON types; ValueError, which names the field, for what is not one."""
    numbers = [_number(line, name, *RANGES[name]) for name in MEASURES]
    known = [number for number in numbers if number is not None]
    shows = _text(line, "shows", "")
    if len(known) not in (0, len(MEASURES)) or (not known and shows in ("", *SOUND)):
        lost = next(name for name, number in zip(MEASURES, numbers, strict=True) if number is None)
        raise ValueError(f"{lost} is missing")
    values = np.array(known) if known else None
    if not shows:  # a row that was made elsewhere
        thumb, structure = (numbers[MEASURES.index(name)] or 0.0 for name in ("thumb", "structure"))
        shows = "another picture" if thumb < OTHER_OWN and structure < OTHER_STRUCTURE else "same"
    verdict = _text(line, "verdict", "green")
    if verdict not in VERDICTS:
        raise ValueError(f"verdict is {verdict!r:.40}, not one of {', '.join(VERDICTS)}")
    ranks = [_number(line, name, 0.0, 1.0) for name in ("p", "all_p")]
    p, all_p = (rank or np.nan for rank in ranks)
    night, name = (_text(line, name) for name in ("night", "id"))
    gen, ref = (_text(line, name, "" if values is None else None) for name in ("gen", "ref"))
    beyond, all_beyond = (_flag(line, name) for name in ("beyond", "all_beyond"))
    return PairRow(night, _machine(line), name, shows, values, gen, ref, p, all_p, beyond, all_beyond, verdict)


def _text(line: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = line.get(name, default)
    if not isinstance(value, str) or (not value and value != default) or len(value) > MAX_TEXT:
        raise ValueError(f"{name} is {value!r:.40}, not a text" if name in line else f"{name} is missing")
    return value


def _machine(line: Mapping[str, Any]) -> str | None:
    return None if line.get("machine") is None else _text(line, "machine")


def _flag(line: Mapping[str, Any], name: str) -> bool:
    value = line.get(name)
    if value is not None and not isinstance(value, bool):
        raise ValueError(f"{name} is {value!r:.40}, neither true nor false")
    return bool(value)


def _number(line: Mapping[str, Any], name: str, low: float, high: float) -> float | None:
    value = line.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is {value!r:.40}, not a number")
    if not low <= value <= high:
        raise ValueError(f"{name} is {value!r:.40}, outside of {low:g} to {high:g}")
    return float(value)


def matching(nights: Sequence[PastNight], name: str, machine: str | None) -> list[int]:
    """Return the numbers of the nights whose name begins so, of one machine or, if it is None, of all."""
    return [
        number
        for number, night in enumerate(nights)
        if night.name.startswith(name) and (machine is None or night.machine == machine)
    ]


def _accept(nights: Sequence[PastNight], begins: dict[str | None, int], name: str, machine: str | None) -> None:
    """Accept nights, and with each the nights before it that were not green, of its machine, in a row."""
    for number in matching(nights, name, machine):
        chosen = nights[number]
        if chosen.is_broken:
            continue
        first = number
        for before in range(number, -1, -1):
            earlier = nights[before]
            if earlier.machine != chosen.machine or earlier.is_broken:
                continue
            if before != number and earlier.verdict == "green":
                break
            earlier.is_accepted, first = True, before
        begins[chosen.machine] = first if chosen.machine not in begins else max(begins[chosen.machine], first)
