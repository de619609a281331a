"""The budget ledger: a small file that holds every spending on the disk before any noise is drawn.

Each line is one JSON object: first the budget and the number of releases, then one line per release. A process that
dies between the line and its release has spent budget for nothing, but no process can release without spending. Each
line has a checksum that follows from the line before it. So a ledger which lost or changed a line gives no budget back:
it is refused. The file belongs to the owner of the data and must not be published.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import Any

from finc_eval.core.doors import create_file, open_to_change, read_bytes, without_links
from finc_eval.core.errors import BudgetError, DataError, FincEvalError, UsageError
from finc_eval.core.places import disk_path
from finc_eval.core.record import Record
from finc_eval.core.storage import PROGRAM, after_other_writers_of, disk_errors, write_whole
from finc_eval.private.dp.guarantee import Adjacency, Guarantee, compose, epsilon_of, remaining
from finc_eval.private.dp.ledger_lines import (
    CHECK,
    COUNT,
    COUNT_DIGITS,
    SALT,
    Spending,
    check_of,
    parse_line,
    root_of,
    seal,
    spending_in,
)
from finc_eval.private.dp.losses import expect_output
from finc_eval.private.dp.population import Hashes, PopulationIdentity, Sketches

LEDGER_TYPE = "privacy ledger"
LEDGER_LAYOUT = 3

ROUNDING = 1e-9  # share of the budget by which rounding may make a sum of squares exceed it


@dataclass(frozen=True)
class Account(Record):
    """One data set of a ledger: its digests and names, the lines about it, and ε at the budget's δ."""

    data: tuple[str, ...]
    releases: tuple[Spending, ...]
    epsilon_spent: float
    epsilon_left: float


