"""Networks of torchvision, of images or of clips, that end in a linear layer."""

from __future__ import annotations

import torch
import torchvision

from finc_eval.core.errors import DataError, did_you_mean
from finc_eval.extractors.card import Card

FAMILIES = {"torchvision": ("image", torchvision.models), "torchvision-video": ("video", torchvision.models.video)}
"""Samples and module of the networks, by the kind of the loader."""

LAST_LAYERS = (torch.nn.Linear, torch.nn.Conv3d)
"""Types of the last layer. S3D has a convolution, and averages what it says at several places of a clip."""


class Outputs(torch.nn.Module):
    """Map (n, 3, height, width), or clips (n, 3, frames, height, width), to "features" and "logits", both (n, d).

    The features are the input of the last layer, averaged over places as its output is: the layer is affine, so that
    its output for them is the logits.
    """

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        name, self.head = [module for module in network.named_modules() if isinstance(module[1], LAST_LAYERS)][-1]
        network.set_submodule(name, torch.nn.Identity())
        self.trunk = network

    def forward(self, samples: torch.Tensor) -> dict[str, torch.Tensor]:
        features = self.trunk(samples)
        of_places = features[:, :, None, None, None] if isinstance(self.head, torch.nn.Conv3d) else features
        return {"features": features, "logits": self.head(of_places).flatten(1)}


def create(card: Card) -> torch.nn.Module:
    """Make the card's network with random weights."""
    model, (samples, family) = card.loader.model, FAMILIES[card.loader.kind]
    known = torchvision.models.list_models(module=family)
    if model not in known:
        raise DataError(
            f'card {card.name}: torchvision {torchvision.__version__} has no {samples} network "{model}"'
            f"{did_you_mean(model, known)}: correct loader.model"
        )
    try:
        network: torch.nn.Module = torchvision.models.get_model(model, weights=None, **card.loader.options)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"card {card.name}: torchvision cannot make {model} with {card.loader.options} ({error}): "
            "correct loader.options"
        ) from error
    if not any(isinstance(module, LAST_LAYERS) for module in network.modules()):
        raise DataError(
            f"card {card.name}: {model} has no linear layer whose input could be the features: choose another"
        )
    return network
