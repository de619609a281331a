"""Records: frozen dataclasses that become JSON and come back, checked against their types."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache
from inspect import Parameter, Signature, signature
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, Self, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, PlainSerializer, PlainValidator, TypeAdapter, ValidationError, WithJsonSchema

from finc_eval.core.errors import SYNONYMS, DataError, UsageError, check_choice, did_you_mean
from finc_eval.core.files.parsed import read_toml
from finc_eval.core.run import Run

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def about(text: str) -> Any:
    """Describe a field of a record for help texts and JSON Schemas.

    Use it as `Annotated[int, about("number of clusters")]`.
    """
    return Field(description=text)


class MayNameFile(NamedTuple):
    """Mark of a text field whose value may be the path of a file: `Annotated[str | None, about("…"), MayNameFile(f)]`.

    Attributes:
        file_in: returns the path in a value, or None for a value of another meaning.
    """

    file_in: Callable[[str], str | None]


def suffixed(value: str) -> str | None:
    """Return a value as a path if it has a suffix, which names of columns and of methods do not need."""
    return value if Path(value).suffix else None


def named_files(settings: object) -> dict[str, str]:
    """Return the paths of files that fields of settings name, by the field; see `MayNameFile`."""
    paths = {}
    for name, hint in get_type_hints(type(settings), include_extras=True).items():
        for mark in getattr(hint, "__metadata__", ()):
            value = getattr(settings, name) if isinstance(mark, MayNameFile) else None
            if value is not None and (path := mark.file_in(value)) is not None:
                paths[name] = path
    return paths


_FORMS: dict[str, str] = {}  # the forms of texts in words, by their patterns


def form(pattern: str, words: str) -> Any:
    """Give the texts of a field a form, a regular expression, which is checked wherever a record is read.

    Use it as `Annotated[str, form("[0-9a-f]{16}", "16 hexadecimal digits")]`. Outputs need not escape such a text.
    """
    whole = f"^(?:{pattern})$"
    _FORMS[whole] = words
    return Field(pattern=whole)


IS_JOB = re.compile("[0-9a-f]{16}")
Job = Annotated[str, form(IS_JOB.pattern, "16 hexadecimal digits")]  # digest of a command and its inputs
Digest = Annotated[str, form("[0-9a-f]{0,64}", "up to 64 hexadecimal digits")]  # digest of a content; none is empty
Revision = Annotated[str, form("[0-9a-f]{40}|[0-9a-f]{64}", "40 or 64 hexadecimal digits")]  # hash of a commit of git
Version = Annotated[str, form("[0-9A-Za-z.+!_-]{1,100}", "a version such as 2.8.0")]  # version of a package
PackageName = Annotated[str, form("[0-9A-Za-z._-]{1,100}", "the name of a package")]  # name of a package


def check_names(what: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise ValueError for a name in a record that the record does not have, so that no output looks for it."""
    for name in names:
        if name not in known:
            raise ValueError(f"names the {what} {name!r}, which it does not have")


class _ReadableSignature:
    """The signature of a record with the types of its fields, without their descriptions."""

    def __get__(self, _: object, cls: type) -> Signature:
        stated = signature(cls.__init__)  # type: ignore[misc]  # of this very class
        _, *parameters = stated.parameters.values()
        for number, parameter in enumerate(parameters):
            if isinstance(parameter.annotation, str) and parameter.annotation.startswith("Annotated["):
                annotated: Any = ast.parse(parameter.annotation, mode="eval").body
                parameters[number] = parameter.replace(annotation=ast.unparse(annotated.slice.elts[0]))
        return stated.replace(parameters=parameters, return_annotation=Signature.empty)


def show_options(settings: type[Record]) -> Callable[[F], F]:
    """Show the fields of settings, with their defaults, in the signature of a function that takes them as keywords."""

    def show(function: F) -> F:
        shown = signature(function)
        first = [parameter for parameter in shown.parameters.values() if parameter.kind is not Parameter.VAR_KEYWORD]
        fields = [
            parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in signature(settings).parameters.values()
        ]
        function.__signature__ = shown.replace(parameters=[*first, *fields])  # type: ignore[attr-defined]
        return function

    return show


