"""All numbers of results that are, or may be, intervals, p-values or errors: from the schemas of the results."""

import json
import re
from pathlib import Path

from finc_eval.results import RESULTS, result_class

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
NAMES = re.compile(r"p_value|error|standardized|lower|margin|detect")
WORDS = re.compile(r"interval|p-value|confiden|standard error|standard deviation|half-width|probability|95 %|bound")


def printed_numbers():
    """Return what each number says of itself, by its class and name, such as "Score.interval".

    A number is here if it is a pair, or if its name or description speaks of what is uncertain.
    """
    found = {}
    for type_name in RESULTS:
        schema = json.loads((SCHEMAS / f"{type_name}.json").read_text(encoding="utf-8"))
        for title, part in [*schema.get("$defs", {}).items(), (result_class(type_name).__name__, schema)]:
            for name, field in part.get("properties", {}).items():
                text, inner = field.get("description", ""), [*_inner(field)]
                is_number = any(one.get("type") == "number" for one in inner)
                if any(map(_is_pair, inner)) or (is_number and (NAMES.search(name) or WORDS.search(text))):
                    found[f"{title}.{name}"] = text
    return found


def _inner(field):
    yield field
    for key in ("anyOf", "oneOf", "prefixItems"):
        for one in field.get(key, []):
            yield from _inner(one)
    for key in ("items", "additionalProperties"):
        if isinstance(field.get(key), dict):
            yield from _inner(field[key])
    for one in field.get("patternProperties", {}).values():
        yield from _inner(one)


def _is_pair(field):
    ends = field.get("prefixItems", [])
    return len(ends) == 2 and all(one.get("type") in ("number", "integer") for one in ends)
