"""`ReleaseSettings`: the budget of a private sketch, and what its sensitivity assumes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, get_args

from finc_eval.core.checks import check_choice
from finc_eval.core.record import about
from finc_eval.privacy.dp.guarantee import Adjacency, Bound, Guarantee, PrivacyOptions, PrivacySettings


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
    bound: Annotated[
        Bound, about("sensitivity for replaced records: √2/m, which is proved (tight), or 2/m as in the paper")
    ] = "tight"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("bound", self.bound, get_args(Bound))

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee to each record."""
        return Guarantee.of(self.epsilon, self.delta, self.adjacency)


class ReleaseOptions(PrivacyOptions, total=False):
    """The fields of `ReleaseSettings` as keywords of a function."""

    adjacency: Adjacency
    bound: Bound
