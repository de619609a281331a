"""Feature maps as numbers and tensors, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from finc_eval.feature_maps.base import FeatureMap
from finc_eval.feature_maps.cosine import CosineFeatures
from finc_eval.feature_maps.fourier import RandomFourierFeatures

if TYPE_CHECKING:
    pass


def feature_map_state(phi: FeatureMap) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """The numbers and the tensors from which `restored_feature_map` makes the same map again."""
    return {"kernel": phi.kernel, **phi.parameters}, phi.tensors


def restored_feature_map(
    numbers: dict[str, Any], tensors: dict[str, torch.Tensor], device: str | torch.device = "cpu"
) -> FeatureMap:
    """The feature map of a `feature_map_state`."""
    parameters = {name: value for name, value in numbers.items() if name != "kernel"}
    if "kind" in parameters:
        # Hermite features lie one layer up, with the rest of what privacy needs.
        from finc_eval.feature_maps.hermite import MAPS

        return MAPS[parameters.pop("kind")](**parameters, center=tensors["center"], device=device)
    if numbers["kernel"] == CosineFeatures.kernel:
        return CosineFeatures(int(numbers["dim"]), device)
    return RandomFourierFeatures.from_frequencies(
        tensors["frequencies"],
        float(numbers["sigma"]),
        int(numbers["seed"]),
        bool(numbers["orthogonal"]),
        tensors["center"],
        device,
    )
