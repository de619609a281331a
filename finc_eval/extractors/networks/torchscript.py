"""A network in a TorchScript file, such as the I3D of FVD or NVIDIA's Inception."""

from __future__ import annotations

import warnings
from pathlib import Path

import torch

from finc_eval.core.errors import FincEvalError
from finc_eval.extractors.card import Card


class TorchscriptNetwork(torch.nn.Module):
    """A batch -> the one output of the file's network, under the name that the card gives it."""

    def __init__(self, network: torch.nn.Module, card: Card) -> None:
        super().__init__()
        self.network, self._layer, self._options = network, card.output.layer, dict(card.loader.options)

    def forward(self, batch: torch.Tensor) -> dict[str, torch.Tensor]:
        """The output of a batch."""
        return {self._layer: self.network(batch, **self._options)}


def load(card: Card, weights: Path | None) -> TorchscriptNetwork:
    """The network in the file; the card's options are passed to each call of it.

    Raises:
        FincEvalError: the card does not pin its file, or the file is no TorchScript.
    """
    if card.loader.model or card.extra:
        raise FincEvalError(
            f"card {card.name}: a TorchScript file holds one network with one output: remove the others"
        )
    if card.weights is None or weights is None or card.weights.sha256 is None:
        # Loading one is running what it says, so the first file seen is not good enough.
        raise FincEvalError(
            f"card {card.name}: a TorchScript file is a program: state its weights.file and weights.sha256"
        )
    try:
        with warnings.catch_warnings():
            # torch deprecates the format, in which FVD's network is published and nowhere else.
            warnings.simplefilter("ignore", FutureWarning)
            network: torch.nn.Module = torch.jit.load(weights, map_location="cpu")  # type: ignore[no-untyped-call]
    except (RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise FincEvalError(f"{weights} cannot be read as TorchScript ({reason}): fetch or copy it again") from error
    return TorchscriptNetwork(network, card)
