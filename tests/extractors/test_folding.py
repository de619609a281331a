"""A network is folded only where its outputs stay the same."""

import pytest
import torch
from timm.layers import BatchNormAct2d, StdConv2d, create_conv2d
from torch import nn

from finc_eval.extractors.folding import MAX_ERROR, fold

IMAGES = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))


class Twice(nn.Module):
    """One convolution for two norms."""

    def __init__(self):
        super().__init__()
        self.conv, self.one, self.two = nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3), nn.BatchNorm2d(3)

    def forward(self, x):
        return self.two(self.conv(self.one(self.conv(x))))


class Beside(nn.Module):
    """The output of a convolution goes on beside its norm."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3), BatchNormAct2d(8)

    def forward(self, x):
        x = self.conv(x)
        return torch.cat([self.norm(x), x], dim=1)


class Before(nn.Module):
    """Something changes between a convolution and the norm."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)

    def forward(self, x):
        return self.norm(self.conv(x).relu())


NETWORKS = {  # a network, and the norms and padded convolutions that folding leaves
    "a norm": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()), 0),
    "no bias of its own": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8)), 0),
    "a norm without weights": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8, affine=False)), 0),
    "groups": (lambda: nn.Sequential(nn.Conv2d(3, 6, 5, groups=3, stride=2), nn.BatchNorm2d(6)), 0),
    "a norm with an activation": (lambda: nn.Sequential(nn.Conv2d(3, 8, 1), BatchNormAct2d(8, act_layer=nn.SiLU)), 0),
    "padded as by TensorFlow": (lambda: padded(3, 8, 3, 2), 0),
    "padded, wide": (lambda: padded(3, 8, 5, 2), 0),
    "padded, long steps": (lambda: padded(3, 8, 3, 4), 0),
    "padded, not square": (lambda: padded(3, 8, (3, 2), (2, 1)), 0),
    "padded, dilated": (lambda: padded(3, 8, 3, 2, dilation=2), 1),
    "a norm alone": (lambda: nn.Sequential(nn.BatchNorm2d(3), nn.Conv2d(3, 8, 3)), 1),
    "a norm of this batch": (
        lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8, track_running_stats=False)),
        1,
    ),
    "standardized weights": (lambda: nn.Sequential(StdConv2d(3, 8, 3), nn.BatchNorm2d(8)), 1),
    "one convolution for two norms": (Twice, 2),
    "beside the norm": (Beside, 1),
    "an activation before the norm": (Before, 1),
    "a volume": (lambda: nn.Sequential(nn.Unflatten(1, (1, 3)), nn.Conv3d(1, 8, 3), nn.BatchNorm3d(8)), 1),
}


def padded(*layer, **options):
    conv = create_conv2d(*layer[:3], stride=layer[3], padding="same", **options)
    return nn.Sequential(conv, nn.BatchNorm2d(8))


@pytest.mark.parametrize("name", NETWORKS)
def test_folding_leaves_the_outputs_of_every_network_as_they_are(name):
    make, left = NETWORKS[name]
    torch.manual_seed(1)
    network = make().eval()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d | nn.BatchNorm3d) and module.running_mean is not None:
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
            if module.affine:
                nn.init.normal_(module.weight)
    run = torch.inference_mode()(lambda one: one(IMAGES.clone()))
    before = run(network)
    made = fold(network, run)
    assert (run(made) - before).abs().max() <= MAX_ERROR * before.abs().max()
    assert torch.equal(run(network), before), "the network that is folded does not change"
    rest = [type(module).__name__ for module in made.modules()]
    assert sum("Norm" in kind or kind == "Conv2dSame" for kind in rest) == left
