"""AuthPct (Alaa et al., ICML 2022, arXiv 2102.08921): percentage of generated samples that copy no training sample.

A generated sample is authentic if its nearest training sample has a neighbor in the training set that is nearer still:
the generated sample then lies as far from the training set as training samples lie from each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.run import Run
from finc_eval.embeddings.opening import open_pair
from finc_eval.embeddings.search.neighbors import (
    check_enough,
    index_signature,
    least_recall,
    nearest,
    radii,
    recall_notes,
)
from finc_eval.estimates.estimate import units_of
from finc_eval.estimates.shares import share_interval
from finc_eval.measures.inputs import Metric, MetricInputs
from finc_eval.measures.score import Score
from finc_eval.numerics.names import SearchIndex


@dataclass(frozen=True, eq=False)
class Authenticity:
    """Distances that decide which generated samples are authentic."""

    # distance of each generated sample to its nearest training sample, shape (n,); 0 for exact copies
    distances: NDArray[np.float64]
    # distance of that training sample to its nearest neighbor in the training set, shape (n,)
    spacings: NDArray[np.float64]
    recall: float | None = None  # share of the exact neighbors that were found; None if all are exact
    # number of the unit of each sample, such as a video, shape (n,); None where each is its own
    units: NDArray[np.int64] | None = None

    @property
    def authentic(self) -> NDArray[np.bool_]:
        """Authentic samples, as a mask of shape (n,). An exact copy is never authentic."""
        return self.distances > self.spacings

    @property
    def percent(self) -> float:
        """Percentage of authentic samples.

        A perfect generator reads as fresh real samples do, which is 50 to 70 and has to be measured. Copies read
        lower. Samples far from all training samples, even bad samples, read higher.
        """
        return 100 * float(self.authentic.mean())

    @property
    def copies(self) -> int:
        """Number of samples with the same embedding as a training sample."""
        return int((self.distances == 0).sum())

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return Wilson's interval of the percentage, over other generated samples and the same training set.

        Samples of a group count as one as far as they are alike.
        """
        low, high = share_interval(self.authentic, self.units, confidence)
        return 100 * low, 100 * high


def authpct(gen: object, train: object, *, run: Run | None = None, index: SearchIndex = "exact") -> Authenticity:
    """Compute AuthPct as dgm-eval does. The code of the authors of FLD subtracts 50 from it.

    A sample x is authentic if d(x, t) > d(t, t'), where t is the training sample nearest to x and t' the one nearest to
    t. If the training set contains duplicates (t' = t), near copies of these are not detected: remove them first.
    """
    x, y = open_pair(gen, train, names=("gen", "train"))
    check_enough(y, 1)
    device = Run.of(run).torch_device
    nearest_of_train, spacings = nearest(x, y, 1, device=device, index=index), radii(y, 1, device, index)
    recall = least_recall(nearest_of_train.recall, spacings.recall)
    return Authenticity(
        nearest_of_train.distances[:, 0], np.sqrt(spacings.squared[nearest_of_train.indices[:, 0]]), recall, units_of(x)
    )


def _authpct(inputs: MetricInputs) -> list[Score]:
    result = authpct(*inputs.embeddings(), run=inputs.run, index=inputs.index)
    notes = ["percent; neither end is better: copies read low, and samples unlike all training samples read high"]
    floor = None
    if inputs.test is not None:
        floor = authpct(*inputs.embeddings("test", "ref"), run=inputs.run, index=inputs.index).percent
        notes.append("the floor is the value of the test set")
    if result.copies:
        notes.append(f"{result.copies} of {len(result.distances)} have the same embedding as a training sample")
    notes += recall_notes(result.recall)
    signature = inputs.signature(**dict(index_signature(result.recall)))
    return [Score("authpct", result.percent, signature, interval=result.interval(), floor=floor, notes=tuple(notes))]


METRICS = (
    Metric(
        "authpct",
        "percentage of samples that copy no training sample: --ref is the training set",
        _authpct,
        optional=("test",),
    ),
)
