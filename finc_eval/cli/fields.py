"""From a field of a settings class to the options of a verb, and from what was given back to the field's value."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer
from pydantic.fields import FieldInfo

from finc_eval.core.checks import check_choice
from finc_eval.core.errors import UsageError


@dataclass(frozen=True)
class PlainOption:
    """The option of a field that holds a plain value.

    Attributes:
        field: name of the field.
        parameters: one parameter, which is the option.
        switches_off: True for a flag that sets the field to None.
    """

    field: str
    parameters: tuple[inspect.Parameter, ...]
    switches_off: bool = False

    def value(self, given: Mapping[str, Any], start: Any) -> Any:
        """Return the given value.

        Args:
            given: options that were given, by the names of their parameters.
            start: settings that they change; None for the defaults.
        """
        return None if self.switches_off else given[self.parameters[0].name]


@dataclass(frozen=True)
class ChoiceOptions:
    """The options of a field that holds one of several dataclasses, or a tuple of them: its name, and its parameters.

    Attributes:
        field: name of the field.
        parameters: the option that names the choice, and one option per parameter of any choice.
        choices: the dataclasses by name.
        options: the options of their parameters, by name.
        default: default value of the field.
        several: True for a field that holds a tuple.
    """

    field: str
    parameters: tuple[inspect.Parameter, ...]
    choices: dict[str, type]
    options: dict[str, PlainOption]
    default: Any
    several: bool

    def value(self, given: Mapping[str, Any], start: Any) -> Any:
        """Return the chosen dataclasses with the given parameters.

        Args:
            given: options that were given, by the names of their parameters.
            start: settings that they change; None for the defaults.

        Raises:
            UsageError: a name is unknown, or a parameter belongs to none of the chosen.
        """
        before = self.default if start is None else getattr(start, self.field)
        chosen = before if self.several else (before,)
        if self.field in given:
            names = [name.strip() for name in given[self.field].split(",")]
            for name in names:
                check_choice(flag(self.field), name, self.choices)
            known = {name_of(type(one)): one for one in chosen}
            chosen = tuple(known.get(name) or self.choices[name]() for name in names)
        changes = {
            name: one.value(given, None) for name, one in self.options.items() if one.parameters[0].name in given
        }
        for name in changes:
            self._check_owned(name, chosen)
        made = tuple(replace(one, **{k: v for k, v in changes.items() if hasattr(one, k)}) for one in chosen)
        return made if self.several else made[0]

    def _check_owned(self, parameter: str, chosen: tuple[Any, ...]) -> None:
        if any(hasattr(one, parameter) for one in chosen):
            return
        option = flag(self.options[parameter].parameters[0].name)
        owners = owners_of(parameter, self.choices)
        asked = ", ".join(name_of(type(one)) for one in chosen)
        raise UsageError(
            f"{option} belongs to {' and '.join(owners)}, not to {asked}: leave it out, or choose "
            f"{flag(self.field)} {owners[0]}"
        )


FieldOptions = PlainOption | ChoiceOptions


def options_of(cls: type, narrower: Mapping[str, Any]) -> list[FieldOptions]:
    """Return the options of a settings class, in the order of its fields.

    Args:
        cls: the class.
        narrower: types to use in place of those of some fields; None leaves the field out.
    """
    hints = {**get_type_hints(cls, include_extras=True), **narrower}
    return [
        _options(field, hints[field.name], heading_of(cls))
        for field in fields(cls)
        if field.name not in narrower or narrower[field.name] is not None
    ]


def heading_of(cls: type) -> str:
    """Return the heading of the options of a settings class: the first sentence of its docstring."""
    return str(cls.__doc__).splitlines()[0].split(". ")[0].rstrip(".")


def parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """Return a keyword of a verb."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def flag(name: str) -> str:
    """Return the name of a parameter as it is written on the command line."""
    return f"--{name.replace('_', '-')}"


def sentence(text: str) -> str:
    """Return a description as a sentence of a help text, which rich takes literally."""
    begun = text[:1].upper() + text[1:] if text[:1].isascii() else text
    return f"{begun}.".replace("[", "\\[")


def name_of(choice: type) -> str:
    """Return the name that tells a dataclass from the others of a union: the one value of a field's `Literal`."""
    hints = get_type_hints(choice)
    return next((str(field.default) for field in fields(choice) if is_tag(hints[field.name])), choice.__name__)


def is_tag(annotation: Any) -> bool:
    """Return True for a `Literal` of one value."""
    return get_origin(annotation) is Literal and len(get_args(annotation)) == 1


def owners_of(parameter: str, choices: Mapping[str, type]) -> list[str]:
    """Return the names of the dataclasses that have a parameter."""
    return [name for name, choice in choices.items() if parameter in {field.name for field in fields(choice)}]


