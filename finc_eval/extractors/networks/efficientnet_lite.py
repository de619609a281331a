"""EfficientNet-Lite0, the network of the default extractor, as timm has it under the name tf_efficientnet_lite0.

It has the layers, the names of tensors and their order, and the numbers of timm's, which takes seconds to import.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from finc_eval.extractors.card import Card

STAGES = ((2, 3, 2, 24), (2, 5, 2, 40), (3, 3, 2, 80), (3, 5, 1, 112), (4, 5, 2, 192), (1, 3, 1, 320))
"""Blocks, width of the kernel, step of the first block, and channels of each stage after the first."""


class Conv2dSame(nn.Conv2d):
    """A convolution that pads as TensorFlow does: an odd number of zeros has one more at the end."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        zeros: list[int] = []
        for side, step, width in zip(images.shape[2:], self.stride, self.kernel_size, strict=True):
            needed = max((-(-side // step) - 1) * step + width - side, 0)
            zeros = [needed // 2, needed - needed // 2, *zeros]
        return functional.conv2d(
            functional.pad(images, zeros), self.weight, self.bias, self.stride, 0, self.dilation, self.groups
        )


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3)


def _depthwise(channels: int, width: int, step: int) -> nn.Conv2d:
    """Return a convolution of each channel for itself."""
    options: dict[str, Any] = {"stride": step, "groups": channels, "bias": False}
    if step > 1:
        return Conv2dSame(channels, channels, width, **options)
    return nn.Conv2d(channels, channels, width, padding=width // 2, **options)


class _Block(nn.Sequential):
    """Layers with a shortcut around them where they keep the shape."""

    def __init__(self, layers: dict[str, nn.Module], shortcut: bool) -> None:
        super().__init__()
        for name, layer in layers.items():
            self.add_module(name, layer)
        self.shortcut = shortcut

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        outputs = images
        for layer in self:
            outputs = layer(outputs)
        return outputs + images if self.shortcut else outputs


def _first(channels: int, outputs: int) -> _Block:
    layers = {
        "conv_dw": _depthwise(channels, 3, 1),
        "bn1": _norm(channels),
        "act1": nn.ReLU6(inplace=True),
        "conv_pw": nn.Conv2d(channels, outputs, 1, bias=False),
        "bn2": _norm(outputs),
    }
    return _Block(layers, shortcut=False)


def _inverted(channels: int, width: int, step: int, outputs: int) -> _Block:
    """Return the block of MobileNet-v2 (arXiv 1801.04381): it widens, filters each channel, and narrows."""
    inside = 6 * channels
    layers = {
        "conv_pw": nn.Conv2d(channels, inside, 1, bias=False),
        "bn1": _norm(inside),
        "act1": nn.ReLU6(inplace=True),
        "conv_dw": _depthwise(inside, width, step),
        "bn2": _norm(inside),
        "act2": nn.ReLU6(inplace=True),
        "conv_pwl": nn.Conv2d(inside, outputs, 1, bias=False),
        "bn3": _norm(outputs),
    }
    return _Block(layers, shortcut=step == 1 and channels == outputs)


class EfficientNetLite0(nn.Module):
    """Map (n, 3, height, width) to "features", the pooled input of the last layer, and "logits" or "projection"."""

    def __init__(self) -> None:
        super().__init__()
        self.conv_stem = Conv2dSame(3, 32, 3, stride=2, bias=False)
        self.bn1, self.act1 = _norm(32), nn.ReLU6(inplace=True)
        stages, channels = [nn.Sequential(_first(32, 16))], 16
        for count, width, step, outputs in STAGES:
            blocks = [_inverted(channels, width, step, outputs)]
            blocks += [_inverted(outputs, width, 1, outputs) for _ in range(count - 1)]
            stages.append(nn.Sequential(*blocks))
            channels = outputs
        self.blocks = nn.Sequential(*stages)
        self.conv_head = nn.Conv2d(channels, 1280, 1, bias=False)
        self.bn2, self.act2 = _norm(1280), nn.ReLU6(inplace=True)
        self.classifier = nn.Linear(1280, 1000)  # classes of ImageNet

    def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        trunk = self.blocks(self.act1(self.bn1(self.conv_stem(images))))
        features = functional.adaptive_avg_pool2d(self.act2(self.bn2(self.conv_head(trunk))), 1).flatten(1)
        logits = self.classifier(features)
        return {"features": features, "logits": logits, "projection": logits}


def create(card: Card) -> EfficientNetLite0:
    """Make the network with random weights."""
    return EfficientNetLite0()
