"""Arrays as embeddings: all that numpy can hold, or one sentence on what is in the way."""

import numpy as np
import pytest

from finc_eval.core.errors import DataError, UsageError
from finc_eval.embeddings.base import ArrayEmbeddings

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


def rows_of(array):
    return np.concatenate([batch.rows.numpy() for batch in ArrayEmbeddings(array, "gen").batches(3)])


@pytest.mark.parametrize(
    "array",
    [
        ROWS[::-1][::-1][::-1],
        ROWS[::-1].astype(">f4"),
        ROWS[::-1].astype(np.longdouble),
        ROWS[::-1].astype(np.float64).tolist(),
        np.asfortranarray(ROWS[::-1]),
        np.ma.masked_array(ROWS[::-1], mask=False),
        np.lib.stride_tricks.as_strided(ROWS[::-1].copy(), writeable=False),
    ],
    ids=["reversed", "byte order", "long double", "lists", "by column", "nothing masked", "read-only"],
)
def test_every_layout_of_numbers_is_read(array):
    np.testing.assert_array_equal(rows_of(array), ROWS[::-1])


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (ROWS.astype(object), "gen is an array of Python objects, not of numbers: convert it with x.astype"),
        (ROWS.astype(str), "gen is an array of values of the type <U32, not of numbers"),
        (np.ma.masked_array(ROWS, ROWS > 9), "gen has 2 masked entries, which embeddings cannot have"),
        ([[1.0], [1.0, 2.0]], r"gen must be an array of embeddings, shape \(n, d\), got a list that is not one"),
        (None, "gen must be an array of embeddings, a cache or its path, got NoneType"),
        (ROWS.astype(int), "must be floating-point embeddings, got torch.int64: pass floats"),
    ],
)
def test_what_is_no_array_of_numbers_is_told(array, message):
    with pytest.raises(UsageError, match=message):
        ArrayEmbeddings(array, "gen")


def test_a_number_beyond_float32_is_not_called_infinite():
    rows = ROWS.astype(np.float64)
    rows[2, 1] = 1e200
    with pytest.raises(DataError, match=r"row 2 has the entry 1e\+200, more than float32 can hold .*: scale"):
        rows_of(rows)
    rows[1, 1] = np.inf
    with pytest.raises(DataError, match="row 1 is not finite"):
        rows_of(rows)
