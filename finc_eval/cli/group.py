"""`Group` and `Verb`: the kinds of commands that the command line consists of."""

from __future__ import annotations

from copy import copy
from inspect import cleandoc
from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup

from finc_eval.core.errors import did_you_mean
from finc_eval.core.remote.urls import out_path

USAGE_OR_DATA = 3
"""A wrong option, or input that cannot be used."""

INTERRUPTED = 130

PIPE_CLOSED = 141
"""Nobody reads standard output any more, as after `| head`: the code with which a shell ends other programs."""


class VerdictExit(SystemExit):
    """The end of a verb with the exit code of a verdict, whose 2 does not mean wrong options."""


OUT = "out"
"""Name of the parameter with the output, in every verb."""

SETS = ("gen", "ref")
"""Names of the parameters with the sets, in every verb."""


MOST_SHOWN = 12
"""Options that the help of a verb shows; of a verb with more, the settings are behind --help-all, but for `USUAL`."""

HELP_ALL = "--help-all"

USUAL = ("extractor", "groups", "rho")
"""Names of settings that every help shows."""


class Helped:
    """A command whose help is wrapped by the terminal, and shows flags as flags."""

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        if attributes.get("help"):  # the lines of a paragraph of a docstring are one line
            parts = cleandoc(attributes["help"]).split("\n\n")
            attributes["help"] = "\n\n".join(" ".join(part.split()) for part in parts)
        super().__init__(*arguments, **attributes)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters; options without a value lose the type that the help would show for it."""
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for one in found:
            if getattr(one, "is_flag", False):
                one.metavar = ""
        return found


class Group(Helped, TyperGroup):
    """A group of verbs. Its name alone prints its help, which is not an error."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, or print the help if there are none."""
        return super().parse_args(ctx, args or ["--help"])


class DefaultGroup(Group):
    """A group of verbs. A command that names none of them runs the first."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, with the name of the first verb before them where they do not begin with one.

        A word that is nearly a verb, and not a path, is refused with that verb.
        """
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            meant = did_you_mean(args[0], self.commands)
            if meant and args[0].isalpha() and not Path(args[0]).exists():
                ctx.fail(f"no command is called {args[0]!r}{meant}")
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)


class Verb(Helped, TyperCommand):
    """A verb."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; where a verb takes one set, a second one would silently replace it."""
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        for option in given:
            if option.name in SETS and not option.multiple and given.count(option) > 1:
                ctx.fail(f"{option.opts[0]} is given {given.count(option)} times, but takes one set: give it once")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb. An output behind a URL is made on the local disk, and uploaded when it is whole."""
        if ctx.params.get(OUT) is not None:
            ctx.params[OUT] = out_path(ctx.params[OUT])
        return super().invoke(ctx)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, and --help-all where the help leaves some out."""
        found = super().get_params(ctx)
        return [*found, self._help_all(ctx)] if self._is_long(found) else found

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help; settings that few people change are left out unless they are asked for."""
        parameters: list[Any] = list(self.params)
        hidden = [one.hidden for one in parameters]
        if self._is_long(parameters) and not ctx.meta.get(HELP_ALL):
            for one in parameters:
                one.hidden = one.hidden or _is_rare(one)
        try:
            super().format_help(ctx, formatter)
        finally:
            for one, before in zip(parameters, hidden, strict=True):
                one.hidden = before

    @staticmethod
    def _is_long(parameters: list[Any]) -> bool:
        return len(parameters) > MOST_SHOWN and any(map(_is_rare, parameters))

    def _help_all(self, ctx: Any) -> Any:
        option: Any = copy(self.get_help_option(ctx))

        def show(ctx: Any, _: Any, asked: bool) -> None:
            if asked and not ctx.resilient_parsing:
                ctx.meta[HELP_ALL] = True
                print(ctx.get_help())
                ctx.exit()

        option.name, option.opts, option.callback = "help_all", [HELP_ALL], show
        option.help = "Show all options, with all settings, and exit."
        return option


def _is_rare(one: Any) -> bool:
    return getattr(one, "rich_help_panel", None) is not None and one.name not in USUAL and not one.required
