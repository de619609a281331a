"""Breaks runs of every verb that writes, and checks what is left: whole files, one sentence, and a way to go on.

A process that has imported everything is forked for each run, so that hundreds of them take minutes. Needs Linux.
"""

import errno
import hashlib
import importlib
import os
import re
import resource
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from faults.steps import KINDS, Arm, at_step, counting, failing, kill, nothing, run_and_leave
from faults.verbs import PREPARED, RIVALS, VERBS, Verb, make_inputs

from finc_eval.cli.app import USAGE_OR_DATA

SECONDS = 100
"""Longest time of a run."""

PAGE = 4096
SMALL_DISK = 1 << 28  # bytes of the largest disk that is filled
TIMES = (-(10**9), 4 * 10**10)
"""Seconds of the years 1938 and 3237."""

Files = dict[str, str]
"""Digests of files by path."""


@dataclass(frozen=True)
class Ended:
    """End of a run: its exit code, or the negative number of the signal, and what it wrote to standard error."""

    code: int
    stderr: str
    seconds: float


@dataclass(frozen=True)
class Whole:
    """A run that nothing disturbed.

    Attributes:
        files: the files afterwards.
        steps: number of its steps by kind.
        seconds: how long it took.
        grown: bytes that it added.
    """

    files: Files
    steps: dict[str, int]
    seconds: float
    grown: int


def files_in(folder: Path) -> list[Path]:
    """Paths of all files in a folder and its folders."""
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


SECONDS_OF_JUNIT = re.compile(rb'(?<=<testsuite name="finc-eval gate") time="[0-9.]+"')


def digests(folder: Path) -> Files:
    """Digest of each file that is not hidden, without the seconds that JUnit's files have."""
    found = [path for path in files_in(folder) if not is_hidden(path)]
    content = {str(path): SECONDS_OF_JUNIT.sub(b"", (folder / path).read_bytes()) for path in found}
    return {path: hashlib.sha256(data).hexdigest()[:16] for path, data in content.items()}


