"""KAHM models as a scikit-learn classifier. The only module here that imports scikit-learn: take it where needed."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from finc_eval.kahm.files import load_models, save_models
from finc_eval.kahm.machine import Lambda, Scale, Settings
from finc_eval.kahm.models import ClassModels, Distances, fit_classes, matching_scores, relative_squares


class KahmClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Samples belong to the class whose model is nearest (Kumar, Moser, Fischer, JAIR 79, 2024, Definition 7).

    It keeps scikit-learn's conventions and passes `sklearn.utils.estimator_checks.check_estimator`. There is no
    `predict_proba`: `matching_scores` rank classes and are no probabilities.

    Args:
        components: n, principal components that the kernel sees.
        depth: L, layers of a model.
        lam: λ, see `Settings`.
        scale: what samples count as multiplied by where λ is chosen, see `Settings`.
        branches: S of each class; one for every thousand samples when left out.
        random_state: seed of the k-means that assigns samples to branches.
        device: where it is computed; None for the default one.

    Attributes:
        models_: a `ClassModels`.
        classes_: the labels, sorted.
        n_features_in_: entries of a sample.
    """

    def __init__(
        self,
        components: int = 20,
        depth: int = 1,
        lam: Lambda = "fixed_point",
        scale: Scale = "as_is",
        branches: int | None = None,
        random_state: int = 0,
        device: str | None = "cpu",
    ) -> None:
        self.components = components
        self.depth = depth
        self.lam = lam
        self.scale = scale
        self.branches = branches
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any) -> Self:
        """Make a model of each class.

        Args:
            X: shape (n, p).
            y: labels, shape (n,).

        Raises:
            ValueError: what scikit-learn refuses: NaN, wrong shapes, no labels of classes.
            FincEvalError: a parameter is out of range.
        """
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        settings = Settings(self.components, self.depth, self.lam, self.scale, self.branches, self.random_state)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.models_ = fit_classes(X, codes, settings, self.device)
        return self

    def distances(self, X: Any) -> Distances:
        """Γ of every sample and class, values of shape (n, classes), and how many images were refused."""
        check_is_fitted(self)
        return self.models_.distances(validate_data(self, X, dtype=[np.float64, np.float32], reset=False))

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of the nearest model, shape (n,); of samples without a distance to any, the first, with a warning.

        Warns:
            UserWarning: samples have no image in any model.
        """
        found = self.distances(X)
        if found.undefined:
            warnings.warn(f"{found.undefined} samples have no distance to any class and get the first", stacklevel=2)
        labels: NDArray[Any] = self.classes_[found.values.argmin(1)]
        return labels

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The logarithm of the matching scores, shape (n, classes); of two classes the second minus the first, (n,)."""
        values = -relative_squares(self.distances(X).values)
        return values[:, 1] - values[:, 0] if values.shape[1] == 2 else values

    def matching_scores(self, X: Any) -> NDArray[np.float64]:
        """exp(−Γ_c² / Σ Γ²) of every class (Definition 8), shape (n, classes): a ranking, no probabilities."""
        return matching_scores(self.distances(X).values)

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Minus the least distance to any class, shape (n,): larger for samples like those seen."""
        values: NDArray[np.float64] = -self.distances(X).values.min(1)
        return values

    def save(self, path: str | Path) -> None:
        """Write the models, which hold the samples they were made of, as HDF5.

        Raises:
            FincEvalError: the file cannot be written, or the labels are no strings or numbers.
        """
        check_is_fitted(self)
        named = {label.item(): model for label, model in zip(self.classes_, self.models_.models.values(), strict=True)}
        save_models(path, ClassModels(named, self.models_.settings))

    @classmethod
    def load(cls, path: str | Path, device: str | None = "cpu") -> Self:
        """The classifier in a file that `save` wrote.

        Raises:
            FincEvalError: there is no such file, or it is of another kind or version.
        """
        found = load_models(path, device)
        settings = found.settings
        made = cls(
            settings.components,
            settings.depth,
            settings.lam,
            settings.scale,
            settings.branches,
            settings.seed,
            device,
        )
        made.classes_ = np.array(found.classes)
        made.models_ = ClassModels(dict(enumerate(found.models.values())), settings)
        made.n_features_in_ = next(iter(found.models.values())).dim
        return made
