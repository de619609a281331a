"""Verbs and groups of verbs as typer has them: their help, and the options that all of them have."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from inspect import cleandoc
from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup

from finc_eval.cli.question import asking, in_full
from finc_eval.cli.repeats import collecting
from finc_eval.core.errors import UsageError, did_you_mean
from finc_eval.core.places import out_path
from finc_eval.core.storage import check_writable

OUT = "out"  # name of the parameter with the output, in every verb
HELP_ALL = "--help-all"
VERBOSE = "--verbose"
USUAL = ("extractor", "groups", "rho", "pairs", "prompts", "by", "n")  # names of settings that every help shows
SETS = ("gen", "ref")  # names of the options of two sets, which a command may give without them


class Helped:
    """A command whose help is wrapped by the terminal, and shows flags as flags."""

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        if attributes.get("help"):  # the lines of a paragraph of a docstring are one line
            parts = cleandoc(attributes["help"]).split("\n\n")
            attributes["help"] = "\n\n".join(" ".join(part.split()) for part in parts)
        super().__init__(*arguments, **attributes)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters; options without a value lose the type that the help would show for it."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters


class VerbGroup(Helped, TyperGroup):
    """A group of verbs. Its name alone prints its help, which is not an error."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, or print the help if there are none."""
        return super().parse_args(ctx, args or ["--help"])


class DefaultGroup(VerbGroup):
    """A group of verbs. A command that names none of them runs the first, whose help names the others."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a verb; the help of the first ends with the others."""
        command: Any = super().get_command(ctx, cmd_name)
        first, *others = self.commands
        if command is not None and cmd_name == first:
            command.epilog = parts_in_help(
                {f"{self.name} {name}": self.commands[name].get_short_help_str(200) for name in others}
            )
        return command

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, with the name of the first verb before them where they do not begin with one.

        A word that is nearly a verb, and not a path, is refused with that verb.
        """
        if args and args[0] not in self.commands:
            meant = did_you_mean(args[0], self.commands)
            if meant and args[0].isalpha() and not Path(args[0]).exists():
                ctx.fail(f"no command is called {args[0]!r}{meant}")
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)


class Verb(Helped, TyperCommand):
    """A verb. One that needs two sets, --gen and --ref, and has no arguments, also takes them as two words."""

    def make_parser(self, ctx: Any) -> Any:
        """Return the parser of the arguments, which sees an option that is given twice, and two sets as words."""
        parser = collecting(super().make_parser(ctx), self.get_params(ctx))
        return _taking_sets(parser) if self._takes_sets else parser

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage."""
        return [*super().collect_usage_pieces(ctx), *(["[GEN REF]"] if self._takes_sets else [])]

    @property
    def _takes_sets(self) -> bool:
        parameters: list[Any] = list(self.params)
        required = [parameter.name for parameter in parameters if parameter.required]
        has_arguments = any(parameter.param_type_name == "argument" for parameter in parameters)
        return {*SETS} <= {*required} and not has_arguments

    def invoke(self, ctx: Any) -> Any:
        """Run the verb. An output behind a URL is made on the local disk, and uploaded when it is whole."""
        if ctx.params.get(OUT) is not None:
            ctx.params[OUT] = out_path(ctx.params[OUT])
            check_writable(ctx.params[OUT])
        token = in_full.set(ctx.meta.get(VERBOSE, False))
        try:
            with asking(self.params, ctx.params):
                return super().invoke(ctx)
        finally:
            in_full.reset(token)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, --verbose of what has --json, and --help-all where the help leaves some out."""

        def note(ctx: Any, _: Any, asked: bool) -> None:
            ctx.meta[VERBOSE] = asked

        def show(ctx: Any, _: Any, asked: bool) -> None:
            if asked and not ctx.resilient_parsing:
                ctx.meta[HELP_ALL] = True
                print(ctx.get_help())
                ctx.exit()

        parameters = super().get_params(ctx)
        *own, last = parameters
        if any(parameter.name == "as_json" for parameter in own):
            own.append(self._flag(ctx, VERBOSE, "Print all tables and notes.", note))
        if not self._is_long(parameters):
            return [*own, last]
        return [*own, last, self._flag(ctx, HELP_ALL, "Show all options, with all settings, and exit.", show)]

    def _flag(self, ctx: Any, name: str, text: str, callback: Any) -> Any:
        """Return a flag that the verb itself does not see, as it does not see --help."""
        option: Any = copy(self.get_help_option(ctx))
        option.name, option.opts, option.callback = name.strip("-").replace("-", "_"), [name], callback
        option.help = text
        return option

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help; settings that few people change are left out unless they are asked for."""
        parameters: list[Any] = list(self.params)
        hidden = [parameter.hidden for parameter in parameters]
        if self._is_long(parameters) and not ctx.meta.get(HELP_ALL):
            for parameter in parameters:
                parameter.hidden = parameter.hidden or _is_rare(parameter)
        try:
            super().format_help(ctx, formatter)
        finally:
            for parameter, before in zip(parameters, hidden, strict=True):
                parameter.hidden = before

    @staticmethod
    def _is_long(parameters: list[Any]) -> bool:
        # 12: options that a help shows; of a verb with more, settings are behind --help-all, but for `USUAL`.
        return len(parameters) > 12 and any(map(_is_rare, parameters))


def parts_in_help(lines: Mapping[str, str]) -> str:
    """Return the end of a help that lists the parts of a verb, each with its line."""
    return "\n\n".join(f"[bold]{part}[/bold]: {line}" for part, line in lines.items())


def _taking_sets(parser: Any) -> Any:
    """Return a parser that takes two words as the values of --gen and --ref.

    Raises:
        UsageError: other words than two, or words besides these options; when arguments are parsed.
    """
    parse = parser.parse_args

    def parse_args(args: list[str]) -> Any:
        values, rest, order = parse(args=args)
        if rest and (len(rest) != len(SETS) or {*SETS} & values.keys()):
            raise UsageError(
                f"two sets are compared, got {' '.join(rest)}: write generated/ real/, or --gen generated/ --ref "
                "real/; compare kinds takes more sets, as NAME=PATH"
            )
        return {**values, **dict(zip(SETS, rest, strict=False))}, [], order

    parser.parse_args = parse_args
    return parser


def _is_rare(parameter: Any) -> bool:
    return (
        getattr(parameter, "rich_help_panel", None) is not None
        and parameter.name not in USUAL
        and not parameter.required
    )
