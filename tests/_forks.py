"""Work in a process that is forked from the tests: it has everything imported, and may be killed."""

import multiprocessing

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
