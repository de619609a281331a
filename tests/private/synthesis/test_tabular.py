import json

import numpy as np
import pytest
import torch

from finc_eval.core.errors import FincEvalError
from finc_eval.private.synthesis.columns import Category, Number
from finc_eval.private.synthesis.tabular import Table

DESCRIPTION = """
label = "ill"

[[columns]]
name = "age"
low = 18
high = 95
levels = 7
integer = true

[[columns]]
name = "dose"
edges = [0, 1, 10, 100]
usual = 0

[[columns]]
name = "ward"
values = ["east", "west", "?"]
usual = "east"

[[columns]]
name = "ill"
values = ["no", "yes"]
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.toml"
    path.write_text(DESCRIPTION)
    return Table.load(path)


def test_a_description_says_all_that_is_known_of_a_table(table):
    assert [column.name for column in table.columns] == ["age", "dose", "ward"]
    assert table.label.values == ("no", "yes")
    assert table.levels == [7, 3, 3]
    assert table.columns[0].edges[-1] == 96


def test_json_describes_a_table_as_well(tmp_path, table):
    path = tmp_path / "table.json"
    columns = [{"name": "ward", "values": ["east", "west"]}, {"name": "age", "low": 0, "high": 9.5}]
    path.write_text(json.dumps({"columns": columns}))
    assert Table.load(path).label is None
    assert Table.load(path).classes == 1


def test_values_come_back_from_their_levels(table):
    values = {
        "age": np.array(["18", "95", "40"]),
        "dose": np.array([0.5, 50, 3]),
        "ward": np.array(["?", "west", "east"]),
        "ill": np.array(["yes", "no", "yes"]),
        "name": np.array(["never", "looked", "at"]),
    }
    records, labels = table.encoded(values)
    assert records.shape == (3, 13)
    assert torch.equal(records.sum(1), torch.full((3,), 3.0))
    assert labels.tolist() == [1, 0, 1]
    back = table.decoded(records, labels, seed=0)
    assert back["ward"].tolist() == ["?", "west", "east"]
    assert back["ill"].tolist() == ["yes", "no", "yes"]
    assert back["age"].dtype == np.int64
    again, _ = table.encoded(back)
    assert torch.equal(again, records)


def test_whole_numbers_are_drawn_from_all_of_their_level_and_no_other():
    age = Number.between("age", 18, 95, 7, integer=True)
    levels = np.arange(7).repeat(500)
    drawn = age.decoded(levels, np.random.default_rng(0))
    assert np.array_equal(age.encoded(drawn), levels)
    assert sorted(set(drawn)) == list(range(18, 96))


def test_what_lies_outside_or_is_no_value_still_has_a_level(table):
    """A record must not be able to make a release fail."""
    values = {
        "age": np.array(["-5", "200", "old"]),
        "dose": np.array([np.nan, np.inf, -np.inf]),
        "ward": np.array(["north", "", "east "]),
        "ill": np.array(["maybe", "no", "yes"]),
    }
    levels = table.level_indices(table.encoded(values)[0])
    assert levels.tolist() == [[0, 0, 0], [6, 2, 0], [0, 0, 0]]


def test_codes_put_the_usual_level_at_the_origin_and_categories_evenly_around_it(table):
    assert table.columns[2].codes.tolist() == [[0, 0], [1, 0], [0, 1]]
    assert float(table.columns[1].codes[0]) == 0
    corners = Category("c", ("a", "b", "c")).codes
    assert torch.pdist(corners).tolist() == pytest.approx([2**0.5] * 3)
    assert corners.sum(0).abs().max() < 1e-6
    assert float(Category("c", ("a", "b")).codes.diff(dim=0)) == pytest.approx(2**0.5)


def test_amounts_are_codes_without_negative_entries(table):
    assert float(table.amounts.min()) >= 0
    age = table.columns[0]
    assert age.amounts.shape == (7, 2)  # above the middle, and below it
    torch.testing.assert_close(age.amounts[:, 0] - age.amounts[:, 1], age.codes[:, 0])
    assert table.columns[1].amounts.shape == (3, 1)
    assert Category("c", ("a", "b")).amounts.tolist() == [[1, 0], [0, 1]]


def test_the_mean_square_follows_from_what_is_publicly_known():
    table = Table((Category("smokes", ("no", "yes"), "no"), Category("ward", ("a", "b"))))
    assert table.mean_square(table.codes) == pytest.approx(0.1 * 1 + 0.5)
    assert table.mean_square(table.amounts) == pytest.approx(0.1 * 1 + 1)


def test_positions_keep_levels_apart(table):
    assert torch.pdist(table.positions[:7, :1]).min() == pytest.approx(1)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("low = 18\n", "", "age must have a name and either values, or low and high, or edges: they are public"),
        ("low = 18", "low = 100", "from a low to a higher number"),
        ("levels = 7", 'levels = "few"', "whole number of levels, got 'few'"),
        ("levels = 7", "level = 7", "cannot have 'level' \\(did you mean \"levels\"\\?\\)"),
        ("[0, 1, 10, 100]", "[0, 10, 1]", "must ascend"),
        ("low = 18", "low = -1e300", "whole numbers of column age exceed 2\\^53, got .*: leave integer out"),
        ("usual = 0", 'usual = "none"', "usual value of column dose must be a number"),
        ('usual = "east"', 'usual = "eats"', 'did you mean "east"'),
        ('"no", "yes"', '"no", "no"', "each once"),
        ('name = "ward"', 'name = "age"', "a name of its own"),
        ('label = "ill"', 'label = "age"', "label must be a column with values"),
        ('label = "ill"', "label = ", "cannot be read as a TOML file"),
        ("[[columns]]", "[[column]]", "must have `columns`"),
    ],
)
def test_a_wrong_description_is_refused_in_a_sentence(tmp_path, old, new, message):
    path = tmp_path / "table.toml"
    path.write_text(DESCRIPTION.replace(old, new))
    with pytest.raises(FincEvalError, match=message):
        Table.load(path)


def test_a_missing_column_is_named_with_its_nearest(table):
    with pytest.raises(FincEvalError, match="column 'age' is missing in the data \\(did you mean \"agee\"\\?\\)"):
        table.encoded({"agee": np.zeros(3), "dose": np.zeros(3), "ward": np.zeros(3), "ill": np.zeros(3)})