class Ledger:
    """Record of the privacy budget spent on each data set. The budget is set once and is the same for all data sets.

    Attributes:
        path: the file.
        budget: guarantee that all releases about one data set must keep together.

    Args:
        path: file of a ledger that `Ledger.create` made.

    Raises:
        DataError: the file is missing, damaged, or not a ledger.

    Example:
        >>> import finc_eval as fe
        >>> ledger = fe.privacy.Ledger.create("ledger.jsonl", epsilon=3, delta=1e-5)
        >>> ledger.spend(["ward 7"], fe.privacy.Guarantee.of(epsilon=1, delta=1e-5), purpose="private sketch")
        >>> round(ledger.left(["ward 7"]), 2), round(ledger.left(["ward 8"]), 2)
        (2.76, 3.0)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = without_links(disk_path(path))  # the lock lies next to the file itself, not next to links to it
        header, _ = self._content()
        self.budget = self._budget_in(header)

    def _budget_in(self, header: dict[str, Any]) -> Guarantee:
        match header:
            case {"epsilon": int() | float() as epsilon, "delta": int() | float() as delta, "adjacency": adjacency}:
                return Guarantee.of(epsilon, delta, adjacency)
            case _:
                raise self._damaged(1)

    @classmethod
    def create(cls, path: str | Path, epsilon: float, delta: float, adjacency: Adjacency = "replace") -> Ledger:
        """Create a ledger.

        Args:
            path: file to create.
            epsilon: ε of the budget of each data set.
            delta: δ of the budget.
            adjacency: adjacency of all releases.

        Raises:
            BudgetError: the file exists already.
            UsageError: the budget is out of range.
        """
        planned = PlannedLedger(path, epsilon, delta, adjacency)
        with _lock(planned.path):
            if planned.path.exists():
                raise BudgetError(f"{path} exists, and a budget is set once: leave the budget out")
            planned.write()
        return cls(path)

    def spend(
        self,
        data: Iterable[str],
        guarantee: Guarantee,
        purpose: str,
        name: str | None = None,
        views: Sequence[Hashes] = (),
    ) -> None:
        """Record a spending, and return when it is on the disk.

        Args:
            data: digests and names that identify the data set, at least one. Lines that share one of them are about
                the same records.
            guarantee: guarantee of the release that follows.
            purpose: description of that release.
            name: name of the data set. Lines that share it are about the same records, and lines with another name
                are not, even if their records look alike.
            views: numbers of the records by which a changed copy is known, and spends from the same budget.

        Raises:
            BudgetError: the budget does not suffice, or has another adjacency. Nothing is recorded.
            DataError: the ledger cannot be read or written, or has a second name. Nothing may be released.
            UsageError: `data` is empty.
        """
        keys = (*data, *([name] if name else []))
        if not keys:
            raise UsageError("a spending needs something that identifies its data set, got nothing")
        if guarantee.adjacency != self.budget.adjacency:
            raise BudgetError(
                f"the budget of {self.path} has {self.budget.adjacency} adjacency and the release has "
                f"{guarantee.adjacency} adjacency, which do not add: keep one ledger for each"
            )
        with _lock(self.path):
            self._check_alone()
            header, lines = self._content()
            sketches = Sketches(views, str(header.get(SALT, "")))
            keys, resemblance = _with_those_alike(lines, keys, name, sketches)
            if compose([*(line.mu for line in _about(lines, keys)), guarantee.mu]) > self.budget.mu * (1 + ROUNDING):
                raise self._refusal(keys, guarantee.mu, resemblance)
            if resemblance:
                warnings.warn(f"{resemblance}, so both spend one budget", stacklevel=3)
            spending = Spending(keys, guarantee.mu, purpose, name, sketches.texts())
            before = lines.count(spending)
            expect_output(lambda: self._loss(spending, before, guarantee))
            self._append(spending)

    def _loss(self, spending: Spending, before: int, guarantee: Guarantee) -> str:
        """Return the sentence on a spending that nothing came of; "" if the equal lines are those from before it."""
        with suppress(FincEvalError):  # a ledger that cannot be read gives nothing back
            if self.spendings().count(spending) == before:
                return ""
        return (
            f"epsilon {guarantee.epsilon:.4g} is spent in {self.path}, and nothing came of it: another run spends it "
            "again"
        )

    def _check_alone(self) -> None:
        """Raise DataError if the file has a second name: the lock is of a name, and would not keep others away."""
        if self.path.exists() and (names := self.path.stat().st_nlink) > 1:
            raise DataError(
                f"{self.path} has {names} names (hard links), and no lock holds for all of them: replace it by a copy "
                "of itself, and remove the other names"
            )

    def spendings(self, data: Iterable[str] | None = None) -> tuple[Spending, ...]:
        """Return all lines, or the lines about one data set.

        Args:
            data: digests and names of the data set. Lines count that share one of them, directly or through other
                lines. Default: all lines.

        Raises:
            DataError: the ledger is missing or damaged.
        """
        _, lines = self._content()
        return tuple(lines) if data is None else _about(lines, data)

    def spent(self, data: Iterable[str]) -> float:
        """Return the μ of all releases about a data set together."""
        return compose(line.mu for line in self.spendings(data))

    def left(self, data: Iterable[str]) -> float:
        """Return the largest ε, at the budget's δ, that is left for a data set; 0 if nothing is left."""
        return self._epsilon(remaining(self.budget.mu, self.spent(data)))

    def accounts(self) -> tuple[Account, ...]:
        """Return the spent and the remaining budget of each data set."""
        rest, accounts = list(self.spendings()), []
        while rest:
            lines = _about(rest, rest[0].data)
            rest = [line for line in rest if line not in lines]
            spent = compose(line.mu for line in lines)
            keys = tuple(dict.fromkeys(key for line in lines for key in line.data))
            left = self._epsilon(remaining(self.budget.mu, spent))
            shown = tuple(replace(line, sketches=()) for line in lines)
            accounts.append(Account(keys, shown, self._epsilon(spent), left))
        return tuple(accounts)

    def _epsilon(self, mu: float) -> float:
        """Return ε at the budget's δ; a rest that is due to rounding counts as 0."""
        return epsilon_of(mu, self.budget.delta) if mu > ROUNDING**0.5 * self.budget.mu else 0.0

    def _refusal(self, keys: tuple[str, ...], mu: float, resemblance: str) -> BudgetError:
        budget, left = self.budget, self.left(keys)
        done = len(self.spendings(keys))
        remains = f"at most epsilon {left:.4g} is left" if left else "nothing is left"
        return BudgetError(
            f"this release would spend epsilon {self._epsilon(mu):.4g}, and of the data set's budget of epsilon "
            f"{budget.epsilon:g} (delta {budget.delta:g}) {remains} after {done} release{'' if done == 1 else 's'}"
            f"{resemblance and f'. {resemblance}. If they are others, begin a new ledger and give each set a --name'}"
        )

    def _damaged(self, number: int) -> DataError:
        return DataError(f"{self.path} is damaged in line {number}: nothing can be released with it")

    def _content(self) -> tuple[dict[str, Any], list[Spending]]:
        """Read header and spendings. A last line that was cut off does not count: its process had not drawn noise."""
        try:
            first, *rest = read_bytes(self.path).split(b"\n")
        except FileNotFoundError as error:
            raise DataError(f"{self.path} does not exist: set a budget to begin a ledger there") from error
        except OSError as error:
            raise DataError(f"{self.path} cannot be read ({error.strerror}): nothing is released") from error
        header = parse_line(first) or {}
        if (header.get("program"), header.get("kind")) != (PROGRAM, LEDGER_TYPE):
            raise DataError(f"{self.path} is not a finc-eval ledger: name another file, or a new one and its budget")
        if header.get("schema") != LEDGER_LAYOUT:
            layout = f"{header.get('schema')!r:.40}"
            raise DataError(
                f"{self.path} has ledger layout {layout}, this version reads {LEDGER_LAYOUT}: begin a new ledger, with "
                "the budget that is left"
            )
        spendings: list[Spending] = []
        before = root_of(header)
        for number, text in enumerate(rest, 2):
            line = parse_line(text)
            spending = spending_in(line, before)
            if line is None or spending is None:
                if number == len(rest) + 1:
                    break
                raise self._damaged(number)
            spendings.append(spending)
            before = line[CHECK]
        match header.get(COUNT):
            case str(count) if (
                count.isdecimal() and len(count) == COUNT_DIGITS and header.get(CHECK) == check_of(header)
            ):
                if int(count) > len(spendings):
                    raise DataError(f"{self.path} has lost lines: nothing can be released with it")
            case _:
                raise self._damaged(1)
        return header, spendings

    def _append(self, spending: Spending) -> None:
        with disk_errors(self.path, "nothing is released"), open_to_change(self.path) as file:
            # What is behind the valid lines was cut off. An editor may have removed the end of the last valid one.
            _, spendings = self._content()
            whole = b"\n".join(file.read().split(b"\n")[: 1 + len(spendings)])
            first, *lines = whole.split(b"\n")
            header = parse_line(first) or {}
            before = (parse_line(lines[-1]) or {})[CHECK] if lines else root_of(header)
            file.truncate(len(whole))
            file.seek(0, os.SEEK_END)
            file.write(b"\n" + seal(asdict(spending), before))
            file.flush()
            os.fsync(file.fileno())
            # A kill in between leaves a number that is too small, and nothing is lost by that.
            file.seek(0)
            file.write(seal(header | {COUNT: f"{len(lines) + 1:0{COUNT_DIGITS}d}"}))
            file.flush()
            os.fsync(file.fileno())


