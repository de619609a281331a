"""Records that today's code did not make: named, and marked in README.md, where their tables are.

A record keeps the digest of each module that was loaded when it was written: the script, its helpers, and all of
finc_eval except the rooms that change no number. Comments, docstrings and blank lines do not count. Most changes leave
most numbers as they are, so a stale record is not an error; an error is a table in README.md that does not say so.
Records from before digests were kept are marked as older. A record whose rows are taken one by one knows the code of
each of them.

    python benchmarks/_stale.py            name the records; exit code 1 if README.md does not mark them rightly
    python benchmarks/_stale.py --mark     mark them in README.md
"""

import ast
import hashlib
import io
import json
import re
import sys
import tokenize
from functools import lru_cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent / "finc_eval"
NO_NUMBERS = (
    "cli",
    "core",
    "demo",
    "doctor",
    "embeddings",
    "extractors",
    "gallery",
    "loading",
    "report",
    "samples",
    "shards",
)
"""Rooms of finc_eval that change no number of a benchmark: words, files, pages and options, and those that bring
vectors, whose values the golden values of cards and the tests of parity hold."""

WORDS = ("finc_eval/comparison/headline.py", "finc_eval/numerics/names.py")
"""Modules of other rooms that change no number: sentences, and names of settings."""

NUMBERS = PACKAGE / "embeddings" / "search"
"""Folder of such a room that changes numbers all the same: distances to neighbors."""

NAMING = "finc_eval/naming/", "names"
"""Room that says what modes are called, and the one record whose numbers it changes."""

OWN = ("_kept.py", "_record.py", "_rows.py", "_runs.py", "_stale.py")
"""Modules of benchmarks that number, keep and print what the others find."""

MARK, OLDER, UNKNOWN = "**Stale**: ", "**Older**: ", "made before records kept the digests of their code."

MAX_NAMED = 3
"""Modules that a mark names; the command names all."""


def code_in_use():
    """Return the digest of each loaded module that may change a number, by its path in the repository."""
    paths = {place(found) for module in list(sys.modules.values()) if (found := getattr(module, "__file__", 0))}
    return {str(path.relative_to(HERE.parent)): digest_now(path) for path in sorted(paths) if counts(path)}


@lru_cache(None)
def place(file):
    """Return the place of a module's file, looked up once: a run is over sooner than all modules are looked up."""
    return Path(file).resolve()


def counts(path):
    """Return whether a file is code that may change a number of a record."""
    if path.suffix != ".py" or not path.is_file() or path in [HERE.parent / word for word in WORDS]:
        return False
    if path.is_relative_to(NUMBERS):
        return True
    if path.is_relative_to(PACKAGE):
        return path.relative_to(PACKAGE).parts[0].removesuffix(".py") not in (*NO_NUMBERS, "__init__", "__main__")
    return path.parent == HERE.resolve() and path.name not in OWN


@lru_cache(None)
def digest_now(path):
    """Return `digest_of` a module when it was first asked for: it is what runs, whatever becomes of the file."""
    return digest_of(path)


def digest_of(path):
    """Return 12 digits of the SHA-256 of a module without comments, docstrings and blank lines."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            for one in body:  # of an attribute, too, the text below it is a docstring
                if (
                    isinstance(one, ast.Expr)
                    and isinstance(one.value, ast.Constant)
                    and isinstance(one.value.value, str)
                ):
                    lines[one.lineno - 1 : one.end_lineno] = [""] * (one.end_lineno - one.lineno + 1)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        row, column = token.start
        if token.type == tokenize.COMMENT and lines[row - 1]:
            lines[row - 1] = lines[row - 1][:column]
    text = "\n".join(line.rstrip() for line in lines if line.strip())
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def states_of(record):
    """Return the states of the code that made a record: a dict each, of the code and the numbers of its rows."""
    return record.get("states") or [{"code": record.get("code"), "rows": list(range(len(record["rows"])))}]


def changed_since(state, name=None):
    """Return the paths of the modules that are not those of a state of the code; None if it does not know them.

    Args:
        state: a dict of which "code" has the digests by path.
        name: name of the record.
    """
    if state.get("code") is None:
        return None
    left_out = (*WORDS, *(f"benchmarks/{name}" for name in OWN))
    room, record = NAMING
    code = {
        path: digest
        for path, digest in state["code"].items()
        if path not in left_out and (name == record or not path.startswith(room))
    }
    now = {path: digest_of(HERE.parent / path) for path in code if (HERE.parent / path).exists()}
    return [path for path, digest in code.items() if now.get(path) != digest]


def judged(record):
    """Return how much of a record today's code did not make.

    Returns:
        The modules that changed since it was made; of how many of its rows ("2 of 3 rows, ", or nothing of all); and
        the same of rows that do not know their code, None where there are none.
    """
    changed = [(changed_since(state, record.get("benchmark")), len(state["rows"])) for state in states_of(record)]

    def part(rows):
        return f"{rows} of {len(record['rows'])} rows, " if rows < len(record["rows"]) else ""

    unknown = [rows for modules, rows in changed if modules is None]
    stale = sum(rows for modules, rows in changed if modules)
    modules = sorted({module for modules, _ in changed for module in modules or ()})
    return modules, part(stale) if stale else "", part(sum(unknown)) if unknown else None


def marked(page, name, changed, part="", older=None):
    """Return the page with the record of this name marked as stale or older, or with its marks taken away.

    Args:
        page: text of the page.
        name: name of the record.
        changed: modules that changed since.
        part: which of its rows are meant, if not all.
        older: which of its rows do not know their code, if not all; None: each does.
    """
    marks = "|".join(map(re.escape, (MARK, OLDER)))
    block = re.compile(rf"(<!-- {re.escape(name)} -->\n.*?)(?:\n(?:{marks})[^\n]*\n)*(<!-- end -->)", re.DOTALL)
    told = "" if older is None else f"\n{OLDER}{older}{UNKNOWN}\n"
    if changed:
        named, more = [f"`{path}`" for path in changed[:MAX_NAMED]], len(changed) - MAX_NAMED
        told += f"\n{MARK}{part}made before {', '.join(named)}{f' and {more} more' if more > 0 else ''} changed.\n"
    return block.sub(lambda found: f"{found[1]}{told}{found[2]}", page)


def main(mark):
    page = before = (HERE / "README.md").read_text(encoding="utf-8")
    unknown, stale = [], {}
    for path in sorted((HERE / "results").glob("*.json")):
        changed, part, older = judged(json.loads(path.read_text(encoding="utf-8")))
        if older is not None:
            unknown.append(f"{path.stem} ({older.removesuffix(', ')})" if older else path.stem)
        if changed:
            stale[path.stem] = f"{part}made before {', '.join(changed)} changed"
        page = marked(page, path.stem, changed, part, older)
    for name, told in stale.items():
        print(f"stale: {name}, {told}")
    if unknown:
        print(f"not retaken since records know their code: {', '.join(unknown)}")
    if mark:
        (HERE / "README.md").write_text(page, encoding="utf-8")
    elif page != before:
        print("benchmarks/README.md does not say which tables are stale: run python benchmarks/_stale.py --mark")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main("--mark" in sys.argv[1:]))
