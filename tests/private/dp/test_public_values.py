"""Private values are matched by their text or number, and a single odd one is not refused."""

import numpy as np
import pytest
import torch

from finc_eval.core.errors import DataError
from finc_eval.private.dp.gaussian_mechanism import class_indices
from finc_eval.private.dp.public_values import column_array, numbers_of


@pytest.mark.parametrize(
    "labels",
    [
        ["1", "0", "7"],
        [1, 0, 7],
        [1.0, 0.0, 7.0],
        ["1.0", " 0", "7.5"],
        [b"1", b"0", b""],
        [True, False, None],
        np.array([1, 0, 7], np.float32),
        np.ma.masked_array([1, 0, 0], [False, False, True]),
        torch.tensor([1, 0, 7]),
        [1, "0", np.nan],
    ],
)
def test_a_label_is_its_text_or_its_number_and_one_that_is_not_listed_counts_as_nothing(labels):
    assert class_indices(labels, ["0", "1"], 3).tolist() == [1, 0, -1]


def test_truth_values_are_listed_as_words_or_as_numbers():
    assert class_indices([True, False], ["False", "True"], 2).tolist() == [1, 0]


def test_values_that_are_one_number_are_told_apart_by_their_text():
    assert class_indices(["1", "1.0", "1.00"], ["1", "1.0"], 3).tolist() == [0, 1, -1]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1], "labels: the values are numbers .int64., and the public list has none, only 'cat' and 'dog'"),
        ([True, False], "the values are numbers .bool."),
        ([[1, 0], [0, 1]], "one value per record, shape .n,., got shape .2, 2."),
        ([[1], [0, 1]], "one value per record, got lists of several lengths"),
        ([1j, 2j], "numbers or texts, got values of the type complex128"),
        (["cat"], "2 samples came with 1 label"),
    ],
)
def test_labels_of_a_form_that_no_class_has_are_refused(labels, message):
    with pytest.raises(DataError, match=message):
        class_indices(labels, ["cat", "dog"], 2)


def test_numbers_are_read_from_texts_and_what_is_none_is_nan():
    found = numbers_of(column_array(["18", " 2.5 ", "old", "", None, b"7"], "column age"))
    np.testing.assert_array_equal(found, [18, 2.5, np.nan, np.nan, np.nan, 7])
