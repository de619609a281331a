"""`PrivacySettings`: the budget of one release, which all settings of private releases share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypedDict, TypeVar

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
        _ = self.guarantee  # refuses values that are out of range

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee to each record, for a record that is replaced."""
        return Guarantee.of(self.epsilon, self.delta)


class PrivacyOptions(TypedDict, total=False):
    """The fields of `PrivacySettings` as keywords of a function."""

    epsilon: float
    delta: float
    name: str | None


S = TypeVar("S", bound=PrivacySettings)


def settings_of(cls: type[S], settings: S | None, options: Mapping[str, Any]) -> S:
    """Return the settings with the options in place of their fields; without settings, new ones of the class."""
    return cls(**options) if settings is None else replace(settings, **options)
