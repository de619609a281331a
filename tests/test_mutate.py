"""What `scripts/mutate.py` breaks: mathematics, at its place in a line, and no texts."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))
from mutate import Mutation, draw, mutations_of

ROOM = "finc_eval/numerics/inference.py"


@pytest.mark.parametrize(
    ("line", "broken"),
    [
        ("x = a + b", ["x = a - b"]),
        ("é = a * 2.5", ["é = a / 2.5", "é = a * (2 * 2.5)"]),
        ("x = 1 - a", ["x = 1 + a", "x = 2 - a"]),
        ("x = a / 0", ["x = a * 0", "x = a / 1"]),
        ("x = a if b <= c else d", ["x = a if b >= c else d"]),
        ("x = np.minimum(a, b)", ["x = np.maximum(a, b)"]),
        ('x = "a" + b', []),
        ('x = f"{a + b}"', []),
        ("x = [a] + b", []),
        ("x: int | float = a", []),
        ("raise ValueError(a + b)", []),
        ("x = {a, b} <= set(c)", []),
        ("x = set(c) - {a, b}", []),
        ("x = {a for a in b} - c", []),
        ("x = a[b + 1] == c", ["x = a[b - 1] == c", "x = a[b + 2] == c"]),
        ("x = a < b < c", []),
    ],
)
def test_each_mutation_changes_one_operator_number_or_call(line, broken):
    text = f"first = 0\n{line}\n"
    found = [one.broken(text) for one in mutations_of(ROOM, text)]
    assert found == [f"first = 0\n{changed}\n" for changed in broken]


def test_a_line_that_is_not_as_it_was_is_not_broken():
    with pytest.raises(ValueError, match=r"numerics/inference\.py:1 has no '\+' at column 6"):
        Mutation(ROOM, 1, 6, "+", "-").broken("x = a - b\n")


def test_a_seed_draws_the_same_lines_each_once():
    drawn = draw(3, 20, ["numerics"])
    assert drawn == draw(3, 20, ["numerics"]) != draw(4, 20, ["numerics"])
    assert len({(one.path, one.line) for one in drawn}) == 20
    assert {one.room for one in drawn} == {"numerics"}
