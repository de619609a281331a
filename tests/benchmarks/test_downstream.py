import numpy as np
import pytest
from _downstream import CLASSIFIER_NAMES, Downstream, downstream, mean_downstream
from sklearn.metrics import balanced_accuracy_score
from sklearn.naive_bayes import GaussianNB

from finc_eval.core.errors import UsageError

QUICK = ("Gaussian naive Bayes", "decision tree")


def clusters(n, classes=2, seed=0, apart=2.0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, n)
    return rng.standard_normal((n, 3)) + apart * labels[:, None], labels


def test_decisions_and_scores_are_measured_apart():
    train, test = clusters(300, seed=1, apart=0.7), clusters(300, seed=2, apart=0.7)
    result = downstream(train, test, ["Gaussian naive Bayes"])["Gaussian naive Bayes"]
    decided = GaussianNB().fit(*train).predict(test[0])
    assert result.accuracy == pytest.approx((decided == test[1]).mean())
    assert result.roc_hard == pytest.approx(balanced_accuracy_score(test[1], decided))
    assert result.roc > result.roc_hard


@pytest.mark.parametrize(
    "images", [False, pytest.param(True, marks=pytest.mark.long)], ids=["tables", "images, Table 10"]
)
def test_every_classifier_of_the_paper_tells_clusters_apart(images):
    pytest.importorskip("xgboost")
    results = downstream(clusters(150, seed=1), clusters(150, seed=2), images=images)
    assert tuple(results) == CLASSIFIER_NAMES
    assert len(CLASSIFIER_NAMES) == 12
    for name, result in results.items():
        assert result.accuracy > 0.75, name
        assert result.roc > 0.8, name


def test_areas_are_for_two_classes_alone():
    result = downstream(clusters(200, 3, seed=1), clusters(200, 3, seed=2), QUICK)["decision tree"]
    assert np.isnan(result.roc)
    assert result.accuracy > 0.7


def test_classes_that_synthetic_data_lack_are_counted_as_missed():
    features, labels = clusters(200, 3, seed=1, apart=5)
    kept = labels != 1
    found = downstream((features[kept], labels[kept]), clusters(300, 3, seed=2, apart=5), QUICK)
    assert mean_downstream(found).accuracy == pytest.approx(2 / 3, abs=0.1)


def test_the_mean_is_over_classifiers():
    one, other = Downstream(1, 1, 1, 1, 1, 1), Downstream(0, 0.5, 0, 0, 0, 0)
    assert mean_downstream({"one": one, "other": other}) == Downstream(0.5, 0.75, 0.5, 0.5, 0.5, 0.5)


def test_unknown_classifiers_and_a_single_class_are_refused():
    with pytest.raises(UsageError, match='did you mean "decision tree"'):
        downstream(clusters(20), clusters(20), ["decision trees"])
    features, labels = clusters(20)
    with pytest.raises(UsageError, match="one class alone"):
        downstream((features, np.zeros_like(labels)), (features, labels), QUICK)
