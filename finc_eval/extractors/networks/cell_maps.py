"""A network that also gives the cells of its samples: its early maps, pooled while it computes the embedding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import adaptive_avg_pool2d

from finc_eval.core.errors import DataError
from finc_eval.extractors.card import CellStatistic
from finc_eval.extractors.cells import CLIP, GRID, STEPS, CellTable

CELLS = "cells"  # name of the output


class WithCells(torch.nn.Module):
    """A network of images with one more output, "cells": (n, 49, c) int8, row by row of the grid of 7 × 7 windows.

    Of clips, whose frames it embeds one by one, the cells are means over each third of the frames: (n, 147, c). Hooks
    pool each map as soon as it is there, so that no map is held and nothing is computed twice.
    """

    def __init__(self, network: torch.nn.Module, table: CellTable, name: str) -> None:
        super().__init__()
        self.network, self._parts = network, dict[str, torch.Tensor]()
        device = next(network.parameters()).device
        self.center = torch.from_numpy(table.center).to(device)
        self.factor = torch.from_numpy(STEPS / CLIP / table.scale).to(device)
        self._layers, self._times = tuple(table.layers), table.times
        of_images = network if table.times == 1 else network.get_submodule("network")  # of `FrameByFrame`
        for layer, statistics in table.layers.items():
            try:
                module = of_images.get_submodule(layer)
            except AttributeError as error:
                raise DataError(f'card {name}: the network has no layer "{layer}": correct cells.layers') from error
            module.register_forward_hook(self._pooling(layer, statistics))

    def _pooling(self, layer: str, statistics: tuple[CellStatistic, ...]) -> Callable[..., None]:
        def pool(_module: torch.nn.Module, _inputs: Any, maps: torch.Tensor) -> None:
            self._parts[layer] = window_statistics(maps.float(), statistics)

        return pool

    def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        outputs: dict[str, torch.Tensor] = self.network(images)
        values = torch.cat([self._parts[layer] for layer in self._layers], 2)
        if values.shape[2] != len(self.center):
            raise DataError(f"the layers of cells have {values.shape[2]} numbers, their table {len(self.center)}")
        if self._times > 1:
            thirds = values.view(len(images), -1, *values.shape[1:]).tensor_split(self._times, 1)
            values = torch.cat([frames.mean(1) for frames in thirds], 1)
        scaled = ((values - self.center) * self.factor).clamp(-STEPS, STEPS)
        return outputs | {CELLS: scaled.round().to(torch.int8)}


def window_statistics(maps: torch.Tensor, statistics: tuple[CellStatistic, ...]) -> torch.Tensor:
    """Compute statistics of the channels of maps, (n, c, height, width), on each window: (n, 49, c · statistics)."""
    means = adaptive_avg_pool2d(maps, GRID)
    values = {"mean": means}
    if "deviation" in statistics:
        values["deviation"] = (adaptive_avg_pool2d(maps.square(), GRID) - means.square()).clamp(min=0).sqrt()
    return torch.cat([values[name] for name in statistics], 1).flatten(2).transpose(1, 2)
