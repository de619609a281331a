"""A call in a forked process, with a limit on its time and on its memory."""

import os
import pickle
import resource
import signal
from pathlib import Path

from finc_eval.core.errors import FincEvalError

SECONDS = 10
"""Seconds of computing."""

WAITING = 60
"""Seconds in all."""

MEMORY = 3 << 29
"""Bytes of address space that a call may take beyond what the process had when it was forked."""


def bounded(function, *arguments):
    """Call a function; return what it returns as a text, or the sentence that it raises. All else is a failure."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(WAITING)
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
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
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        told = stream.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code not in (-signal.SIGALRM, -signal.SIGXCPU, -signal.SIGKILL), f"it ran for more than {SECONDS} seconds"
    assert told, f"it ended with {code}"
    return pickle.loads(told)
