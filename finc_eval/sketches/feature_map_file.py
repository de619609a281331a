"""Feature maps in HDF5 files."""

from __future__ import annotations

import h5py
import torch

from finc_eval.feature_maps.base import FeatureMap
from finc_eval.feature_maps.storage import feature_map_state, restored_feature_map


def write_feature_map(file: h5py.Group, feature_map: FeatureMap) -> None:
    """Store φ with its frequencies, so that it never depends on a generator's version."""
    group = file.create_group("feature_map")
    numbers, tensors = feature_map_state(feature_map)
    group.attrs.update(numbers)
    for name, tensor in tensors.items():
        group[name] = tensor.cpu().numpy()


def read_feature_map(file: h5py.Group, device: str | torch.device = "cpu") -> FeatureMap:
    """Read the φ that `write_feature_map` stored."""
    group = file["feature_map"]
    tensors = {name: torch.from_numpy(tensor[:]) for name, tensor in group.items()}
    return restored_feature_map(dict(group.attrs), tensors, device)
