"""`SketchSettings`: which feature map a reference set gets, the precision of its covariance, and its groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypedDict

from finc_eval.core.errors import UsageError, check_choice, check_count, check_positive, check_seed
from finc_eval.core.record import Configured, about
from finc_eval.numerics.names import FREQUENCIES, KERNELS, PRECISIONS, Frequencies, Kernel, Precision

MAX_COVARIANCE_FEATURES = 20_000
"""Features, two for each frequency, up to which their covariance is kept; it takes 1.6 GB for each fold."""

Groups = Annotated[
    str | None,
    about(
        "metadata column that names the groups: samples of one group are not independent; default: windows of a video "
        "by their video; comparisons also group exact repeats"
    ),
]

GroupArrays = Sequence[Any] | Mapping[str, Any]
"""Groups of the samples of sets that are arrays, by label or in the order of the sets, instead of a column."""

ByColumn = Annotated[
    str | None, about("metadata column, such as label, whose values are also compared by their shares")
]

PairColumn = Annotated[
    str | None,
    about(
        "metadata column that pairs the sets, such as prompt: differences are taken within its values; default: the "
        "column of groups, if all sets share its values"
    ),
]


@dataclass(frozen=True)
class SketchSettings(Configured):
    """Settings of a sketch. A sketch that exists brings its own feature map, which overrides them.

    Raises:
        UsageError: a value is out of range.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> fe.Sketch.reference(example_sets(300)[1], fe.SketchSettings(features=200)).feature_map.features
        200
    """

    table: ClassVar[str] = "sketch"

    kernel: Annotated[
        Kernel,
        about(
            "gaussian distinguishes samples by distance, at the scale of sigma; cosine by angle alone: it is exact and "
            "has neither bandwidth nor frequencies"
        ),
    ] = "gaussian"
    sigma: Annotated[
        float | None, about("bandwidth of the Gaussian kernel; default: half the reference's median pairwise distance")
    ] = None
    features: Annotated[
        int | Literal["auto"],
        about(
            "number of random frequencies: more is more exact, and slower; auto takes 1000, 2000 or 4000, the first "
            "whose measured error of the kernel is within 0.01"
        ),
    ] = 2000
    frequencies: Annotated[
        Frequencies,
        about(
            "how the frequencies are drawn: orthogonal in groups, which is more exact, or iid, independently, as in "
            "Algorithm 1 of FINC's paper"
        ),
    ] = "orthogonal"
    seed: Annotated[int, about("random seed of the frequencies")] = 0
    precision: Annotated[
        Precision,
        about(
            "precision of the covariances: the sums of shards in float64 are those of one process; float64 is slower"
        ),
    ] = "float32"
    groups: Groups = None

    def __post_init__(self) -> None:
        check_choice("kernel", self.kernel, KERNELS)
        check_choice("frequencies", self.frequencies, FREQUENCIES)
        check_choice("precision", self.precision, PRECISIONS)
        if isinstance(self.features, str) and self.features != "auto":
            raise UsageError(f'features must be a positive number or "auto", got {self.features!r}')
        if self.kernel == "cosine" and self.sigma is not None:
            raise UsageError(f"sigma {self.sigma} was given, but the cosine kernel has no bandwidth: leave it out")
        features: int | Literal["auto"] = "auto" if self.features == "auto" else check_count("features", self.features)
        # Frequencies alone take gigabytes long before a sketch is made of them.
        if self.kernel == "gaussian" and isinstance(features, int) and 2 * features > MAX_COVARIANCE_FEATURES:
            raise UsageError(
                f"features must be at most {MAX_COVARIANCE_FEATURES // 2:,}, whose covariance takes 1.6 GB for each of "
                f"two folds, got {features:,}"
            )
        self._store(
            seed=check_seed(self.seed),
            sigma=None if self.sigma is None else check_positive("sigma", self.sigma),
            features=features,
        )


class SketchOptions(TypedDict, total=False):
    """The fields of `SketchSettings` as keywords of a function."""

    kernel: Kernel
    sigma: float | None
    features: int | Literal["auto"]
    frequencies: Frequencies
    seed: int
    precision: Precision
    groups: str | GroupArrays | None


def check_size(size: int) -> None:
    """Raise UsageError if a feature map has more features than a sketch keeps the covariance of."""
    if size > MAX_COVARIANCE_FEATURES:
        raise UsageError(
            f"the feature map has {size:,} features, and a sketch keeps the covariance of at most "
            f"{MAX_COVARIANCE_FEATURES:,}: take fewer features or a lower order"
        )
