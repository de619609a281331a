"""Feature maps as numbers and tensors, and back."""

from __future__ import annotations

from typing import Any

import torch

from finc_eval.feature_maps.base import FeatureMap
from finc_eval.feature_maps.cosine import CosineFeatures
from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.feature_maps.hermite import HERMITE_MAPS


def feature_map_state(phi: FeatureMap) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Return the numbers and tensors from which `restored_feature_map` makes the same map again."""
    return {"kernel": phi.kernel, **phi.parameters}, phi.tensors


def restored_feature_map(
    numbers: dict[str, Any], tensors: dict[str, torch.Tensor], device: str | torch.device = "cpu"
) -> FeatureMap:
    """Make the feature map of a `feature_map_state`."""
    state: dict[str, Any] = {name: value for name, value in numbers.items() if name != "kernel"} | tensors
    if "kind" in state:
        return HERMITE_MAPS[state.pop("kind")](device=device, **state)
    if numbers["kernel"] == CosineFeatures.kernel:
        return CosineFeatures(int(numbers["dim"]), device)
    dim, features = state["frequencies"].shape
    return RandomFourierFeatures(dim, features, device=device, **state)
