"""The ledger knows a population, not a file: changed copies of a data set spend from its budget, other data do not."""

import base64
import csv
import gzip
import io
import json
import os
import stat
import subprocess
import sys
import textwrap
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from _cards import small_pixel_card
from _quick import quick_releases  # noqa: F401

import finc_eval as fe
from finc_eval.core.errors import BudgetError, DataError
from finc_eval.privacy import Guarantee, Ledger, Number, PublicTransform, Table, release_sketch
from finc_eval.private.dp.ledger_lines import root_of, seal
from finc_eval.private.dp.population import ENTRY, KEPT, RowViews, Sketches, chance_of
from finc_eval.private.dp.public_values import column_arrays
from finc_eval.private.dp.records import open_records, table_identity
from finc_eval.private.hermite.hermite import TotalDegree
from finc_eval.private.synthesis.files import read_columns

N, D, DELTA = 600, 4, 1e-5
RNG = np.random.default_rng(0)
ROWS = (RNG.standard_normal((N, D)) + 1).astype(np.float32)
OTHERS = (RNG.standard_normal((N, D)) + 1).astype(np.float32)
PUBLIC = PublicTransform.constant(D, length_scale=2, radius=3)
PHI = TotalDegree(D, 2, length_scale=2, rho=0.1)
ORDER = RNG.permutation(N)


def release(rows, ledger, epsilon=1.0, **rest):
    return release_sketch(rows, public=PUBLIC, epsilon=epsilon, delta=DELTA, ledger=ledger, feature_map=PHI, **rest)


def changed(entry, by):
    rows = ROWS.copy()
    rows[entry] += by
    return rows