class PlannedLedger(Ledger):
    """A ledger whose file is made by its first spending, so that a run which fails before leaves no budget behind.

    Another process may make the file in the meantime, with the same budget.
    """

    def __init__(self, path: str | Path, epsilon: float, delta: float, adjacency: Adjacency = "replace") -> None:
        self.path = without_links(disk_path(path))
        self.budget = Guarantee.of(epsilon, delta, adjacency)
        self._salt = token_hex(16)

    def write(self, *spendings: Spending) -> None:
        """Write the file with its budget and these lines."""
        header = {
            "program": PROGRAM,
            "kind": LEDGER_TYPE,
            "schema": LEDGER_LAYOUT,
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "adjacency": self.budget.adjacency,
            SALT: self._salt,
            COUNT: f"{len(spendings):0{COUNT_DIGITS}d}",
        }
        lines, before = seal(header), root_of(header)
        for spending in spendings:
            lines += seal(asdict(spending), before)
            before = check_of(asdict(spending), before)
        with write_whole(self.path) as temporary, create_file(temporary, private=True) as file:
            file.write(lines)
        if os.name != "nt":  # Windows cannot open folders
            # The new file's name must survive a power cut: a ledger that vanishes would give its budget back.
            folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _content(self) -> tuple[dict[str, Any], list[Spending]]:
        if not self.path.exists():
            return {SALT: self._salt}, []
        header, spendings = super()._content()
        if (budget := self._budget_in(header)) != self.budget:
            raise BudgetError(f"{self.path} has a budget of epsilon {budget.epsilon:g} by now: leave the budget out")
        return header, spendings

    def _append(self, spending: Spending) -> None:
        if self.path.exists():
            super()._append(spending)
        else:
            self.write(spending)


def record_spending(
    ledger: Ledger | str | Path, identity: PopulationIdentity, name: str | None, guarantee: Guarantee, purpose: str
) -> None:
    """Record a spending in a ledger or its file, and return when it is on the disk. See `Ledger.spend`."""
    book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    book.spend(identity.digests, guarantee, purpose, name, identity.views)


def _with_those_alike(
    lines: Sequence[Spending], keys: tuple[str, ...], name: str | None, sketches: Sketches
) -> tuple[tuple[str, ...], str]:
    """Return the identifiers of a data set with one of each that it looks like, and which of them it looks like most.

    Lines about the same data need no look. Where both have a name, the names say whether they are.
    """
    known, alike = _about(lines, keys), {}
    for number, line in enumerate(lines, 2):
        if line not in known and not (name and line.name) and (common := sketches.common(line.sketches)):
            keys, alike[number] = (*keys, line.data[0]), common
    if not alike:
        return keys, ""
    most = max(alike, key=lambda number: alike[number])
    equal = f"{int(100 * alike[most])} % are equal"
    return keys, f"The records look like the records of line {most} of the ledger ({equal})"


def _about(lines: Sequence[Spending], data: Iterable[str]) -> tuple[Spending, ...]:
    """Return the lines that share an identifier with the data, directly or through other lines."""
    known: set[str] = set(data)
    while True:
        about_it = tuple(line for line in lines if known & set(line.data))
        more = known.union(*(line.data for line in about_it))
        if more == known:
            return about_it
        known = more


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Keep other processes from reading what is left, and spending it, at the same time."""
    with ExitStack() as held:
        with disk_errors(path):
            held.enter_context(after_other_writers_of(path))
        yield