class Record:
    """Base of the frozen dataclasses that results and settings consist of."""

    __signature__ = _ReadableSignature()

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(json_schema_serialization_defaults_required=True)

    def _store(self, **checked: Any) -> None:
        """Replace fields of the frozen record by their checked values: for `__post_init__`."""
        for name, value in checked.items():
            object.__setattr__(self, name, value)


def settings_from(cls: type[T], settings: T | None, options: Mapping[str, Any]) -> T:
    """Return the settings, or new settings, with the options of a call instead of their fields."""
    if settings is not None and not isinstance(settings, cls):
        raise UsageError(f"settings must be {cls.__name__}(…), got {settings!r}: write options as keywords")
    known = {field.name: field for field in fields(settings or cls)}  # type: ignore[arg-type]
    refuse_unknown(options, known)
    if settings is not None:
        return replace(settings, **options)  # type: ignore[type-var]
    for name, field in known.items():
        if name not in options and field.default is MISSING and field.default_factory is MISSING:
            raise UsageError(f"the option {name!r} is missing: pass {name}=")
    return cls(**options)


OWNERS: dict[type, tuple[str, str]] = {Run: ("a run, not of a result", "run=fe.Run({})")}
"""Settings that functions take whole: what their options are of, and the call that passes them."""


def refuse_unknown(options: Mapping[str, Any], known: Collection[str]) -> None:
    """Raise UsageError for an option that is not known, with the call that takes it if another call does."""
    for name in [name for name in options if name not in known]:
        meant = SYNONYMS.get(name, name)
        if meant not in known:
            refuse_owned(meant, options[name])
        hint = did_you_mean(meant, known)
        raise UsageError(f"unknown option {name!r}{hint}: the options are {', '.join(known)}")


def refuse_owned(name: str, value: object) -> None:
    """Raise UsageError for an option of settings that functions take whole, such as device, with the call."""
    for settings, (owner, call) in OWNERS.items():
        if name in {field.name for field in fields(settings)}:
            shown = value if isinstance(value, int | float | list | tuple) else str(value)  # a device, a path
            raise UsageError(f"{name} is an option of {owner}: pass {call.format(f'{name}={shown!r}')}")


def by_name(field: str, value: object, choices: Mapping[str, type[T]]) -> T:
    """Return the record of this name with its defaults; a record of these classes is returned as it is."""
    for choice in choices.values():
        if isinstance(value, choice):
            return value
    check_choice(field, value, choices)
    return choices[str(value)]()


def _vector(value: Any, dtype: type) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.asarray(value, dtype)
        is_same = issubclass(dtype, np.floating) or np.array_equal(array, np.asarray(value))  # 1.5 would become 1
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError("must be a list of numbers") from error
    if array.ndim != 1 or not is_same:
        raise ValueError("must be a list of numbers" if is_same else "must be a list of whole numbers")
    return array


def _array(dtype: type, item: str) -> tuple[Any, ...]:
    return (
        PlainValidator(lambda value: _vector(value, dtype)),
        PlainSerializer(lambda value: value.tolist()),
        WithJsonSchema({"type": "array", "items": {"type": item}}),
    )


Indices = Annotated[NDArray[np.int64], *_array(np.int64, "integer")]  # an array of whole numbers, in JSON a list
Numbers = Annotated[NDArray[np.float32], *_array(np.float32, "number")]  # an array of numbers, in JSON a list

NOT_IN_JSON = (PlainValidator(lambda value: value), Field(exclude=True), WithJsonSchema({}))
"""Marks a field that JSON leaves out: `Annotated[X, *NOT_IN_JSON] = field(default=ABSENT, kw_only=True)`."""


class _Absent:
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise DataError("this result was read from JSON, which leaves arrays out: load its .h5 file")


ABSENT: Any = _Absent()  # value of a field that JSON left out; its first use says where the value is to be had


_ADAPTERS: dict[type, TypeAdapter[Any]] = {}


