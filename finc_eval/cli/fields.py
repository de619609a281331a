"""From a field of a settings class to the options of a verb, and from what was given back to the settings.

It is own: cyclopts 5.5 starts no faster than Typer, and refuses a field that may hold one of several dataclasses.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import typer
from pydantic.fields import FieldInfo

from finc_eval.core.errors import UsageError, check_choice
from finc_eval.core.record import about, settings_from

T = TypeVar("T")

NUMBER_NAMES: dict[Any, str] = {int: "whole number", float: "number"}  # names of types in messages
TAG = "name"  # the field that distinguishes the dataclasses of a union: a `Literal` of one value


@dataclass(frozen=True)
class Option:
    """An option, and the place of its value in the settings."""

    # name of the field; for a parameter of a dataclass in the field, both names, as ("method", "novel")
    path: tuple[str, ...]
    parameter: inspect.Parameter  # the option as a keyword of the verb
    switches_off: bool  # True for a flag that sets the field to None
    choices: Mapping[str, Any]  # the dataclasses that the field can hold, by name

    @property
    def owners(self) -> list[str]:
        """Names of the dataclasses that have this parameter."""
        return [name for name, choice in self.choices.items() if hasattr(choice, self.path[-1])]


def options_of(cls: type, narrower: Mapping[str, Any]) -> list[Option]:
    """Return the options of a settings class, in the order of its fields.

    `narrower` replaces the types of some fields; None leaves a field out.
    """
    hints = {**get_type_hints(cls, include_extras=True), **narrower}
    panel = str(cls.__doc__).splitlines()[0].split(". ")[0].rstrip(".")  # the first sentence heads the options
    made: dict[tuple[str, ...], Option] = {}
    for field in fields(cls):
        if hints[field.name] is None:
            continue
        (base, text), default = _split_about(hints[field.name]), _default(field)
        several = get_origin(base) is tuple
        held = _alternatives(_split_about(get_args(base)[0] if several else base)[0])
        choices: dict[str, Any] = {
            getattr(held_class, TAG): held_class for held_class in held if is_dataclass(held_class)
        }
        if not choices:
            made[field.name,] = _option((field.name,), hints[field.name], default, panel)
        if len(choices) > 1:
            names = tuple(part.name for part in default) if several else default.name
            words: Any = tuple[str, ...] if several else Literal[tuple(choices)]
            made[field.name, TAG] = _option((field.name, TAG), Annotated[words, about(text)], names, panel, choices)
        for choice in choices.values():
            parameters = get_type_hints(choice, include_extras=True)
            usual = next((part for part in (default if several else (default,)) if isinstance(part, choice)), choice())
            for part in fields(choice):
                path = (field.name, part.name)
                if part.name != TAG and path not in made:
                    made[path] = _option(path, parameters[part.name], getattr(usual, part.name), panel, choices)
    return list(made.values())


def settings_with(cls: type[T], start: T | None, options: list[Option], given: Mapping[str, Any]) -> T:
    """Return settings with the options that were given, by the names of their parameters."""
    values: dict[str, Any] = {}
    for option in options:
        if option.parameter.name in given:
            at = values.setdefault(option.path[0], {}) if option.choices else values
            at[option.path[-1]] = None if option.switches_off else given[option.parameter.name]
    for field in fields(cls):  # type: ignore[arg-type]
        of_field = [option for option in options if option.path[0] == field.name]
        if field.name in values and of_field[0].choices:
            before = _default(field) if start is None else getattr(start, field.name)
            values[field.name] = _choose(before, values[field.name], of_field)
    return settings_from(cls, start, values)


def _choose(before: Any, values: dict[str, Any], options: list[Option]) -> Any:
    """Return the dataclass of the given name, or the one before, or a tuple of several, with the given parameters."""
    several = isinstance(before, tuple)
    chosen = before if several else (before,)
    field, choices = options[0].path[0], options[0].choices
    if TAG in values:
        names = (values[TAG] or ("",)) if several else [values[TAG]]
        for name in names:
            check_choice(flag(field), name, choices)
        known = {part.name: part for part in chosen}
        chosen = tuple(known.get(name) or choices[name]() for name in names)
    for option in options:
        owners = option.owners
        if option.path[-1] in values and not any(part.name in owners for part in chosen):
            raise UsageError(
                f"{flag(option.parameter.name)} belongs to {' and '.join(owners)}, not to "
                f"{', '.join(part.name for part in chosen)}: leave it out, or choose {flag(field)} {owners[0]}"
            )
    made = tuple(
        replace(part, **{name: value for name, value in values.items() if name != TAG and hasattr(part, name)})
        for part in chosen
    )
    return made if several else made[0]


def asked_of(
    cls: type, settings: Any, options: list[Option], asked: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values of settings by the names of their options, and the defaults of these.

    A field without an option, which a file of defaults gives, has its own name. `own` are the values of all options of
    the verb: one that stands for such a field, and is given, replaces it.
    """
    values: dict[str, Any] = {}
    usual: dict[str, Any] = {}
    of_options = {option.path[0] for option in options}
    for field in fields(cls):
        name = field.name
        if name in of_options or asked.get(name):
            continue
        key = f"{cls.table}_{name}" if asked.get(name) == 0 else name  # type: ignore[attr-defined]
        values[key], usual[key] = getattr(settings, name), _default(field)
    for option in options:
        field = next(field for field in fields(cls) if field.name == option.path[0])
        name = option.parameter.name
        chosen, default = getattr(settings, field.name), _default(field)
        if not option.choices:
            values[name], usual[name] = chosen, default
            continue
        both = [values if isinstance(values, tuple) else (values,) for values in (chosen, default)]
        values[name], usual[name] = (_in_choices(option, value, both[1]) for value in both)
    return values, usual


