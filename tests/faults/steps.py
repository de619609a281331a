"""A command run in a forked process, which counts its steps on files and fails or is killed at one of them.

A step is a change (a file is made, opened for writing, renamed or removed), a read, or a lock.
"""

import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import torch

from finc_eval.cli import main
from finc_eval.embeddings import writer
from finc_eval.private.dp import gaussian_mechanism, ledger

Arm = Callable[[], None]
"""A function that prepares the surroundings of a forked process before the command runs."""

KINDS = ("change", "read", "lock")
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
FAULTY = 70
"""Exit code of a process that ended with anything but an exit."""


def nothing(*_: object) -> None:
    """Do nothing."""


def kind_of(event: str, arguments: tuple) -> str | None:
    """Kind of a step on files of the working folder; None for anything else."""
    if event == "fcntl.flock":
        return "lock"
    if event not in ("open", *CHANGES) or isinstance(arguments[0], int):
        return None
    if not Path(os.path.abspath(os.fsdecode(arguments[0]))).is_relative_to(Path.cwd()):  # noqa: PTH100 follows no links
        return None
    return "change" if event in CHANGES or arguments[2] & WRITING else "read"


def at_step(kind: str, number: int, act: Callable[[str, tuple], None]) -> Arm:
    """Call `act` before this step of a kind, and before every later one."""

    def arm() -> None:
        done, acting = 0, False

        def hook(event: str, arguments: tuple) -> None:
            nonlocal done, acting
            if acting or kind_of(event, arguments) != kind:
                return
            done += 1
            acting = True
            try:
                if done > number:
                    act(event, arguments)
            finally:
                acting = False

        sys.addaudithook(hook)

    return arm


def counting(told: Path) -> Arm:
    """Write how many steps of each kind there were, and which modules were imported, when the process ends."""

    def arm() -> None:
        steps = dict.fromkeys(KINDS, 0)

        def hook(event: str, arguments: tuple) -> None:
            if kind := kind_of(event, arguments):
                steps[kind] += 1

        sys.addaudithook(hook)
        leave = os._exit

        def tell(code: int) -> None:
            told.write_text(f"{' '.join(map(str, steps.values()))}\n{' '.join(sys.modules)}")
            leave(code)

        os._exit = tell

    return arm


def kill(*_: object) -> None:
    """Kill this process."""
    os.kill(os.getpid(), signal.SIGKILL)


def failing(number: int) -> Callable[[str, tuple], None]:
    """Fail as the operating system does with this error. A full disk lets files be removed, renamed and opened."""

    def act(event: str, arguments: tuple) -> None:
        if number != errno.ENOSPC or event in ("open", "os.mkdir", "os.truncate"):
            raise OSError(number, os.strerror(number), *map(str, arguments[:1]))

    return act


def predictable_noise() -> None:
    """Make noise and salts the same in each run: files are compared byte by byte."""
    generator = torch.Generator().manual_seed(0)
    for name, draw in (("secure_normal", torch.randn), ("secure_uniform", torch.rand)):
        value = lambda shape, draw=draw: draw(shape, generator=generator, dtype=torch.double)  # noqa: E731
        setattr(gaussian_mechanism, name, value)
    ledger.token_hex = lambda size: "00" * size


def run_and_leave(words: str, place: Path, stderr: int, arm: Arm) -> None:
    """Run a command in a folder, and end the process with its exit code."""
    code = FAULTY
    try:
        os.chdir(place)
        os.environ["FINC_EVAL_CACHE"] = str(place / "cache")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(stderr, 2)
        # The streams of the process that was forked may be those of a test.
        sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
        sys.argv = ["finc-eval", *words.split()]
        writer.CHECKPOINT_SECONDS = 0  # steps for each batch
        predictable_noise()
        arm()
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else FAULTY
    except BaseException:
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(code)
