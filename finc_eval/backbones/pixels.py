"""The embedding that is the image itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from finc_eval.cards import Card
from finc_eval.errors import FincEvalError

if TYPE_CHECKING:
    import torch


def load(card: Card, device: torch.device) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return the map (n, 3, height, width) -> (n, 3 * height * width), in channel, row, column order."""
    if card.weights is not None:
        raise FincEvalError(f"card {card.name}: the loader pixels takes no weights: remove that table")
    return lambda images: images.flatten(1)
