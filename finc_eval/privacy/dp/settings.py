"""`PrivacySettings`: the budget of one release, which all settings of private releases share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypedDict

from finc_eval.core.record import Record, about
from finc_eval.privacy.dp.guarantee import Guarantee


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
