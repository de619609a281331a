"""Networks by the `loader.kind` of their card; one module per kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from finc_eval.backbones import pixels
from finc_eval.cards import Card
from finc_eval.errors import FincEvalError, did_you_mean

if TYPE_CHECKING:
    import torch

    Backbone = Callable[[torch.Tensor], torch.Tensor]

LOADERS: dict[str, Callable[[Card, torch.device], Backbone]] = {"pixels": pixels.load}


def load_backbone(card: Card, device: torch.device) -> Backbone:
    """Return the card's network on `device`: (n, 3, height, width) float32 to (n, dimension) float32.

    Raises:
        FincEvalError: the card asks for a kind of loader there is none of, or its loader refuses the card.
    """
    kind = card.loader.kind
    if kind not in LOADERS:
        raise FincEvalError(
            f'card {card.name}: there is no loader.kind "{kind}"{did_you_mean(kind, LOADERS)}: '
            f"choose one of {', '.join(LOADERS)}"
        )
    return LOADERS[kind](card, device)
