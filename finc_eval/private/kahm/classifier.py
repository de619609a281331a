"""KAHM models as a scikit-learn classifier. No other module of this folder imports scikit-learn, which is slow."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from finc_eval.private.kahm.files import load_models, save_models
from finc_eval.private.kahm.models import Distances, fit_classes, matching_scores, relative_squares
from finc_eval.private.kahm.settings import KahmSettings, Lambda


class KahmClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Classifier by the nearest model of a class (Kumar, Moser, Fischer, JAIR 79, 2024, Definition 7).

    It keeps scikit-learn's conventions and passes `sklearn.utils.estimator_checks.check_estimator`. There is no
    `predict_proba`, because `matching_scores` rank classes and are not probabilities.

    Args:
        components: n, number of principal components that the kernel sees.
        depth: L, number of layers of a model.
        lam: λ, see `KahmSettings`.
        branches: S, number of branches of each class; default: one for every thousand samples.
        random_state: random seed of the k-means that assigns samples to branches.
        device: device of the computation; None for CUDA if available.

    Attributes:
        models_: models of the classes, a `ClassModels`.
        classes_: labels, sorted.
        n_features_in_: number of entries of a sample.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> gen, ref = example_sets(300)
        >>> labels = ref.mean(1) > 0.13
        >>> model = fe.kahm.KahmClassifier(components=10).fit(ref[:200], labels[:200])
        >>> bool((model.predict(ref[200:]) == labels[200:]).mean() > 0.8)
        True
    """

    def __init__(
        self,
        components: int = 20,
        depth: int = 1,
        lam: Lambda = "fixed_point",
        branches: int | None = None,
        random_state: int = 0,
        device: str | None = "cpu",
    ) -> None:
        self.components = components
        self.depth = depth
        self.lam = lam
        self.branches = branches
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any) -> Self:
        """Make a model of each class.

        Args:
            X: samples, shape (n, p).
            y: labels, shape (n,).

        Raises:
            ValueError: scikit-learn refuses the arrays: NaN, a wrong shape, or labels that are not classes.
            UsageError: a parameter is out of range.
        """
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        settings = KahmSettings(self.components, self.depth, self.lam, self.branches, self.random_state)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.models_ = fit_classes(X, codes, settings, device=self.device)
        return self

    def distances(self, X: Any) -> Distances:
        """Return Γ of every sample and class, values of shape (n, classes), and the number of refused images."""
        check_is_fitted(self)
        return self.models_.distances(validate_data(self, X, dtype=[np.float64, np.float32], reset=False))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of the nearest model, shape (n,); the first label if a sample has no distance to any.

        Warns:
            UserWarning: samples have no distance to any class.
        """
        distances = self.distances(X)
        if distances.undefined:
            warnings.warn(
                f"{distances.undefined} samples have no distance to any class and get the first", stacklevel=2
            )
        labels: NDArray[Any] = self.classes_[distances.values.argmin(1)]
        return labels

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the log of the matching scores, shape (n, classes); for two classes second minus first, shape (n,)."""
        values = -relative_squares(self.distances(X).values)
        return values[:, 1] - values[:, 0] if values.shape[1] == 2 else values

    def matching_scores(self, X: Any) -> NDArray[np.float64]:
        """Return exp(−Γ_c² / Σ Γ²) for every class (Definition 8), shape (n, classes). They are not probabilities."""
        return matching_scores(self.distances(X).values)

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return minus the least distance to any class, shape (n,): larger for samples like the fitted samples."""
        values: NDArray[np.float64] = -self.distances(X).values.min(1)
        return values

    def save(self, path: str | Path) -> None:
        """Write the models, which hold the samples they were made of, to an HDF5 file.

        Raises:
            DataError: the file cannot be written, or the labels are not strings or numbers.
        """
        check_is_fitted(self)
        named = {label.item(): model for label, model in zip(self.classes_, self.models_.models.values(), strict=True)}
        save_models(path, replace(self.models_, models=named))

    @classmethod
    def load(cls, path: str | Path, device: str | None = "cpu") -> Self:
        """Read a classifier that `save` wrote.

        Raises:
            DataError: the file does not exist, or has another type or layout.
        """
        models = load_models(path, device=device)
        settings = models.settings
        made = cls(settings.components, settings.depth, settings.lam, settings.branches, settings.seed, device)
        made.classes_ = np.array(models.classes)
        made.models_ = replace(models, models=dict(enumerate(models.models.values())))
        made.n_features_in_ = next(iter(models.models.values())).dim
        return made