COPIES = {
    "one number by 1e-6": changed((5, 0), 1e-6),
    "every number by 1e-6": changed(..., 1e-6),
    "one number by 100": changed((5, 0), 100),
    "one row not finite": changed((5, 0), np.nan),
    "a column by 1e-5": changed((..., 0), 1e-5),
    "noise of 1e-3": (ROWS + 1e-3 * RNG.standard_normal(ROWS.shape)).astype(np.float32),
    "a row more": np.vstack([ROWS, OTHERS[:1]]),
    "a row less": ROWS[1:],
    "a row moved to the end, by 1e-6": np.vstack([ROWS[1:], ROWS[:1] + np.float32(1e-6)]),
    "float16": ROWS.astype(np.float16),
    "bfloat16": torch.from_numpy(ROWS).bfloat16(),
    "float64": ROWS.astype(np.float64) * (1 + 1e-6),
    "four digits": np.round(ROWS, 4),
    "shuffled float16": ROWS[ORDER].astype(np.float16),
    "twice as large": ROWS * 2,
    "in another unit": ROWS * np.float32(0.0254),
    "huge": ROWS.astype(np.float64) * 1e200,
    "other columns first": ROWS[:, ::-1].copy(),
    "the first half": ROWS[: N // 2],
    "the second half": ROWS[N // 2 :],
    "every third row": ROWS[::3],
    "a tenth": ROWS[: N // 10],
    "half, shuffled, float16, scaled": (ROWS[ORDER[: N // 2]] * 2).astype(np.float16),
    "each row twice": np.repeat(ROWS, 2, axis=0),
    "one row a thousand times": np.vstack([ROWS, np.repeat(ROWS[:1], 1000, axis=0)]),
    "with as many others": np.vstack([ROWS, OTHERS]),
    "a fifth of it among others": np.vstack([ROWS[: N // 5], OTHERS[N // 5 :]]),
    "half of it lost": np.where(np.arange(N)[:, None] % 2, ROWS, np.nan).astype(np.float32),
}


@pytest.mark.one_of_each(by=lambda case: case.split()[0])
@pytest.mark.filterwarnings("ignore:The records look like", "error::RuntimeWarning")
@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES.keys())
def test_a_changed_copy_has_no_budget_of_its_own(tmp_path, copy):
    ledger = Ledger.create(tmp_path / "ledger", 1, DELTA)
    release(ROWS, ledger)
    with pytest.raises(BudgetError, match=r"nothing is left .* look like the records of line 2 .* --name"):
        release(copy, ledger)
    assert len(ledger.spendings()) == 1


PEOPLE = {
    "age": RNG.integers(18, 95, N),
    "pressure": np.round(RNG.normal(130, 20, N), 1),
    "smokes": np.where(RNG.random(N) < 0.3, "yes", "no"),
}
TABLE = Table((Number.between("age", 18, 95), Number.between("pressure", 50, 220)))


def of_people(change):
    return {name: change(values) for name, values in PEOPLE.items()}


TABLES = {
    "a record less": of_people(lambda values: values[1:]),
    "a record more": of_people(lambda values: np.append(values, values[7])),
    "one age": PEOPLE | {"age": np.append(PEOPLE["age"][:-1], 50)},
    "pressures by 1e-6": of_people(lambda values: values[1:]) | {"pressure": PEOPLE["pressure"][1:] + 1e-6},
    "all numbers by 1e-6, a record less": of_people(
        lambda values: values[1:] if values.dtype.kind == "U" else values[1:] + 1e-6
    ),
    "shuffled, a record less": of_people(lambda values: values[ORDER][1:]),
    "half": of_people(lambda values: values[: N // 2]),
    "each record twice": of_people(lambda values: np.repeat(values, 2)),
    "float32, a record less": {n: c[1:] if c.dtype.kind == "U" else c[1:].astype("f4") for n, c in PEOPLE.items()},
    "texts, a record less": of_people(lambda values: values[1:].astype(str)),
    "a column and a record less": {name: PEOPLE[name][1:] for name in ("age", "pressure")},
    "a column more, a record less": of_people(lambda values: values[1:]) | {"id": np.arange(N - 1)},
}


@pytest.mark.filterwarnings("ignore:The records look like")
@pytest.mark.parametrize("columns", TABLES.values(), ids=TABLES.keys())
def test_a_changed_copy_of_a_table_has_no_budget_of_its_own(tmp_path, columns):
    ledger = Ledger.create(tmp_path / "ledger", 1, DELTA)
    given = {"epsilon": 1, "ledger": ledger, "steps": 1, "count": 2, "method": "dp-hp-few"}
    fe.privacy.synthesize_table(PEOPLE, TABLE, **given)
    with pytest.raises(BudgetError, match="nothing is left"):
        fe.privacy.synthesize_table(columns, TABLE, **given)
    assert len(ledger.spendings()) == 1


def test_a_changed_copy_of_images_has_no_budget_of_its_own(tmp_path):
    ledger, images = Ledger.create(tmp_path / "ledger", 1, DELTA), RNG.integers(0, 256, (80, 8, 8), dtype=np.uint8)
    given = {"epsilon": 1, "ledger": ledger, "steps": 1, "count": 2}
    fe.privacy.synthesize_images(images, None, **given)
    copy = images[1:].copy()
    copy[3, 0, 0] ^= 1
    with pytest.raises(BudgetError, match="look like the records of line 2"):
        fe.privacy.synthesize_images(copy, None, **given)


def test_images_less_one_by_another_extractor_are_the_same_images(tmp_path):
    ledger, images = Ledger.create(tmp_path / "ledger", 1, DELTA), RNG.integers(0, 256, (60, 8, 8, 3), dtype=np.uint8)
    small_pixel_card(tmp_path / "small.toml", 4)
    for some, extractor, spent in [(images, "pixels", False), (images[1:], tmp_path / "small.toml", True)]:
        cache = fe.extract(some, extractor, tmp_path / f"{len(some)}.h5")
        public = PublicTransform.constant(cache.dim, 2, length_scale=10, radius=10)
        with pytest.raises(BudgetError, match="look like the records of line 2") if spent else nullcontext():
            release_sketch(cache, public=public, epsilon=1, ledger=ledger)


def test_a_changed_copy_is_charged_to_the_budget_of_the_first_and_the_owner_hears_it(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", 1, DELTA)
    release(ROWS, ledger, 0.5)
    with pytest.warns(UserWarning, match=r"look like the records of line 2 of the ledger \(\d+ % are equal\), so"):
        release(changed((5, 0), 1), ledger, 0.5)
    release(OTHERS, ledger, 1)
    with pytest.raises(BudgetError, match="after 2 releases"):
        release(ROWS, ledger, 0.9)
    assert [len(account.releases) for account in ledger.accounts()] == [2, 1]


def test_names_say_what_records_that_look_alike_are(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", 1, DELTA)
    release(ROWS, ledger, name="ward 7")
    release(ROWS[1:], ledger, name="ward 8")
    for name in ("ward 8", None):
        with pytest.raises(BudgetError, match="nothing is left"):
            release(ROWS[2:], ledger, name=name)


def views_of(rows):
    records, seen = open_records(rows, "rows"), RowViews()
    for _, batch in records.batches():
        seen.add(batch)
    return records.identity(seen).views


def look_alike(views, others):
    return Sketches(others, "salt").common(Sketches(views, "salt").texts()) > 0


LAWS = {
    "normal": lambda rng, n: rng.standard_normal((n, 6)) + 2,
    "one dimension": lambda rng, n: rng.standard_normal((n, 1)),
    "heavy tails": lambda rng, n: rng.standard_cauchy((n, 3)),
    "after ReLU": lambda rng, n: np.maximum(rng.standard_normal((n, 8)), 0),
    "hardly different": lambda rng, n: 100 + 0.01 * rng.standard_normal((n, 16)),
    "two values": lambda rng, n: rng.integers(0, 2, (n, 6)).astype(float),
    "few values": lambda rng, n: rng.poisson(2, (n, 4)).astype(float),
    "equal values": lambda rng, n: rng.integers(0, 5 * n, (10 * n, 1)).astype(float),
    "mostly zero": lambda rng, n: rng.standard_normal((n, 5)) * (rng.random((n, 1)) < 0.1),
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_disjoint_draws_of_one_law_are_not_confused(law):
    rng = np.random.default_rng(1)
    confused = sum(
        look_alike(views_of(law(rng, n)), views_of(law(rng, m))) for n, m in [(60, 60), (600, 600), (300, 1500)] * 5
    )
    assert confused == 0


@pytest.mark.parametrize("part", [slice(0, None), slice(0, 1000), slice(1000, None)], ids=["all", "a part", "the rest"])
def test_a_set_far_larger_than_its_sketch_is_known_with_each_row_twice(part):
    rows = np.random.default_rng(4).standard_normal((5000, 4))
    assert look_alike(views_of(rows), views_of(np.repeat(rows[part], 2, axis=0)))
    assert not look_alike(views_of(rows), views_of(np.repeat(-(rows[part] ** 2), 2, axis=0)))


@pytest.fixture(scope="module")
def tables(assets):
    folder = assets / "tabular"
    lines = csv.reader(io.StringIO(gzip.decompress((folder / "adult.data.gz").read_bytes()).decode()))
    rows = [[cell.strip() for cell in line] for line in lines if len(line) == 15]
    adult = {f"column {place}": np.array(cells) for place, cells in enumerate(zip(*rows, strict=True))}
    stored = np.load(folder / "adult_discretized.npz")
    discrete = {name: {str(place): stored[name][:, place] for place in range(15)} for name in ("simple", "bounded")}
    few = {name: adult[name] for name in ("column 0", "column 9", "column 14")}
    risk = read_columns(folder / "kag_risk_factors_cervical_cancer.csv")
    return {"adult": adult, "few columns": few, **discrete, "cervical cancer": risk}


DISCRETE = ("few columns", "simple", "bounded", "cervical cancer", "adult")


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.long] * (one != "simple")) for one in DISCRETE])
def test_disjoint_draws_of_a_discrete_table_are_not_confused(tables, name):
    rng, columns, confused = np.random.default_rng(2), tables[name], 0
    for _ in range(4):
        order = rng.permutation(len(next(iter(columns.values()))))
        one, other, copy = (
            table_identity(column_arrays({name: values[part] for name, values in columns.items()})).views
            for part in (order[:400], order[400:800], order[1:400])
        )
        confused += look_alike(one, other)
        assert look_alike(one, copy)
    assert confused == 0


@pytest.mark.one_of_each
@pytest.mark.parametrize("values", [2, 5, 30, 3000])
def test_the_bound_on_chance_holds(values):
    """Of 150 pairs of disjoint draws, no more look so much alike than the bound says."""
    rng, bounds = np.random.default_rng(3), []
    for _ in range(150):
        shares = rng.dirichlet(np.full(values, 0.5))
        one, other = rng.multinomial(200, shares), rng.multinomial(400, shares)
        again = one + other > 1
        again[np.argmax(one + other)] = False
        bounds.append(chance_of(one[again], other[again]) if (one + other)[again].any() else 1.0)
    assert np.mean(np.array(bounds) < 0.1) <= 0.1


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_ledger_is_read_by_its_owner_alone(tmp_path, mask):
    before = os.umask(mask)
    try:
        ledger = Ledger.create(tmp_path / "ledger", 1, DELTA)
        release(ROWS, ledger)
    finally:
        os.umask(before)
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600


def test_a_ledger_holds_no_number_of_the_records(tmp_path):
    """Two ledgers have nothing in common but digests of the whole, and each a sketch of bounded size."""
    books = [Ledger.create(tmp_path / name, 1, DELTA) for name in ("one", "two")]
    for book in books:
        release(np.vstack([ROWS] * 20), book)
    one, two = (book.spendings()[0] for book in books)
    assert one.data == two.data
    assert not set(one.sketches) & set(two.sketches)
    assert all(book.path.stat().st_size < 30_000 for book in books)


def text_of(numbers, count=1):
    return base64.b64encode(np.array([(number, count) for number in numbers], ENTRY).tobytes()).decode()


@pytest.mark.parametrize(
    "sketch", ["!", "", "QUJD", text_of([3], 0), text_of([3, 2]), text_of([2, 2]), text_of(range(KEPT + 1)), 7, None]
)
def test_a_forged_sketch_is_damage(tmp_path, sketch):
    ledger = Ledger.create(tmp_path / "ledger", 1, DELTA)
    header = json.loads(ledger.path.read_bytes())
    line = {"data": ["a"], "mu": 0.1, "purpose": "", "name": None, "sketches": [sketch]}
    with ledger.path.open("ab") as file:
        file.write(seal(line, root_of(header)))
        file.write(seal(line, "more"))
    with pytest.raises(DataError, match="damaged in line 2"):
        ledger.spendings()


def test_a_ledger_without_sketches_is_refused_in_one_sentence(tmp_path):
    path = tmp_path / "old"
    path.write_text('{"program": "finc-eval", "kind": "privacy ledger", "schema": 2, "epsilon": 1}\n')
    with pytest.raises(DataError, match="layout 2, this version reads 3: begin a new ledger, with the budget that is"):
        release(ROWS, path)


@pytest.mark.long  # a quicker one: test_ledger.py
def test_two_processes_cannot_spend_the_last_budget_on_two_copies(tmp_path):
    """Four data sets, of each of which one process has the records, and the other all but one of them."""
    code = """
        import sys, time
        from pathlib import Path
        import numpy as np
        from finc_eval.core.errors import BudgetError
        from finc_eval.privacy import Guarantee, Ledger
        ledger, won, own = Ledger(sys.argv[1]), [], int(sys.argv[4])
        append = Ledger._append
        Ledger._append = lambda self, spending: (time.sleep(0.02), append(self, spending))
        Path(sys.argv[2]).touch()
        while not all(Path(flag).exists() for flag in sys.argv[2:4]):
            time.sleep(0.001)
        for number in range(4):
            views = [np.arange(1000 * number + own, 1000 * number + 100, dtype=np.uint64)]
            try:
                ledger.spend([f"file {number} of {own}"], Guarantee.of(1.0, 1e-5), "race", views=views)
                won.append(number)
            except BudgetError:
                pass
        print(*won)
    """
    ledger, flags = Ledger.create(tmp_path / "ledger", 1, DELTA), [tmp_path / "one", tmp_path / "two"]
    children = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), *map(str, [ledger.path, *order, number])],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        for number, order in enumerate((flags, flags[::-1]))
    ]
    won = [int(number) for child in children for number in child.communicate(timeout=120)[0].split()]
    assert sorted(won) == list(range(4))
    assert len(ledger.spendings()) == 4


def test_a_spending_without_views_is_known_by_its_digests_and_names_alone(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", 1, DELTA)
    for name in ("a", "b"):
        ledger.spend([name], Guarantee.of(1, DELTA), "test")
    with pytest.raises(BudgetError, match="nothing is left"):
        ledger.spend(["a"], Guarantee.of(0.1, DELTA), "test")
