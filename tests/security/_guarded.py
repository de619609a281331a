"""A command in a forked process, with a limit on its time and on its memory, and paths that lead to no file."""

import importlib
import os
import pkgutil
import resource
import signal
import socket
import sys
import traceback
from pathlib import Path

import finc_eval
from finc_eval.cli import main

SECONDS = 10
MEMORY = 1 << 30
"""Bytes of address space that a command may take beyond what the process had when it was forked."""

FAULTY = 70


def guarded(words, place, told, seconds=SECONDS, name="", before=None):
    """Run a command in a folder; return its exit code, or minus the signal that ended it, and what it printed.

    "{}" in the command is the name; `before` is done in the process first.
    """
    process = os.fork()
    if process:
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        return code, told.read_text()
    code = FAULTY
    try:
        output = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        has = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (has + MEMORY, has + MEMORY))
        os.chdir(place)
        os.environ["FINC_EVAL_CACHE"] = str(place / "cache")
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
        sys.argv = ["finc-eval", *(word.replace("{}", name) for word in words.split())]
        if before:
            before()
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else FAULTY
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def load_all():
    """Import what commands import, once for all forked processes."""
    for name in ("datasets", "pyarrow.parquet", "safetensors.torch"):
        importlib.import_module(name)
    for module in pkgutil.walk_packages(finc_eval.__path__, "finc_eval."):
        if "__main__" not in module.name and ".networks" not in module.name:
            importlib.import_module(module.name)


def is_sentence(text):
    """Whether an output is one line of one error, and neither a traceback nor a table."""
    lines = text.strip().splitlines()
    return len(lines) == 1 and lines[0].startswith("finc-eval: ") and "mistake in finc-eval" not in text


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(path.parent)  # the path of a socket has at most 107 bytes
        made.bind(path.name)
        os.chdir(here)


def link_to(make):
    def linked(path):
        other = path.with_name(f"{path.name}-itself")
        make(other)
        path.symlink_to(other.name)

    return linked


SPECIAL = {
    "pipe": os.mkfifo,
    "endless device": lambda path: path.symlink_to("/dev/zero"),
    "folder": lambda path: path.mkdir(),
    "socket": make_socket,
    "link to a pipe": link_to(os.mkfifo),
    "link to a socket": link_to(make_socket),
}
"""How to make a path lead to what is not a file."""