def _in_choices(option: Option, chosen: tuple[Any, ...], default: tuple[Any, ...]) -> Any:
    """Return the names of dataclasses, or their parameters that differ from those of the default ones."""
    if option.path[-1] == TAG:
        return ",".join(part.name for part in chosen)
    usual = {part.name: part for part in default}
    values: list[Any] = [
        value is None if option.switches_off else value
        for part in chosen
        if part.name in option.owners
        and (value := getattr(part, option.path[-1])) != getattr(usual.get(part.name, type(part)()), option.path[-1])
    ]
    return values[0] if len(values) == 1 else values or None


def parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """Return a keyword of a verb."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def flag(name: str) -> str:
    """Return the name of a parameter as it is written on the command line."""
    return f"--{name.replace('_', '-')}"


def _option(
    path: tuple[str, ...], annotation: Any, default: Any, panel: str, choices: Mapping[str, Any] | None = None
) -> Option:
    """Return the option of a field, or of a parameter of the dataclass in it.

    The default of a parameter that only some choices have is described, not set.
    """
    name = path[0] if path[-1] == TAG else path[-1]
    base, text = _split_about(annotation)
    made = Option(path, parameter(name, base), False, choices or {})
    owned = len(made.choices) > 1 and path[-1] != TAG
    note = f" For {' and '.join(made.owners)}" if owned else ""
    types = [alternative for alternative in _alternatives(base) if alternative is not NoneType]
    is_word = get_origin(types[0]) is Literal and len(get_args(types[0])) == 1
    if types != [base] and is_word and default is not None:
        help_text = f"Switch off: {text}.{note}{'.' if note else ''}"
        option = typer.Option(flag(f"no_{name}"), help=help_text, rich_help_panel=panel)
        return replace(made, parameter=parameter(f"no_{name}", Annotated[bool, option], False), switches_off=True)
    known, default, more = _as_typer_knows(types, default)
    written = f"{flag(name)}/{flag(f'no_{name}')}" if known is bool and default is True else flag(name)
    if owned:
        note, default = f"{note}." if default is None else f"{note}; default: {default}.", None
    # rich takes help texts literally only where brackets are escaped.
    sentence = f"{text[:1].upper() + text[1:] if text[:1].isascii() else text}.".replace("[", "\\[")
    option = typer.Option(written, help=sentence + note, rich_help_panel=panel, **more)
    keyword = parameter(
        name,
        Annotated[known | None if default is None else known, option],
        inspect.Parameter.empty if default is MISSING else default,
    )
    return replace(made, parameter=keyword)


def _as_typer_knows(types: list[Any], default: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Return a type and a default that Typer knows, and the arguments of `typer.Option` that make up the difference."""
    first = types[0]
    if get_origin(first) is tuple:
        written = ",".join(map(str, default)) if isinstance(default, tuple) else default
        item, *rest = get_args(first)
        return str, written, _listed(item, takes_several=rest == [Ellipsis])
    if len(types) == 1:
        return first, default, {}
    words = [word for literal in types[1:] for word in get_args(literal)]

    def read(text: Any) -> Any:
        if text in words:
            return text
        try:
            return first(text)
        except ValueError:
            raise typer.BadParameter(f"{text!r} is not a {NUMBER_NAMES[first]} or {', '.join(words)}") from None

    return str, default, {"parser": read, "metavar": "|".join(["N", *words])}


def _split_about(annotation: Any) -> tuple[Any, str]:
    """Return a type without its metadata, and the text that `about` gave it."""
    if get_origin(annotation) is not Annotated:
        return annotation, ""
    base, *metadata = get_args(annotation)
    texts = [info.description for info in metadata if isinstance(info, FieldInfo) and info.description]
    return base, texts[-1] if texts else ""


def _alternatives(base: Any) -> tuple[Any, ...]:
    return get_args(base) if get_origin(base) in (Union, UnionType) else (base,)


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def list_option(item: Callable[[str], Any], help_text: str, *names: str) -> Any:
    """Return an option of values separated by commas, which the verb gets as a tuple."""
    return typer.Option(*names, help=help_text, **_listed(item))


@dataclass(frozen=True)
class Values:
    """A parser of values separated by commas; an option that has one may be given several times."""

    __name__: ClassVar[str] = "values"  # click takes a parser's name for that of its type

    item: Callable[[str], Any]  # parser of a value
    takes_several: bool = True  # False for a fixed number of values, such as two ends

    def __call__(self, text: Any) -> tuple[Any, ...]:
        """Return the values in a text."""
        parts = [part.strip() for part in str(text).split(",") if part.strip()]
        try:
            return tuple(map(self.item, parts))
        except ValueError:
            raise typer.BadParameter(f"{text!r} is not a list of {NUMBER_NAMES[self.item]}s, such as 1,2,5") from None


def _listed(item: Callable[[str], Any], *, takes_several: bool = True) -> dict[str, Any]:
    metavar = "V,V,…" if item in NUMBER_NAMES else "NAME,NAME,…"
    return {"parser": Values(item, takes_several), "metavar": metavar}
