"""Networks with weights of the tests, and what they refuse."""

from dataclasses import replace

import pytest
import torch

from finc_eval.core.errors import FincEvalError
from finc_eval.extractors.card import Weights


def message(call, *arguments):
    with pytest.raises(FincEvalError) as caught:
        call(*arguments)
    return str(caught.value)


def largest(difference):
    return float(difference.abs().max())


def save(path, tensors):
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(tensors, path)
    return path


def stirred(network, seed=0):
    """The network with random weights that keep its signals at the size of its inputs, and statistics of their own."""
    generator = torch.Generator().manual_seed(seed)
    for module in network.modules():
        if isinstance(module, torch.nn.Conv2d | torch.nn.Linear):
            torch.nn.init.kaiming_normal_(module.weight, nonlinearity="relu", generator=generator)
        if isinstance(module, torch.nn.BatchNorm2d):
            for tensor in (module.weight, module.running_var):
                tensor.data.uniform_(0.8, 1.2, generator=generator)
            for tensor in (module.bias, module.running_mean):
                tensor.data.normal_(0, 0.1, generator=generator)
    return network


def with_weights(card, path, layout=None, **loader):
    weights = Weights(str(path), "none", layout=layout or (card.weights and card.weights.layout))
    return replace(card, weights=weights, loader=replace(card.loader, **loader))
