"""The command line: one module a verb; each reads its options, calls the library and prints."""

from finc_eval.cli.app import main

__all__ = ["main"]
