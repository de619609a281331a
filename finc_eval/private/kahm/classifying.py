"""Classification of samples by models, and by other classifiers of the models' own samples, as yardsticks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import ArrayLike

from finc_eval.embeddings.base import ArrayEmbeddings, Embeddings
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.embeddings.set_info import set_info
from finc_eval.estimates.error_source import Integers
from finc_eval.estimates.estimate import Estimate, units_of
from finc_eval.numerics.inference import least_variance
from finc_eval.private.kahm.classification import (
    CLASSIFIED,
    Classification,
    Mask,
    Yardstick,
    among,
    classification,
    known_classes,
    nearest_classes,
)
from finc_eval.private.kahm.federated import combine, local_distances
from finc_eval.private.kahm.models import ClassModels, PreciseRows, count_repeated, precise_rows


def classify(
    models: ClassModels | Mapping[str, ClassModels], samples: object, labels: ArrayLike | None = None
) -> Classification:
    """Classify samples by their nearest model, of one file of models or of several parties, and judge it by labels.

    Args:
        models: models of classes; of several parties, by the name of each (eq. 104).
        samples: points, shape (n, p): array, tensor, cache or its path.
        labels: true label of each sample, shape (n,), "" if unknown; default: the column "label" of the samples.

    Raises:
        IncompatibleError: the samples have another dimension or extractor than the samples of the models.
        DataError: a row is not finite, or there is not one label for each sample.

    Example:
        >>> import finc_eval as fe
        >>> models = fe.kahm.fit_classes([[0.0], [1.0], [5.0], [6.0]], ["low", "low", "high", "high"])
        >>> found = fe.kahm.classify(models, [[0.4], [0.6], [5.2], [9.0]], ["low", "low", "high", "low"])
        >>> found.accuracy, found.confusions
        (0.75, (Confusion(label='low', nearest='high', samples=1),))
    """
    held = [models] if isinstance(models, ClassModels) else [*models.values()]
    rows = precise_rows(samples, CLASSIFIED)
    if labels is None and "label" in rows.columns:
        labels = rows.column("label")
    if isinstance(models, ClassModels):
        values, classes = models.distances(rows).values, models.classes
    else:
        found = combine([local_distances(party, rows) for party in held])
        values, classes = found.values, found.classes
    compared = ArrayEmbeddings(samples, CLASSIFIED) if isinstance(rows, PreciseRows) else rows  # type: ignore[arg-type]
    base, owners = _samples_of(held, [str(name) for name in classes])
    samples_of_models = ArrayEmbeddings(base, "samples of the models")
    near = nearest(compared, samples_of_models, 1, device=base.device)
    repeated = count_repeated(near, samples_of_models)
    made = classification(
        values,
        classes,
        labels,
        ids=rows.ids_between(0, rows.n),
        units=units_of(rows),
        settings=", ".join(dict.fromkeys(str(party.settings) for party in held)),
        parties=() if isinstance(models, ClassModels) else tuple(models),
        are_own=repeated == rows.n or rows.digest in {party.source for party in held},
    )
    made = replace(made, set=set_info(CLASSIFIED, rows, rows.n, rows.digest), repeated=repeated)
    if made.accuracy is None or made.are_own:
        return made
    return replace(made, yardsticks=_yardsticks(made, compared, labels, base, owners, owners[near.indices[:, 0]]))


def _yardsticks(
    made: Classification,
    rows: Embeddings,
    labels: ArrayLike | None,
    base: torch.Tensor,
    owners: Integers,
    by_sample: Integers,
) -> tuple[Yardstick, ...]:
    """Judge the nearest class mean and the nearest sample of the models, on the labeled samples.

    Samples of the models are `base`, (N, p), with the number of the class of each, `owners`, (N,). `by_sample` is the
    number of the class of the nearest of them, (n,).
    """
    names = [row.name for row in made.classes]
    means = torch.stack(
        [base[torch.from_numpy(owners == number).to(base.device)].mean(0) for number in range(len(names))]
    )
    by_mean = nearest(rows, ArrayEmbeddings(means, "means of the classes"), 1, device=base.device).indices[:, 0]
    known, _ = known_classes(labels, names, made.samples)
    judged, own = known >= 0, nearest_classes(np.asarray(made.distances))
    units = among(units_of(rows), judged)
    others = {"nearest class mean": by_mean, "nearest sample": by_sample}
    return tuple(
        _yardstick(name, (own == known)[judged], (codes == known)[judged], units) for name, codes in others.items()
    )


def _samples_of(models: Sequence[ClassModels], names: Sequence[str]) -> tuple[torch.Tensor, Integers]:
    """Return the samples that models hold, (N, p) in float32, and the number of the class of each, (N,)."""
    parts, owners = [], []
    for party in models:
        for label, model in party.models.items():
            for layers in model.branches:
                parts.append(layers[0].samples().float())
                owners.append(np.full(layers[0].n, names.index(str(label))))
    return torch.cat(parts), np.concatenate(owners)


def _yardstick(name: str, own: Mask, other: Mask, units: Integers | None) -> Yardstick:
    """Return a yardstick, from which samples the nearest model and the yardstick recognize, (n,) each."""
    paired = own.astype(float) - other
    found = Estimate.of_mean(paired, units, least=least_variance(paired, (-1.0, 1.0)))
    return Yardstick(name, float(other.mean()), found.value, found.within(-1.0, 1.0))
