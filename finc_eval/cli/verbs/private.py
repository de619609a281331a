"""`finc-eval private`: releases of private data under differential privacy."""

from __future__ import annotations

import typer


def private(context: typer.Context) -> None:
    """Release data under differential privacy: a sketch to score generators by, or synthetic records."""
    print(context.get_help())
