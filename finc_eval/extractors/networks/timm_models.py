"""Networks of timm (https://github.com/huggingface/pytorch-image-models)."""

from __future__ import annotations

from typing import Any

import torch

from finc_eval.core.errors import DataError, did_you_mean
from finc_eval.extractors.card import Card


class Outputs(torch.nn.Module):
    """Map (n, 3, height, width) to outputs by name, (n, d) each.

    "features": the input of the last layer, after the network's own pooling and norm. "cls": the class token after the
    norm of the trunk, for transformers that have one. "logits": the output of the last layer, if there is one. timm
    does not say what that layer is for, so it is also called "projection": in CLIP's image towers it leads into the
    space shared with text.
    """

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        """Compute the outputs of a batch."""
        trunk = self.network.forward_features(images)
        outputs = {"features": self.network.forward_head(trunk, pre_logits=True)}
        if getattr(self.network, "cls_token", None) is not None and trunk.ndim == 3:
            outputs["cls"] = trunk[:, 0]
        if self.network.num_classes > 0:
            outputs["logits"] = outputs["projection"] = self.network.forward_head(trunk)
        return outputs


def create(card: Card) -> torch.nn.Module:
    """Make the card's network with random weights."""
    import timm

    model = card.loader.model
    if not timm.is_model(model):
        known = timm.list_models()
        near = did_you_mean(model, known) or did_you_mean(model.partition(".")[0], known)
        raise DataError(
            f'card {card.name}: timm {timm.__version__} has no network "{model}"{near}: '
            "correct loader.model, or install another version of timm"
        )
    try:
        options: dict[str, Any] = dict(card.loader.options)
        network: torch.nn.Module = timm.create_model(model, pretrained=False, **options)
    except (TypeError, ValueError, RuntimeError, AssertionError) as error:
        raise DataError(
            f"card {card.name}: timm cannot make {model} with {card.loader.options} ({error}): correct loader.options"
        ) from error
    return network
