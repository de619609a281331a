"""Result of an audit: three blocks that do not stand for each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pydantic import computed_field

from finc_eval.core.errors import DataError
from finc_eval.core.record import Record, plain
from finc_eval.core.serialize import Document
from finc_eval.core.signature import SignatureText
from finc_eval.embeddings.set_info import SetInfo
from finc_eval.memorization.attacks import Attack, MembershipDifference
from finc_eval.memorization.copying import AGAINST_HOLDOUT, CopyingMeasure, MeasureName, TailName
from finc_eval.memorization.settings import AUDIT_ALPHA, AuditSettings
from finc_eval.memorization.strata import Stratum
from finc_eval.memorization.tails import Power
from finc_eval.memorization.verdict import CopiesFound, NearerTo, StatedGuarantee, verdict


@dataclass(frozen=True)
class SuspiciousPair(Record):
    """A generated sample and the training sample nearest to it.

    Attributes:
        gen, train: ids of the two samples.
        shown_by: measure by which they are so near: embedding, hash or views.
        same_pixels: whether their pixels are the same; None without pixels.
        distance: distance of the embeddings of the generated sample and its nearest training sample; 0 for equal ones.
        hash_distance: number of the 256 bits in which the hashes of the two differ, over views; None unless by hash.
        calibrated: distance over the mean distance to the nearest training samples by that measure; 0 for a copy,
            about 1 for a sample that is as near to many.
        fresh_share: share of fresh samples that are as near to the training set by that measure.
        stratum: id of the training set's kind that the generated sample is of.
    """

    gen: str
    train: str
    shown_by: TailName
    same_pixels: bool | None
    distance: float
    hash_distance: int | None
    calibrated: float
    fresh_share: float
    stratum: str


@dataclass(frozen=True)
class Copying(Record):
    """First block of an audit: whether samples are nearer to the training set than fresh samples are.

    Attributes:
        measures: measures of copying, each with its control.
        copies: number of exact copies, and a lower bound of the number of all.
        pairs: the most suspicious pairs, in that order.
        strata: kinds of the training set, the most suspicious first.
        power: power of the tests by calibrated distance and, where there are pictures, by hash.
        power_alpha: level of these tests: the measures' part of α over their number, the least that Holm's adjustment
            leaves it.
    """

    measures: tuple[CopyingMeasure, ...]
    copies: CopiesFound
    pairs: tuple[SuspiciousPair, ...]
    strata: tuple[Stratum, ...]
    power: tuple[Power, ...]
    power_alpha: float

    @computed_field  # type: ignore[prop-decorator]
    @property
    def found_by(self) -> tuple[MeasureName, ...]:
        """Names of the measures that find generated samples nearer to the training set than fresh samples."""
        return tuple(measure.name for measure in self.measures if measure.adjusted <= AUDIT_ALPHA)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def training_found_by(self) -> tuple[MeasureName, ...]:
        """Names of the measures that also find the training set nearer than the holdout: only these show copying."""
        return training_found_by(self.measures)

    @property
    def finds_training(self) -> bool:
        """True if samples are nearer to the training set than to the holdout, by a measure or in a stratum."""
        return bool(self.training_found_by or self.memorized_strata)

    @property
    def memorized_strata(self) -> tuple[Stratum, ...]:
        """Strata in which copying is found, and not as much of the holdout."""
        return tuple(
            stratum for stratum in self.strata if stratum.p_value <= AUDIT_ALPHA and _holds(stratum.against_holdout)
        )

    @property
    def is_found(self) -> bool:
        """True if generated samples are nearer to the training set than fresh samples, by any measure or stratum."""
        return bool(self.found_by) or any(stratum.p_value <= AUDIT_ALPHA for stratum in self.strata)

    def measure(self, name: MeasureName) -> CopyingMeasure:
        """Return the measure of this name.

        Raises:
            DataError: the measure could not be computed.
        """
        for measure in self.measures:
            if measure.name == name:
                return measure
        raise DataError(f"{name} was not computed: see the audit's warnings")


@dataclass(frozen=True, eq=False)
class Audit(Document):
    """Result of `audit`. It is not a guarantee: it cannot see copies and attacks that it does not look for.

    Attributes:
        copying: first block: whether samples are copies.
        attacks: second block: success of attacks by generated samples; their intervals hold together.
        membership: the membership-inference score next to the attacks; None if distances have no density.
        stated: third block: a stated guarantee held against the attacks; None if none was stated.
        gen, train, holdout: the sets.
        reference: set for the DOMIAS attack; None without it.
        space: extractor of the embeddings, as name@digest.
        settings: settings of the audit.
        warnings: facts to know before trusting the numbers.
        signature: pins everything that changes the numbers except the generated set.
        holdout_p_value: p-value of "training set and holdout have one distribution". At most 0.05, distances and
            attacks show nothing about copying.
    """

    type_name: ClassVar[str] = "audit"
    page: ClassVar[str] = "finc_eval.memorization.page"

    copying: Copying
    attacks: tuple[Attack, ...]
    membership: MembershipDifference | None
    stated: StatedGuarantee | None
    gen: SetInfo
    train: SetInfo
    holdout: SetInfo
    reference: SetInfo | None
    space: str
    settings: AuditSettings
    warnings: tuple[str, ...]
    signature: SignatureText
    holdout_p_value: float = field(kw_only=True, default=1.0)

    def __post_init__(self) -> None:
        if not self.attacks:
            raise DataError("it has no attack")

    @property
    def holdout_differs(self) -> bool:
        """True if training set and holdout are not of one distribution, so that only equal samples show copying."""
        return self.holdout_p_value <= AUDIT_ALPHA

    @computed_field  # type: ignore[prop-decorator]
    @property
    def verdict(self) -> str:
        """Number of samples that are copies, in a sentence, and what shows it."""
        copying = self.copying
        images = copying.copies.same_pixels is not None and self.gen.clip is None
        share = copying.measure("dcr").value
        return verdict(
            copying.copies,
            self.gen.n,
            self.holdout.n,
            nearer_to=self.nearer_to,
            share=share,
            images=images,
            unlike=self.holdout_differs,
        )

    @property
    def nearer_to(self) -> NearerTo | None:
        """Sets that generated samples are nearer to than fresh samples are; None if no measure finds that they are.

        It is the training set if a measure that knows the holdout says so, else real samples in general.
        """
        copying = self.copying
        if not copying.is_found or self.holdout_differs:
            return None
        return "training" if copying.finds_training else "real"

    @property
    def strongest(self) -> Attack:
        """Attack with the highest lower bound of ε; if none has a bound above 0, of its AUC.

        A few copies betray a few members for sure, which an AUC does not show.
        """
        return max(
            self.attacks, key=lambda attack: (attack.statistics.epsilon_lower_bound, attack.statistics.auc_interval[0])
        )

    @computed_field  # type: ignore[prop-decorator]
    @property
    def strongest_attack(self) -> str:
        """Name of the strongest attack."""
        return self.strongest.name

    def _frame_rows(self) -> list[dict[str, object]]:
        measures = [
            {"block": "copying", **plain(measure), "unadjusted": measure.p_value, "p_value": measure.adjusted}
            for measure in self.copying.measures
        ]
        for row in measures:
            del row["adjusted"]
        return measures + [{"block": "attacks", **plain(attack)} for attack in self.attacks]

    def _lines(self) -> Iterator[str]:
        for measure in self.copying.measures:
            values = f"{measure.value:.4g}, of fresh samples {measure.control:.4g}"
            yield f"{measure.name} {values}, p={measure.adjusted:.2g}"

    def _summary(self) -> str:
        best = self.strongest
        return f"{self.verdict} Strongest attack {best.name}, AUC {best.statistics.auc:.3f}"


def training_found_by(measures: Sequence[CopyingMeasure]) -> tuple[MeasureName, ...]:
    """Return the names of the measures that find copying, and the training set nearer than the holdout."""
    significant = [measure for measure in measures if measure.adjusted <= AUDIT_ALPHA]
    return tuple(
        measure.name for measure in significant if measure.name in AGAINST_HOLDOUT or _holds(measure.against_holdout)
    )


def _holds(against_holdout: float | None) -> bool:
    """Return whether what was found of single samples is about the training set, not about all real samples."""
    return against_holdout is not None and against_holdout <= AUDIT_ALPHA
