"""One law for every printed interval, p-value and standard error.

Each file `_draws_of_*.py` has the promises of some numbers, and designs that draw them. The schemas of results say
which numbers there are: a new interval, p-value or error needs a promise, and a design that draws it.

    python -m pytest tests/intervals               a few repetitions
    python -m pytest tests/intervals -m long       many
"""

import re
from importlib import import_module
from pathlib import Path

import pytest
from _law import REGIMES, NoClaim, faults_of
from _printed import printed_numbers

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "promises.md"
MODULES = [import_module(path.stem) for path in sorted(HERE.glob("_draws_of_*.py"))]
DESIGNS = [one for module in MODULES for one in module.DESIGNS]
PROMISES = {name: promise for module in MODULES for name, promise in module.PROMISES.items()}
DRAWN = {number for design in DESIGNS for number in design.numbers}


def test_each_printed_number_has_a_promise():
    assert sorted(printed_numbers().keys() - PROMISES.keys()) == []
    assert sorted(PROMISES.keys() - printed_numbers().keys()) == []


def test_a_number_has_one_promise():
    assert len(PROMISES) == sum(len(module.PROMISES) for module in MODULES)
    assert len({design.name for design in DESIGNS}) == len(DESIGNS)


def test_each_promise_is_drawn():
    claims = {name for name, one in PROMISES.items() if not isinstance(one, NoClaim)}
    assert sorted(claims ^ DRAWN) == []
    assert sorted(claims - {number for design in DESIGNS if design.quick for number in design.numbers}) == []
    assert [one.name for one in DESIGNS if one.regime not in REGIMES] == []


@pytest.mark.parametrize("design", [one for one in DESIGNS if one.quick], ids=lambda one: one.name)
def test_a_few_repetitions_break_no_promise(design):
    assert faults_of(design, PROMISES, design.quick) == []


@pytest.mark.long
@pytest.mark.by_turns(4)
@pytest.mark.parametrize("design", [one for one in DESIGNS if one.runs > one.quick], ids=lambda one: one.name)
def test_many_repetitions_break_no_promise(design):
    assert faults_of(design, PROMISES, design.runs) == []


def rows_of_page():
    """Return the rows of the table of intervals in docs/promises.md, as the promises and designs make them."""
    for name, promise in sorted(PROMISES.items()):
        regimes = ", ".join(one for one in REGIMES if any(one == d.regime and name in d.numbers for d in DESIGNS))
        files = ", ".join(
            f"`{module.__name__}.py`" for module in MODULES if any(name in d.numbers for d in module.DESIGNS)
        )
        yield f"| `{name}` | {promise.words} | {regimes or '–'} | {files or '–'} |"


def test_the_page_of_promises_lists_each_number():
    """`python tests/intervals/write_page.py` writes the table again."""
    text = PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^\| `[A-Z]\w+\.\w+` .*", text, re.MULTILINE) == [*rows_of_page()]
