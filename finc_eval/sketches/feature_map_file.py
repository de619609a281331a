"""Feature maps in HDF5 files."""

from __future__ import annotations

import h5py
import torch

from finc_eval.feature_maps.base import FeatureMap
from finc_eval.feature_maps.cosine import CosineFeatures
from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.feature_maps.hermite import HERMITE_MAPS


def write_feature_map(file: h5py.Group, feature_map: FeatureMap) -> None:
    """Store φ with its frequencies, so that it never depends on a generator's version."""
    group = file.create_group("feature_map")
    group.attrs.update({"kernel": feature_map.kernel, **feature_map.parameters})
    for name, tensor in feature_map.tensors.items():
        group[name] = tensor.cpu().numpy()


def read_feature_map(file: h5py.Group, device: str | torch.device = "cpu") -> FeatureMap:
    """Read the φ that `write_feature_map` stored."""
    group = file["feature_map"]
    state = dict(group.attrs) | {name: torch.from_numpy(tensor[:]) for name, tensor in group.items()}
    kernel = state.pop("kernel")
    if "kind" in state:
        return HERMITE_MAPS[state.pop("kind")](device=device, **state)
    if kernel == CosineFeatures.kernel:
        return CosineFeatures(int(state["dim"]), device)
    dim, features = state["frequencies"].shape
    return RandomFourierFeatures(dim, features, device=device, **state)
