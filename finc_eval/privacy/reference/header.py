"""`SketchHeader`: everything that the file of a private sketch says besides its numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from finc_eval.core.record import Record
from finc_eval.core.signature import SignatureText
from finc_eval.privacy.reference.release_record import ReleaseRecord

PRIVATE_SKETCH = "private sketch"
PRIVATE_SKETCH_LAYOUT = 2

PROMISE = (
    "Everything here that depends on the private records had Gaussian noise added before it was written. The releases "
    "state the guarantee to each record of a data set whose number of records is public. The noise comes from the "
    "operating system's random bytes, by inversion in float64, and is rounded to a grid of about 2^-20 of its size."
)


@dataclass(frozen=True)
class TransformHeader(Record):
    """Public transform without its arrays; `PublicTransform` says what the fields are."""

    digest: str
    origin: str
    dims: int
    radius: float
    length_scale: float
    space: str
    fitted_on: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SketchHeader(Record):
    """Header of a private sketch, for readers of the file and `finc-eval private sketch inspect`.

    Attributes:
        mean: SHA-256 of the released mean.
    """

    version: str = field(default_factory=lambda: version("finc-eval"))
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
