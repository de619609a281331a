"""`Policy`: the limits on a release, in a TOML file of a few lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from finc_eval.core.errors import (
    IncompatibleError,
    UsageError,
    check_choice,
    check_count,
    check_fraction,
    check_positive,
    check_seed,
)
from finc_eval.core.files.parsed import parse_toml, read_text
from finc_eval.core.record import Record, about, read_table
from finc_eval.embeddings.recipe import ARRAY_SPACE, extractor_of
from finc_eval.gates.facts.tables import Checks, Limits, PrivateLimits, as_given, check_not_negative

NOISE: Literal["noise"] = "noise"
"""The margin that an unchanged release keeps with probability 0.95, from the measured noise."""

POLICY = "a policy in TOML"  # kind of the file, in messages

COLUMN_SHARE = 0.01  # smallest share of the reference of a kind that is limited, unless the policy says another

SCORES: dict[str, str] = {
    "precision": "precision_recall",
    "recall": "precision_recall",
    "density": "prdc",
    "coverage": "prdc",
    "prd_precision": "prd",
    "prd_recall": "prd",
}
"""Scores that a limit may name, of metrics that have several."""


def _check_margin(name: str, value: Any) -> Any:
    if isinstance(value, str):
        check_choice(name, value, (NOISE,))
        return value
    return check_positive(name, value)


@dataclass(frozen=True)
class KindLimits(Limits):
    """Limits on kinds of samples."""

    empty: ClassVar[str] = "[kinds] limits nothing: add for example lose = 0.5 or new = 0.02"
    checks: ClassVar[Checks] = dict.fromkeys(("lose", "new", "moved"), check_fraction)

    lose: Annotated[
        float | None, about("part of its share in the baseline that no kind of the reference may lose: 0.5 is half")
    ] = None
    new: Annotated[
        float | None, about("share of samples that a kind may gain if the reference lacks it: 0.02 is 2 %")
    ] = None
    moved: Annotated[
        float | None,
        about("share of samples that may have moved to other kinds since the baseline (total variation): 0.1 is 10 %"),
    ] = None
    min_share: Annotated[
        float | Literal["auto"],
        about(
            "smallest share of the reference of a kind that must not be lost; auto is 0.01 for the values of a column, "
            "and else what this many samples can judge"
        ),
    ] = "auto"
    column: Annotated[
        str | None, about("metadata column whose values are the kinds, such as label; default: kinds of the reference")
    ] = None
    only: Annotated[
        tuple[str, ...], about("values of the column, or else ids or names of kinds, to limit; default: all")
    ] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.min_share != "auto":
            self._store(min_share=check_fraction("min_share", self.min_share))

    @property
    def least(self) -> float | None:
        """Smallest share of a kind that must not be lost; None if it follows from the numbers of samples."""
        if self.min_share != "auto":
            return self.min_share
        return COLUMN_SHARE if self.column else None


@dataclass(frozen=True)
class MetricLimit(Limits):
    """Limits on one metric."""

    empty: ClassVar[str] = "a limit on a metric limits nothing: add for example worse = 0.05"
    checks: ClassVar[Checks] = dict.fromkeys(("most", "least"), as_given) | dict.fromkeys(
        ("worse", "difference"), _check_margin
    )

    most: Annotated[float | None, about("largest value")] = None
    least: Annotated[float | None, about("smallest value")] = None
    worse: Annotated[
        float | Literal["noise"] | None,
        about(
            "part by which it may be worse than the baseline's: 0.05 is 5 %; noise is the margin that an unchanged "
            "release keeps with probability 0.95"
        ),
    ] = None
    difference: Annotated[
        float | Literal["noise"] | None, about("amount by which it may be worse than the baseline's; noise as in worse")
    ] = None


@dataclass(frozen=True)
class CopyingLimits(Limits):
    """Limits on copies of training samples, which need the training set."""

    empty: ClassVar[str] = "[copying] limits nothing: add for example near = 0.01 or exact = 0"
    checks: ClassVar[Checks] = {"near": check_fraction, "exact": partial(check_count, least=0)}

    near: Annotated[
        float | None,
        about("share of samples that may be suspiciously near to the training set, beyond the share of fresh samples"),
    ] = None
    exact: Annotated[
        int | None,
        about("number of samples that may be a training sample: by their pixels, or else by their embeddings"),
    ] = None


@dataclass(frozen=True)
class BasicLimits(Limits):
    """Limits on plain facts about the new release."""

    empty: ClassVar[str] = "[basics] limits nothing: add for example unreadable = 0"
    checks: ClassVar[Checks] = {
        **dict.fromkeys(("unreadable", "duplicates", "copies"), partial(check_fraction, zero=True)),
        "samples": check_count,
        "membership": check_not_negative,
        "encodings": as_given,
    }

    unreadable: Annotated[float | None, about("share of samples that may be unreadable")] = None
    duplicates: Annotated[float | None, about("share of samples that may repeat another exactly")] = None
    copies: Annotated[
        float | None, about("share of samples that may equal, or nearly equal, a sample of the reference")
    ] = None
    samples: Annotated[int | None, about("smallest number of samples")] = None
    membership: Annotated[
        float | None,
        about(
            "largest membership-inference score (KAHM, eq. 69, in 1/distance) of training samples against the reference"
        ),
    ] = None
    encodings: Annotated[
        bool, about("whether sizes, formats and compression must be as in the baseline, within what moves no score")
    ] = False


@dataclass(frozen=True)
class AppearanceLimits(Limits):
    """Limits on looks, such as blurred or dark, which need the pictures or how clips move."""

    empty: ClassVar[str] = "[appearance] limits nothing: add for example part = 0.02 or whole = 0.05"
    checks: ClassVar[Checks] = {
        **dict.fromkeys(("part", "local"), partial(check_fraction, zero=True)),
        "whole": check_positive,
    }

    part: Annotated[
        float | None,
        about("share of samples that may have a look, such as blurred, beyond the shares of baseline and reference"),
    ] = None
    whole: Annotated[
        float | None,
        about(
            "how far a look of the whole set, such as its brightness, may move away from baseline and reference, in "
            "parts of its spread: 0.1 is a tenth of a standard deviation"
        ),
    ] = None
    local: Annotated[
        float | None,
        about("share of samples that may have a part that hardly any picture of baseline and reference has"),
    ] = None

    @property
    def of_looks(self) -> dict[str, float]:
        """Limits on looks that are set, by name."""
        return {name: value for name, value in self.given.items() if name != "local"}


@dataclass(frozen=True)
class ByIdLimits(Limits):
    """Limits on single pairs of a release and its baseline, of the same prompts and seeds; see `fe.compare`."""

    empty: ClassVar[str] = "[by_id] limits nothing: add for example broken = 0 or worse = 0"
    checks: ClassVar[Checks] = {
        **dict.fromkeys(("broken", "worse"), partial(check_count, least=0)),
        "changed": partial(check_fraction, zero=True),
    }

    broken: Annotated[int | None, about("number of pairs that may be broken: another picture, black, shifted")] = None
    worse: Annotated[
        int | None, about("number of looks, kinds and the like that may be worse by more than their margin")
    ] = None
    changed: Annotated[float | None, about("share of pairs that may have changed beyond runs of the baseline")] = None


@dataclass(frozen=True)
class SliceLimits(Record):
    """Limits on the samples with certain values of a metadata column.

    Raises:
        UsageError: values are missing, or nothing is limited.
    """

    column: Annotated[str, about("metadata column of all sets")]
    only: Annotated[tuple[str, ...], about("values of the column that make the slice")]
    kinds: Annotated[KindLimits | None, about("limits on kinds of samples")] = None
    metrics: Annotated[dict[str, MetricLimit], about("limits on metrics, by name")] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.only:
            raise UsageError(f'a slice of the column {self.column!r} has no values: add for example only = ["night"]')
        if not (self.kinds or self.metrics):
            raise UsageError("a slice limits nothing: add for example kinds.lose = 0.5")
        check_metrics(self.metrics)


@dataclass(frozen=True)
class Policy(Record):
    """Limits on a release, and how sure the gate must be.

    Raises:
        UsageError: a value is out of range, a metric is unknown, or nothing is limited.

    Example:
        >>> import finc_eval as fe
        >>> policy = fe.Policy.of({"kinds": {"lose": 0.5, "new": 0.02}, "metrics": {"fd": {"worse": 0.1}}})
        >>> policy.kinds.lose, policy.metrics["fd"].worse
        (0.5, 0.1)
    """

    kinds: Annotated[KindLimits | None, about("limits on kinds of samples")] = None
    metrics: Annotated[dict[str, MetricLimit], about("limits on metrics, by name")] = field(default_factory=dict)
    slices: Annotated[dict[str, SliceLimits], about("limits on parts of the sets, by a name of the part")] = field(
        default_factory=dict
    )
    copying: Annotated[CopyingLimits | None, about("limits on copies of training samples")] = None
    appearance: Annotated[AppearanceLimits | None, about("limits on looks")] = None
    basics: Annotated[BasicLimits | None, about("limits on plain facts")] = None
    private: Annotated[PrivateLimits | None, about("limits on the distance from a private reference")] = None
    by_id: Annotated[
        ByIdLimits | None,
        about('limits on pairs with the same id, which set pairs to "id"; further baselines are further runs of it'),
    ] = None
    alpha: Annotated[float, about("largest probability of a false regression in any limit, and of a false pass")] = 0.05
    interim: Annotated[int, about("number of runs with more and more samples that share alpha")] = 1
    groups: Annotated[
        str | None, about("metadata column that names the groups: samples of one group are not independent")
    ] = None
    pairs: Annotated[
        str | None,
        about(
            'how to find the samples of the release and of the baseline with the same prompt and seed: "id", or a '
            "metadata column"
        ),
    ] = None
    seed: Annotated[int, about("random seed of the kinds")] = 0
    extractor: Annotated[
        str | None,
        about("extractor that the limits are for, as name@digest or by its name; sets of others are refused"),
    ] = None

    def __post_init__(self) -> None:
        from finc_eval.embeddings.same_names import ID  # loads torch, which help does not need

        if not self.limited:
            raise UsageError("the policy limits nothing, so nothing could pass: add for example a table [kinds]")
        check_metrics(self.metrics)
        for name in self.slices:
            if not name or not name.isprintable() or set(name) & set(" @"):
                raise UsageError(f'the slice {name!r} must have a name without spaces and "@", such as night')
        if self.by_id and self.pairs not in (None, ID):
            raise UsageError(f"by_id pairs the samples by their ids, and pairs is {self.pairs!r}: leave out pairs")
        self._store(
            pairs=ID if self.by_id else self.pairs,
            alpha=check_fraction("alpha", self.alpha),
            interim=check_count("interim", self.interim),
            seed=check_seed(self.seed),
        )

    @classmethod
    def of(cls, policy: Policy | Mapping[str, Any] | str | Path) -> Policy:
        """Return a policy from a table, whose keys may be dotted as in TOML, or from a TOML file.

        Raises:
            DataError: the file cannot be read, or a key or value is not valid.
        """
        if isinstance(policy, Policy):
            return policy
        if isinstance(policy, Mapping):
            return read_table(cls, _nest(policy), "the policy")
        return cls.parse(read_text(policy, POLICY), str(policy))

    @classmethod
    def parse(cls, text: str, where: str = "the policy") -> Policy:
        """Return a policy from a text in TOML; see `of` for its errors."""
        return read_table(cls, parse_toml(text, where, POLICY), where)

    @property
    def limited(self) -> tuple[str, ...]:
        """Names of the tables that limit something."""
        tables = ("kinds", "metrics", "slices", "copying", "appearance", "basics", "private", "by_id")
        return tuple(name for name in tables if getattr(self, name))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that limits are on, which all sets must have."""
        limited = [self.kinds, *(part.kinds for part in self.slices.values())]
        found = (
            [limits.column for limits in limited if limits and limits.column],
            [part.column for part in self.slices.values()],
        )
        return tuple(dict.fromkeys(chain(*found)))

    def check_space(self, space: str) -> None:
        """Raise IncompatibleError if the sets have another extractor than the limits; arrays do not name theirs."""
        if self.extractor is None or space.startswith(ARRAY_SPACE):
            return
        if self.extractor not in (space, extractor_of(space)):
            raise IncompatibleError(
                f"the policy is for embeddings by {self.extractor}, and the sets are by {space}: embed the sets by the"
                " first (--extractor), or write a new policy (--init)"
            )


def _nest(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with each dotted key, such as "kinds.lose", in its tables."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        *outer, last = str(key).split(".")
        place = found
        for name in outer:
            place[name] = dict(place.get(name, {}))
            place = place[name]
        place[last] = {**place.get(last, {}), **value} if isinstance(value, Mapping) else value
    return found


def check_metrics(names: Iterable[str]) -> None:
    """Raise UsageError if a metric or score is unknown."""
    from finc_eval.measures.registry import get_metric  # loads torch, which help does not need

    for name in names:
        get_metric(metric_of(name))


def metric_of(name: str) -> str:
    """Return the name of the metric of a score."""
    from finc_eval.measures.registry import METRICS

    return name if name in METRICS else SCORES.get(name, name)
