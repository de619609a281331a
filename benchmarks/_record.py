"""Record the results of benchmarks: JSON under results/, and a table in README.md between the two marks of each.

A record keeps the digests of the code that made it. `_stale.py` compares them with the code as it is now.
"""

import json
import platform
import re
from pathlib import Path

import torch
from _stale import code_in_use

HERE = Path(__file__).parent


claims = {}


def claim(code):
    """Let records from now on be of this code, {path: digest}, and not of what is loaded; None: nobody knows."""
    claims["code"] = code


def record(name, rows, notes=""):
    """Write rows (dicts with the same keys) to results/NAME.json and to the table of NAME in README.md."""
    environment = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
        "threads": torch.get_num_threads(),
    }
    code = claims["code"] if "code" in claims else code_in_use()
    if code is None:
        notes += "; the runs are of several states of the code"
    claimed = {"code": code} if code else {}
    result = {"benchmark": name, "notes": notes, "environment": environment, **claimed, "rows": rows}
    out = HERE / "results" / f"{name}.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n")
    where = f"torch {environment['torch']}, {environment['device']}"
    page = HERE / "README.md"
    marked = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    text, found = marked.subn(lambda m: f"{m[1]}{table(rows)}\n({notes}; {where}.)\n{m[2]}", page.read_text())
    if not found:
        raise SystemExit(f"README.md has no place for {name}: write <!-- {name} --> and <!-- end --> where it belongs")
    page.write_text(text)


def table(rows):
    """Return rows as a Markdown table."""
    columns = list(rows[0])
    lines = [columns, ["---"] * len(columns), *([str(row[column]) for column in columns] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
