"""Record the results of benchmarks: JSON under results/, and a table in README.md between the two marks of each.

A record keeps the digests of the code that made it. `_stale.py` compares them with the code as it is now. A record is
never replaced by a smaller one, of fewer rows or fewer runs: whoever wants that deletes it first. Regimes whose runs
are kept (`_runs.py`) have a row each, and a new row stands beside the old ones of other regimes.
"""

import json
import platform
import re
from pathlib import Path
from typing import NamedTuple

import torch
from _stale import changed_since, code_in_use, states_of

HERE = Path(__file__).parent


claims = {}


class Runs(NamedTuple):
    """The runs behind the row of a regime.

    Attributes:
        code: digests of their code by path; None if nobody knows them.
        count: how many there are.
        wanted: how many there ought to be.
    """

    code: dict[str, str] | None
    count: int
    wanted: int


def claim(regimes):
    """Let rows from now on be of these runs, by regime, the first column, and not of what is loaded."""
    claims.update(regimes)


def result_of(name):
    """Return the path of a record."""
    return HERE / "results" / f"{name}.json"


def record(name, rows, notes="", codes=None):
    """Write rows (dicts) to results/NAME.json and to the table of NAME in README.md, unless the record there is fuller.

    Args:
        name: name of the record.
        rows: rows of the table, at least one.
        notes: what stands below the table.
        codes: digests of the code of each row; default: of the runs that were claimed, else what is loaded.
    """
    out, runs = result_of(name), {}
    kept = json.loads(out.read_text()) if out.exists() else {"rows": []}
    if claims:
        rows, codes, runs = beside(kept, rows) if set(map(regime_of, rows)) <= set(claims) else together(rows)
    if more := fuller(kept, rows, runs):
        print(f"{out.name} {more}, and is left as it is: delete it first to replace it", flush=True)
        return
    environment = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
        "threads": torch.get_num_threads(),
    }
    made = {"states": grouped(codes)} if codes else {"code": code_in_use()}
    counts = {"runs": runs} if runs else {}
    result = {"benchmark": name, "notes": notes, "environment": environment, **counts, **made, "rows": rows}
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n")
    where = f"torch {environment['torch']}, {environment['device']}"
    page = HERE / "README.md"
    marked = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    text, found = marked.subn(lambda m: f"{m[1]}{table(rows)}\n({notes}; {where}.)\n{m[2]}", page.read_text())
    if not found:
        raise SystemExit(f"README.md has no place for {name}: write <!-- {name} --> and <!-- end --> where it belongs")
    page.write_text(text)


def regime_of(row):
    return next(iter(row.values()))


def beside(kept, rows):
    """Return rows of regimes and those of a kept record, with the code and the number of runs of each.

    Of a regime that both have, the row of more runs is returned, and of as many the new one. A kept row that does not
    say how many runs it has gives way to as many as there ought to be. The rows of all regimes stay in their order.
    """
    made = {regime_of(row): (row, claims[regime_of(row)].code, claims[regime_of(row)].count) for row in rows}
    for state in states_of(kept):
        for row in (kept["rows"][number] for number in state["rows"]):
            if (regime := regime_of(row)) not in claims:
                continue
            known = kept.get("runs", {}).get(regime)
            least = claims[regime].wanted if known is None else known
            if regime not in made or made[regime][2] < least:
                made[regime] = row, state["code"], known
    ordered = map(regime_of, rows) if len(rows) == len(made) else (regime for regime in claims if regime in made)
    rows, codes, counts = zip(*(made[regime] for regime in ordered), strict=True)
    return rows, codes, {regime_of(row): count for row, count in zip(rows, counts, strict=True) if count is not None}


def together(rows):
    """Return rows of several regimes each, with the code and the number of runs of all of them."""
    codes = [one.code for one in claims.values() if one.count]
    return rows, [older(codes)] * len(rows), {regime: one.count for regime, one in claims.items() if one.count}


def fuller(kept, rows, runs):
    """Return in what a kept record is fuller than these rows of these runs; an empty text if it is not."""
    if len(kept["rows"]) > len(rows):
        return f"has {len(kept['rows'])} rows, these are {len(rows)}"
    fewer = [regime for regime, count in kept.get("runs", {}).items() if runs and runs.get(regime, 0) < count]
    return f"has more runs of {', '.join(fewer)}" if fewer else ""


def older(codes):
    """Return the digests of the code behind runs, the older one where they differ; None if one is not known."""
    if None in codes:
        return None
    before = {path: code[path] for code in codes for path in changed_since({"code": code})}
    return {path: digest for code in codes for path, digest in code.items()} | before


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
