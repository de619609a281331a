"""Break lines of mathematics at random, and count how many the tests of their room catch.

    python scripts/mutate.py [--seed 0] [--lines 60] [--rooms measures estimates ...] [--workers 1] [--record]

A line has an operator, a comparison, a minimum or maximum, or a number beside an operator; what builds texts is left
out. Each line drawn is broken in a way that is drawn, too: `+` and `-`, `*` and `/`, `<` and `>`, `min` and `max` take
each other's place, a number is doubled, or becomes 1 or 2. The tests run on a copy of the tracked files: those of the
room (tests/ROOM), and the law of intervals, first the files that name the module. A mutation is caught if a test fails,
or takes longer than --timeout. All these tests must pass first without a mutation.

`--record` writes the result to benchmarks/results/mutations.json.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "finc_eval"

MATHEMATICS = [
    *("baselines", "comparison", "conventions", "embeddings", "engines", "estimates", "feature_maps", "findings"),
    *("gates", "golden", "judges", "leaderboards", "local_evidence", "measures", "memorization", "monitoring"),
    *("naming", "numerics", "partitions", "private", "prompts", "same_ids", "sketches"),
]
"""Rooms whose lines are drawn."""

TESTS_OF = {"measures": "metrics"}
"""Folder of tests of a room, where it has another name."""

OTHER = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}
SIGNS = dict(zip(OTHER, ("+", "-", "*", "/", "<", "<=", ">", ">="), strict=True))
CALLS = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}


@dataclass(frozen=True)
class Mutation:
    """A change of one line: `old` at a column becomes `new`."""

    path: str  # relative to the root
    line: int  # from 1
    column: int  # in bytes of UTF-8
    old: str
    new: str

    @property
    def room(self) -> str:
        """Folder of the package."""
        return self.path.split("/")[1]

    def broken(self, text: str) -> str:
        """Return the text of the module with the change."""
        lines = text.splitlines(keepends=True)
        data = lines[self.line - 1].encode()
        start, end = self.column, self.column + len(self.old.encode())
        if data[start:end].decode() != self.old:
            raise ValueError(f"{self.path}:{self.line} has no {self.old!r} at column {self.column}")
        lines[self.line - 1] = (data[:start] + self.new.encode() + data[end:]).decode()
        return "".join(lines)


def mutations_of(path: str, text: str) -> Iterator[Mutation]:
    """Yield what can be broken in a module."""
    lines = [line.encode() for line in text.splitlines()]
    for node in _nodes(ast.parse(text)):
        if isinstance(node, ast.BinOp) and type(node.op) in OTHER:
            yield from _operator(path, lines, node.left, node.right, type(node.op))
            for side in (node.left, node.right):
                if isinstance(side, ast.Constant) and type(side.value) in (int, float):
                    old = lines[side.lineno - 1][side.col_offset : side.end_col_offset].decode()
                    new = {0: "1", 1: "2"}.get(side.value, f"(2 * {old})")
                    yield Mutation(path, side.lineno, side.col_offset, old, new)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OTHER:
            yield from _operator(path, lines, node.left, node.comparators[0], type(node.ops[0]))
        elif isinstance(node, ast.Call) and (name := _name(node.func)) in CALLS:
            yield Mutation(path, node.func.end_lineno, node.func.end_col_offset - len(name), name, CALLS[name])


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that compute: none of texts, annotations, or errors."""
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST) and not isinstance(node, ast.JoinedStr | ast.Raise) and not _is_text(node):
                yield node
                yield from _nodes(node)


def _is_text(node: ast.AST) -> bool:
    """Return whether an operator joins or compares texts, lists, sets or paths."""
    if not isinstance(node, ast.BinOp | ast.Compare):
        return False
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.left, *node.comparators)
    joined = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp, ast.Dict, ast.Set, ast.SetComp)
    return any(
        isinstance(one, joined) or isinstance(getattr(one, "value", None), str) or _is_text(one) for one in sides
    )


