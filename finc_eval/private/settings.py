"""Settings of private releases and of syntheses, and the methods: features to release, and weights in the fit."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from math import inf
from typing import Annotated, ClassVar, Literal, TypedDict, get_args

from finc_eval.core.errors import UsageError, check_choice, check_count, check_fraction, check_positive, check_seed
from finc_eval.core.memory import check_list
from finc_eval.core.record import Record, about, by_name
from finc_eval.private.dp.guarantee import Adjacency, Bound, Guarantee


@dataclass(frozen=True, kw_only=True)
class PrivacySettings(Record):
    """Budget of one private release, and the name of the data set in the ledger.

    Raises:
        UsageError: a value is out of range.
    """

    epsilon: Annotated[float, about("ε of the guarantee; all of it is spent")]
    delta: Annotated[float, about("δ of the guarantee, well below one over the number of records")] = 1e-5
    name: Annotated[
        str | None, about("name of the data set in the ledger, shared with its subsets and altered copies")
    ] = None
    max_undescribed: Annotated[
        float,
        about("largest share of records whose value of a column or class may be undescribed, else nothing is spent"),
    ] = 0.01

    def __post_init__(self) -> None:
        guarantee = self.guarantee  # refuses values that are out of range
        most = check_fraction("max_undescribed", self.max_undescribed, zero=True, one=True)
        self._store(epsilon=guarantee.epsilon, delta=guarantee.delta, max_undescribed=most)

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee to each record, for a record that is replaced."""
        return Guarantee.of(self.epsilon, self.delta)


class PrivacyOptions(TypedDict, total=False):
    """The fields of `PrivacySettings` as keywords of a function."""

    epsilon: float
    delta: float
    name: str | None
    max_undescribed: float


