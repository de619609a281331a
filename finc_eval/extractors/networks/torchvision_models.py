"""Any image network of torchvision that ends in a linear layer."""

from __future__ import annotations

import torch

from finc_eval.core.errors import FincEvalError, did_you_mean
from finc_eval.extractors.card import Card


class Outputs(torch.nn.Module):
    """(n, 3, height, width) -> "features" that go into the last linear layer and "logits" that come out, (n, d)."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        name = [name for name, module in network.named_modules() if isinstance(module, torch.nn.Linear)][-1]
        self.head = network.get_submodule(name)
        network.set_submodule(name, torch.nn.Identity())
        self.trunk = network

    def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        """The outputs of a batch."""
        features = self.trunk(images)
        return {"features": features, "logits": self.head(features)}


def create(card: Card) -> torch.nn.Module:
    """The card's network with random weights.

    Raises:
        FincEvalError: there is no such network, or it refuses the card's options.
    """
    import torchvision

    model = card.loader.model
    known = torchvision.models.list_models(module=torchvision.models)
    if model not in known:
        raise FincEvalError(
            f'card {card.name}: torchvision {torchvision.__version__} has no image network "{model}"'
            f"{did_you_mean(model, known)}: correct loader.model"
        )
    try:
        network: torch.nn.Module = torchvision.models.get_model(model, weights=None, **card.loader.options)
    except (TypeError, ValueError) as error:
        raise FincEvalError(
            f"card {card.name}: torchvision cannot make {model} with {card.loader.options} ({error}): "
            "correct loader.options"
        ) from error
    if not any(isinstance(module, torch.nn.Linear) for module in network.modules()):
        raise FincEvalError(f"card {card.name}: {model} has no linear layer to take features before: choose another")
    return network
