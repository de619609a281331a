"""`SketchSum`: states of any workers add up to the sketch of one process."""

import pickle
from functools import reduce

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

import finc_eval as fe

N, DIM = 1500, 8
ROWS = np.random.default_rng(0).normal(size=(N, DIM)).astype(np.float32)
IDS = [f"{number}.png" for number in range(N)]
CLIPS = [f"{number // 3}.mp4#{number % 3}" for number in range(N)]
PROMPTS = np.random.default_rng(1).integers(0, 90, N)
SUMS = fe.SketchSum(reference=ROWS[:500], features=40, sample=300)


def added(rows, state=None, size=100, **more):
    """Add rows in batches of a size to a state."""
    state = SUMS.zero() if state is None else state
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        state = SUMS.add(state, rows[part], **part_of(more, part))
    return state


def part_of(more, part):
    """Return a part of ids, groups and columns."""
    return {
        name: {column: given[part] for column, given in values.items()} if name == "columns" else values[part]
        for name, values in more.items()
    }


def by_workers(order, size, **more):
    """Add the rows on seven workers, and combine their states as they come from pickles."""
    states = [
        added(ROWS[part], size=size, **part_of(more, part))
        for part in (slice(start, start + 220) for start in range(0, N, 220))
    ]
    return reduce(SUMS.combine, (pickle.loads(pickle.dumps(states[number])) for number in order))


def same_sums(one, other):
    for mine, others in zip((*one.folds, one.embedding), (*other.folds, other.embedding), strict=True):
        assert mine.n == others.n
        assert (mine.first - others.first).abs().max() < 1e-10
        for (_, block), (_, same) in zip(mine.blocks(), others.blocks(), strict=True):
            assert (block - same).abs().max() < 1e-10


NUMBERS = np.random.default_rng(2).normal(size=N)
KINDS_OF_NAMES = {
    "ids": {"ids": IDS},
    "columns": {"ids": IDS, "columns": {"number": NUMBERS, "label": [*map(str, PROMPTS)]}},
    "videos": {"ids": CLIPS},
    "groups": {"ids": IDS, "groups": PROMPTS},
    "no ids": {},
    "groups without ids": {"groups": PROMPTS},
}


@pytest.mark.parametrize("names", KINDS_OF_NAMES)
def test_workers_in_any_order_have_the_sums_of_one_process(names):
    more = KINDS_OF_NAMES[names]
    whole = SUMS.finish(added(ROWS, size=N, **more))
    for order, size in ((range(7), 50), ((3, 0, 6, 2, 5, 1, 4), 17)):
        made = SUMS.finish(by_workers(order, size, **more))
        same_sums(made, whole)
        assert made.squared_sizes == whole.squared_sizes and made.sources == whole.sources
        assert made.groups == whole.groups
        assert made.repeats.n == N and np.array_equal(made.repeats.hashes, whole.repeats.hashes)
        if "ids" in more:  # without, names follow from the batches
            assert made.sample.ids == whole.sample.ids and torch.equal(made.sample.rows, whole.sample.rows)
            assert made.sample.columns == whole.sample.columns
        assert len({*made.sample.ids}) == len(made.sample.ids) == 300


@pytest.mark.parametrize("names", ["ids", "videos", "groups", "columns"])
def test_a_sum_is_the_sketch_of_the_set(names):
    more = KINDS_OF_NAMES[names]
    metadata = {"group": PROMPTS} if names == "groups" else more.get("columns")
    given = fe.EmbeddingSet(ROWS, more["ids"], metadata)
    column = "group" if names == "groups" else None
    whole = fe.Sketch.of(given, SUMS.feature_map, sample=300, precision="float64", groups=column)
    made = SUMS.finish(by_workers(range(7), 50, **more))
    same_sums(made, whole)
    assert made.sample.ids == whole.sample.ids and np.array_equal(made.sample.keys, whole.sample.keys)
    assert (made.n, made.groups, made.squared_sizes) == (whole.n, whole.groups, whole.squared_sizes)
    assert made.sample.columns == whole.sample.columns
    assert np.array_equal(made.repeats.hashes, whole.repeats.hashes)


