"""Gates on a private reference, which the wing judges: its functions, and limits that lack such a reference."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from finc_eval.gates.evidence import LimitEvidence, Missing
from finc_eval.gates.facts.tables import PrivateLimits
from finc_eval.wing import has_wing, part_of_wing


def private_part(ref: object, name: str) -> Callable[..., Any] | None:
    """Return a function of the wing's gate on the private sketch that the reference is; None for other references."""
    sketch = part_of_wing("reference.sketch:as_private_sketch")(ref) if has_wing() else None
    return None if sketch is None else partial(part_of_wing(f"reference.gate:{name}"), sketch)


def lacking_sketch(limits: PrivateLimits | None) -> list[LimitEvidence]:
    """Return the limits on a private reference, if there are any, where the reference is not private."""
    note = "the reference is not private: pass a private sketch as the reference"
    given = {} if limits is None else limits.given
    return [Missing(name=f"private.{name}", margin=margin, note=note) for name, margin in given.items()]