def _adapter(cls: type) -> TypeAdapter[Any]:
    """Return pydantic's adapter of a class; making one takes milliseconds."""
    if cls not in _ADAPTERS:
        _ADAPTERS[cls] = TypeAdapter(cls)
    return _ADAPTERS[cls]


def plain(record: Any) -> Any:
    """Return a record as plain JSON types; what is not finite becomes None."""
    # Not by way of text: file names need not be valid Unicode.
    return _finite(_adapter(type(record)).dump_python(record, mode="json"))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def structure(cls: type[T], data: Mapping[str, Any], where: str) -> T:
    """Build a record from what `plain` returned, and the fields that JSON leaves out. Derived values are ignored."""
    try:
        return _adapter(cls).validate_python(data, extra="ignore")  # type: ignore[no-any-return]
    except ValidationError as error:
        raise DataError(_sentence(error, where, cls)) from error
    except (UsageError, DataError) as error:  # of a field that has a check of its own
        raise DataError(f"{where}: {error}") from error


def read_table(cls: type[T], table: Mapping[str, Any], where: str) -> T:
    """Build a record from a table of TOML: every key must be known, and every value of its exact type."""
    try:
        # As JSON, because in Python a strict tuple would refuse the lists of a table.
        text = json.dumps(table)
    except (TypeError, ValueError, RecursionError) as error:  # a date, a number of thousands of digits, endless lists
        raise DataError(f"{where} holds a value that no key takes: {error}") from error
    try:
        return _adapter(cls).validate_json(text, strict=True, extra="forbid")  # type: ignore[no-any-return]
    except ValidationError as error:
        raise DataError(_sentence(error, where, cls)) from error
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error


def schema(cls: type) -> dict[str, Any]:
    """Return the JSON Schema of a record as `plain` writes it, with descriptions from the docstrings."""
    described = _adapter(cls).json_schema(mode="serialization")
    for node in (described, *described.get("$defs", {}).values()):
        _describe(node)
    return described


@cache
def _read_schema(cls: type) -> dict[str, Any]:
    """Return `schema`, which nobody may change: making that of a result takes tenths of a second."""
    return schema(cls)


def _describe(node: dict[str, Any]) -> None:
    """Divide a class's docstring into the descriptions of the object and of its properties."""
    summary, _, rest = node.get("description", "").partition("\n\nAttributes:\n")
    node["description"] = summary.partition("\n\nExample:")[0].partition("\n\nRaises:")[0]
    for entry in re.split(r"\n {4}(?=\w)", "\n" + rest.partition("\n\n")[0]):
        names, _, text = " ".join(entry.split()).partition(": ")
        for name in names.split(", "):
            if name in node.get("properties", {}):
                node["properties"][name].setdefault("description", text)


TYPE_FINDINGS = ("missing", "too_short", "too_long", "literal_error")
"""Findings of pydantic that the JSON Schema says better, besides those that end in "_type" and "_parsing"."""

MAX_VALUE_LENGTH = 200  # characters of a wrong value that a message shows

WORDS = {"string": "string", "integer": "whole number", "number": "number", "array": "list", "object": "table"}


def _sentence(error: ValidationError, where: str, cls: type) -> str:
    """Turn pydantic's findings into one sentence: about an unknown key, which explains others, or else the first."""
    findings = error.errors(include_url=False)
    finding = next((finding for finding in findings if finding["type"] == "unexpected_keyword_argument"), findings[0])
    kind, location = finding["type"], finding["loc"]
    item_is_missing = kind == "missing" and isinstance(location[-1], int)
    path, node, known = _place(cls, location[:-1] if item_is_missing else location)
    key = _cut(repr(".".join(path))[1:-1])
    if kind == "unexpected_keyword_argument":
        return f'{where}: unknown key "{key}"{did_you_mean(path[-1], known)}: the keys are {", ".join(known)}'
    if kind == "missing" and not item_is_missing:
        return f'{where}: the key "{key}" is missing: add {_describe_schema(node)}'
    if kind == "json_invalid":
        return f"{where} is nested too deeply"
    if kind == "value_error":  # of a record whose parts contradict each other
        fault = finding["msg"].removeprefix("Value error, ")
        return f"{where}: {key} {fault}: make it again" if key else f"{where} {fault}: make it again"
    value, wanted = f"{finding['input']!r}", finding["msg"].removeprefix("Input should be ")
    if kind == "union_tag_invalid":
        choices = finding["ctx"]["expected_tags"].replace("'", "")
        value, wanted = repr(finding["ctx"]["tag"]), f"one of {choices}"
    elif kind == "string_pattern_mismatch":
        wanted = _FORMS.get(finding["ctx"]["pattern"], wanted)
    elif kind in TYPE_FINDINGS or kind.endswith(("_type", "_parsing")):
        wanted = _describe_schema(node)
    subject = f'{where}: "{key}"' if key else where
    return f"{subject} must be {wanted}, got {_cut(value)}"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"


