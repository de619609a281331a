"""The names of kernels, frequencies and precisions, without their arithmetic: help texts do not wait for torch."""

from __future__ import annotations

from typing import Literal, get_args

Kernel = Literal["gaussian", "cosine"]
KERNELS: tuple[Kernel, ...] = get_args(Kernel)

Frequencies = Literal["orthogonal", "iid"]
FREQUENCIES: tuple[Frequencies, ...] = get_args(Frequencies)

Precision = Literal["float32", "float64"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)

SearchIndex = Literal["exact", "auto"]
INDEXES = "exact, or auto for an inverted file of faiss for more than 10^10 pairs"  # ways to find neighbors, in words
