"""`Guarantee`: what (ε, δ)-differential privacy promises to each record, and the options that state it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypedDict, get_args

from pydantic import computed_field

from finc_eval.core.checks import check_choice, check_fraction, check_positive
from finc_eval.core.errors import UsageError
from finc_eval.core.record import Record, about
from finc_eval.privacy.dp.accounting import Ceilings, ceilings, mu_of

Adjacency = Literal["replace", "zero-out"]
"""Kind of neighboring data sets: one record is replaced by another (replace), or counts as nothing (zero-out)."""

Bound = Literal["tight", "paper"]
"""Bound on how far one replaced record moves a sum of features: √2, proved in docs/private_reference.md, or the paper's
2."""


@dataclass(frozen=True)
class Guarantee(Record):
    """A differential privacy guarantee to each record of a data set. The number of records is public.

    Attributes:
        epsilon: ε of (ε, δ)-differential privacy.
        delta: δ of (ε, δ)-differential privacy.
        mu: μ of the Gaussian differential privacy that (ε, δ) follows from.
        adjacency: which data sets count as neighbors.

    Example:
        >>> import finc_eval as fe
        >>> guarantee = fe.privacy.Guarantee.of(epsilon=1, delta=1e-5)
        >>> round(guarantee.mu, 4), round(guarantee.ceilings.auc, 3)
        (0.2681, 0.575)
        >>> round(guarantee.noise(sensitivity=2**0.5 / 1000), 5)
        0.00528
    """

    epsilon: float
    delta: float
    mu: float
    adjacency: Adjacency = "replace"

    @classmethod
    def of(cls, epsilon: float, delta: float, adjacency: Adjacency = "replace") -> Guarantee:
        """Return the guarantee with this ε and δ.

        Raises:
            UsageError: an argument is out of range.
        """
        check_choice("adjacency", adjacency, get_args(Adjacency))
        epsilon, delta = check_positive("epsilon", epsilon), check_fraction("delta", delta)
        return cls(epsilon, delta, mu_of(epsilon, delta), adjacency)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def ceilings(self) -> Ceilings:
        """Upper limits of any attack."""
        return ceilings(self.mu)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def promise(self) -> str:
        """The guarantee in words."""
        return str(self)

    def noise(self, sensitivity: float) -> float:
        """Return the standard deviation s = Δ/μ of the noise on a statistic of sensitivity Δ that spends all of μ.

        Raises:
            UsageError: the sensitivity is not a positive number.
        """
        check_positive("sensitivity", sensitivity)
        return sensitivity / self.mu

    def check_delta(self, records: int) -> None:
        """Raise UsageError if δ is so large that one of the records could be published whole."""
        if self.delta * records >= 1:
            raise UsageError(
                f"delta {self.delta:g} is not below one over the {records} records, so one of them could be published "
                "whole: choose a smaller delta, such as 1e-5"
            )

    def __str__(self) -> str:
        most = self.ceilings
        return (
            f"({self.epsilon:g}, {self.delta:g})-DP, {self.adjacency} adjacency (mu = {self.mu:.4g}): any attacker's "
            f"AUC ≤ {most.auc:.3f}, advantage ≤ {most.advantage:.3f}, true positives ≤ {most.tpr_at_1_percent:.2%} at "
            f"1 % and ≤ {most.tpr_at_01_percent:.3%} at 0.1 % false positives"
        )


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

    def __post_init__(self) -> None:
        guarantee = self.guarantee  # refuses values that are out of range
        self._store(epsilon=guarantee.epsilon, delta=guarantee.delta)

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee to each record, for a record that is replaced."""
        return Guarantee.of(self.epsilon, self.delta)


class PrivacyOptions(TypedDict, total=False):
    """The fields of `PrivacySettings` as keywords of a function."""

    epsilon: float
    delta: float
    name: str | None
