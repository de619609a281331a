"""Moments and feature maps in files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field

from finc_eval.core.files.stored import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.core.record import Record
from finc_eval.feature_maps.base import CosineFeatures, FeatureMap
from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.numerics.moments import Moments, from_upper, upper, upper_size
from finc_eval.numerics.names import Precision
from finc_eval.samples.shards import Shard
from finc_eval.wing import part_of_wing

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


def write_moments(file: NewFile, name: str, moments: Moments) -> None:
    """Store the sums of vectors, and of their squares what is above the diagonal."""
    file.array(f"{name}/first", moments.first.cpu().numpy())
    for rows, block in moments.blocks():
        file.array(f"{name}/second/{rows.start}", upper(block.cpu()).numpy())


def read_moments(file: StoredFile, name: str, moments: Moments, n: int) -> tuple[float, float]:
    """Read sums of n vectors into empty sums, and return the sum of their squares and the largest number."""
    dtype = "<f8" if moments.first.dtype == torch.float64 else "<f4"
    moments.n = n
    moments.first.copy_(torch.from_numpy(file.array(f"{name}/first", moments.size, dtype=dtype)))
    trace, largest = 0.0, float(moments.first.abs().max())
    for rows, block in moments.blocks():
        kept = file.array(f"{name}/second/{rows.start}", upper_size(*block.shape), dtype=dtype)
        block.copy_(from_upper(torch.from_numpy(kept), *block.shape))
        trace += float(block.diagonal().sum())
        largest = max(largest, float(block.abs().max()))
        if not block.isfinite().all() or (block.diagonal() < 0).any():
            raise ValueError(f"{name} has numbers that are not finite, or negative squares")
    if not moments.first.isfinite().all():
        raise ValueError(f"{name} has numbers that are not finite")
    return trace, largest


PLACE = "feature_map/"  # beginning of the names of the arrays


def write_feature_map(file: NewFile, feature_map: FeatureMap) -> None:
    """Store φ with its frequencies, so that it never depends on a generator's version."""
    file.header["feature_map"] = {"kernel": feature_map.kernel, **feature_map.parameters}
    for name, tensor in feature_map.tensors.items():
        file.array(f"{PLACE}{name}", tensor.float().cpu().numpy())


def read_feature_map(file: StoredFile, device: str | torch.device = "cpu") -> FeatureMap:
    """Read the φ that `write_feature_map` stored; call it in `content_of`."""
    state = dict(file.header["feature_map"])
    for name in file.names(PLACE):
        tensor = torch.from_numpy(file.stored(name).whole())
        if not tensor.isfinite().all():
            raise ValueError(f"{name} has numbers that are not finite")
        state[name.removeprefix(PLACE)] = tensor
    kernel = state.pop("kernel")
    if "kind" in state:
        if state["dim"] != len(state["center"]):  # a forged number of entries could be any
            raise ValueError(f"the feature map has {state['dim']} entries and a center of {len(state['center'])}")
        maps: dict[str, Callable[..., FeatureMap]] = part_of_wing("hermite.coordinate_kernels:HERMITE_MAPS")
        return maps[state.pop("kind")](device=device, **state)
    if kernel == CosineFeatures.kernel:
        return CosineFeatures(int(state["dim"]), device)
    dim, features = state["frequencies"].shape
    return RandomFourierFeatures(dim, features, device=device, **state)