def _describe_schema(node: dict[str, Any]) -> str:
    """Say in words what a value of this JSON Schema is."""
    if "enum" in node or "const" in node:
        return " or ".join(json.dumps(choice) for choice in node.get("enum", [node.get("const")]))
    if "anyOf" in node:
        return " or ".join(_describe_schema(choice) for choice in node["anyOf"] if choice.get("type") != "null")
    kind = node.get("type", "object")
    if kind == "boolean":
        return "true or false"
    items = [*node.get("prefixItems", ()), node.get("items", {})][0].get("type")
    count = f"{len(node['prefixItems'])} " if "prefixItems" in node else ""
    return f"a {WORDS[kind]}" + (f" of {count}{WORDS[items]}s" if items in WORDS else "")


def _place(cls: type, location: tuple[int | str, ...]) -> tuple[list[str], dict[str, Any], list[str]]:
    """Return the keys that lead to a finding of pydantic, the schema of the value, and the keys of its table."""
    definitions = _read_schema(cls)
    path: list[str] = []
    node, known = definitions, list(definitions.get("properties", ()))
    for part in location:
        keys, others = node.get("properties", {}), node.get("additionalProperties")
        alternatives = [_resolve(choice, definitions) for choice in node.get("oneOf", ())]
        chosen = [
            choice for choice in alternatives if choice.get("properties", {}).get("name", {}).get("const") == part
        ]
        if chosen:
            node = chosen[0]
        elif isinstance(part, int):
            node = _resolve([*node.get("prefixItems", ()), *[node.get("items", {})] * (part + 1)][part], definitions)
            path = [*path, str(part)] if "properties" in node else path
        elif part in keys or isinstance(others, dict):
            path, node = [*path, part], _resolve(keys.get(part, others), definitions)
        elif keys:
            path = [*path, part]
        known = list(node.get("properties", ())) or known
    return path, node, known


def _resolve(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Follow a reference, and take X where the schema says X or null."""
    present = [choice for choice in node.get("anyOf", ()) if choice.get("type") != "null"]
    node = present[0] if len(present) == 1 else node
    reference = node.get("$ref", "").rpartition("/")[2]
    return definitions["$defs"][reference] if reference else node


CONFIG_NAME = "finc-eval.toml"  # name of the file of defaults that the command line looks for in the working folder


@dataclass(frozen=True)
class Configured(Record):
    """Settings that a table of a TOML file can hold."""

    table: ClassVar[str]
    """Name of that table."""

    @classmethod
    def read(cls, path: str | Path, table: str | None = None) -> Self:
        """Read settings from a table of a TOML file; by default, the table of the class, such as "compare".

        Raises:
            DataError: the file cannot be read, lacks the table, or has a key or value that is not valid.
        """
        name, content = table or cls.table, read_toml(path)
        if not isinstance(content.get(name), dict):
            hint = did_you_mean(name, content)
            raise DataError(f"{path} has no table [{name}]{hint}: add it")
        cls.check_keys(content[name], f"{path} [{name}]")
        return read_table(cls, content[name], f"{path} [{name}]")

    @classmethod
    def check_keys(cls, table: Mapping[str, Any], where: str) -> None:
        """Refuse keys that deserve a better sentence than "unknown key"."""
