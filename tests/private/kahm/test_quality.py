"""Accuracy and AUCs of distances to classes, by hand."""

import numpy as np
import pytest

import finc_eval as fe


def test_a_sample_without_a_distance_is_of_no_class():
    distances = [[1.0, 2.0], [np.inf, np.inf], [3.0, 1.0], [np.inf, 4.0]]
    found = fe.kahm.classification_quality(distances, ("a", "b"), ["a", "a", "b", "b"])
    assert found.accuracy == 0.75 and found.n == 4


def test_there_is_a_label_for_each_sample_and_both_sides_of_a_curve():
    with pytest.raises(fe.DataError, match="2 samples came with 1 label"):
        fe.kahm.classification_quality(np.ones((2, 2)), ("a", "b"), ["a"])
    assert fe.kahm.classification_quality([[1.0, 2.0], [1.0, 3.0]], ("a", "b"), ["a", "a"]).aucs == (None, None)
