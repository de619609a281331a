"""An option that is given twice: one that takes several values has them all, and any other is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from finc_eval.core.errors import UsageError

EVERY_VALUE = {"store": "append", "store_const": "append_const"}
"""Action of a parser at each occurrence of an option, by its action at the last one."""


def collecting(parser: Any, parameters: Sequence[Any]) -> Any:
    """Return a parser of arguments that knows every value of an option, and not the last alone.

    An option whose type is a list has all of them already. Values of an option that is separated by commas are joined.
    Equal values count once.

    Raises:
        UsageError: an option of one value has two that differ; when arguments are parsed.
    """
    for written in (*parser._long_opt.values(), *parser._short_opt.values()):
        written.action = EVERY_VALUE.get(written.action, written.action)
    single = {
        parameter.name: parameter
        for parameter in parameters
        if hasattr(parameter, "is_flag") and not parameter.multiple
    }
    parse = parser.parse_args

    def parse_args(args: list[str]) -> Any:
        values, rest, order = parse(args=args)
        joined = {name: _joined(single[name], value) if name in single else value for name, value in values.items()}
        return joined, rest, order

    parser.parse_args = parse_args
    return parser


def takes_several(option: Any) -> bool:
    """Return whether an option takes values that are separated by commas, as `list_option` makes it."""
    described = getattr(option, "type_descriptor", None)  # of newer releases of typer; older ones keep click's type
    parser = described.parameter_info.parser if described else getattr(option.type, "func", None)
    return bool(getattr(parser, "takes_several", False))


def _joined(option: Any, values: list[Any]) -> Any:
    """Return the value of an option from the values of all its occurrences."""
    if takes_several(option):
        return ",".join(values)
    different = list(dict.fromkeys(values))
    if len(different) == 1:
        return different[0]
    name = option.opts[0]
    if option.is_flag:
        raise UsageError(f"{name} and {option.secondary_opts[0]} contradict each other: give one of them")
    given = " and ".join(repr(value) for value in different)
    raise UsageError(f"{name} takes one value, and is given {given}: give it once")
