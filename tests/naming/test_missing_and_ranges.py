"""Names count all members, and numbers and dates name kinds by ranges."""

from datetime import date, timedelta

import numpy as np
import pytest
from naming._described import Described

import finc_eval as fe
from finc_eval.naming.names import name_by_members
from finc_eval.naming.properties import ranges_of

RNG = np.random.default_rng(0)
MISSING = ["", "nan", "NA", None, float("nan"), "N/A", "NaN", "<NA>", "null"]


def named(columns, members, other=None, n=1000):
    sets = {"gen": Described(n, columns), "ref": Described(n, other or columns)}
    return name_by_members([{"gen": np.asarray(members)}], sets)[0]


def test_a_kind_is_not_named_after_the_few_members_that_have_a_label():
    labels = np.array([f"class {number}" for number in RNG.permutation(1000) % 10], object)
    labels[:96] = ""
    labels[96:100] = "class 3"
    name = named({"label": labels}, range(100))
    assert name.text == "mostly unlabeled (96 %)"
    assert all(one.share_members <= 0.1 for one in name.evidence if one.value != "unlabeled")


@pytest.mark.parametrize("share", [0.6, 0.3])
def test_shares_of_labels_are_of_all_members(share):
    labels = np.array([str(number) for number in RNG.permutation(1000) % 10], object)
    members = np.flatnonzero(labels == "3")
    labels[members[int(share * len(members)) :]] = ""
    name = named({"label": labels}, members)
    (evidence,) = [one for one in name.evidence if one.value == "3"]
    assert evidence.share_members == pytest.approx(share, abs=0.02)
    assert name.text == ("3 and unlabeled (60 %, 40 %)" if share == 0.6 else "unlabeled and 3 (70 %, 30 %)")


def test_a_column_that_only_one_set_has_says_nothing_of_the_other():
    columns = {"style": np.array(["a", "b", ""])[np.arange(1000) % 3]}
    sets = {"gen": Described(1000), "ref": Described(1000, columns)}
    assert name_by_members([{"gen": np.arange(60)}], sets)[0].text is None


@pytest.mark.one_of_each
@pytest.mark.parametrize("missing", MISSING, ids=repr)
def test_every_missing_value_is_one(missing, tmp_path):
    rng = np.random.default_rng(1)
    gen, ref = rng.normal(size=(2, 500, 8)).astype(np.float32)
    gen[:100] += 8
    labels = [str(number % 5) for number in range(500)]
    own = [missing] * 96 + ["3"] * 4 + labels[100:]
    x, y = (fe.EmbeddingSet(rows, metadata={"label": one}) for rows, one in ((gen, own), (ref, labels)))
    (kind,) = (one for one in fe.kinds({"gen": x, "ref": y}).significant() if one.shares["gen"].share > 0.1)
    assert kind.name == "mostly unlabeled (96 %)"


def test_whole_numbers_and_decimals_name_kinds_by_ranges():
    classes = RNG.permutation(1000) % 10
    for seconds in (np.round(10 * classes + RNG.normal(0, 3, 1000)), 10 * classes + RNG.normal(0, 3, 1000)):
        name = named({"seconds": [f"{one:.6g}" for one in seconds]}, np.flatnonzero(classes == 5)[:60])
        (evidence,) = name.evidence
        low, high = (float(word) for word in evidence.value.split(" to "))
        assert name.text.startswith(f"mostly seconds {evidence.value} (") and 38 < low < 50 < high < 62
        assert evidence.share_members > 0.8 and evidence.share_others < 0.15


DAYS = [date(2024, 1, 1) + timedelta(days=int(day)) for day in RNG.permutation(1000) % 364]
DATES = {
    "days": [day.isoformat() for day in DAYS],
    "times": [f"{day.isoformat()}T12:30:00Z" for day in DAYS],
    "slashes": [f"{day.year}/{day.month}/{day.day}" for day in DAYS],
    "months": [f"{day.year}-{day.month:02d}" for day in DAYS],
}


@pytest.mark.parametrize("form", DATES)
def test_dates_name_kinds_by_months(form):
    name = named({"date": DATES[form]}, [row for row, day in enumerate(DAYS) if day.month == 3])
    assert name.text == "mostly date March 2024 (100 %)"


def test_dates_of_many_years_name_kinds_by_the_year_or_the_month():
    days = [date(2015 + row % 8, 1 + (row // 8) % 12, 5) for row in range(1000)]
    columns = {"date": [day.isoformat() for day in days]}
    assert named(columns, [row for row, day in enumerate(days) if day.month == 3][:60]).text == (
        "mostly date March (100 %)"
    )
    name = named(columns, [row for row, day in enumerate(days) if day.year == 2019][:60])
    assert name.text == "mostly date 2019 (100 %)"


@pytest.mark.long
def test_random_members_are_hardly_ever_described_by_ranges():
    described, rng = 0, np.random.default_rng(0)
    for _ in range(100):
        columns = {"score": rng.normal(size=500).round(3), "date": [str(DAYS[i]) for i in rng.integers(0, 1000, 500)]}
        sets = {name: Described(500, columns) for name in ("gen", "ref")}
        members = [{"gen": rng.permutation(500)[:50]} for _ in range(4)]
        described += any(name.evidence for name in name_by_members(members, sets))
    assert described <= 9  # 100 at 5 %: 10 or more in 3 % of runs, and Holm is conservative for ranges in each other


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(["a", "b"] * 30, id="words"),
        pytest.param(["1"] * 60, id="one number"),
        pytest.param([str(n % 7) for n in range(60)], id="codes"),
        pytest.param(["nan", "1.5"] * 9, id="not finite"),
        pytest.param(["2024"] * 9, id="one year"),
        pytest.param(["2024-01-05", "2024-03-01", "soon"] * 9, id="dates and words"),
        pytest.param(["2024-01-05", "2024-13-01"] * 9, id="a thirteenth month"),
    ],
)
def test_other_values_are_not_ranges(values):
    assert ranges_of(values) is None


def test_a_number_that_only_tells_the_sets_apart_names_no_kind():
    gen, ref = {"row": np.arange(1000)}, {"row": np.arange(1000, 2000)}
    members = RNG.permutation(1000)[:60]
    assert named(gen, members, ref).text is None


@pytest.mark.long
def test_columns_that_are_not_used_are_named_with_their_reason():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 300, 8)).astype(np.float32)

    def one(rows, model):
        columns = {
            "file": [f"{model}{row}.png" for row in range(300)],
            "model": [model] * 300,
            "label": ["a", "b"] * 150,
        }
        return fe.EmbeddingSet(rows, metadata=columns | {"seconds": rng.normal(size=300)})

    for warnings in (
        fe.kinds({"x": one(x, "m"), "y": one(y, "n")}).warnings,
        fe.compare(one(x, "m"), one(y, "n"), features=20).warnings,
    ):
        (said,) = [sentence for sentence in warnings if "name no kind" in sentence]
        assert "file (600 different values of 600 samples)" in said
        assert "model (no set has two different values)" in said and "label" not in said and "seconds" not in said
