"""From a field of a settings class to the options of a verb, and from what was given back to the field's value."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer
from pydantic.fields import FieldInfo

from finc_eval.core.checks import check_choice
from finc_eval.core.errors import UsageError

NUMBER_NAMES: dict[Any, str] = {int: "whole number", float: "number"}
"""Names of types in messages."""


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
                owners = owners_of(own.name, by_name) if len(choices) > 1 else ()
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


def _plain_option(field: Field[Any], annotation: Any, panel: str, owners: Sequence[str] = ()) -> PlainOption:
    """Return the option of a field.

    Args:
        field: the field.
        annotation: its type, with what `about` says of it.
        panel: heading of the option.
        owners: for a parameter that only some choices have, their names; its default is told, not set.
    """
    base, text = _described(annotation)
    default, name = _default(field), field.name
    kinds = [kind for kind in _alternatives(base) if kind is not NoneType]
    note = f" For {' and '.join(owners)}" if owners else ""
    if kinds != [base] and is_tag(kinds[0]) and default is not None:
        help_text = f"Switch off: {text}.{note}{'.' if note else ''}"
        option = typer.Option(flag(f"no_{name}"), help=help_text, rich_help_panel=panel)
        return PlainOption(name, (parameter(f"no_{name}", Annotated[bool, option], False),), switches_off=True)
    kind, default, more = _as_typer_knows(kinds, default)
    written = f"{flag(name)}/{flag(f'no_{name}')}" if kind is bool and default is True else flag(name)
    if owners:
        note, default = f"{note}; default: {default}.", None
    option = typer.Option(written, help=sentence(text) + note, rich_help_panel=panel, **more)
    optional = kind | None if default is None else kind
    known = inspect.Parameter.empty if default is MISSING else default
    return PlainOption(name, (parameter(name, Annotated[optional, option], known),))


def _as_typer_knows(kinds: list[Any], default: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Return a type and a default that Typer knows, and the arguments of `typer.Option` that make up the difference."""
    kind = kinds[0]
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        listed = ",".join(map(str, default)) if isinstance(default, tuple) else default
        placeholder = "V,V,…" if item in NUMBER_NAMES else "NAME,NAME,…"
        return str, listed, {"parser": list_parser(item), "metavar": placeholder}
    if len(kinds) > 1:
        words = [word for literal in kinds[1:] for word in get_args(literal)]
        return str, default, {"parser": _number_parser(kind, words), "metavar": "|".join(["N", *words])}
    return kind, default, {}


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
            raise typer.BadParameter(f"{text!r} is not a {NUMBER_NAMES[number]} or {', '.join(words)}") from None

    return read


def list_parser(item: Callable[[str], Any]) -> Callable[[Any], Any]:
    """Return a function that reads values separated by commas."""

    def read(text: Any) -> Any:
        parts = [part.strip() for part in str(text).split(",") if part.strip()]
        try:
            return tuple(map(item, parts))
        except ValueError:
            raise typer.BadParameter(f"{text!r} is not a list of {NUMBER_NAMES[item]}s, such as 1,2,5") from None

    return read