def test_a_worker_that_dies_and_is_tried_again_changes_nothing():
    first = added(ROWS[:900], ids=IDS[:900])
    before = pickle.dumps(first)
    for _ in range(2):  # each result is lost
        SUMS.add(first, ROWS[900:1000], ids=IDS[900:1000])
        SUMS.combine(first, first)
        SUMS.finish(first)
    assert pickle.dumps(first) == before
    made = SUMS.finish(added(ROWS[900:], first, ids=IDS[900:]))
    same_sums(made, SUMS.finish(added(ROWS, ids=IDS)))


def test_the_pickle_of_a_state_has_each_number_once():
    few = SUMS.add(SUMS.zero(), ROWS[:20])
    assert len(pickle.dumps(few)) < 20 * (2 * 4 * DIM + 76) + 2000  # rows, their sample, keys, names and repeats
    sums = fe.SketchSum(reference=ROWS[:500], features=300, sample=0)
    state = sums.add(sums.zero(), np.tile(ROWS, (2, 1)))
    assert state.folds is not None
    triangles = 2 * (600 * 601 // 2 + 600) + DIM * (DIM + 1) // 2 + DIM
    assert len(pickle.dumps(state)) < 8 * (triangles + 2 * len(state.repeats.hashes)) + 4000


def test_the_sum_and_its_sketch_pickle_with_their_feature_map():
    again = pickle.loads(pickle.dumps(SUMS))
    sketch = again.finish(again.add(again.zero(), ROWS))
    same_sums(sketch, SUMS.finish(added(ROWS)))
    moved = pickle.loads(pickle.dumps(sketch))
    same_sums(moved, sketch)
    moved.check_comparable(SUMS.finish(SUMS.zero()))


COLUMNS = {
    "lists": lambda rows: rows.tolist(),
    "column of arrays": lambda rows: pd.Series([*rows]).to_numpy(),
    "pandas": lambda rows: pd.Series([*rows]),
    "tensor": lambda rows: torch.from_numpy(rows).requires_grad_(),
    "Arrow lists": lambda rows: pa.array(rows.tolist(), pa.list_(pa.float32())),
    "Arrow lists of one size": lambda rows: pa.array(rows.tolist(), pa.list_(pa.float32(), DIM)),
    "part of an Arrow column": lambda rows: pa.array([*rows[:3].tolist(), *rows.tolist()], pa.list_(pa.float32()))[3:],
    "chunks": lambda rows: pa.chunked_array([pa.array(part.tolist()) for part in (rows[:30], rows[30:])]),
    "memory that is only lent": lambda rows: np.frombuffer(rows.tobytes(), np.float32).reshape(-1, DIM),
}


@pytest.mark.parametrize("form", COLUMNS)
def test_columns_of_engines_are_embeddings(form):
    made = SUMS.add(SUMS.zero(), COLUMNS[form](ROWS[:100]), ids=pa.array(IDS[:100]), groups=pd.Series(PROMPTS[:100]))
    same_sums(SUMS.finish(made), SUMS.finish(added(ROWS[:100], ids=IDS[:100], groups=PROMPTS[:100])))


@pytest.mark.parametrize(
    "empty", [[], np.empty((0, DIM), np.float32), np.empty(0, object), pa.array([], pa.list_(pa.float32()))]
)
def test_an_empty_batch_adds_nothing(empty):
    state = added(ROWS[:100])
    assert SUMS.add(state, empty, ids=[], groups=[]) is state
    assert SUMS.combine(state, SUMS.zero()).n == 100
    assert SUMS.finish(SUMS.zero()).n == 0


def test_missing_groups_stand_for_themselves():
    groups = ["a", "a", None, np.nan, "", "b"]
    sketch = SUMS.finish(SUMS.add(SUMS.zero(), ROWS[:6], groups=groups))
    assert (sketch.squared_sizes, sketch.groups) == (4 + 1 + 3, "group")


def test_embeddings_without_ids_may_repeat_and_ids_may_not():
    twice = SUMS.finish(added(ROWS[:100], added(ROWS[:100])))
    assert twice.n == 200 and len({*twice.sample.ids}) == 200
    assert twice.held().n == 200
    state = added(ROWS[:100], ids=IDS[:100])
    with pytest.raises(fe.DataError, match=r"the id '\d+\.png' came 2 times"):
        SUMS.finish(SUMS.combine(state, added(ROWS[50:150], ids=IDS[50:150])))


def test_compare_takes_sums_as_it_takes_sketches():
    moved = ROWS[:700].copy()
    moved[:200] += 4
    sets, sums = (moved, ROWS[700:1400]), fe.SketchSum(reference=ROWS[:500], features=40)
    by_sums = fe.compare(*(sums.finish(sums.add(sums.zero(), rows, ids=IDS[:700])) for rows in sets))
    given = (fe.EmbeddingSet(rows, IDS[:700]) for rows in sets)
    by_sketches = fe.compare(*(fe.Sketch.of(one, sums.feature_map, precision="float64") for one in given))
    assert by_sums.spectrum.over[0] > 0.05
    np.testing.assert_allclose(by_sums.spectrum.over, by_sketches.spectrum.over, atol=1e-7)
    assert by_sums.kinds and by_sums.kinds == by_sketches.kinds


def test_a_sketch_gives_its_feature_map_and_space(tmp_path):
    reference = fe.Sketch.reference(ROWS[:500], features=40)
    reference.space = "pixels@00000000"
    reference.save(tmp_path / "ref.h5")
    for given in (reference, tmp_path / "ref.h5"):
        sums = fe.SketchSum(reference=given)
        sketch = sums.finish(sums.add(sums.zero(), ROWS))
        assert (sketch.space, sketch.precision) == ("pixels@00000000", "float64")
        sketch.check_comparable(reference)
    assert fe.SketchSum(reference=ROWS[:500], features=40, space="pixels@1").space == "pixels@1"


OTHER = fe.SketchSum(reference=ROWS[:500], features=40, sample=300, seed=1).zero()

REFUSED = {
    "settings beside a sketch": (
        lambda: fe.SketchSum(fe.Sketch.reference(ROWS, features=40), features=50),
        fe.UsageError,
        "has a feature map",
    ),
    "a column of groups": (lambda: fe.SketchSum(ROWS, groups="prompt"), fe.UsageError, "pass them to add"),
    "another dimension": (lambda: SUMS.add(SUMS.zero(), np.ones((3, 5))), fe.IncompatibleError, r"\(n, 8\)"),
    "NaN": (lambda: SUMS.add(SUMS.zero(), [[np.nan] * DIM]), fe.DataError, "row 0 is not finite"),
    "lists of several lengths": (
        lambda: SUMS.add(SUMS.zero(), pa.array([[1.0, 2.0], [1.0]])),
        fe.DataError,
        "several lengths",
    ),
    "few ids": (lambda: SUMS.add(SUMS.zero(), ROWS[:3], ids=["a"]), fe.DataError, "3 embeddings came with 1 id:"),
    "few values of a column": (
        lambda: SUMS.add(SUMS.zero(), ROWS[:3], columns={"size": [1, 2]}),
        fe.DataError,
        "came with 2 values of the column 'size'",
    ),
    "a column called group": (
        lambda: SUMS.add(SUMS.zero(), ROWS[:3], columns={"group": [1, 2, 3]}),
        fe.UsageError,
        "pass groups=",
    ),
    "columns that are a list": (
        lambda: SUMS.add(SUMS.zero(), ROWS[:3], columns=[1, 2, 3]),
        fe.UsageError,
        "a mapping of columns",
    ),
    "few groups": (lambda: SUMS.add(SUMS.zero(), ROWS[:3], groups=["a"]), fe.DataError, "with 1 group:"),
    "a number": (lambda: SUMS.add(SUMS.zero(), 3), fe.UsageError, "of the type int"),
    "a negative sample": (lambda: fe.SketchSum(ROWS, sample=-5), fe.UsageError, "sample must be .* at least 0, got -5"),
    "missing ids": (lambda: added(ROWS[:3], ids=["a", None, ""]), fe.DataError, "2 of 3 ids are missing"),
    "no state, combined": (lambda: SUMS.combine(SUMS.zero(), None), fe.UsageError, "got NoneType"),
    "no state, finished": (lambda: SUMS.finish([]), fe.UsageError, "got list"),
    "a state of another sum, added to": (lambda: SUMS.add(OTHER, ROWS), fe.IncompatibleError, "another feature map"),
    "a state of another sum, combined": (
        lambda: SUMS.combine(SUMS.zero(), OTHER),
        fe.IncompatibleError,
        "another feature map",
    ),
    "a state of another sum, finished": (lambda: SUMS.finish(OTHER), fe.IncompatibleError, "another feature map"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_added_is_refused(case):
    call, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        call()
