"""Image networks of torchvision that end in a linear layer."""

from __future__ import annotations

import torch

from finc_eval.core.errors import DataError, did_you_mean
from finc_eval.extractors.card import Card


class Outputs(torch.nn.Module):
    """Map (n, 3, height, width) to "features", the input of the last linear layer, and "logits", its output; (n, d)."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        name = [name for name, module in network.named_modules() if isinstance(module, torch.nn.Linear)][-1]
        self.head = network.get_submodule(name)
        network.set_submodule(name, torch.nn.Identity())
        self.trunk = network

    def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        """Compute the outputs of a batch."""
        features = self.trunk(images)
        return {"features": features, "logits": self.head(features)}


def create(card: Card) -> torch.nn.Module:
    """Make the card's network with random weights."""
    import torchvision

    model = card.loader.model
    known = torchvision.models.list_models(module=torchvision.models)
    if model not in known:
        raise DataError(
            f'card {card.name}: torchvision {torchvision.__version__} has no image network "{model}"'
            f"{did_you_mean(model, known)}: correct loader.model"
        )
    try:
        network: torch.nn.Module = torchvision.models.get_model(model, weights=None, **card.loader.options)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"card {card.name}: torchvision cannot make {model} with {card.loader.options} ({error}): "
            "correct loader.options"
        ) from error
    if not any(isinstance(module, torch.nn.Linear) for module in network.modules()):
        raise DataError(
            f"card {card.name}: {model} has no linear layer whose input could be the features: choose another"
        )
    return network
