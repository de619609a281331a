"""A network of images with fewer passes over memory, for a CPU: the same function up to the last digits.

A batch norm after a convolution multiplies and shifts each channel by constants, and so can the convolution. Zeros at
two sides of an image, as TensorFlow pads it, are a copy of the image; a kernel that is one wider, with zeros, needs
none.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

MAX_ERROR = 1e-5
"""Largest change of a value, as a part of the largest value, that folding may make; EfficientNet-Lite0: 3e-6."""


def fold(network: nn.Module, outputs: Callable[[nn.Module], torch.Tensor]) -> nn.Module:
    """Return the network folded, or as it is if its outputs, which `outputs` computes, would change."""
    if not any(isinstance(module, nn.BatchNorm2d) for module in network.modules()):
        return network
    with Layers(network) as layers:
        expected = outputs(network)
    made = _folded(network, layers)
    error = (outputs(made) - expected).abs().max()
    return made if error <= MAX_ERROR * expected.abs().max() else network


class Layers:
    """Convolutions of a network as they are called in a block, and the batch norms that take their outputs."""

    def __init__(self, network: nn.Module) -> None:
        self.pairs: list[tuple[str, str]] = []  # names of a convolution and its norm
        self.sizes: dict[str, list[tuple[int, ...]]] = {}  # height and width of the inputs, for each call
        self._names = {module: name for name, module in network.named_modules()}
        self._last: tuple[str, Any] = ("", None)
        self._normed: list[str] = []
        self._hooks: list[Any] = []

    def __enter__(self) -> Layers:
        for module in self._names:
            if isinstance(module, nn.Conv2d):
                self._hooks.append(module.register_forward_hook(self._after_convolution))
            elif isinstance(module, nn.BatchNorm2d) and _rest(module) is not None:
                self._hooks.append(module.register_forward_pre_hook(self._before_norm))
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()
        self._last = ("", None)
        # Where a module is called twice, one set of weights cannot stand for both.
        self.sizes = {name: sizes for name, sizes in self.sizes.items() if len(sizes) == 1}
        self.pairs = [pair for pair in self.pairs if pair[0] in self.sizes and self._normed.count(pair[1]) == 1]

    def _after_convolution(self, module: nn.Module, inputs: Any, output: Any) -> None:
        self._last = self._names[module], output
        self.sizes.setdefault(self._names[module], []).append(tuple(inputs[0].shape[2:]))

    def _before_norm(self, module: nn.Module, inputs: Any) -> None:
        self._normed.append(self._names[module])
        if inputs[0] is self._last[1]:
            self.pairs.append((self._last[0], self._names[module]))


def _folded(network: nn.Module, layers: Layers) -> nn.Module:
    """Return a copy of a network whose convolutions do the work of their norms and need no padded copies."""
    made = copy.deepcopy(network)
    for convolution, norm in layers.pairs:
        old: Any = made.get_submodule(norm)
        _fold(made.get_submodule(convolution), old)
        rest = _rest(old)
        if hasattr(rest, "inplace"):  # nobody else reads the output of the convolution
            rest.inplace = True
        made.set_submodule(norm, rest)
    for name, (size,) in layers.sizes.items():
        old = made.get_submodule(name)
        # 4: channels of a group for which a wider kernel is cheaper than a padded copy: depthwise, and colors.
        if type(old).__name__ == "Conv2dSame" and old.weight.shape[1] <= 4 and old.dilation == (1, 1):
            made.set_submodule(name, _widened(old, size))
    return made


@torch.no_grad()
def _fold(convolution: Any, norm: Any) -> None:
    """Multiply and shift the outputs of a convolution as a norm does, by float64 arithmetic on its weights."""
    scale = (norm.running_var.double() + norm.eps).rsqrt()
    if norm.weight is not None:
        scale = scale * norm.weight.double()
    bias = -norm.running_mean.double() if convolution.bias is None else convolution.bias - norm.running_mean.double()
    shift = bias * scale + (0 if norm.bias is None else norm.bias)
    convolution.weight.copy_(convolution.weight * scale.view(-1, 1, 1, 1))
    convolution.bias = nn.Parameter(shift.to(convolution.weight.dtype), requires_grad=False)


def _rest(norm: Any) -> Any:
    """Return what a norm does after its constants, or None if this is not known; norms of timm end in an activation."""
    if norm.running_mean is None or norm.running_var is None:
        return None
    if type(norm) is nn.BatchNorm2d:
        return nn.Identity()
    known = type(norm).__name__ == "BatchNormAct2d" and isinstance(norm.drop, nn.Identity)
    return norm.act if known else None


def _widened(old: Any, size: tuple[int, ...]) -> nn.Conv2d:
    """Return a convolution that pads all sides alike, for one of TensorFlow that pads inputs of this size.

    An odd number of zeros has one more at the end. Zeros before the weights let the kernel begin one pixel earlier.
    """
    needed = [
        max((-(-side // step) - 1) * step + width - side, 0)
        for side, step, width in zip(size, old.stride, old.kernel_size, strict=True)
    ]
    weight = functional.pad(old.weight, (needed[1] % 2, 0, needed[0] % 2, 0))
    padding = (-(-needed[0] // 2), -(-needed[1] // 2))
    kernel = (weight.shape[2], weight.shape[3])
    made = nn.Conv2d(old.in_channels, old.out_channels, kernel, old.stride, padding, groups=old.groups)
    made.weight = nn.Parameter(weight.to(memory_format=torch.channels_last), requires_grad=False)
    made.bias = old.bias
    return made
