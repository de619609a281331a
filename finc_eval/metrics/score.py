"""A metric's value with everything that is needed to trust and to compare it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from finc_eval.core.serialize import Document
from finc_eval.core.signature import Signature


@dataclass(frozen=True)
class Score(Document):
    """The value of one metric.

    Attributes:
        key: its name, "fid".
        value: the number.
        interval: what 95 % of repetitions with other samples would give; None where nobody knows how to say.
        floor: the value for the reference itself, in place of the generated set; None where it was not computed.
        higher_is_better: whether a better generator has a larger value; None where neither is better.
        signature: pins everything that changes the value save the generated set.
        notes: what to know before trusting it.
    """

    key: str
    value: float
    interval: tuple[float, float] | None
    floor: float | None
    higher_is_better: bool | None
    signature: Signature
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The score as plain JSON types."""
        return {
            "key": self.key,
            "value": self.value,
            "interval": None if self.interval is None else list(self.interval),
            "floor": self.floor,
            "higher_is_better": self.higher_is_better,
            "signature": str(self.signature),
            "notes": list(self.notes),
        }
