"""Networks in TorchScript files, such as FVD's I3D or NVIDIA's Inception."""

from __future__ import annotations

import warnings
from pathlib import Path

import torch

from finc_eval.core.errors import DataError, first_line
from finc_eval.extractors.card import Card


class TorchscriptNetwork(torch.nn.Module):
    """Map a batch to the single output of the file's network, under the name in the card."""

    def __init__(self, network: torch.nn.Module, card: Card) -> None:
        super().__init__()
        self.network, self._layer, self._options = network, card.output.layer, dict(card.loader.options)

    def forward(self, batch: torch.Tensor) -> dict[str, torch.Tensor]:
        return {self._layer: self.network(batch, **self._options)}


def load(card: Card, weights: Path | None) -> TorchscriptNetwork:
    """Load the network in the file; each call of it gets the card's options."""
    if card.loader.model or card.extra:
        raise DataError(f"card {card.name}: a TorchScript file holds one network with one output: remove the others")
    if card.weights is None or weights is None or card.weights.sha256 is None:
        # Loading the file runs its code, so trust on first use is not enough.
        raise DataError(f"card {card.name}: a TorchScript file is a program: state its weights.file and weights.sha256")
    try:
        with warnings.catch_warnings():
            # torch deprecates the format, but FVD's network is published in no other.
            warnings.simplefilter("ignore", FutureWarning)
            network: torch.nn.Module = torch.jit.load(weights, map_location="cpu")  # type: ignore[no-untyped-call]
    except (RuntimeError, ValueError) as error:
        what = f"{weights} cannot be read as TorchScript ({first_line(error)})"
        raise DataError(f"{what}: fetch or copy it again") from error
    return TorchscriptNetwork(network, card)