class Runs:
    """Runs of the verbs in copies of one prepared folder.

    Args:
        folder: an empty folder.
        prepared: commands whose results the verbs take.
    """

    def __init__(self, folder: Path, prepared: Sequence[str] = PREPARED) -> None:
        self.start, self.place = folder / "start", folder / "place"
        self._folder, self._wholes = folder, {}
        self.place.mkdir()
        make_inputs(self.place)
        for words in prepared:
            ended = self.run(words)
            assert ended.code == 0, f"{words}: {ended}"
        shutil.copytree(self.place, self.start)
        self.before = digests(self.start)

    def fresh(self) -> None:
        """Put the folder as it was prepared in place."""
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.start, self.place)

    def begin(self, words: str, arm: Arm = nothing) -> tuple[int, float, int]:
        """Start a run."""
        stderr, inner = os.pipe()  # a full disk does not matter to it
        begun, process = time.monotonic(), os.fork()
        if process == 0:
            run_and_leave(words, self.place, inner, arm)
        os.close(inner)
        return process, begun, stderr

    def end(self, process: int, begun: float, stderr: int) -> Ended:
        """Wait for a run."""
        while not (found := os.waitpid(process, os.WNOHANG))[0]:
            if time.monotonic() - begun > SECONDS:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
                raise AssertionError(f"more than {SECONDS} s")
            time.sleep(0.002)
        seconds = time.monotonic() - begun
        with os.fdopen(stderr, errors="replace") as file:
            text = file.read()
        assert "Traceback" not in text, text[-1500:]
        return Ended(os.waitstatus_to_exitcode(found[1]), text, seconds)

    def run(self, words: str, arm: Arm = nothing) -> Ended:
        """Run a command to its end."""
        return self.end(*self.begin(words, arm))

    def whole(self, name: str) -> Whole:
        """Run a verb undisturbed, once."""
        if name not in self._wholes:
            self._wholes[name] = self._undisturbed(name)
        return self._wholes[name]

    def _undisturbed(self, name: str) -> Whole:
        verb, told, seen = VERBS[name], self._folder / "told", []
        for arm in (counting(told), nothing):  # the second time with all modules imported
            self.fresh()
            ended = self.run(verb.words, arm)
            assert ended.code == verb.code, f"{name}: {ended}"
            seen.append(digests(self.place))
            assert not (waste := self._hidden()), f"{name}: {waste} are left"
            steps, modules = told.read_text().splitlines()
            for module in modules.split():
                with suppress(Exception):
                    importlib.import_module(module)
        assert seen[0] == seen[1], f"{name}: {difference(*seen)}"
        sizes = [sum((root / path).stat().st_size for path in files_in(root)) for root in (self.place, self.start)]
        numbers = dict(zip(KINDS, map(int, steps.split()), strict=True))
        return Whole(seen[1], numbers, ended.seconds, max(sizes[0] - sizes[1], 1))

    def _hidden(self) -> list[Path]:
        return [path for path in files_in(self.place) if is_hidden(path)]

    def trial(self, name: str, fault: "str | Fault", rng: np.random.Generator) -> str:
        """Break a run, look at what is left, run the command again, and return what happened.

        Raises:
            AssertionError: something is not as it must be.
        """
        verb, whole = VERBS[name], self.whole(name)
        self.fresh()
        broken = (FAULTS[fault] if isinstance(fault, str) else fault)(self, verb, whole, rng)
        if broken.changed:
            return self._after_change(verb, whole, broken)
        left = digests(self.place)
        for path, digest in left.items():
            known = digest in (self.before.get(path), whole.files.get(path))
            assert known or path.endswith(".part") or path == verb.ledger, f"{broken}: {path} is not whole"
        if verb.once and without(left, verb.ledger) == without(whole.files, verb.ledger):
            return f"{broken}; all was done"
        ended = self.run(verb.words)
        assert ended.code == verb.code, f"{broken}; again: exit code {ended.code}: {ended.stderr[-700:]}"
        found, right = (without(files, verb.ledger) for files in (digests(self.place), whole.files))
        assert found == right, f"{broken}; again: {difference(found, right)}"
        waste = [path for path in self._hidden() if path.suffix != ".lock"]  # a lock is empty, and in nobody's way
        assert not waste, f"{broken}; again: {waste} are left"
        return str(broken)

    def _after_change(self, verb: Verb, whole: Whole, broken: "Broken") -> str:
        """Look at the result of the inputs as they were before, which are in place again."""
        if verb.once and broken.code != USAGE_OR_DATA:
            return f"{broken}; taken as they were then"
        ended = self.run(verb.words)
        assert ended.code == verb.code, f"{broken}; again: exit code {ended.code}: {ended.stderr[-700:]}"
        found = digests(self.place)
        others = {path for path in found.keys() - whole.files.keys() if not path.startswith("cache/")}
        assert not others, f"{broken}; again: {others}"
        found = {path: found.get(path) for path in whole.files}
        right = without(whole.files, verb.ledger)
        assert without(found, verb.ledger) == right, f"{broken}; again: {difference(found, right)}"
        return str(broken)


def without(files: Files, path: str | None) -> Files:
    return {name: digest for name, digest in files.items() if name != path}


def difference(found: Files, right: Files) -> str:
    paths = sorted(path for path in found.keys() | right.keys() if found.get(path) != right.get(path))
    return f"other than in an undisturbed run: {paths}"


# Faults


@dataclass(frozen=True)
class Broken:
    """A run that was broken.

    Attributes:
        how: what was done to it.
        code: its exit code.
        sentence: what it said.
        changed: whether its inputs were others for a while.
    """

    how: str
    code: int
    sentence: str = ""
    changed: bool = False

    def __str__(self) -> str:
        return f"{self.how}: exit code {self.code} {self.sentence}"


