"""Naming schemes of published weights: one function for each `weights.layout` of a card."""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
from torch.nn import functional

from finc_eval.core.errors import DataError
from finc_eval.extractors.networks.i3d_names import i3d

Tensors = dict[str, torch.Tensor]


def in_order(tensors: Tensors, network: torch.nn.Module) -> Tensors:
    """Rename tensors by their order alone."""
    own = network.state_dict()
    if len(own) != len(tensors):
        raise DataError(
            f'the file has {len(tensors)} tensors and the network {len(own)}: the layout "in-order" needs as many'
        )
    return dict(zip(own, tensors.values(), strict=True))


def timm(tensors: Tensors, network: torch.nn.Module) -> Tensors:
    """Convert tensors as timm does for files of its own hub: OpenCLIP's and other names, positions resampled.

    timm resamples positions with antialiasing (`timm.layers.resample_abs_pos_embed`).
    """
    convert: Callable[[Tensors, torch.nn.Module], Tensors] | None = getattr(
        sys.modules[type(network).__module__], "checkpoint_filter_fn", None
    )
    return convert(tensors, network) if convert else tensors


def facebook_dinov2(tensors: Tensors, network: torch.nn.Module) -> Tensors:
    """Convert DINOv2 as Facebook Research publishes it, for timm's vision transformer of the same shape.

    The mask token is dropped: only training needs it. Positions are resampled to the network's grid as in Facebook's
    own forward (`interpolate_pos_encoding`: bicubic, no antialiasing, scale computed from the grid plus 0.1), because
    every published DINOv2 feature went through it; timm's resampling gives other numbers at any size but 518.
    """
    renamed = {"mlp.w12.": "mlp.fc1.", "mlp.w3.": "mlp.fc2."}
    result = {}
    for name, tensor in tensors.items():
        if name == "mask_token":
            continue
        for theirs, ours in renamed.items():
            name = name.replace(theirs, ours)
        result[name] = tensor
    height, width = network.patch_embed.grid_size  # type: ignore[union-attr, misc]
    if "pos_embed" in result:
        result["pos_embed"] = _resample(result["pos_embed"].float(), int(height), int(width))
    return result


def swav(tensors: Tensors, network: torch.nn.Module) -> Tensors:
    """Convert SwAV's ResNet, saved from a parallel run, and drop the projection and prototypes of its training."""
    names = {name: name.removeprefix("module.") for name in tensors}
    heads = ("projection_head.", "prototypes.")
    return {name: tensors[theirs] for theirs, name in names.items() if not name.startswith(heads)}


def open_clip_text(tensors: Tensors, network: torch.nn.Module) -> Tensors:
    """Keep the text tower of OpenCLIP's files, where some have it under "text."."""
    return {name.removeprefix("text."): one for name, one in tensors.items() if not name.startswith("visual.")}


LAYOUTS: dict[str, Callable[[Tensors, torch.nn.Module], Tensors]] = {
    "in-order": in_order,
    "timm": timm,
    "facebook-dinov2": facebook_dinov2,
    "swav": swav,
    "i3d": i3d,
    "open-clip-text": open_clip_text,
}


def _resample(positions: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Resample positions, (1, 1 + side², d) the class token's first, to a grid of (height, width)."""
    of_class, of_patches = positions[:, :1], positions[:, 1:]
    side = round(of_patches.shape[1] ** 0.5)
    if (height, width) == (side, side):
        return positions
    grid = of_patches.reshape(1, side, side, -1).permute(0, 3, 1, 2)
    scale = [(height + 0.1) / side, (width + 0.1) / side]
    grid = functional.interpolate(grid, scale_factor=scale, mode="bicubic", antialias=False)
    return torch.cat([of_class, grid.permute(0, 2, 3, 1).flatten(1, 2)], dim=1)
