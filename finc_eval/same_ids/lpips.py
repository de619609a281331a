"""LPIPS of two pictures (Zhang et al. 2018), version 0.1: how far apart AlexNet sees them, as people would."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.errors import DataError
from finc_eval.extractors.card import Card
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.networks import loader_module
from finc_eval.extractors.networks.tensors import fill_network, load_tensors
from finc_eval.extractors.weights import MissingWeightsError, check_weights

Array = NDArray[np.float64]

LAYERS = (1, 4, 7, 9, 11)  # places of the rectifiers among torchvision's `AlexNet.features`
SMALLEST = 31  # pixels of the shorter side: of 30, only 2 × 2 places are left where 3 × 3 are pooled


class Lpips:
    """LPIPS by the network and the linear layers of a card.

    Attributes:
        device: where it is computed.
    """

    def __init__(self, card: Card, device: torch.device) -> None:
        """Read both files of weights.

        Args:
            card: card of AlexNet, with linear layers.
            device: where to compute.

        Raises:
            DataError: a file is missing or is not the right one.
        """
        files = [check_weights(card), check_weights(card.with_lpips())]
        trunk, linear = (None if file is None else file[0] for file in files)
        assert trunk is not None and linear is not None
        network = fill_network(loader_module(card).create(card), card, trunk).requires_grad_(False).eval().to(device)
        self.device, self._layers = device, [*islice(network.get_submodule("features").children(), LAYERS[-1] + 1)]
        tensors = load_tensors(linear)
        try:
            heads = [tensors[f"lin{number}.model.1.weight"] for number in range(len(LAYERS))]
        except KeyError as error:
            raise DataError(f"{linear} has no {error}: it does not hold the linear layers of LPIPS") from error
        self._heads = [head.float().reshape(-1, 1, 1).to(device) for head in heads]
        self._mean, self._std = (
            torch.tensor(values, device=device)[:, None, None]
            for values in (card.preprocessing.mean, card.preprocessing.std)
        )

    def measure(self, first: Sequence[NDArray[np.uint8]], second: Sequence[NDArray[np.uint8]]) -> Array:
        """Measure pairs of pictures of one size, (h, w, 3) uint8 each; NaN for those that are too small."""
        return np.array([self._distance(*pair) for pair in zip(first, second, strict=True)])

    def _distance(self, first: NDArray[np.uint8], second: NDArray[np.uint8]) -> float:
        if min(first.shape[:2]) < SMALLEST:
            return float("nan")
        values = torch.from_numpy(np.stack([first, second])).to(self.device).permute(0, 3, 1, 2).float() / 255
        values, heads, total = (values - self._mean) / self._std, iter(self._heads), 0.0
        for place, layer in enumerate(self._layers):
            values = layer(values)
            if place in LAYERS:
                unit, other = values / (values.norm(dim=1, keepdim=True) + 1e-10)
                total += float(((unit - other) ** 2 * next(heads)).sum(0).mean())
        return total


def find_lpips(device: torch.device) -> Lpips | None:
    """Return LPIPS if both files of its weights are at hand; else None."""
    try:
        return Lpips(load_card("alexnet"), device)
    except MissingWeightsError:
        return None