def ended_well(how: str, ended: Ended, *codes: int, changed: bool = False) -> Broken:
    """Check that a run ended with one of these codes, and with one sentence if it was refused."""
    assert ended.code in codes, f"{how}: exit code {ended.code}: {ended.stderr[-700:]}"
    lines = [line for line in ended.stderr.splitlines() if line.startswith("finc-eval: ")]
    assert len(lines) == (ended.code == USAGE_OR_DATA), f"{how}: {ended.stderr[-700:]}"
    return Broken(how, ended.code, *lines, changed=changed)


def killed_at_a_moment(runs: Runs, verb: Verb, whole: Whole, rng: np.random.Generator) -> Broken:
    """Kill at a random moment."""
    moment = rng.uniform(0, whole.seconds)
    process, *rest = runs.begin(verb.words)
    time.sleep(moment)
    os.kill(process, signal.SIGKILL)
    return ended_well(f"killed after {moment:.3f} s", runs.end(process, *rest), verb.code, -signal.SIGKILL)


def killed_at_a_change(runs: Runs, verb: Verb, whole: Whole, rng: np.random.Generator) -> Broken:
    """Kill before a file is made, opened for writing, renamed or removed."""
    return killed_at(int(rng.integers(0, whole.steps["change"])))(runs, verb, whole, rng)


def killed_at(number: int) -> "Fault":
    """Return the fault that a run is killed before this change."""

    def fault(runs: Runs, verb: Verb, whole: Whole, rng: np.random.Generator) -> Broken:
        ended = runs.run(verb.words, at_step("change", number, kill))
        return ended_well(f"killed at change {number}", ended, verb.code, -signal.SIGKILL)

    return fault


def failed(number: int, kind: str) -> "Fault":
    """Return the fault that steps of this kind fail with this error of the operating system, from one of them on."""

    def fault(runs: Runs, verb: Verb, whole: Whole, rng: np.random.Generator) -> Broken:
        place = int(rng.integers(0, whole.steps[kind]))
        ended = runs.run(verb.words, at_step(kind, place, failing(number)))
        return ended_well(f"{errno.errorcode[number]} from {kind} {place} on", ended, verb.code, USAGE_OR_DATA)

    return fault