def _options(field: Field[Any], annotation: Any, panel: str) -> FieldOptions:
    base, text = _described(annotation)
    of_tuple = get_args(base)[0] if get_origin(base) is tuple else base
    choices = [one for one in _alternatives(_described(of_tuple)[0]) if is_dataclass(one)]
    if choices:
        return _choice_options(field, choices, text, panel, several=of_tuple is not base)
    return _plain_option(field, annotation, panel)


def _choice_options(field: Field[Any], choices: list[Any], text: str, panel: str, several: bool) -> ChoiceOptions:
    by_name = {name_of(choice): choice for choice in choices}
    options: dict[str, PlainOption] = {}
    for choice in choices:
        for own in fields(choice):
            annotation = get_type_hints(choice, include_extras=True)[own.name]
            if own.name not in options and not is_tag(annotation):
                owners = owners_of(own.name, by_name) if len(choices) > 1 else []
                options[own.name] = _plain_option(own, annotation, panel, owners)
    default = _default(field)
    parameters = [option.parameters[0] for option in options.values()]
    if len(choices) > 1:
        names = ",".join(name_of(type(one)) for one in (default if several else (default,)))
        listed: Any = str if several else Literal[tuple(by_name)]
        option = typer.Option(
            flag(field.name), help=sentence(text), rich_help_panel=panel, metavar="NAME,NAME,…" if several else None
        )
        parameters.insert(0, parameter(field.name, Annotated[listed, option], names))
    return ChoiceOptions(field.name, tuple(parameters), by_name, options, default, several)


def _plain_option(field: Field[Any], annotation: Any, panel: str, owners: list[str] | None = None) -> PlainOption:
    """Return the option of a field.

    Args:
        field: the field.
        annotation: its type, with what `about` says of it.
        panel: heading of the option.
        owners: for a parameter that only some choices have, their names; its default is told, not set.
    """
    base, text = _described(annotation)
    default, name = _default(field), field.name
    alternatives = _alternatives(base)
    kinds = [kind for kind in alternatives if kind is not NoneType]
    more: dict[str, Any] = {"rich_help_panel": panel}
    of_some = f" For {' and '.join(owners)}" if owners else ""
    if len(alternatives) > 1 and len(kinds) == 1 and is_tag(kinds[0]) and default is not None:
        option = typer.Option(flag(f"no_{name}"), help=f"Switch off: {text}.{of_some and of_some + '.'}", **more)
        return PlainOption(name, (parameter(f"no_{name}", Annotated[bool, option], False),), switches_off=True)
    if base is bool:
        names = [flag(name) if default in (False, MISSING) else f"{flag(name)}/{flag(f'no_{name}')}"]
        kind: Any = bool
    else:
        names = [flag(name)]
        kind = kinds[0]
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        kind, more = str, more | {"parser": list_parser(item), "metavar": f"{_placeholder(item)},…"}
        if isinstance(default, tuple):
            default = ",".join(map(str, default))
    elif len(kinds) > 1:
        number, *words = kinds
        allowed = [word for kind in words for word in get_args(kind)]
        kind, more = str, more | {"parser": _number_parser(number, allowed), "metavar": "|".join(["N", *allowed])}
    if owners:
        of_some += f"; default: {default}."
        default = None
    option = typer.Option(*names, help=sentence(text) + of_some, **more)
    optional = kind | None if default is None else kind
    given_default = inspect.Parameter.empty if default is MISSING else default
    return PlainOption(name, (parameter(name, Annotated[optional, option], given_default),))


def _described(annotation: Any) -> tuple[Any, str]:
    """Return a type without its metadata, and the text that `about` gave it."""
    if get_origin(annotation) is not Annotated:
        return annotation, ""
    base, *metadata = get_args(annotation)
    texts = [one.description for one in metadata if isinstance(one, FieldInfo) and one.description]
    return base, texts[-1] if texts else ""


def _alternatives(base: Any) -> tuple[Any, ...]:
    return get_args(base) if get_origin(base) in (Union, UnionType) else (base,)


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _number_parser(number: Callable[[str], Any], words: list[str]) -> Callable[[Any], Any]:
    """Return a function that reads a number or one of some words."""

    def read(text: Any) -> Any:
        if text in words:
            return text
        try:
            return number(text)
        except ValueError:
            raise typer.BadParameter(f"{text!r} is not a {_NUMBERS[number]} or {', '.join(words)}") from None

    return read


def list_parser(item: Any) -> Callable[[Any], Any]:
    """Return a function that reads values separated by commas."""

    def read(text: Any) -> Any:
        parts = [part.strip() for part in str(text).split(",") if part.strip()]
        try:
            return tuple(part if get_origin(item) is Literal else item(part) for part in parts)
        except ValueError:
            raise typer.BadParameter(f"{text!r} is not a list of {_NUMBERS[item]}s, such as 1,2,5") from None

    return read


def _placeholder(item: Any) -> str:
    return "|".join(get_args(item)) if get_origin(item) is Literal else "V,V" if item in _NUMBERS else "NAME,NAME"


_NUMBERS: dict[Any, str] = {int: "whole number", float: "number"}
