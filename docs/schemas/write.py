"""Write the JSON Schema of every type of result, and their list, beside this script: python docs/schemas/write.py."""

import json
from pathlib import Path

from finc_eval.results import RESULTS, result_class

HERE = Path(__file__).parent

INDEX = """# JSON Schemas

A result as JSON has an entry `type`, and follows the schema of that type. `finc-eval schema TYPE` prints it, and
`fe.load` reads the JSON back. `python docs/schemas/write.py` writes this page and the schemas.

| type | result |
|---|---|
"""


def schema_text(type_name: str) -> str:
    """Return the schema of a type of result as it is written."""
    return json.dumps(result_class(type_name).json_schema(), indent=1, ensure_ascii=False) + "\n"


def index_text() -> str:
    """Return the page that lists the schemas."""
    rows = []
    for name in RESULTS:
        about = (result_class(name).__doc__ or "").splitlines()[0]
        rows.append(f"| [`{name}`]({name}.json) | {about} |\n")
    return INDEX + "".join(rows)


if __name__ == "__main__":
    (HERE / "README.md").write_text(index_text(), encoding="utf-8")
    for name in RESULTS:
        (HERE / f"{name}.json").write_text(schema_text(name), encoding="utf-8")
