"""KAHM models as a scikit-learn classifier, and in files."""

from __future__ import annotations

import h5py
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from finc_eval.core.errors import FincEvalError
from finc_eval.private.kahm.classifier import KahmClassifier
from finc_eval.private.kahm.files import load_models, save_models
from finc_eval.private.kahm.models import fit_classes
from finc_eval.private.kahm.settings import KahmSettings

X, Y = load_digits(return_X_y=True)
X = X / 16


@pytest.mark.one_of_each(by=lambda case: case.partition("check_")[2])
@parametrize_with_checks([KahmClassifier(), KahmClassifier(components=3, depth=2, lam=("relative", 1.0))])
def test_every_convention_of_scikit_learn_is_kept(estimator, check):
    check(estimator)


def test_it_takes_its_place_in_scikit_learns_tools():
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    assert cross_val_score(clone(KahmClassifier(10)), X, Y, cv=folds).min() > 0.97


def test_scores_agree_with_distances():
    words = np.array(["even", "odd"])[Y % 2]
    model = KahmClassifier(10).fit(X[:500], words[:500])
    values = model.distances(X[500:600]).values
    assert model.predict(X[500:600]).tolist() == model.classes_[values.argmin(1)].tolist()
    np.testing.assert_array_equal(model.decision_function(X[500:600]) > 0, values[:, 1] < values[:, 0])
    np.testing.assert_allclose(model.score_samples(X[500:600]), -values.min(1))
    assert (model.matching_scores(X[500:600]).argmax(1) == values.argmin(1)).all()


def test_samples_without_a_distance_are_said():
    model = KahmClassifier(20).fit(X[Y == 0], Y[Y == 0])
    too_far = np.full((3, 64), 1e300)  # whose squares overflow
    with pytest.warns(UserWarning, match="3 samples have no distance to any class"):
        model.predict(too_far)


@pytest.mark.parametrize("labels", [Y, np.array([f"digit {label}" for label in Y])], ids=["numbers", "words"])
def test_a_saved_classifier_is_the_same_to_the_last_bit(tmp_path, labels):
    model = KahmClassifier(8, depth=2, lam=("relative", 1.5), branches=2, random_state=3).fit(X[:300], labels[:300])
    model.save(tmp_path / "model.h5")
    again = KahmClassifier.load(tmp_path / "model.h5")
    np.testing.assert_array_equal(again.distances(X[300:400]).values, model.distances(X[300:400]).values)
    assert again.predict(X[300:400]).tolist() == model.predict(X[300:400]).tolist()
    assert again.get_params() == model.get_params() | {"device": "cpu"}


def test_a_file_of_another_kind_is_refused(tmp_path):
    with h5py.File(tmp_path / "other.h5", "w"):
        pass
    with pytest.raises(FincEvalError, match="was not written by finc-eval"):
        load_models(tmp_path / "other.h5")
    with pytest.raises(FincEvalError, match="does not exist"):
        load_models(tmp_path / "none.h5")


def test_models_of_many_branches_keep_their_order(tmp_path):
    few = Y < 2
    models = fit_classes(X[few][:80], Y[few][:80], KahmSettings(2, branches=11))
    save_models(tmp_path / "m.h5", models)
    again = load_models(tmp_path / "m.h5")
    assert again.settings == models.settings and again.classes == models.classes
    assert [len(m.branches) for m in again.models.values()] == [len(m.branches) for m in models.models.values()]


def test_bad_parameters_and_samples_are_refused():
    with pytest.raises(FincEvalError, match="components must be a whole number of at least 1"):
        KahmClassifier(0).fit(X[:10], Y[:10])
    with pytest.raises(ValueError, match="NaN"):
        KahmClassifier().fit(np.full((4, 2), np.nan), [0, 0, 1, 1])
