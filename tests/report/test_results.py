"""The table of result types, and the schemas that docs/schemas publishes."""

import importlib
import json
import pkgutil
import runpy
from pathlib import Path

import pytest

import finc_eval
from finc_eval.core.serialize import Document
from finc_eval.results import RESULTS, result_class

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"


@pytest.mark.parametrize("type_name", RESULTS)
def test_a_type_of_result_has_its_class_and_a_page_in_its_room(type_name):
    assert result_class(type_name).type_name == type_name
    module = importlib.import_module(result_class(type_name).page)
    assert module.__name__.split(".")[1] == result_class(type_name).__module__.split(".")[1]
    assert callable(module.PAGE.outline)


@pytest.mark.parametrize("type_name", RESULTS)
def test_the_published_schema_is_current(type_name):
    expected = runpy.run_path(str(SCHEMAS / "write.py"))["schema_text"](type_name)
    message = "run python docs/schemas/write.py"
    assert (SCHEMAS / f"{type_name}.json").read_text(encoding="utf-8") == expected, message
    assert json.loads(expected)["properties"]["type"] == {"const": type_name, "type": "string"}


def test_the_list_of_schemas_is_current():
    text = runpy.run_path(str(SCHEMAS / "write.py"))["index_text"]()
    assert (SCHEMAS / "README.md").read_text(encoding="utf-8") == text, "run python docs/schemas/write.py"


def test_every_document_is_in_the_table():
    for module in pkgutil.walk_packages(finc_eval.__path__, "finc_eval."):
        importlib.import_module(module.name)
    assert sorted(_types_below(Document)) == sorted(RESULTS)


def _types_below(cls):
    """The types of the subclasses, at any depth, that the package defines."""
    found = []
    for one in cls.__subclasses__():
        if one.__module__.startswith("finc_eval.") and "type_name" in vars(one):
            found.append(one.type_name)
        found += _types_below(one)
    return found
