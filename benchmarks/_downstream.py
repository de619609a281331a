"""The value of synthetic data: classifiers trained on them, tested on real data (the DP-HP paper's Table 2).

The paper's code scores hard decisions. The area under the ROC curve is then the balanced accuracy, and the area under
the precision-recall curve a single corner. Both are given: `_hard` as in the paper, and from scores.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from finc_eval.core.errors import UsageError, check_choice
from finc_eval.core.progress import Progress, silent

CLASSIFIER_NAMES = (
    "logistic regression",
    "Gaussian naive Bayes",
    "Bernoulli naive Bayes",
    "linear SVM",
    "decision tree",
    "linear discriminant analysis",
    "AdaBoost",
    "bagging",
    "random forest",
    "gradient boosting",
    "MLP",
    "XGBoost",
)
"""The twelve classifiers of the paper; the last needs the extra "classifiers"."""


@dataclass(frozen=True)
class Downstream:
    """Performance of a classifier on real data, or the mean of several.

    Attributes:
        accuracy: share of right decisions.
        f1: mean over classes, weighted by their size.
        roc, prc: area under the ROC and the precision-recall curve, from scores; NaN for more than two classes.
        roc_hard, prc_hard: the same areas from decisions, 0 or 1.
    """

    accuracy: float
    f1: float
    roc: float
    prc: float
    roc_hard: float
    prc_hard: float


def downstream(
    train: tuple[np.ndarray, np.ndarray],
    test: tuple[np.ndarray, np.ndarray],
    names: Sequence[str] = CLASSIFIER_NAMES,
    *,
    images: bool = False,
    seed: int = 0,
    progress: Progress = silent,
) -> dict[str, Downstream]:
    """Train each classifier with the settings of the paper, and test it.

    Args:
        train: features (n, d) and classes (n,), usually synthetic, of at least two classes.
        test: real features and classes.
        names: names of classifiers.
        images: use the settings of the paper's Table 10, for images; default: those of its code for tables.
        seed: random seed of the classifiers.
        progress: called after every classifier.

    Raises:
        UsageError: a name is unknown, XGBoost is not installed, or the training data have one class only.
    """
    if len(np.unique(train[1])) < 2:
        raise UsageError(f"a classifier cannot be trained on one class alone, got {np.unique(train[1]).tolist()}")
    results = {}
    for done, name in enumerate(names):
        results[name] = _tested(_classifier(name, images, seed), train, test)
        progress("classifiers", done + 1, len(names))
    return results


def mean_downstream(results: dict[str, Downstream]) -> Downstream:
    """Average over classifiers, which is what the paper reports."""
    means = {
        field.name: float(np.mean([getattr(one, field.name) for one in results.values()]))
        for field in fields(Downstream)
    }
    return Downstream(**means)


def _tested(classifier: Any, train: tuple[np.ndarray, np.ndarray], test: tuple[np.ndarray, np.ndarray]) -> Downstream:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import accuracy_score, average_precision_score, f1_score, roc_auc_score

    # Classes without gaps, which XGBoost insists on.
    present, known = np.unique(train[1], return_inverse=True)
    features, truth = test
    with warnings.catch_warnings():
        # As many iterations as in the paper, whether or not they suffice; constant columns are expected.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        classifier.fit(train[0], known)
        decided = present[classifier.predict(features)]
    areas = [float("nan")] * 4
    if len(present) == 2:
        positive, chosen = truth == present[1], decided == present[1]
        scores = _scores(classifier, features)
        areas = [
            float(area(positive, one)) for one in (scores, chosen) for area in (roc_auc_score, average_precision_score)
        ]
    return Downstream(
        float(accuracy_score(truth, decided)), float(f1_score(truth, decided, average="weighted")), *areas
    )


def _scores(classifier: Any, features: np.ndarray) -> np.ndarray:
    """Return numbers that are larger for the second class: a margin, or its probability."""
    if hasattr(classifier, "decision_function"):
        margins: np.ndarray = classifier.decision_function(features)
        return margins
    probabilities: np.ndarray = classifier.predict_proba(features)[:, 1]
    return probabilities


def _classifier(name: str, images: bool, seed: int) -> Any:
    from sklearn import ensemble, naive_bayes, neural_network, svm, tree
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import LogisticRegression

    makers: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
        # Class, settings for tables, settings for images.
        "logistic regression": (LogisticRegression, {"max_iter": 1000}, {"max_iter": 5000}),
        "Gaussian naive Bayes": (naive_bayes.GaussianNB, {}, {}),
        "Bernoulli naive Bayes": (naive_bayes.BernoulliNB, {"alpha": 0.02}, {"binarize": 0.5}),
        "linear SVM": (svm.LinearSVC, {}, {"max_iter": 10_000, "tol": 1e-8, "loss": "hinge"}),
        "decision tree": (tree.DecisionTreeClassifier, {}, {"class_weight": "balanced"}),
        "linear discriminant analysis": (
            LinearDiscriminantAnalysis,
            {},
            {"solver": "eigen", "tol": 1e-8, "shrinkage": 0.5},
        ),
        "AdaBoost": (ensemble.AdaBoostClassifier, {}, {"n_estimators": 1000, "learning_rate": 0.7}),
        "bagging": (ensemble.BaggingClassifier, {}, {"max_samples": 0.1, "n_estimators": 20}),
        "random forest": (ensemble.RandomForestClassifier, {}, {"n_estimators": 100, "class_weight": "balanced"}),
        "gradient boosting": (ensemble.GradientBoostingClassifier, {}, {"subsample": 0.1, "n_estimators": 50}),
        "MLP": (neural_network.MLPClassifier, {}, {}),
        "XGBoost": (_xgboost, {}, {"colsample_bytree": 0.1, "n_estimators": 50}),
    }
    check_choice("classifier", name, CLASSIFIER_NAMES)
    make, tables, pictures = makers[name]
    made = make(**(pictures if images else tables))
    return made.set_params(random_state=seed) if "random_state" in made.get_params() else made


def _xgboost(**settings: Any) -> Any:
    try:
        from xgboost import XGBClassifier
    except ImportError:
        raise UsageError('XGBoost is not installed: pip install "finc-eval[classifiers]"') from None
    return XGBClassifier(n_jobs=1, **settings)
