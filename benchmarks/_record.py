"""Record the results of benchmarks: JSON under results/, and a table in README.md between the two marks of each.

A record says by which command, at which commit and when it was measured, with which versions, and on which class of
machine. Where a call takes some of the rows alone, each row says it. A record is never replaced by a smaller one, of
fewer rows or fewer runs: whoever wants that deletes it first.

    python benchmarks/_record.py        write the tables of README.md again, from the records
"""

import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import NamedTuple

import torch
from _shown import SHOWN

HERE = Path(__file__).parent

claims = {}


class Runs(NamedTuple):
    """The runs behind the row of a regime: how many there are, and how many there ought to be."""

    count: int
    wanted: int


def claim(regimes):
    """Let rows from now on be of these runs, by regime, the first column."""
    claims.update(regimes)


def result_of(name):
    """Return the path of a record."""
    return HERE / "results" / f"{name}.json"


def record(name, rows, notes="", resumed=False, total=None):
    """Write rows (dicts) to results/NAME.json and to the table of NAME in README.md, unless the record there is fuller.

    Args:
        name: name of the record.
        rows: rows of the table, at least one.
        notes: what the figures are.
        resumed: whether rows that the record has already were not measured again.
        total: function from all rows, with those that the record keeps, to a last row, such as their sum.
    """
    out, runs = result_of(name), {}
    kept = json.loads(out.read_text()) if out.exists() else {"rows": []}
    if claims and {regime_of(row) for row in rows} <= set(claims):
        rows, runs = beside(kept, rows)
    elif claims:
        runs = {regime: one.count for regime, one in claims.items() if one.count}
    rows = [*rows, total(rows)] if total else rows
    if more := fuller(kept, rows, runs):
        print(f"{out.name} {more}, and is left as it is: delete it first to replace it", flush=True)
        return
    commit, today = commit_of_now(), date.today().isoformat()
    result = {
        "benchmark": name,
        "command": command(),
        "notes": notes,
        "commit": commit,
        "date": today,
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "machine": machine(),
        **({"runs": runs} if runs else {}),
        "rows": dated(rows, kept, f"{commit} on {today}") if resumed or claims else rows,
    }
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n")
    write_table(name)


def command():
    """Return the command line of this call, by the path of its script in the repository."""
    script, root = Path(sys.argv[0]).resolve(), Path(__file__).resolve().parents[1]
    path = script.relative_to(root) if script.is_relative_to(root) else Path(script.name)
    return shlex.join(["python", path.as_posix(), *sys.argv[1:]])


def commit_of_now():
    """Return the commit of the working tree, with a + if its code has changes; "unknown" without git."""
    if shutil.which("git") is None:
        return "unknown"

    def git(*arguments):
        return subprocess.run(["git", *arguments], capture_output=True, text=True, cwd=Path(__file__).parents[1])

    changed = git("diff", "--quiet", "HEAD", "--", "finc_eval", "benchmarks/*.py").returncode == 1
    return (git("rev-parse", "--short", "HEAD").stdout.strip() or "unknown") + "+" * changed


def machine():
    """Return the class of the machine: its cores, its GPU, and the threads in use."""
    gpu = f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    return f"{os.cpu_count()} CPU cores{gpu}, {torch.get_num_threads()} threads"


def regime_of(row):
    return next(iter(row.values()))


def undated(row):
    """Return a row without what says when it was measured."""
    return {column: cell for column, cell in row.items() if column != "measured"}


def dated(rows, kept, now):
    """Return rows that say when they were measured: those of the kept record when it was, others now."""
    before = f"{kept.get('commit')} on {kept.get('date')}"
    known = {json.dumps(undated(row)): row.get("measured", before) for row in kept["rows"]}
    return [{**undated(row), "measured": known.get(json.dumps(undated(row)), now)} for row in rows]


def beside(kept, rows):
    """Return rows of regimes and those of a kept record, and the number of runs of each.

    Of a regime that both have, the row of more runs is returned, and of as many the new one. A kept row that does not
    say how many runs it has gives way to as many as there ought to be. The rows of all regimes stay in their order.
    """
    made = {regime_of(row): (row, claims[regime_of(row)].count) for row in rows}
    for row in kept["rows"]:
        if (regime := regime_of(row)) not in claims:
            continue
        known = kept.get("runs", {}).get(regime)
        least = claims[regime].wanted if known is None else known
        if regime not in made or made[regime][1] < least:
            made[regime] = row, known
    order = [regime_of(row) for row in rows] if len(rows) == len(made) else [one for one in claims if one in made]
    return [made[one][0] for one in order], {one: made[one][1] for one in order if made[one][1] is not None}


def fuller(kept, rows, runs):
    """Return in what a kept record is fuller than these rows of these runs; an empty text if it is not."""
    if len(kept["rows"]) > len(rows):
        return f"has {len(kept['rows'])} rows, these are {len(rows)}"
    fewer = [regime for regime, count in kept.get("runs", {}).items() if runs and runs.get(regime, 0) < count]
    return f"has more runs of {', '.join(fewer)}" if fewer else ""


def write_table(name):
    """Write the table of a record to README.md, if there is a place for it."""
    page = HERE / "README.md"
    marks = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    result = json.loads(result_of(name).read_text())
    text = marks.sub(lambda mark: f"{mark[1]}{table(result, *SHOWN.get(name, ()))}{mark[2]}", page.read_text())
    page.write_text(text)


def table(result, columns=(), chosen=""):
    """Return a record as a Markdown table that begins with when it was measured.

    Args:
        result: the record.
        columns: columns to show; default: all.
        chosen: regular expression that is found in the rows to show, their cells joined by " | ".
    """
    rows = [row for row in result["rows"] if re.search(chosen, " | ".join(map(str, row.values())))]
    whole = f"{result['commit']} on {result['date']}"
    days = {}
    for one in sorted({row.get("measured", whole) for row in rows}, key=lambda one: one.split()[::-1]):
        commit, day = one.split(" on ")
        days.setdefault(day, []).append(commit)
    when = "; ".join(f"{', '.join(commits)} on {day}" for day, commits in days.items())
    gpu = re.search(r"cores, (.*), \d+ threads", result["machine"])
    columns = columns or list(dict.fromkeys(column for row in rows for column in undated(row)))
    cells = [columns, *([str(row.get(column, "")) for column in columns] for row in rows)]
    head, *body = (f"| {' | '.join(line)} |\n" for line in cells)
    told = f"measured at {when}{f', {gpu[1]}' if gpu else ''}\n\n"
    return "".join([told, head, "|---" * len(columns), "|\n", *body])


if __name__ == "__main__":
    for path in sorted((HERE / "results").glob("*.json")):
        write_table(path.stem)
