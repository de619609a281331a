"""Write what a result of every type says, without its numbers, beside this script: python tests/snapshots/write.py.

A change of a sentence is one line of one file in the diff, to be read there.
"""

import re
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ID = re.compile(r"\b(k|over-|under-)(?=[0-9a-f]*\d)[0-9a-f]+\b")
NUMBER = re.compile(r"(?:[<>] )?[+−-]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?")
BY_NOISE = {
    "private-score": {"zero", "warnings"},
    "private-comparison": {"title", "nearest", "beaten", "tied", "warnings"},
    "private-leaderboard": {"title", "order", "distance", "details", "warnings"},
    "utility": {"classifiers", "marginals"},
    "synthesis": {"agreement", "relations", "warnings"},
}
"""Keys of what depends on noise that nobody can predict ("title" and "warnings" among them), by the type of result."""


def marked(text):
    """Return a text with a mark for each number and id, and without repeated spaces."""
    return " ".join(NUMBER.sub("#", ID.sub(r"\1#", text)).split())


def lines(result):
    """Yield what a result says in all outputs: its title, findings by key, tables, and what stands behind them."""
    said = result._drawn.outline(result)
    noise = BY_NOISE.get(result.type_name, ())
    yield said.kind if "title" in noise else f"{said.kind}: {marked(said.title)}"
    yield from (f"says {marked(key)}: {marked(one)}" for key, one in said.says.items() if key not in noise)
    for one in said.tables:
        yield f"table {marked(one.title)}: {' | '.join(marked(str(each)) for each in one.columns)}"
        if one.legend:
            yield f"legend: {marked(str(one.legend))}"
    for name in ("details", "warnings", "failures"):
        if name in noise:
            continue
        yield from (f"{name}: {marked(one)}" for one in getattr(said, name))
    if said.how:
        yield f"how: {marked(said.how)}"
    first, *_ = repr(result).splitlines()
    yield f"repr: {marked(first).partition('(')[0]}"


def snapshot(result):
    """Return the text of the file of a result."""
    return "\n".join(lines(result)) + "\n"


def write(folder=HERE):
    """Make a result of every type, and write the file of each."""
    sys.path.insert(0, str(HERE.parent))
    from _documents import one_of_each
    from _quick import EVERYTHING, quick

    from finc_eval.results import RESULTS

    with quick(*EVERYTHING), tempfile.TemporaryDirectory() as ledgers:
        made = one_of_each(Path(ledgers))
    for name in RESULTS:
        (folder / f"{name}.txt").write_text(snapshot(made[name]), encoding="utf-8")


if __name__ == "__main__":
    write()
