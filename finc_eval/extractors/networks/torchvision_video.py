"""Video networks of torchvision, trained on Kinetics-400."""

from __future__ import annotations

import torch
from torchvision import models

from finc_eval.core.errors import DataError, did_you_mean
from finc_eval.extractors.card import Card


class Outputs(torch.nn.Module):
    """Map clips (n, 3, frames, height, width) to "features" (n, d) and "logits" (n, 400).

    The features are the input of the classifier. S3D classifies at several places of a clip and averages; its
    classifier is affine, so the logits of the averaged features are the same.
    """

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        # The classifier is the last part of each network; its name differs.
        name, self.head = list(network.named_children())[-1]
        network.set_submodule(name, torch.nn.Identity())
        self.trunk = network
        self.head_is_convolution = any(isinstance(layer, torch.nn.Conv3d) for layer in self.head.modules())

    def forward(self, clips: torch.Tensor) -> dict[str, torch.Tensor]:
        """Compute the outputs of a batch."""
        features = self.trunk(clips)
        heads_input = features[:, :, None, None, None] if self.head_is_convolution else features
        return {"features": features, "logits": self.head(heads_input).flatten(1)}


def create(card: Card) -> torch.nn.Module:
    """Make the card's network with random weights."""
    model = card.loader.model
    known = models.list_models(module=models.video)
    if model not in known:
        raise DataError(
            f'card {card.name}: torchvision has no video network "{model}"{did_you_mean(model, known)}: '
            f"choose one of {', '.join(known)}"
        )
    try:
        network: torch.nn.Module = models.get_model(model, weights=None, **card.loader.options)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"card {card.name}: torchvision cannot make {model} with {card.loader.options} ({error}): "
            "correct loader.options"
        ) from error
    return network
