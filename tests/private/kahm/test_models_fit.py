"""Descriptions of fitted models: machines, sizes, and distances of their own samples and of others."""

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.report import outline


@pytest.fixture(scope="module")
def fitted(digits):
    rows = np.flatnonzero(digits[1] < 2)
    settings = fe.kahm.KahmSettings(components=4, depth=2, branches=2)
    train, test = rows[:80], rows[80:140]
    return fe.kahm.fit_classes(digits[0][train], digits[1][train], settings), train, test


def test_distances_are_medians_to_the_model_of_the_class(fitted, digits):
    models, train, test = fitted
    found = fe.kahm.describe_models(models, digits[0][test], digits[1][test])
    assert [row.name for row in found.classes] == ["0", "1"] and found.samples == 80
    for row, (label, model) in zip(found.classes, models.models.items(), strict=True):
        own, others = (digits[0][rows[digits[1][rows] == label]] for rows in (train, test))
        assert (row.samples, row.branches, row.machines, row.components) == (len(own), 2, 4, 4)
        assert row.own == pytest.approx(np.median(model.distances(own).values), rel=1e-6)
        assert row.held_out == pytest.approx(np.median(model.distances(others).values))
        assert row.held_out_samples == len(others)
        assert row.to_mean == pytest.approx(np.median(np.linalg.norm(own - own.mean(0), axis=1)), rel=1e-6)
        assert row.own < row.held_out


def test_without_others_nothing_is_held_out_and_few_components_are_warned_of(fitted, digits):
    found = fe.kahm.describe_models(fitted[0])
    assert not found.is_judged and "held_out" not in found.says and not outline(found).warnings
    with pytest.warns(UserWarning, match="at most"):
        few = fe.kahm.fit_classes(digits[0][:6], [0, 0, 0, 1, 1, 1], fe.kahm.KahmSettings(9))
    (warning,) = outline(fe.kahm.describe_models(few)).warnings
    assert "fewer than 9 components" in warning


@pytest.mark.parametrize(
    ("others", "labels", "message"),
    [
        (None, ["0"], "pass both"),
        (np.ones((2, 784)), None, "have no labels"),
        (np.ones((2, 784)), ["7", "8"], "no sample of others has a class"),
        (np.ones((2, 784)), ["0"], "1 label"),
    ],
)
def test_others_have_a_class_of_the_models(fitted, others, labels, message):
    with pytest.raises(fe.FincEvalError, match=message):
        fe.kahm.describe_models(fitted[0], others, labels)
