"""By what the ledger knows a table, and by what it does not."""

import numpy as np
import pytest
from _quick import quick_releases  # noqa: F401

import finc_eval as fe
from finc_eval.core.errors import BudgetError
from finc_eval.privacy import Category, Number, Table
from finc_eval.private.dp.public_values import column_arrays
from finc_eval.private.dp.records import table_identity

N = 200
RNG = np.random.default_rng(0)
AGES, SMOKES, ILL = RNG.integers(18, 95, N), RNG.random(N) < 0.3, RNG.random(N) < 0.5
PATIENTS = {"age": AGES, "smokes": np.where(SMOKES, "yes", "no"), "ill": np.where(ILL, "1", "0")}
AGE = Number.between("age", 18, 95)
YES, ILLNESS = Category("smokes", ("no", "yes")), Category("ill", ("0", "1"))


def known(columns):
    return set(table_identity(column_arrays(columns)).digests)


@pytest.mark.parametrize(
    ("columns", "table"),
    [
        (PATIENTS, Table((Number.between("age", 18, 95, levels=7), YES), ILLNESS)),
        (PATIENTS, Table((YES, AGE), ILLNESS)),
        (PATIENTS, Table((AGE,), ILLNESS)),
        (PATIENTS, Table((AGE, YES))),
        ({name: PATIENTS[name] for name in ("smokes", "age")}, Table((AGE, YES))),
        ({"smokes": PATIENTS["smokes"]}, Table((YES,))),
        ({"years": AGES[::-1].astype(np.float32)}, Table((Number.between("years", 18, 95),))),
        (PATIENTS | {"age": AGES + 1}, Table((AGE, YES))),
    ],
    ids=["levels", "order", "a column less", "no label", "part", "one column", "renamed", "one column altered"],
)
def test_a_table_with_a_column_of_an_earlier_release_has_no_budget_left(tmp_path, columns, table):
    ledger = fe.privacy.Ledger.create(tmp_path / "ledger", 1, 1e-5)
    given = {"epsilon": 1, "ledger": ledger, "steps": 1, "count": 2, "method": "dp-hp-few"}
    fe.privacy.synthesize_table(PATIENTS, Table((AGE, YES), ILLNESS), **given)
    with pytest.raises(BudgetError, match="nothing is left after 1 release"):
        fe.privacy.synthesize_table(columns, table, **given)
    assert len(ledger.spendings()) == 1


def test_releases_that_share_a_column_add_up_under_a_budget_for_both(tmp_path):
    ledger = fe.privacy.Ledger.create(tmp_path / "ledger", 3, 1e-5)
    for table in (Table((AGE, YES)), Table((AGE,), ILLNESS)):
        fe.privacy.synthesize_table(PATIENTS, table, epsilon=1, ledger=ledger, steps=1, count=2, method="dp-hp-few")
    (account,) = ledger.accounts()
    assert len(account.releases) == 2


def test_other_records_are_another_table():
    other = np.random.default_rng(1)
    shuffled = {name: other.permutation(values) for name, values in PATIENTS.items() if name != "age"}
    assert not known(PATIENTS) & known(shuffled | {"age": AGES + 1})


def test_types_files_and_order_do_not_matter():
    order = np.random.default_rng(2).permutation(N)
    rewritten = {
        "ill": ILL[order],
        "smokes": np.char.add(" ", PATIENTS["smokes"][order]).astype("S"),
        "age": [f"{age}.0" for age in AGES[order]],
    }
    assert table_identity(column_arrays(rewritten)).digests[0] == table_identity(column_arrays(PATIENTS)).digests[0]


@pytest.mark.parametrize(
    "column",
    [np.arange(N), RNG.permutation(N) + 1, np.zeros(N), np.arange(N) % 2, np.repeat(["a", "b"], N // 2)],
    ids=["row numbers", "shuffled row numbers", "a constant", "turns", "blocks"],
)
def test_what_is_in_many_tables_does_not_join_two_of_them(column):
    mine, other = {"x": column, "age": AGES}, {"x": column, "height": AGES * 2.5}
    assert not known(mine) & known(other)