@dataclass(frozen=True, kw_only=True)
class ReleaseSettings(PrivacySettings):
    """Budget and sensitivity of a private sketch. Each field is also a keyword of `release_sketch`.

    Raises:
        UsageError: a value is out of range.

    Example:
        >>> import finc_eval as fe
        >>> settings = fe.privacy.ReleaseSettings(epsilon=1, name="ward 7")
        >>> settings.delta, settings.adjacency
        (1e-05, 'replace')
    """

    adjacency: Annotated[
        Adjacency, about("neighboring data sets: one record is replaced by another, or counts as nothing (zero-out)")
    ] = "replace"

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee to each record."""
        return Guarantee.of(self.epsilon, self.delta, self.adjacency)


class ReleaseOptions(PrivacyOptions, total=False):
    """The fields of `ReleaseSettings` as keywords of a function."""

    adjacency: Adjacency


SynthesisName = Literal["dp-hp", "dp-hp-few", "dp-hp-paper", "dp-merf"]
ImageDataSet = Literal["mnist", "fashion-mnist"]

FREQUENCIES = 1000  # number of random frequencies, as in the code of DP-MERF for discretized tables: 2 000 features


@dataclass(frozen=True)
class Named(Record):
    """A method that prints as its name, with the parameters that are not the default.

    Attributes:
        bound: bound of the sensitivity that it accounts for.
        until: discrepancy at which its fit ends; 0 for a fit of all steps.
    """

    bound: ClassVar[Bound] = "tight"
    until: ClassVar[float] = 1.0

    def __str__(self) -> str:
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "name"}
        changed = [f"{key}={value}" for key, value in given.items() if value != getattr(type(self), key)]
        return f"{self.name}({', '.join(changed)})" if changed else str(self.name)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class DpHp(Named):
    """DP-HP with the Hermite features that served best: of degree 2 in all columns, or bounded moments of images."""

    name: Literal["dp-hp"] = "dp-hp"


@dataclass(frozen=True)
class DpHpFew(Named):
    """First moments alone, for tables of a few hundred records."""

    name: Literal["dp-hp-few"] = "dp-hp-few"


@dataclass(frozen=True)
class DpHpPaper(Named):
    """DP-HP as in its paper: a sum kernel of high order, and product kernels of a few random columns or pixels.

    Defaults are those of the published code, for tables of its data set adult, and for images of mnist. They are the
    paper's Tables 6 and 9, with the epochs and the split of the budget, which the paper does not print.

    A product of D columns to the order C has (C+1)^D features. The fit takes all of its steps: among a million numbers,
    nearly all of them noise, a generator that misses the columns altogether has a discrepancy of 1.

    Raises:
        UsageError: a value is out of range.

    Example:
        >>> import finc_eval as fe
        >>> str(fe.privacy.DpHpPaper(product_order=10, product_columns=7))
        'dp-hp-paper(product_order=10, product_columns=7)'
    """

    bound: ClassVar[Bound] = "paper"
    until: ClassVar[float] = 0.0

    sum_order: Annotated[
        int, about("order of the sum kernel; default: that of the published code (Tables 6 and 9)")
    ] = 100
    product_order: Annotated[
        int | None, about("order of the products; default: of the published code, 5 for tables (adult), 20 for images")
    ] = None
    product_columns: Annotated[
        int | None,
        about("columns or pixels of a product; default: of the published code, 5 for tables (adult), 2 for images"),
    ] = None
    draws: Annotated[
        int | None,
        about("number of products, one an epoch; default: of the published code, 20 for tables (adult), 10 for images"),
    ] = None
    sum_share: Annotated[
        float | None,
        about("share of the budget for the sum kernel; default: of the published code, 0.6 for tables, 0.8 for images"),
    ] = None
    gamma: Annotated[
        float | None,
        about(
            "γ, weight of the products in the fit of tables (eq. 16), and of the sum in the fit of images (Section "
            "H.2); default: of the published code, 0.1 for tables (adult), 20 for mnist and 10 for fashion-mnist"
        ),
    ] = None
    data_set: Annotated[ImageDataSet, about("data set of Table 9 whose length scales the kernels of pixels have")] = (
        "mnist"
    )
    name: Literal["dp-hp-paper"] = "dp-hp-paper"

    def __post_init__(self) -> None:
        counts = {name: getattr(self, name) for name in ("sum_order", "product_order", "product_columns", "draws")}
        self._store(**{name: check_count(name, value) for name, value in counts.items() if value is not None})
        if self.sum_share is not None:
            self._store(sum_share=check_fraction("sum_share", self.sum_share))
        if self.gamma is not None:
            self._store(gamma=check_positive("gamma", self.gamma))
        check_choice("data_set", self.data_set, get_args(ImageDataSet))


@dataclass(frozen=True)
class DpMerf(Named):
    """DP-MERF: random Fourier features (Harder et al., arXiv 2002.11603).

    Raises:
        UsageError: the number of frequencies is not a whole number of at least 1.

    Example:
        >>> import finc_eval as fe
        >>> fe.privacy.DpMerf().frequencies
        1000
    """

    frequencies: Annotated[int, about("number of random frequencies; there are twice as many features")] = FREQUENCIES
    name: Literal["dp-merf"] = "dp-merf"

    def __post_init__(self) -> None:
        self._store(frequencies=check_count("frequencies", self.frequencies))


AnySynthesis = DpHp | DpHpFew | DpHpPaper | DpMerf
SYNTHESIS_METHODS: dict[str, type[AnySynthesis]] = {cls.name: cls for cls in get_args(AnySynthesis)}
"""The methods by name, in the order shown to users."""


NetworkName = Literal["smooth", "fully-connected", "convolutional"]


@dataclass(frozen=True, kw_only=True)
class SynthesisSettings(PrivacySettings):
    """Budget and method of a synthetic table. Each field is also a keyword of `synthesize_table`.

    With epsilon=math.inf no noise is added. That is a baseline to compare with, it is not private, and a ledger refuses
    it.

    Raises:
        UsageError: a value is out of range.

    Example:
        >>> import finc_eval as fe
        >>> settings = fe.privacy.SynthesisSettings(epsilon=1, method="dp-hp-few", count=500)
        >>> settings.steps, round(settings.guarantee.mu, 4)
        (300, 0.2681)
    """

    method: Annotated[
        AnySynthesis,
        about(
            "features to release: dp-hp, ours; dp-hp-few, first moments alone, for a table of a few hundred records; "
            "dp-hp-paper, the paper's sums and products; dp-merf, random Fourier features"
        ),
    ] = field(default_factory=DpHp)
    count: Annotated[int | None, about("number of synthetic records; default: as many as private records")] = None
    steps: Annotated[int, about("maximum number of steps of the fit")] = 300
    seed: Annotated[int, about("random seed of the generator and its samples; noise has no seed")] = 0

    def __post_init__(self) -> None:
        if self.epsilon != inf:
            super().__post_init__()
        self._store(
            delta=check_fraction("delta", self.delta),
            method=by_name("method", self.method, SYNTHESIS_METHODS),
            count=None if self.count is None else check_count("count", self.count),
            steps=check_count("steps", self.steps),
            seed=check_seed(self.seed),
        )
        # 16: bytes that a synthetic record takes before it has values: its label, and its place in the order.
        check_list(self.count or 0, "the synthetic data", "records", 16)  # before anything is spent

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee to each record.

        Raises:
            UsageError: ε is infinite.
        """
        if self.epsilon == inf:
            raise UsageError(
                "an infinite epsilon adds no noise, and a ledger holds private releases alone: pass a finite epsilon, "
                "or for a baseline that is not private ledger=None, in Python"
            )
        return super().guarantee

    def protection(self, ledger: object) -> Guarantee | None:
        """Return the guarantee to each record; None if ε is infinite, which a ledger refuses."""
        return None if self.epsilon == inf and ledger is None else self.guarantee


@dataclass(frozen=True, kw_only=True)
class ImageSynthesisSettings(SynthesisSettings):
    """Budget, method and network of a synthesis. Each field is also a keyword of `synthesize_images`.

    Raises:
        UsageError: a value is out of range.

    Example:
        >>> import finc_eval as fe
        >>> fe.privacy.ImageSynthesisSettings(epsilon=3, steps=100).network
        'smooth'
    """

    network: Annotated[
        NetworkName,
        about(
            "generator of images: smooth makes low spatial frequencies with grain; fully-connected and convolutional "
            "are the paper's"
        ),
    ] = "smooth"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("network", self.network, get_args(NetworkName))


class SynthesisOptions(PrivacyOptions, total=False):
    """The fields of `SynthesisSettings` as keywords of a function."""

    method: AnySynthesis | SynthesisName
    count: int | None
    steps: int
    seed: int


class ImageSynthesisOptions(SynthesisOptions, total=False):
    """The fields of `ImageSynthesisSettings` as keywords of a function."""

    network: NetworkName
