"""The budget ledger: a small file in which every spending is on the disk before any noise is drawn.

One JSON object a line: the budget first, then a line for each release. A process that dies between the line and its
release has spent for nothing; none can release for nothing. The file is its owner's and is not for publication.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import Any

import filelock

from finc_eval.core.errors import FincEvalError
from finc_eval.core.storage import PROGRAM, disk_errors, written_whole
from finc_eval.privacy.dp.accounting import composed, epsilon_of, remaining
from finc_eval.privacy.dp.gaussian_mechanism import Adjacency, Guarantee

KIND = "privacy ledger"
SCHEMA = 1

ROUNDING = 1e-9
"""Of the budget, that sums of squares may exceed it by."""


@dataclass(frozen=True)
class Spending:
    """One line of a ledger.

    Attributes:
        data: the digests, and the name if it has one, of the data set.
        mu: what was spent.
        purpose: for what, such as "private sketch".
    """

    data: tuple[str, ...]
    mu: float
    purpose: str


class Ledger:
    """What has been spent on each data set, against a budget that is the same for all and was set once.

    Attributes:
        path: the file.
        budget: what all releases about one data set may come to.

    Args:
        path: of a ledger that `create` made.

    Raises:
        FincEvalError: it is missing, no ledger, or damaged.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).resolve()  # the lock lies beside the file itself, not beside links to it
        header, _ = self._content()
        if (header.get("program"), header.get("kind")) != (PROGRAM, KIND):
            raise FincEvalError(f"{path} is no finc-eval ledger: name another file, or a new one and its budget")
        if header.get("schema") != SCHEMA:
            raise FincEvalError(f"{path} has ledger schema {header.get('schema')}, this version reads {SCHEMA}")
        try:
            self.budget = Guarantee.of(header["epsilon"], header["delta"], header["adjacency"])
        except (KeyError, TypeError) as error:
            raise self._damaged(1) from error

    @classmethod
    def create(cls, path: str | Path, epsilon: float, delta: float, adjacency: Adjacency = "replace") -> Ledger:
        """A new ledger with the budget (ε, δ) for each data set.

        Raises:
            FincEvalError: there is a file at `path` already, or the budget is out of range.
        """
        target = Path(path).resolve()
        budget = Guarantee.of(epsilon, delta, adjacency)
        header = {
            "program": PROGRAM,
            "kind": KIND,
            "schema": SCHEMA,
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "adjacency": budget.adjacency,
        }
        with _locked(target):
            if target.exists():
                raise FincEvalError(f"{path} exists, and a budget is set once: leave the budget out")
            with written_whole(target) as temporary:
                temporary.write_text(json.dumps(header) + "\n", encoding="utf-8")
            _sync_folder(target)
        return cls(target)

    def spend(self, data: Iterable[str], guarantee: Guarantee, purpose: str) -> None:
        """Record a spending, and return once it is on the disk.

        Args:
            data: what identifies the data set, one thing at least: lines that share one are about the same records.
            guarantee: of the release that follows.
            purpose: what that is.

        Raises:
            FincEvalError: the budget does not suffice, or is of another adjacency. Nothing is recorded then.
        """
        keys = tuple(data)
        if not keys:
            raise FincEvalError("a spending needs something that identifies its data set, got nothing")
        if guarantee.adjacency != self.budget.adjacency:
            raise FincEvalError(
                f"the budget of {self.path} is of {self.budget.adjacency} adjacency and the release of "
                f"{guarantee.adjacency} adjacency, which do not add: keep a ledger for each"
            )
        with _locked(self.path):
            spent = self.spent(keys)
            if composed([spent, guarantee.mu]) > self.budget.mu * (1 + ROUNDING):
                raise self._refusal(keys, guarantee.mu)
            self._append(Spending(keys, guarantee.mu, purpose))

    def spendings(self, data: Iterable[str] | None = None) -> tuple[Spending, ...]:
        """All lines, or those about one data set: all that share what identifies it, directly or by way of others."""
        _, lines = self._content()
        return tuple(lines) if data is None else _about(lines, data)

    def spent(self, data: Iterable[str]) -> float:
        """The μ that all releases about a data set come to."""
        return composed(line.mu for line in self.spendings(data))

    def left(self, data: Iterable[str]) -> float:
        """The largest ε, at the budget's δ, that a release about this data set may have; 0 where none."""
        return self._epsilon(remaining(self.budget.mu, self.spent(data)))

    def to_dict(self) -> dict[str, Any]:
        """The budget, and of every data set what is spent and left, as plain JSON types."""
        rest, accounts = list(self.spendings()), []
        while rest:
            lines = _about(rest, rest[0].data)
            rest = [line for line in rest if line not in lines]
            spent = composed(line.mu for line in lines)
            accounts.append(
                {
                    "data": list(dict.fromkeys(key for line in lines for key in line.data)),
                    "releases": [asdict(line) for line in lines],
                    "epsilon_spent": self._epsilon(spent),
                    "epsilon_left": self._epsilon(remaining(self.budget.mu, spent)),
                }
            )
        return {"budget": self.budget.to_dict(), "data_sets": accounts}

    def _epsilon(self, mu: float) -> float:
        """ε at the budget's δ; what is left by rounding alone counts as nothing."""
        return epsilon_of(mu, self.budget.delta) if mu > ROUNDING**0.5 * self.budget.mu else 0.0

    def _refusal(self, keys: tuple[str, ...], mu: float) -> FincEvalError:
        budget, left = self.budget, self.left(keys)
        done = len(self.spendings(keys))
        remains = f"at most epsilon {left:.4g} is left" if left else "nothing is left"
        return FincEvalError(
            f"this release would spend epsilon {self._epsilon(mu):.4g}, and of the data set's budget of epsilon "
            f"{budget.epsilon:g} (delta {budget.delta:g}) {remains} after {done} release{'' if done == 1 else 's'}"
        )

    def _damaged(self, number: int) -> FincEvalError:
        return FincEvalError(f"{self.path} is damaged in line {number}: nothing is released on its word")

    def _content(self) -> tuple[dict[str, Any], list[Spending]]:
        """Header and spendings; a last line that was cut off is none: who died over it had not drawn any noise."""
        try:
            first, *rest = self.path.read_bytes().split(b"\n")
        except FileNotFoundError as error:
            raise FincEvalError(f"{self.path} does not exist: set a budget to begin a ledger there") from error
        except OSError as error:
            raise FincEvalError(f"{self.path} cannot be read ({error.strerror}): nothing is released") from error
        header = _parsed(first)
        if not rest or header is None:
            raise FincEvalError(f"{self.path} is no finc-eval ledger: nothing is released on its word")
        spendings = [_spending(_parsed(text)) for text in rest]
        if spendings[-1] is None:
            spendings.pop()
        if None in spendings:
            raise self._damaged(2 + spendings.index(None))
        return header, [spending for spending in spendings if spending is not None]

    def _append(self, spending: Spending) -> None:
        with disk_errors(self.path, "nothing is released"), self.path.open("r+b") as file:
            whole, end, last = file.read().rpartition(b"\n")
            if _spending(_parsed(last)) is None:
                file.truncate(len(whole + end))
            else:  # an editor took the end of the line away
                file.write(b"\n")
            file.seek(0, os.SEEK_END)
            file.write(json.dumps(asdict(spending)).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def _about(lines: Sequence[Spending], data: Iterable[str]) -> tuple[Spending, ...]:
    """The lines that share something with the data, or with one another of these lines."""
    known: set[str] = set(data)
    while True:
        found = tuple(line for line in lines if known & set(line.data))
        more = known.union(*(line.data for line in found))
        if more == known:
            return found
        known = more


def _parsed(text: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None


def _spending(line: dict[str, Any] | None) -> Spending | None:
    """The spending in a line; None where it says anything but one."""
    match line:
        case {"data": [*data], "mu": float(mu), "purpose": str(purpose)} if data and 0 < mu < inf:
            return Spending(tuple(map(str, data)), mu, purpose)
        case _:
            return None


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Be the only process to look at what is left and to spend it."""
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(path.with_name(f".{path.name}.lock"))
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _sync_folder(path: Path) -> None:
    """Have a new name in its folder outlive a power cut: a ledger that vanishes gives its budget back."""
    if os.name == "nt":  # which cannot open folders
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
