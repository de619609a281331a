"""Exit codes of the command line; 1 and 2 belong to verdicts, which a pipeline must tell from a broken run."""

USAGE_OR_DATA = 3
"""A wrong option, or input that cannot be used."""

INTERRUPTED = 130

PIPE_CLOSED = 141
"""Nobody reads standard output any more, as after `| head`: the code with which a shell ends other programs."""


class VerdictExit(SystemExit):
    """The end of a verb with the exit code of a verdict, whose 2 does not mean wrong options."""
