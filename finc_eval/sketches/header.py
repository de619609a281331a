"""`SketchHeader`: what the file of a sketch says besides its arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from finc_eval.core.record import Record
from finc_eval.numerics.names import Precision
from finc_eval.samples.shards import Shard

SKETCH, SKETCH_LAYOUT = "sketch", 3

NOT_PRIVATE = "plain statistics of the samples, without privacy noise: handle as the data"

Number = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, kw_only=True)
class SketchHeader(Record):
    """Header of the file of a sketch; `Sketch` says what the fields are.

    Attributes:
        capacity: number of embeddings that the sample keeps.
        n: number of samples in the moments, by their name.
        privacy: warning to whoever opens the file.
    """

    space: str
    precision: Precision
    sources: tuple[str, ...]
    name: str | None
    groups: str | None
    squared_sizes: Number
    capacity: Number
    n: dict[str, Number]
    shards: tuple[Shard, ...] = ()
    privacy: str = NOT_PRIVATE
