"""The names of the precisions, apart from their arithmetic: settings and help texts do not wait for torch."""

from __future__ import annotations

from typing import Literal, get_args

Precision = Literal["float32", "tf32", "bfloat16", "float64"]

PRECISIONS: tuple[Precision, ...] = get_args(Precision)
