"""I3D, the network of the Fréchet video distance: Inception-v1 with its filters inflated to three dimensions.

Carreira and Zisserman, Quo Vadis, Action Recognition?, arXiv:1705.07750, figure 3; RGB stream.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from finc_eval.core.errors import DataError
from finc_eval.extractors.card import Card

Triple = tuple[int, int, int]

# Channels of each inception block: 1x1x1 branch; reduction and 3x3x3 of two branches; branch after the pooling.
INCEPTION = {
    "mixed_3b": (64, 96, 128, 16, 32, 32),
    "mixed_3c": (128, 128, 192, 32, 96, 64),
    "mixed_4b": (192, 96, 208, 16, 48, 64),
    "mixed_4c": (160, 112, 224, 24, 64, 64),
    "mixed_4d": (128, 128, 256, 24, 64, 64),
    "mixed_4e": (112, 144, 288, 32, 64, 64),
    "mixed_4f": (256, 160, 320, 32, 128, 128),
    "mixed_5b": (256, 160, 320, 32, 128, 128),
    "mixed_5c": (384, 192, 384, 48, 128, 128),
}
POOLING_WINDOW = (2, 7, 7)
"""Frames, height and width over which I3D averages its last features, as its authors' code has it."""
MIN_CLIP_SIZE = (9, 193, 193)
"""Smallest (frames, height, width): five halvings of the sides and three of the time leave `POOLING_WINDOW`."""


class I3D(nn.Module):
    """Map clips (n, 3, frames, height, width) in [-1, 1] to "features" (n, 1024) and "logits" (n, 400).

    The features are averaged over windows of 2x7x7 and over time, and over space for clips larger than 224x224. The
    logits, before the softmax, are an affine function of them, so that averaging the logits over time, as in DeepMind's
    code, gives the same.

    Args:
        epsilon: value that batch normalization adds to the variance: 1e-3 in DeepMind's own code, 1e-5 in some ports.
    """

    def __init__(self, epsilon: float = 1e-3) -> None:
        super().__init__()
        self.trunk = nn.Sequential()
        self.trunk.add_module("conv_1a", Unit(3, 64, 7, epsilon, stride=2))
        self.trunk.add_module("pool_2a", PaddedPool((1, 3, 3), (1, 2, 2)))
        self.trunk.add_module("conv_2b", Unit(64, 64, 1, epsilon))
        self.trunk.add_module("conv_2c", Unit(64, 192, 3, epsilon))
        self.trunk.add_module("pool_3a", PaddedPool((1, 3, 3), (1, 2, 2)))
        pools = {"mixed_3c": ("pool_4a", 3), "mixed_4f": ("pool_5a", 2)}
        width = 192
        for name, channels in INCEPTION.items():
            self.trunk.add_module(name, Inception(width, channels, epsilon))
            width = channels[0] + channels[2] + channels[4] + channels[5]
            if name in pools:
                pool, kernel = pools[name]
                self.trunk.add_module(pool, PaddedPool((kernel, kernel, kernel), (2, 2, 2)))
        self.logits = nn.Linear(1024, 400)  # from the features to the classes of Kinetics

    def forward(self, clips: torch.Tensor) -> dict[str, torch.Tensor]:
        size = tuple(clips.shape[2:])
        if any(side < least for side, least in zip(size, MIN_CLIP_SIZE, strict=True)):
            (frames, height, width), (least, *sides) = size, MIN_CLIP_SIZE
            raise DataError(
                f"I3D needs clips of at least {least} frames of {sides[0]}x{sides[1]} pixels, got {frames} "
                f"frames of {height}x{width}: set clip.frames and preprocessing.size of the card to 16 and [224, 224]"
            )
        features = functional.avg_pool3d(self.trunk(clips), POOLING_WINDOW, stride=1).mean((2, 3, 4))
        return {"features": features, "logits": self.logits(features)}


class Unit(nn.Module):
    """Convolution, batch normalization and ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int, epsilon: float, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv3d(inputs, outputs, kernel, stride, bias=False)
        self.norm = nn.BatchNorm3d(outputs, epsilon)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (n, inputs, frames, height, width) to (n, outputs, …); sides are divided by the stride and rounded up."""
        x, padding = _same(x, self.conv.weight.shape[2:], self.conv.stride)
        x = functional.conv3d(x, self.conv.weight, stride=self.conv.stride, padding=padding)
        return functional.relu(self.norm(x), inplace=True)


class PaddedPool(nn.Module):
    """Maximum pooling."""

    def __init__(self, kernel: Triple, stride: Triple) -> None:
        super().__init__()
        self.kernel, self.stride = kernel, stride

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Pool; sides are divided by the stride and rounded up."""
        # Zeros at the borders do not change a maximum, because a ReLU always precedes.
        x, padding = _same(x, self.kernel, self.stride)
        return functional.max_pool3d(x, self.kernel, self.stride, padding)


class Inception(nn.Module):
    """Inception block: four parallel branches, whose outputs are concatenated."""

    def __init__(self, inputs: int, channels: tuple[int, ...], epsilon: float) -> None:
        super().__init__()
        point, reduced_a, wide_a, reduced_b, wide_b, pooled = channels
        self.branches = nn.ModuleList(
            [
                Unit(inputs, point, 1, epsilon),
                nn.Sequential(Unit(inputs, reduced_a, 1, epsilon), Unit(reduced_a, wide_a, 3, epsilon)),
                nn.Sequential(Unit(inputs, reduced_b, 1, epsilon), Unit(reduced_b, wide_b, 3, epsilon)),
                nn.Sequential(PaddedPool((3, 3, 3), (1, 1, 1)), Unit(inputs, pooled, 1, epsilon)),
            ]
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (n, inputs, …) to (n, sum of the branches' outputs, …)."""
        return torch.cat([branch(x) for branch in self.branches], dim=1)


def create(card: Card) -> I3D:
    """Make the card's network with random weights."""
    options = dict(card.loader.options)
    epsilon = options.pop("epsilon", 1e-3)
    if options or not isinstance(epsilon, float) or card.loader.model:
        raise DataError(
            f"card {card.name}: the loader i3d has no model names and one option, epsilon, a number, "
            f"got {card.loader.model!r} and {card.loader.options}: correct the table [loader]"
        )
    return I3D(epsilon)


def _same(x: torch.Tensor, kernel: tuple[int, ...], stride: tuple[int, ...]) -> tuple[torch.Tensor, list[int]]:
    """Pad as TensorFlow's "SAME": return x with the odd zeros at its ends, and the padding left for both sides."""
    needed = [
        max((-(-size // step) - 1) * step + width - size, 0)
        for size, width, step in zip(x.shape[2:], kernel, stride, strict=True)
    ]
    if any(zeros % 2 for zeros in needed):
        x = functional.pad(x, [side for zeros in reversed(needed) for side in (0, zeros % 2)])
    return x, [zeros // 2 for zeros in needed]
