"""Exit codes of the command line; 1 and 2 are those of verdicts, which a pipeline must tell from a broken run."""

USAGE_OR_DATA = 3
"""A wrong option, or input that cannot be used."""

INTERRUPTED = 130
