"""Feature maps in files."""

from __future__ import annotations

import torch

from finc_eval.core.files.reading import StoredFile
from finc_eval.core.files.writing import NewFile
from finc_eval.feature_maps.base import FeatureMap
from finc_eval.feature_maps.coordinate_kernels import HERMITE_MAPS
from finc_eval.feature_maps.cosine import CosineFeatures
from finc_eval.feature_maps.fourier import RandomFourierFeatures

PLACE = "feature_map/"
"""Beginning of the names of the arrays."""


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
        return HERMITE_MAPS[state.pop("kind")](device=device, **state)
    if kernel == CosineFeatures.kernel:
        return CosineFeatures(int(state["dim"]), device)
    dim, features = state["frequencies"].shape
    return RandomFourierFeatures(dim, features, device=device, **state)
