"""Moments and feature maps in files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from pydantic import Field

from finc_eval.core.files.stored import StoredFile
from finc_eval.core.files.writing import NewFile, new_file
from finc_eval.core.record import Record, plain
from finc_eval.feature_maps.base import CosineFeatures, FeatureMap
from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.numerics.hash_counts import MOST_HASHES, HashCounts
from finc_eval.numerics.moments import Moments, from_upper, upper, upper_size
from finc_eval.numerics.names import Precision
from finc_eval.samples.shards import Shard
from finc_eval.sketches.folds import BottomSample
from finc_eval.wing import part_of_wing

SKETCH, SKETCH_LAYOUT = "sketch", 3

EMBEDDING = "embedding"  # name of the sums of embeddings
LARGEST_SQUARE = 1.001  # mean of ‖φ(x)‖² at most; 1 + 3e-7 was measured with 50 to 4 000 frequencies, in float32

NOT_PRIVATE = "plain statistics of the samples, without privacy noise: handle as the data"

Number = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, kw_only=True)
class SketchHeader(Record):
    """Header of the file of a sketch; `Sketch` says what the fields are.

    Attributes:
        capacity: number of embeddings that the sample keeps.
        n: number of samples in the moments, by their name.
        columns: names of the columns of the sample.
        repeats_counted: whether the file has numbers of samples by their embeddings.
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
    columns: tuple[str, ...] = ()
    repeats_counted: bool = False
    privacy: str = NOT_PRIVATE


def write_parts(
    path: str | Path,
    header: SketchHeader,
    feature_map: FeatureMap,
    moments: Mapping[str, Moments],
    sample: BottomSample,
    repeats: HashCounts | None,
) -> None:
    """Write the file of a sketch, from its parts."""
    with new_file(path, SKETCH, SKETCH_LAYOUT) as file:
        file.header |= plain(header)
        write_feature_map(file, feature_map)
        for name, sums in moments.items():
            write_moments(file, name, sums)
        write_sample(file, sample)
        write_repeats(file, repeats)


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


def read_all_moments(file: StoredFile, moments: Mapping[str, Moments], numbers: Mapping[str, int]) -> None:
    """Read the sums of both folds of φ, and of the embeddings, by name, with their numbers of samples."""
    for name, sums in moments.items():
        trace, largest = read_moments(file, name, sums, numbers[name])
        # ‖φ(x)‖ is at most 1, so that no sum of products of its entries exceeds the number of samples.
        if name != EMBEDDING and max(trace, largest) > LARGEST_SQUARE * sums.n:
            raise ValueError("its sums are not of its samples")


def write_sample(file: NewFile, sample: BottomSample) -> None:
    """Store a bottom-k sample; the header has the names of its columns."""
    file.array("sample/keys", sample.keys)
    file.array("sample/rows", sample.rows.numpy())
    file.texts("sample/ids", sample.ids)
    for number, texts in enumerate(sample.columns.values()):
        file.texts(f"sample/columns/{number}", texts)


def read_sample(file: StoredFile, header: SketchHeader, dim: int) -> BottomSample:
    """Read the bottom-k sample that `write_sample` stored, with embeddings of `dim` entries."""
    sample, ids = BottomSample(dim, header.capacity), file.texts("sample/ids").all()
    rows = torch.from_numpy(file.array("sample/rows", len(ids), dim))
    if not rows.isfinite().all():
        raise ValueError("its sample has numbers that are not finite")
    columns = {
        name: file.texts(f"sample/columns/{number}", len(ids)).all() for number, name in enumerate(header.columns)
    }
    sample.add(file.array("sample/keys", len(ids), dtype="<u8"), ids, rows, columns)
    return sample


def write_repeats(file: NewFile, repeats: HashCounts | None) -> None:
    """Store the numbers of samples by the hashes of their embeddings, if they are known."""
    if repeats is not None:
        file.array("repeats/hashes", repeats.hashes)
        file.array("repeats/counts", repeats.counts)


def read_repeats(file: StoredFile, header: SketchHeader, n: int) -> HashCounts | None:
    """Read the numbers that `write_repeats` stored of n samples; None if the file has none."""
    if not header.repeats_counted:
        return None
    hashes = file.array("repeats/hashes", None, dtype="<u8")
    counts = file.array("repeats/counts", len(hashes), dtype="<i8")
    is_whole = len(hashes) < MOST_HASHES
    if (np.diff(hashes) == 0).any() or (hashes[1:] < hashes[:-1]).any() or (counts < 1).any():
        raise ValueError("the numbers of its repeats are not ascending hashes with counts")
    if len(hashes) > MOST_HASHES or counts.sum() > n or (is_whole and counts.sum() < n):
        raise ValueError("the numbers of its repeats are not of its samples")
    return HashCounts(n, hashes, counts)


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