def small_files(runs: Runs, verb: Verb, whole: Whole, rng: np.random.Generator) -> Broken:
    """Let no file grow beyond a random size: writing itself fails."""
    size = int(2 ** rng.uniform(0, np.log2(whole.grown) + 1))
    ended = runs.run(verb.words, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
    return ended_well(f"no file beyond {size} bytes", ended, verb.code, USAGE_OR_DATA)


def is_small_disk(folder: Path) -> bool:
    """Return whether a folder is on a disk that may be filled: at most `SMALL_DISK` bytes large."""
    disk = os.statvfs(folder)
    return disk.f_blocks * disk.f_frsize <= SMALL_DISK


def full_disk(runs: Runs, verb: Verb, whole: Whole, rng: np.random.Generator) -> Broken:
    """Leave a random number of pages free on the disk, which must be a small one in memory."""
    room = int(rng.integers(0, whole.grown // PAGE + 3)) * PAGE
    disk, filler = os.statvfs(runs.place), runs.place.with_name("filler")
    if not is_small_disk(runs.place):
        raise ValueError(f"{runs.place} is on a large disk, which others need: name a small one by TMPDIR")
    try:
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(disk.f_bavail * disk.f_frsize - room, PAGE))
        ended = runs.run(verb.words)
    finally:
        filler.unlink(missing_ok=True)
    return ended_well(f"{room} bytes free", ended, verb.code, USAGE_OR_DATA)


def changed_inputs(runs: Runs, verb: Verb, whole: Whole, rng: np.random.Generator) -> Broken:
    """Remove, cut or replace a file that the command reads, in the middle; then put it back."""
    number = int(rng.integers(0, whole.steps["read"]))
    words = [part for word in verb.words.split() for part in word.split("=")]
    inputs = [path for path in runs.before if path in words or path.split("/")[0] in words]
    name = str(rng.choice(inputs or [*runs.before]))
    path, suffix = runs.place / name, Path(name).suffix
    others = [one for one in runs.before if Path(one).suffix == suffix and one != name] or [name]
    other, half = (runs.start / rng.choice(others)).read_bytes(), path.read_bytes()[: path.stat().st_size // 2]
    how = ("removed", "replaced", "cut")[rng.integers(0, 3)]

    def change(*_: object) -> None:
        nonlocal how
        if how and path.exists():
            path.unlink() if how == "removed" else path.write_bytes(other if how == "replaced" else half)
            how = ""

    ended = runs.run(verb.words, at_step("read", number, change))
    shutil.copy2(runs.start / name, path)
    codes = (0, 1, 2, USAGE_OR_DATA) if verb.words.startswith("gate") else (verb.code, USAGE_OR_DATA)
    return ended_well(f"{name} {how} at read {number}", ended, *codes, changed=True)


def two_at_once(runs: Runs, verb: Verb, whole: Whole, rng: np.random.Generator) -> Broken:
    """Run the command twice, the second time a little later."""
    later = rng.uniform(0, whole.seconds / 2)
    first = runs.begin(verb.words)
    time.sleep(later)
    second = runs.begin(verb.words)
    how = f"twice, {later:.3f} s apart"
    ended = [ended_well(how, runs.end(*run), verb.code, USAGE_OR_DATA) for run in (first, second)]
    assert verb.code in [one.code for one in ended], f"{how}: both refused: {ended}"
    return max(ended, key=lambda one: one.code)


def jumping_clock(runs: Runs, verb: Verb, whole: Whole, rng: np.random.Generator) -> Broken:
    """Let files be of any time, and the clock of the process go anywhere."""
    for path in files_in(runs.place):
        os.utime(runs.place / path, times=(0, int(rng.integers(*TIMES))))

    def jump() -> None:
        time.time = lambda: float(rng.integers(*TIMES))

    return ended_well("any time", runs.run(verb.words, jump), verb.code)


def rivals(runs: Runs, rng: np.random.Generator) -> str:
    """Release a set and a near copy at once, of a budget for one of them.

    Raises:
        AssertionError: not exactly one of them was released.
    """
    runs.fresh()
    first, second = rng.permutation(RIVALS)
    begun = runs.begin(first)
    time.sleep(rng.uniform(0, 0.3))
    ended = [runs.end(*run) for run in (begun, runs.begin(second))]
    how = f"two releases at once: {[one.stderr[-300:] for one in ended]}"
    assert sorted(one.code for one in ended) == [0, USAGE_OR_DATA], how
    assert sum((runs.place / name).exists() for name in ("ref.h5", "near.h5")) == 1, how
    return "exit code 3: one of two releases"


def rival_after_a_kill(runs: Runs, number: int) -> str:
    """Kill a release before this change, and then release a near copy: of a spent budget nothing may be released.

    Raises:
        AssertionError: both were released, or the near copy was refused although nothing was spent.
    """
    runs.fresh()
    first, second = RIVALS
    ended_well(f"killed at change {number}", runs.run(first, at_step("change", number, kill)), 0, -signal.SIGKILL)
    book = runs.place / "book"
    spent = book.exists() and book.read_bytes().count(b'"mu"') > 0
    again = ended_well("a near copy", runs.run(second), USAGE_OR_DATA if spent else 0)
    assert spent or not (runs.place / "ref.h5").exists(), f"killed at change {number}: released for nothing"
    return str(again)


Fault = Callable[[Runs, Verb, Whole, np.random.Generator], Broken]
"""A way to break a run."""

FAULTS = {
    "killed at a moment": killed_at_a_moment,
    "killed at a change of files": killed_at_a_change,
    "disk full": full_disk,
    "files cannot grow": small_files,
    "no room for new files": failed(errno.ENOSPC, "change"),
    "folder becomes read-only": failed(errno.EROFS, "change"),
    "permission denied": failed(errno.EACCES, "change"),
    "locks fail": failed(errno.ENOLCK, "lock"),
    "inputs change": changed_inputs,
    "two at once": two_at_once,
    "clock jumps": jumping_clock,
}
"""Ways to break a run, by name."""
