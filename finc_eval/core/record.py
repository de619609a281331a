"""Records: frozen dataclasses that become JSON and come back, checked against their types."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, PlainSerializer, PlainValidator, TypeAdapter, ValidationError, WithJsonSchema

from finc_eval.core.errors import DataError, did_you_mean

T = TypeVar("T")


def about(text: str) -> Any:
    """Describe a field of a record for help texts and JSON Schemas.

    Use it as `Annotated[int, about("number of clusters")]`.
    """
    return Field(description=text)


class Record:
    """Base of the frozen dataclasses that results and settings consist of."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        ser_json_inf_nan="null", json_schema_serialization_defaults_required=True
    )


def _array(dtype: type, item: str) -> tuple[Any, ...]:
    return (
        PlainValidator(lambda value: np.asarray(value, dtype)),
        PlainSerializer(lambda value: value.tolist()),
        WithJsonSchema({"type": "array", "items": {"type": item}}),
    )


Indices = Annotated[NDArray[np.int64], *_array(np.int64, "integer")]
"""An array of whole numbers, in JSON a list."""

Numbers = Annotated[NDArray[np.float32], *_array(np.float32, "number")]
"""An array of numbers, in JSON a list."""

NOT_IN_JSON = (PlainValidator(lambda value: value), Field(exclude=True), WithJsonSchema({}))
"""Marks a field that JSON leaves out: `Annotated[X, *NOT_IN_JSON] = field(default=ABSENT, kw_only=True)`."""


class _Absent:
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise DataError("this result was read from JSON, which leaves arrays out: load its .h5 file")


ABSENT: Any = _Absent()
"""The value of a field that JSON left out; the first use of it says where the value is to be had."""


_ADAPTERS: dict[type, TypeAdapter[Any]] = {}


def _adapter(cls: type) -> TypeAdapter[Any]:
    """Return pydantic's adapter of a class; making one takes milliseconds."""
    if cls not in _ADAPTERS:
        _ADAPTERS[cls] = TypeAdapter(cls)
    return _ADAPTERS[cls]


def plain(record: Any) -> Any:
    """Return a record as plain JSON types; what is not finite becomes None."""
    return json.loads(_adapter(type(record)).dump_json(record))


def structured(cls: type[T], data: Mapping[str, Any], where: str) -> T:
    """Build a record from what `plain` returned.

    Args:
        cls: class of the record.
        data: plain JSON types, and the fields that JSON leaves out. Derived values are ignored.
        where: what to call the data in a message, such as the name of a file.

    Raises:
        DataError: a key is missing or has a value of a wrong type.
    """
    try:
        return _adapter(cls).validate_python(data, extra="ignore")  # type: ignore[no-any-return]
    except ValidationError as error:
        raise DataError(_sentence(error, where, cls)) from error


def read_table(cls: type[T], table: Mapping[str, Any], where: str) -> T:
    """Build a record from a table that a person wrote: every key must be known, every value of its exact type.

    Args:
        cls: class of the record.
        table: the table, as `tomllib` returns it.
        where: what to call the table in a message.

    Raises:
        DataError: a key is unknown or missing, or a value has a wrong type.
        FincEvalError: the record refuses a value.
    """
    try:
        return _adapter(cls).validate_json(json.dumps(table), strict=True, extra="forbid")  # type: ignore[no-any-return]
    except ValidationError as error:
        raise DataError(_sentence(error, where, cls)) from error


def schema(cls: type) -> dict[str, Any]:
    """Return the JSON Schema of a record as `plain` writes it, with descriptions from the docstrings."""
    found = _adapter(cls).json_schema(mode="serialization")
    for node in (found, *found.get("$defs", {}).values()):
        _describe(node)
    return found


def _describe(node: dict[str, Any]) -> None:
    """Divide a class's docstring into the description of the object and those of its properties."""
    summary, _, rest = node.get("description", "").partition("\n\nAttributes:\n")
    node["description"] = summary.partition("\n\nExample:")[0].partition("\n\nRaises:")[0]
    for entry in re.split(r"\n {4}(?=\w)", "\n" + rest.partition("\n\n")[0]):
        names, _, text = " ".join(entry.split()).partition(": ")
        for name in names.split(", "):
            if name in node.get("properties", {}):
                node["properties"][name].setdefault("description", text)


def _sentence(error: ValidationError, where: str, cls: type) -> str:
    """Turn the first of pydantic's findings into one sentence."""
    first = error.errors(include_url=False)[0]
    path, known = _place(cls, first["loc"])
    key = ".".join(path)
    match first["type"]:
        case "unexpected_keyword_argument":
            return f'{where}: unknown key "{key}"{did_you_mean(path[-1], known)}: the keys are {", ".join(known)}'
        case "union_tag_invalid":
            choices = first["ctx"]["expected_tags"].replace("'", "")
            return f'{where}: "{key}" must be one of {choices}, got {first["ctx"]["tag"]!r}'
        case "missing":
            return f'{where}: the key "{key}" is missing'
    message = (
        first["msg"]
        .removeprefix("Input should be ")
        .replace("a valid integer", "a whole number")
        .replace("a valid ", "a ")
    )
    return f'{where}: "{key}" must be {message}, got {first["input"]!r}'


def _place(cls: type, location: tuple[int | str, ...]) -> tuple[list[str], list[str]]:
    """Return the keys of pydantic's location without the alternatives of unions, and the keys valid at its end."""
    path: list[str] = []
    definitions = schema(cls)
    node, known = definitions, list(definitions.get("properties", ()))
    for part in map(str, location):
        alternatives = [_resolved(one, definitions) for one in node.get("oneOf", ())]
        chosen = [one for one in alternatives if one.get("properties", {}).get("name", {}).get("const") == part]
        if chosen:
            node = chosen[0]
        elif part in node.get("properties", {}):
            path, node = [*path, part], _resolved(node["properties"][part], definitions)
        elif part == str(location[-1]) and "properties" in node:
            path = [*path, part]
        known = list(node.get("properties", ())) or known
    return path, known


def _resolved(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    reference = node.get("$ref", "").rpartition("/")[2]
    return definitions["$defs"][reference] if reference else node
