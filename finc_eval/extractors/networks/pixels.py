"""Pixels as the embedding: no network at all."""

from __future__ import annotations

import torch

from finc_eval.extractors.card import Card


class Pixels(torch.nn.Module):
    """(n, 3, height, width) -> the output "input", (n, 3 * height * width), in channel, row, column order."""

    def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"input": images.flatten(1)}


def create(_: Card) -> Pixels:
    """Make the network."""
    return Pixels()
