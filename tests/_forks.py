"""Work in a process that is forked from the tests: it has everything imported, and may be killed."""

import multiprocessing
import os
import signal
from pathlib import Path

FORKS = multiprocessing.get_context("fork")


def forked(work, *arguments):
    """Start a process, and return it: its exit code is the negative number of the signal that ended it."""
    process = FORKS.Process(target=work, args=arguments)
    process.start()
    return process


def exit_code(process):
    """Wait for a process, and return its exit code."""
    process.join(120)
    assert process.exitcode is not None, "it hangs"
    return process.exitcode


def killed_after(steps, work, *arguments):
    """Do work in a process that is killed when it has removed, replaced and flushed so many files; return its code."""

    def call():
        left = [steps]

        def killing(function):
            def step(*arguments, **options):
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*arguments, **options)

            return step

        Path.unlink, Path.replace, os.fsync = map(killing, (Path.unlink, Path.replace, os.fsync))
        work(*arguments)

    return exit_code(forked(call))
