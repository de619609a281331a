"""`SketchHeader`: everything that the file of a private sketch says beside its numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from finc_eval.core.record import Record
from finc_eval.core.signature import SignatureText
from finc_eval.core.storage import PROGRAM
from finc_eval.privacy.reference.release_record import ReleaseRecord

PRIVATE_SKETCH = "private sketch"
PRIVATE_SKETCH_LAYOUT = 1

PROMISE = (
    "Everything here that depends on the private records had Gaussian noise added before it was written. The releases "
    "state the guarantee to each record of a data set whose number of records is public. The noise comes from the "
    "operating system's random bytes, by inversion in float64, and is rounded to a grid of about 2^-20 of its size."
)


@dataclass(frozen=True)
class TransformHeader(Record):
    """Public transform in a few words; its arrays are in the file."""

    digest: str
    origin: str
    dims: int
    radius: float
    length_scale: float


@dataclass(frozen=True, kw_only=True)
class SketchHeader(Record):
    """Header of a private sketch, for readers of the file and `finc-eval private-sketch inspect`.

    Attributes:
        mean: SHA-256 of the released mean.
    """

    program: str = PROGRAM
    version: str = field(default_factory=lambda: version("finc-eval"))
    kind: str = PRIVATE_SKETCH
    schema: int = PRIVATE_SKETCH_LAYOUT
    promise: str = PROMISE
    space: str
    transform: TransformHeader
    feature_map: dict[str, Any]
    classes: tuple[str, ...] | None
    features: int
    m: int
    noise: float
    mean: str
    releases: tuple[ReleaseRecord, ...]
    signature: SignatureText
