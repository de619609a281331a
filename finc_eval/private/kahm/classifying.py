"""Classification of samples by models, and by other classifiers of the models' own samples, as yardsticks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import ArrayLike

from finc_eval.embeddings.base import ArrayEmbeddings, Embeddings
from finc_eval.embeddings.search.neighbors import nearest
from finc_eval.embeddings.set_info import SetInfo, set_info
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
from finc_eval.private.kahm.models import ClassModels, PreciseRows, precise_rows

EQUAL = 1e-6
"""Distance, as a part of a sample's length, up to which it is one of the models: float32 rounds entries by 6e-8."""


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
    made = classification(
        values,
        classes,
        labels,
        ids=rows.ids_between(0, rows.n),
        units=units_of(rows),
        settings=", ".join(dict.fromkeys(str(party.settings) for party in held)),
        parties=() if isinstance(models, ClassModels) else tuple(models),
        are_own=rows.digest in {party.source for party in held},
    )
    compared = ArrayEmbeddings(samples, CLASSIFIED) if isinstance(rows, PreciseRows) else rows  # type: ignore[arg-type]
    return _with_yardsticks(made, held, compared, labels, set_info(CLASSIFIED, rows, rows.n, rows.digest))


def _with_yardsticks(
    made: Classification, models: Sequence[ClassModels], rows: Embeddings, labels: ArrayLike | None, info: SetInfo
) -> Classification:
    """Return a classification with its set, the number of samples that the models hold, and its yardsticks."""
    names = [row.name for row in made.classes]
    base, owners = _samples_of(models, names)
    device = base.device
    near = nearest(rows, ArrayEmbeddings(base, "samples of the models"), 1, device=device)
    lengths = torch.linalg.vector_norm(base, dim=1).cpu().numpy()[near.indices[:, 0]]
    made = replace(made, set=info, repeated=int((near.distances[:, 0] <= EQUAL * lengths).sum()))
    if made.accuracy is None or made.are_own:
        return made
    means = torch.stack([base[torch.from_numpy(owners == number).to(device)].mean(0) for number in range(len(names))])
    by_mean = nearest(rows, ArrayEmbeddings(means, "means of the classes"), 1, device=device).indices[:, 0]
    known, _ = known_classes(labels, names, made.samples)
    judged, own = known >= 0, nearest_classes(np.asarray(made.distances))
    units = among(units_of(rows), judged)
    others = {"nearest class mean": by_mean, "nearest sample": owners[near.indices[:, 0]]}
    yardsticks = [
        _yardstick(name, (own == known)[judged], (codes == known)[judged], units) for name, codes in others.items()
    ]
    return replace(made, yardsticks=tuple(yardsticks))


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
