"""Pixels as the embedding: no network at all."""

from __future__ import annotations

from pathlib import Path

import torch

from finc_eval.core.errors import DataError
from finc_eval.extractors.card import Card


class Pixels(torch.nn.Module):
    """(n, 3, height, width) -> (n, 3 * height * width), in channel, row, column order."""

    def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the pixels of a batch, as the output "input"."""
        return {"input": images.flatten(1)}


def load(card: Card, weights: Path | None) -> Pixels:
    """Return the network that only flattens its input."""
    if card.weights is not None:
        raise DataError(f"card {card.name}: the loader pixels takes no weights: remove that table")
    return Pixels()
