"""`Settings`: everything that changes a number of a comparison, once for functions, command line and signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Field, SerializeAsAny

from finc_eval.core.errors import (
    DataError,
    FincEvalError,
    UsageError,
    check_choice,
    check_count,
    check_fraction,
    check_positive,
)
from finc_eval.core.record import MayNameFile, Record, about, by_name, settings_from, suffixed
from finc_eval.numerics.names import INDEXES, SearchIndex
from finc_eval.sketches.settings import ByColumn, PairColumn, SketchOptions, SketchSettings

MethodName = Literal["finc", "clusters", "ken", "rarity", "fld"]

Rotation = Literal["varimax"] | None

SIGMA_SWEEP_FEATURES = 1000
"""Default number of frequencies of a sweep over σ: there is a sketch in memory for every bandwidth."""


KINDS_PART = 0.8
"""Part of the family-wise error that tests of kinds may spend if directions, which have the rest, are also tested. With
halves, 28 of 30 planted kinds of the guards are found instead of 29; what no kind shows is seen at any level."""

MAX_RHO = 100.0
"""Largest ρ: no kind is asked for that one set has a hundred times as often. Beyond it the second set fills the
spectrum, so that the directions of the first take minutes to find."""

Novel = Annotated[float, about("share of a set's samples that count as novel and are clustered")]


@dataclass(frozen=True)
class Finc(Record):
    """FINC: the leading eigenvectors of C_gen − ρ·C_ref by random features (arXiv 2405.02700).

    Raises:
        UsageError: the rotation is unknown.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> raw = fe.compare(*example_sets(), method=fe.Finc(rotation=None), features=500)
        >>> abs(raw.over[0].fitted_excess - raw.spectrum.over[0]) < 1e-5  # unrotated: excess is the eigenvalue
        True
    """

    title: ClassVar[str] = "FINC"
    idea: ClassVar[str] = "leading directions of the difference of the two sets, by random features"

    rotation: Annotated[
        Rotation, about("varimax rotation of the eigenvectors, which the method of the paper does not have")
    ] = "varimax"
    clusters: Annotated[
        bool, about("also divide the samples into kinds, and test which differ; without, FINC alone is computed")
    ] = True
    name: Literal["finc"] = "finc"

    def __post_init__(self) -> None:
        if self.rotation not in ("varimax", None):
            raise UsageError(f'rotation must be "varimax" or None, got {self.rotation!r}')


@dataclass(frozen=True)
class Ken(Record):
    """KEN: the eigenfunctions of the kernel matrix, without random features (arXiv 2402.17287).

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> fe.compare(*example_sets(200), method=fe.Ken(), features=500).signature.metric
        'ken'
    """

    title: ClassVar[str] = "KEN"
    idea: ClassVar[str] = "the same without random features, from the kernel matrix, unrotated"

    name: Literal["ken"] = "ken"


@dataclass(frozen=True)
class Rarity(Record):
    """Rarity: clusters of the samples whose rarity score is highest (arXiv 2206.08549).

    Raises:
        UsageError: a value is out of range.

    Example:
        >>> import finc_eval as fe
        >>> fe.Settings(method=fe.Rarity(novel=0.2)).method.neighbors
        3
    """

    title: ClassVar[str] = "Rarity"
    idea: ClassVar[str] = "clusters of the samples in the sparsest regions of the other set"

    novel: Novel = 0.3
    neighbors: Annotated[int, about("number of the neighbor that the balls of rarity's manifold reach")] = 3
    name: Literal["rarity"] = "rarity"

    def __post_init__(self) -> None:
        self._store(
            novel=check_fraction("novel", self.novel, one=True), neighbors=check_count("neighbors", self.neighbors)
        )


@dataclass(frozen=True)
class Fld(Record):
    """FLD: clusters of the samples that a mixture at the reference finds least likely (arXiv 2302.04440).

    Raises:
        UsageError: the share is out of range.

    Example:
        >>> import finc_eval as fe
        >>> fe.Fld().novel
        0.3
    """

    title: ClassVar[str] = "FLD"
    idea: ClassVar[str] = "clusters of the samples that a mixture around the other set makes least likely"

    novel: Novel = 0.3
    name: Literal["fld"] = "fld"

    def __post_init__(self) -> None:
        self._store(novel=check_fraction("novel", self.novel, one=True))


@dataclass(frozen=True)
class Clusters(Record):
    """Clusters: exact tests of label-blind kinds alone, without directions; see `kinds`.

    Example:
        >>> import finc_eval as fe
        >>> from finc_eval.demo import example_sets
        >>> found = fe.compare(*example_sets(), method="clusters", features=200)
        >>> len(found.directions), len(found.significant()) > 0
        (0, True)
    """

    title: ClassVar[str] = "Clusters"
    idea: ClassVar[str] = "label-blind kinds with unequal shares in the two sets"

    name: Literal["clusters"] = "clusters"


AnyMethod = Finc | Clusters | Ken | Rarity | Fld
METHODS: dict[str, type[AnyMethod]] = {cls.name: cls for cls in get_args(AnyMethod)}
"""The methods by name, in the order shown to users."""

DIRECTION_METHODS = tuple(name for name in METHODS if name != Clusters.name)
"""Names of the methods that find directions."""

Method = Annotated[
    AnyMethod,
    Field(discriminator="name"),
    BeforeValidator(lambda value: {"name": value} if isinstance(value, str) else value),
    about("what finds the directions: finc, clusters alone, or a baseline of FINC's paper"),
]


@dataclass(frozen=True)
class Settings(SketchSettings):
    """Everything that changes a number of a comparison.

    Each field is a keyword of `compare`, `compare_methods` and `sweep`, and an option of the command
    line. Results store their settings.

    Raises:
        UsageError: a value is out of range.

    Example:
        >>> import finc_eval as fe
        >>> settings = fe.Settings(rho=2, features=500)
        >>> settings.rho, settings.kernel
        (2, 'gaussian')
    """

    table: ClassVar[str] = "compare"

    method: Method = Finc()
    pairs: PairColumn = None
    text: Annotated[
        str | None,
        about(
            "compare pairs of prompt and image, as PromptSplit does, by vectors of the prompts: words (and neighboring "
            "words), wordllama, a card with a text tower, or a file with an embedding for each prompt; kinds concern "
            "images alone"
        ),
        MayNameFile(suffixed),
    ] = None
    by: ByColumn = None
    rho: Annotated[
        float, about("ρ > 0: a direction counts when one set has more than ρ times the mass of the other")
    ] = 1.0
    modes: Annotated[int, about("maximum number of directions to report per role")] = 10
    index: Annotated[SearchIndex, about(f"how methods and metrics find neighbors: {INDEXES}")] = "exact"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._store(
            method=by_name("method", self.method, METHODS),
            rho=check_positive("rho", self.rho, most=MAX_RHO),
            modes=check_count("modes", self.modes),
        )
        check_choice("index", self.index, get_args(SearchIndex))
        if self.pairs is not None and self.rho != 1:
            raise UsageError(f"pairs are tested for equal shares, and rho is {self.rho:g}: leave rho or pairs out")
        if self.text is not None and self.kernel != "gaussian":
            raise UsageError(f"text multiplies Gaussian kernels, and the kernel is {self.kernel}: leave one out")

    @classmethod
    def check_keys(cls, table: Mapping[str, Any], where: str) -> None:
        """Say of a parameter of a method where it belongs."""
        for name in table:
            owners = _owners(name)
            if owners:
                inside = f'method = {{name = "{owners[0].name}", {name} = …}}'
                raise DataError(f"{where}: {name} is a parameter of the method: write {inside}")

    @property
    def by_eigenvalue(self) -> bool:
        """True when directions are unrotated eigenvectors, ordered by eigenvalue."""
        return isinstance(self.method, Ken) or (isinstance(self.method, Finc) and self.method.rotation is None)

    @property
    def has_kinds(self) -> bool:
        """True when the samples are divided into kinds."""
        return isinstance(self.method, Clusters) or (isinstance(self.method, Finc) and self.method.clusters)

    @property
    def families(self) -> int:
        """Number of families, of directions and of kinds, that share the confidence of the intervals evenly."""
        return 2 if self.has_kinds and not isinstance(self.method, Clusters) else 1

    @property
    def parts(self) -> tuple[float, float]:
        """Parts of the family-wise error that tests of directions, and of kinds, may spend, if there are any."""
        return (1 - KINDS_PART, KINDS_PART) if self.families == 2 else (1.0, 1.0)

    def signature(self) -> tuple[tuple[str, str], ...]:
        """Return the fields of a signature that the feature map, the sketches and neighbors do not already give."""
        given = {field.name for field in fields(SketchSettings)}
        stated = [(field.name, getattr(self, field.name)) for field in fields(self) if field.name not in given]
        method = [(field.name, getattr(self.method, field.name)) for field in fields(self.method)]
        values = [
            (name, value)
            for name, value in [*stated, *method]
            if name not in ("method", "name", "index") and (value is not None or name not in ("pairs", "text", "by"))
        ]
        return tuple(
            (name, "none" if value is None else f"{value:g}" if isinstance(value, float | int) else str(value))
            for name, value in values
        )


StoredSettings = SerializeAsAny[Settings]  # the settings of a result: JSON also has the fields of a subclass


class Options(SketchOptions, total=False):
    """The fields of `Settings` as keywords of a function."""

    method: AnyMethod | MethodName
    pairs: str | None
    text: str | None
    by: str | None
    rho: float
    modes: int
    index: SearchIndex


def settings_of(settings: Settings | None, options: Mapping[str, Any]) -> Settings:
    """Return the settings, or the default ones, with the options instead of their fields."""
    for name, value in options.items():
        owners = [cls.__name__ for cls in _owners(name)]
        if owners:
            call = f"fe.{owners[0]}({name}={value!r})"
            raise UsageError(f"{name} is an option of {' and '.join(owners)}: pass method={call}")
    return settings_from(Settings, settings, options)


def without_clusters(settings: Settings) -> Settings:
    """Return settings that ask for directions alone."""
    refusal = DataError(
        "a sketch keeps too few samples to divide into kinds, or not their groups: pass embeddings, or use method finc"
    )
    return replace(settings, method=_directions_alone(settings.method, refusal))


def methods_of(methods: Sequence[AnyMethod | str] | AnyMethod | str) -> tuple[AnyMethod, ...]:
    """Return the methods of these names, each named once; FINC is without kinds, as in its paper.

    One method need not be in a list.
    """
    methods = [methods] if isinstance(methods, AnyMethod | str) else methods
    known = ", ".join(DIRECTION_METHODS)
    refusal = UsageError(f"clusters finds kinds, which have no direction: compare by {known}, or call kinds")
    found = tuple(_directions_alone(by_name("method", name, METHODS), refusal) for name in methods)
    for place, method in enumerate(found):
        if method.name in [other.name for other in found[:place]]:
            raise UsageError(f"method {method.name!r} is named twice: name it once")
    return found


def _directions_alone(method: AnyMethod, refusal: FincEvalError) -> AnyMethod:
    """Return a method without kinds; kinds alone are refused."""
    if isinstance(method, Clusters):
        raise refusal
    return replace(method, clusters=False) if isinstance(method, Finc) else method


def _owners(name: str) -> list[type[AnyMethod]]:
    """Return the methods that have a parameter of this name."""
    return [cls for cls in METHODS.values() if name in {field.name for field in fields(cls)} - {"name"}]
