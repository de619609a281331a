"""`Group`: the kind of group that the verbs and the groups of verbs are in."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class Group(TyperGroup):
    """A group of verbs. Its name alone prints its help, which is not an error."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, or print the help where there are none."""
        return super().parse_args(ctx, args or ["--help"])
