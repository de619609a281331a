"""Write the JSON Schema of every type of result beside this script: python docs/schemas/write.py."""

import json
from pathlib import Path

from finc_eval.report import RESULTS, result_class

HERE = Path(__file__).parent


def schema_text(type_name: str) -> str:
    """Return the schema of a type of result as it is written."""
    return json.dumps(result_class(type_name).json_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name in RESULTS:
        (HERE / f"{name}.json").write_text(schema_text(name), encoding="utf-8")
