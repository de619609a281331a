"""Record the results of benchmarks: JSON under results/, and a table in README.md between the two marks of each.

A record keeps the digests of the code that made it. `_stale.py` compares them with the code as it is now. A record is
never replaced by a smaller one, of fewer rows or fewer runs: whoever wants that deletes it first.
"""

import json
import platform
import re
from pathlib import Path

import torch
from _stale import code_in_use

HERE = Path(__file__).parent


claims = {}


def claim(code, runs):
    """Let records from now on be of this code, {path: digest}, and not of what is loaded; None: nobody knows.

    Args:
        code: digests of the code.
        runs: number of runs of each regime, which the records keep.
    """
    claims.update(code=code, runs=runs)


def result_of(name):
    """Return the path of a record."""
    return HERE / "results" / f"{name}.json"


def record(name, rows, notes="", codes=None):
    """Write rows (dicts) to results/NAME.json and to the table of NAME in README.md, unless the record there is fuller.

    Args:
        name: name of the record.
        rows: rows of the table, at least one.
        notes: what stands below the table.
        codes: digests of the code of each row; default: what is loaded made them all.
    """
    out, runs = result_of(name), claims.get("runs")
    if out.exists() and (more := fuller(json.loads(out.read_text()), rows, runs)):
        print(f"{out.name} {more}, and is left as it is: delete it first to replace it", flush=True)
        return
    environment = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
        "threads": torch.get_num_threads(),
    }
    if codes:
        made = {"states": grouped(codes)}
    else:
        code = claims["code"] if "code" in claims else code_in_use()
        if code is None:
            notes += "; the runs are of several states of the code"
        made = ({"runs": runs} if runs else {}) | ({"code": code} if code else {})
    result = {"benchmark": name, "notes": notes, "environment": environment, **made, "rows": rows}
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n")
    where = f"torch {environment['torch']}, {environment['device']}"
    page = HERE / "README.md"
    marked = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    text, found = marked.subn(lambda m: f"{m[1]}{table(rows)}\n({notes}; {where}.)\n{m[2]}", page.read_text())
    if not found:
        raise SystemExit(f"README.md has no place for {name}: write <!-- {name} --> and <!-- end --> where it belongs")
    page.write_text(text)


def fuller(kept, rows, runs):
    """Return in what a kept record is fuller than these rows of these runs; an empty text if it is not."""
    if len(kept["rows"]) > len(rows):
        return f"has {len(kept['rows'])} rows, these are {len(rows)}"
    if runs and "runs" not in kept:
        return "does not say how many runs it has"
    before = kept.get("runs", {}) if runs else {}
    fewer = [regime for regime, count in before.items() if runs.get(regime, 0) < count]
    return f"has more runs of {', '.join(fewer)}" if fewer else ""


def grouped(codes):
    """Return the states of the code behind rows, each with the numbers of its rows."""
    states = []
    for number, code in enumerate(codes):
        state = next((one for one in states if one["code"] == code), None)
        if state is None:
            states.append(state := {"code": code, "rows": []})
        state["rows"].append(number)
    return states


def table(rows):
    """Return rows as a Markdown table."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    lines = [columns, ["---"] * len(columns), *([str(row.get(column, "")) for column in columns] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
