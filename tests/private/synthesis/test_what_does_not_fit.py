"""What a description does not know is told to the owner before spending, or taken where only its form is another."""

import unicodedata
import warnings

import numpy as np
import pytest
from _quick import quick_releases  # noqa: F401

import finc_eval as fe
from finc_eval.core.errors import DataError
from finc_eval.privacy import Category, Ledger, Number, Table
from finc_eval.private.synthesis.files import read_columns, write_arrays

AGE = Number.between("age", 18, 98)
WARD, ILL = Category("ward", ("east", "west")), Category("ill", ("no", "yes"))
TABLE = Table((AGE, WARD), ILL)
N = 400
RNG = np.random.default_rng(0)
RECORDS = {
    "age": RNG.integers(18, 98, N).astype(str),
    "ward": np.where(RNG.random(N) < 0.5, "west", "east"),
    "ill": np.where(RNG.random(N) < 0.5, "yes", "no"),
}


def written(column, form):
    return {**RECORDS, column: np.array([form(one) for one in RECORDS[column]])}


def in_part(form, share):
    """Write the first records of a column in another form."""
    count = iter(range(N))
    return lambda one: form(one) if next(count) < share * N else one


SAME = {
    "capitals": ("ward", str.upper),
    "a first capital": ("ward", str.capitalize),
    "a space before": ("ward", lambda one: f" {one}"),
    "a no-break space behind": ("ill", lambda one: f"{one}\xa0"),
    "a carriage return": ("ill", lambda one: f"{one}\r"),
    "quotation marks": ("ward", lambda one: f'"{one}"'),
    "wide letters": ("ward", lambda one: "".join(chr(ord(letter) + 0xFEE0) for letter in one)),
    "a mark of the beginning": ("ill", lambda one: f"\ufeff{one}"),
    "spaces around a number": ("age", lambda one: f" {one} "),
    "zeros before a number": ("age", lambda one: f"0{one}"),
    "a decimal point": ("age", lambda one: f"{one}.0"),
}


@pytest.mark.parametrize(("column", "form"), SAME.values(), ids=SAME)
def test_a_form_that_is_surely_the_same_is_taken(column, form):
    plain, found = TABLE.encoded(RECORDS), TABLE.encoded(written(column, form))
    assert all(np.array_equal(one, other) for one, other in zip(plain, found, strict=True))
    assert not any(TABLE.misfits(written(column, form)).values())


@pytest.mark.parametrize(
    ("known", "value", "place"),
    [
        (["café", "tea"], unicodedata.normalize("NFD", "café"), 0),
        (["Cat", "cat"], "CAT", -1),
        (["Cat", "cat"], "cat ", 1),
        (["NA", "EU"], "NA", 0),
        (["none", "some"], "None", 0),
        (["03", "11"], "3", 0),
        (["3", "03"], "3.0", -1),
        (["it's", "not"], "it’s", 0),
    ],
)
def test_one_described_value_alone_is_found_in_another_form(known, value, place):
    column = Category("kind", tuple(known))
    assert bool(column.misfits([value])) == (place < 0)
    assert place < 0 or column.encoded([value]).tolist() == [place]


MISFITS = {
    "another word": ("ward", lambda one: "north", "'north'"),
    "a misspelling": ("ill", lambda one: f"{one}!", "'yes!'"),
    "decimal commas": ("age", lambda one: f"{one},5", "age"),
    "units": ("age", lambda one: f"{one} y", "age"),
    "words for numbers": ("age", lambda one: "old", "'old'"),
    "empty cells": ("age", lambda one: "", "''"),
    "nan": ("age", lambda one: "nan", "'nan'"),
    "NA": ("ward", lambda one: "NA", "'NA'"),
    "months for years": ("age", lambda one: str(12 * int(one)), "age"),
    "a code for what is missing": ("age", lambda one: "-999", "'-999'"),
    "infinities": ("age", lambda one: "inf", "'inf'"),
    "thousands": ("age", lambda one: f"{one} 000", "age"),
}