def _operator(path: str, lines: list[bytes], left: ast.expr, right: ast.expr, kind: type) -> Iterator[Mutation]:
    """Yield the operator between two operands, if it is on the line on which the left operand ends."""
    sign, row = SIGNS[kind], left.end_lineno - 1
    end = right.col_offset if right.lineno == left.end_lineno else len(lines[row])
    place = lines[row].find(f" {sign} ".encode(), left.end_col_offset, end + 1)
    if place >= 0:
        yield Mutation(path, row + 1, place + 1, sign, SIGNS[OTHER[kind]])


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def draw(seed: int, count: int, rooms: list[str]) -> list[Mutation]:
    """Draw lines of the rooms without replacement, and a mutation of each."""
    of_lines: dict[tuple[str, int], list[Mutation]] = {}
    for room in rooms:
        for path in sorted((ROOT / PACKAGE / room).rglob("*.py")):
            if "pages" in path.parts or path.stem in ("page", "pages"):
                continue
            relative = path.relative_to(ROOT).as_posix()
            for one in mutations_of(relative, path.read_text(encoding="utf-8")):
                of_lines.setdefault((one.path, one.line), []).append(one)
    rng = random.Random(seed)
    return [rng.choice(of_lines[line]) for line in rng.sample(sorted(of_lines), min(count, len(of_lines)))]


class Copy:
    """A copy of the tracked files, in which tests run."""

    def __init__(self, folder: Path, timeout: float) -> None:
        self.folder, self.timeout = folder, timeout
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, listed.split("\0")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)

    def catches(self, mutation: Mutation) -> str:
        """Return the first test that fails with a mutation; "" if none does."""
        path = self.folder / mutation.path
        text = path.read_text(encoding="utf-8")
        path.write_text(mutation.broken(text), encoding="utf-8")
        try:
            return self.failure([mutation.room], Path(mutation.path).with_suffix("").as_posix().replace("/", "."))
        finally:
            path.write_text(text, encoding="utf-8")

    def failure(self, rooms: list[str], module: str = "") -> str:
        """Return the first test of some rooms that fails; "" if all pass."""
        folders = [self.folder / "tests" / TESTS_OF.get(room, room) for room in rooms]
        files = sorted(file for folder in folders for file in folder.rglob("test_*.py"))
        files.sort(key=lambda one: module not in one.read_text(encoding="utf-8"))
        law = self.folder / "tests" / "intervals"
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *files, law]
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "OMP_NUM_THREADS": "1"}
        limit = self.timeout * len(rooms)
        try:
            ended = subprocess.run(
                command, cwd=self.folder, env=environment, timeout=limit, capture_output=True, text=True
            )
        except subprocess.TimeoutExpired:
            return f"longer than {limit:g} s"
        failed = [line for line in ended.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return "" if ended.returncode == 0 else (failed or ["the tests cannot be run"])[0]


def main() -> None:
    """Draw, break, test, and print what survives."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lines", type=int, default=60)
    parser.add_argument("--rooms", nargs="+", default=MATHEMATICS, choices=MATHEMATICS)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=900, help="seconds for the tests of a room")
    parser.add_argument("--record", action="store_true")
    settings = parser.parse_args()
    drawn = draw(settings.seed, settings.lines, settings.rooms)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(settings.workers) as pool:
        copies = [Copy(Path(scratch) / str(number), settings.timeout) for number in range(settings.workers)]

        def try_one(number: int) -> str:
            copy = copies.pop()
            try:
                return copy.catches(drawn[number])
            finally:
                copies.append(copy)

        if failure := copies[0].failure(sorted({one.room for one in drawn})):
            sys.exit(f"without a mutation, a test fails: {failure}")
        caught = []
        for one, test in zip(drawn, pool.map(try_one, range(len(drawn))), strict=True):
            line = (ROOT / one.path).read_text(encoding="utf-8").splitlines()[one.line - 1].strip()
            print(f"{'caught' if test else 'SURVIVES'} {one.path}:{one.line} {one.old} → {one.new}: {line}\n    {test}")
            caught.append(bool(test))
    print(f"{sum(caught)} of {len(caught)} caught (seed {settings.seed})")
    if settings.record:
        _record(settings, drawn, caught)


def _record(settings: argparse.Namespace, drawn: list[Mutation], caught: list[bool]) -> None:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from _record import record

    rows = [
        {"room": room, "lines": len(of_room), "caught": sum(of_room)}
        for room in sorted({one.room for one in drawn})
        if (of_room := [is_caught for one, is_caught in zip(drawn, caught, strict=True) if one.room == room])
    ]
    rows.append({"room": "all", "lines": len(caught), "caught": sum(caught)})
    record("mutations", rows, f"Lines of mathematics that were broken at random, seed {settings.seed}")


if __name__ == "__main__":
    main()
