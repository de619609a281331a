"""stub"""
from __future__ import annotations
from dataclasses import dataclass
from finc_eval.core.record import Record
@dataclass(frozen=True)
class Evidence(Record):
    """Stub."""
    source: str
    value: str
    share_members: float
    share_others: float
    p_value: float