@pytest.mark.parametrize(("column", "form", "example"), MISFITS.values(), ids=MISFITS)
def test_values_that_do_not_fit_are_refused_before_the_ledger_is_written(column, form, example, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", epsilon=9, delta=1e-5)
    with pytest.raises(DataError, match=f"of the values of {column} are not described.*Nothing is spent") as error:
        fe.privacy.synthesize_table(written(column, form), TABLE, epsilon=1, steps=1, ledger=ledger)
    assert example in str(error.value) and "0 of 400 values" in str(error.value)
    assert "all values of the other 2 columns fit" in str(error.value)
    assert not ledger.spendings()


@pytest.mark.parametrize(
    ("share", "most", "told", "refused"),
    [
        (0, 0.01, False, False),
        (1 / N, 0, False, True),
        (1 / N, 0.001, True, False),  # one record alone is no reason
        (0.01, 0.01, True, False),
        (0.0125, 0.01, False, True),
        (0.3, 0.5, True, False),
        (1, 1, True, False),
    ],
)
def test_the_owner_chooses_how_many_values_may_be_undescribed(share, most, told, refused):
    columns = written("age", in_part(lambda one: "?", share))
    given = {"epsilon": 9, "steps": 1, "count": 5, "ledger": None, "max_undescribed": most}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        if refused:
            with pytest.raises(DataError, match="max_undescribed"):
                fe.privacy.synthesize_table(columns, TABLE, **given)
        else:
            fe.privacy.synthesize_table(columns, TABLE, **given)
    assert bool(said) == told
    assert not told or "keep them to yourself" in str(said[0].message)


def test_classes_that_are_not_listed_are_told_and_refused_before_a_release(tmp_path):
    images = np.zeros((100, 4, 4), np.uint8)
    ledger = Ledger.create(tmp_path / "ledger", epsilon=9, delta=1e-5)
    given = {"classes": ("Healthy", "ill"), "epsilon": 1, "steps": 1, "count": 4}
    with pytest.raises(DataError, match=r"50 % of the values of labels are not described.*'sick'"):
        fe.privacy.synthesize_images(images, ["healthy", "sick"] * 50, ledger=ledger, **given)
    assert not ledger.spendings()
    assert fe.privacy.synthesize_images(images, ["healthy", "Ill"] * 50, ledger=ledger, **given).images.shape[0] == 4


EMPTY = ("", "NA", "nan", "None", "null", "N/A")


@pytest.mark.long
@pytest.mark.one_of_each
@pytest.mark.parametrize("cell", EMPTY)
def test_a_level_for_what_is_missing_can_be_described(cell, tmp_path):
    (tmp_path / "table.toml").write_text(
        '[[columns]]\nname = "age"\nlow = 18\nhigh = 98\nlevels = 4\ninteger = true\nmissing = true\n'
        '[[columns]]\nname = "ward"\nvalues = ["east", "?"]\nmissing = "?"\n'
    )
    table = Table.load(tmp_path / "table.toml")
    columns = {"age": np.array(["20", cell] * 200), "ward": np.array(["east", "east", cell, cell] * 100)}
    assert not any(table.misfits(columns).values())
    levels = table.level_indices(table.encoded(columns)[0])
    assert levels[:4].tolist() == [[0, 0], [4, 0], [0, 1], [4, 1]]
    for method in ("dp-hp", "dp-hp-few", "dp-merf"):
        made = fe.privacy.synthesize_table(columns, table, epsilon=90, method=method, steps=60, ledger=None)
        assert np.isnan(made.values["age"]).mean() == pytest.approx(0.5, abs=0.1)
        assert (made.values["ward"] == "?").mean() == pytest.approx(0.5, abs=0.1)
        assert made.synthesis.columns[0].levels[-1] == "missing"
    write_arrays(tmp_path / "made.csv", made.values)
    ages = read_columns(tmp_path / "made.csv")["age"]
    assert {one == "" or one.isdecimal() for one in ages} == {True} and "" in ages
    assert "nan" not in (tmp_path / "made.csv").read_text()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('values = ["a", "b"]\nmissing = "?"', "value for what is missing of column kind must be one of its values"),
        ('values = ["a", "b"]\nmissing = true', "`missing` of column kind must be one of its values, got True"),
        ('low = 1\nhigh = 2\nmissing = "?"', "`missing` of column kind must be true or false"),
    ],
)
def test_a_wrong_level_for_what_is_missing_is_refused_in_a_sentence(entry, message, tmp_path):
    (tmp_path / "table.toml").write_text(f'[[columns]]\nname = "kind"\n{entry}\n')
    with pytest.raises(DataError, match=message):
        Table.load(tmp_path / "table.toml")


@pytest.mark.parametrize(
    ("column", "cell", "advice"),
    [
        ("age", "", "missing = true of age"),
        ("age", "nan", "missing = true of age"),
        ("ward", "NA", 'missing = "…" (one of its values) of ward'),
        ("ill", "null", 'missing = "…" (one of its values) of ill'),
        ("age", "old", None),
        ("ward", "north", None),
    ],
)
def test_the_setting_for_what_is_missing_is_named_where_something_is(column, cell, advice):
    given = {"epsilon": 1, "steps": 1, "count": 5, "ledger": None}
    with pytest.raises(DataError) as error:
        fe.privacy.synthesize_table(written(column, in_part(lambda one: cell, 0.1)), TABLE, **given)
    assert ("A level for what is missing" in str(error.value)) == (advice is not None)
    assert advice is None or f"is described by {advice}." in str(error.value)


TABLES = {
    "commas": "age,ward\n30,east\n31,west\n",
    "semicolons": "age;ward\n30;east\n31;west\n",
    "tabs": "age\tward\n30\teast\n31\twest\n",
    "bars": "age|ward\n30|east\n31|west\n",
    "spaces": "age; ward\n30; east\n31; west\n",
    "quotes": '"age";"ward"\n"30";"east"\n"31";"west"\n',
    "a mark of the beginning": "\ufeffage;ward\n30;east\n31;west\n",
    "lines of Windows": "age;ward\r\n30;east\r\n31;west\r\n",
    "an empty line before": "\n\nage;ward\n30;east\n31;west\n",
}


@pytest.mark.parametrize("text", TABLES.values(), ids=TABLES)
def test_the_line_of_names_decides_what_separates_cells(text, tmp_path):
    (tmp_path / "table.csv").write_text(text, newline="")
    found = read_columns(tmp_path / "table.csv")
    assert {name: one.tolist() for name, one in found.items()} == {"age": ["30", "31"], "ward": ["east", "west"]}


def test_cells_keep_what_does_not_separate_them(tmp_path):
    (tmp_path / "table.csv").write_text("age;note\n30,5;a, b\n31;\n")
    found = read_columns(tmp_path / "table.csv")
    assert {name: one.tolist() for name, one in found.items()} == {"age": ["30,5", "31"], "note": ["a, b", ""]}
