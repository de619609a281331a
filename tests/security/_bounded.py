"""A call in a forked process, with a limit on its time and on its memory."""

import faulthandler
import os
import pickle
import resource
import signal
import tempfile
import warnings
from pathlib import Path

import pytest

from finc_eval.core.errors import FincEvalError

SECONDS = 10
"""Seconds of computing."""

WAITING = 60
"""Seconds in all."""

MEMORY = 3 << 29
"""Bytes of address space that a call may take beyond what the process had when it was forked."""


def bounded(function, *arguments):
    """Call a function; return what it returns as a text, or the sentence that it raises. All else is a failure.

    A call that ran too long runs again: a forked process can wait for what another thread held. What takes long by
    itself takes long twice.
    """
    told, stack = _forked(function, *arguments)
    if stack:
        warnings.warn(f"a forked process ran too long, and runs again: {stack}", stacklevel=2)
        told, stack = _forked(function, *arguments)
    if stack:
        pytest.fail(f"it ran too long: {stack}")
    return told


def _forked(function, *arguments):
    """Return what the function returns, and "", or else None, and where it was when its time was over."""
    reading, writing = os.pipe()
    with tempfile.TemporaryFile("w+") as stacks:
        child = os.fork()
        if not child:
            os.close(reading)
            _call(function, arguments, writing, stacks)
        os.close(writing)
        with os.fdopen(reading, "rb") as stream:
            told = stream.read()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        stacks.seek(0)
        if code in (-signal.SIGALRM, -signal.SIGXCPU, -signal.SIGKILL):
            return None, f"{signal.Signals(-code).name}\n{stacks.read()}"
    assert told, f"it ended with {code}"
    return pickle.loads(told), ""


def _call(function, arguments, writing, stacks):
    """Write what a function returns, and end this process."""
    try:
        for late in (signal.SIGALRM, signal.SIGXCPU):
            signal.signal(late, signal.SIG_DFL)
            faulthandler.register(late, stacks, all_threads=False, chain=True)
        signal.alarm(WAITING)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
        has = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (has + MEMORY, has + MEMORY))
        try:
            found = str(function(*arguments))
        except FincEvalError as error:
            found = str(error)
        except BaseException as error:
            found = f"TRACEBACK {type(error).__name__}: {error}"
        os.write(writing, pickle.dumps(found[:4000]))
    finally:
        os._exit(0)
