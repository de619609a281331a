"""The embedding that is the image itself."""

from __future__ import annotations

from pathlib import Path

import torch

from finc_eval.core.errors import FincEvalError
from finc_eval.extractors.card import Card


class Pixels(torch.nn.Module):
    """(n, 3, height, width) -> (n, 3 * height * width), in channel, row, column order."""

    def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        """The pixels, as the output "input"."""
        return {"input": images.flatten(1)}


def load(card: Card, weights: Path | None) -> Pixels:
    """The network that does nothing.

    Raises:
        FincEvalError: the card has weights.
    """
    if card.weights is not None:
        raise FincEvalError(f"card {card.name}: the loader pixels takes no weights: remove that table")
    return Pixels()
