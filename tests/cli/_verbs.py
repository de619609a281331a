"""Verbs run in this process, and their printed tables read."""

from _pages import table_rows
from typer.testing import CliRunner

from finc_eval.cli.app import app

__all__ = ["done", "run", "table_rows"]

EMBEDDED = ("changes", "sketch", "merge", "cache")
"""Parts of verbs that take what is embedded."""


def run(verb, *arguments):
    """Run a verb; the verbs that embed use pixels by default, as the folders here are of digits."""
    part = arguments[0] if arguments else ""
    embeds = verb in ("extract", "compare") and part not in EMBEDDED
    embeds &= not any(str(one).endswith((".npy", ".sketch.h5")) for one in arguments)
    if embeds and "--extractor" not in arguments:
        arguments = (*arguments, "--extractor", "pixels")
    return CliRunner().invoke(app, [verb, *map(str, arguments)])


def done(verb, *arguments):
    """Run a verb that must succeed, and return its result."""
    result = run(verb, *arguments)
    assert result.exit_code == 0, result.output
    return result
