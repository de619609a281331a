"""Inception-v3 of the Fréchet inception distance, as in TensorFlow's graph of 2015-12-05.

It has torchvision's blocks with three differences: average pools do not count their padding, the last block pools by
maximum, and there are 1008 classes. Its tensors have torchvision's names, as in the files of pytorch-fid and
torch-fidelity. It equals torch-fidelity's FeatureExtractorInceptionV3, whose resize is the card's "tensorflow1".
"""

from __future__ import annotations

import torch
from torch.nn.functional import avg_pool2d, max_pool2d
from torchvision.models import inception

from finc_eval.extractors.card import Card

SPATIAL_CHANNELS = 7
"""First channels of Mixed_6d's first branch, which sFID (Nash et al., 2021) takes: 17 x 17 x 7 = 2023 values."""


def _pool(images: torch.Tensor) -> torch.Tensor:
    return avg_pool2d(images, kernel_size=3, stride=1, padding=1, count_include_pad=False)


class _BlockA(inception.InceptionA):  # type: ignore[misc]
    def _forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        small = self.branch5x5_2(self.branch5x5_1(x))
        double = self.branch3x3dbl_3(self.branch3x3dbl_2(self.branch3x3dbl_1(x)))
        return [self.branch1x1(x), small, double, self.branch_pool(_pool(x))]


class _BlockC(inception.InceptionC):  # type: ignore[misc]
    def _forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        single = self.branch7x7_3(self.branch7x7_2(self.branch7x7_1(x)))
        double = self.branch7x7dbl_3(self.branch7x7dbl_2(self.branch7x7dbl_1(x)))
        double = self.branch7x7dbl_5(self.branch7x7dbl_4(double))
        return [self.branch1x1(x), single, double, self.branch_pool(_pool(x))]


class _BlockE(inception.InceptionE):  # type: ignore[misc]
    def _pool(self, x: torch.Tensor) -> torch.Tensor:
        return _pool(x)

    def _forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        single = self.branch3x3_1(x)
        single = [self.branch3x3_2a(single), self.branch3x3_2b(single)]
        double = self.branch3x3dbl_2(self.branch3x3dbl_1(x))
        double = [self.branch3x3dbl_3a(double), self.branch3x3dbl_3b(double)]
        return [self.branch1x1(x), torch.cat(single, 1), torch.cat(double, 1), self.branch_pool(self._pool(x))]


class _LastBlockE(_BlockE):
    def _pool(self, x: torch.Tensor) -> torch.Tensor:
        return max_pool2d(x, kernel_size=3, stride=1, padding=1)


class FidInception(inception.Inception3):  # type: ignore[misc]
    """Map (n, 3, 299, 299), (pixel - 128) / 128, to outputs by name, (n, d) each.

    "features": 2048 pooled values. "logits": 1008. "logits_unbiased": the logits without their bias, for the inception
    score. "spatial": 2023 values for sFID, in row, column, channel order.
    """

    def __init__(self) -> None:
        blocks = [inception.BasicConv2d, _BlockA, inception.InceptionB, _BlockC, inception.InceptionD, _BlockE]
        # The seventh block would make the auxiliary classifier, which is turned off.
        super().__init__(1008, aux_logits=False, init_weights=False, inception_blocks=[*blocks, inception.InceptionAux])
        self.Mixed_7c = _LastBlockE(2048)

    def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        x = self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(images)))
        x = self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(self.maxpool1(x)))
        x = self.Mixed_5d(self.Mixed_5c(self.Mixed_5b(self.maxpool2(x))))
        x = self.Mixed_6c(self.Mixed_6b(self.Mixed_6a(x)))
        # The graph calls it mixed_6/conv: its blocks count from "mixed", torchvision's from 5b.
        spatial = self.Mixed_6d.branch1x1(x)[:, :SPATIAL_CHANNELS]
        x = self.Mixed_6e(self.Mixed_6d(x))
        x = self.Mixed_7c(self.Mixed_7b(self.Mixed_7a(x)))
        features = self.avgpool(x).flatten(1)
        unbiased = features @ self.fc.weight.T
        return {
            "features": features,
            "logits_unbiased": unbiased,
            "logits": unbiased + self.fc.bias,
            "spatial": spatial.permute(0, 2, 3, 1).flatten(1),
        }


def create(_: Card) -> torch.nn.Module:
    """Make the network with random weights."""
    network: torch.nn.Module = FidInception()
    return network
