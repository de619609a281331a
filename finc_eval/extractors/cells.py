"""`CellTable`: the layers, statistics and constants by which a network's early maps become cells; cards state it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.digest import sha256_of
from finc_eval.core.errors import DataError
from finc_eval.core.files.csv_text import csv_columns
from finc_eval.extractors.card import CARDS, Card, CellStatistic

GRID = 7  # windows along each side of a picture, 49 in all
WINDOWS = GRID * GRID

TIMES = 3  # grids of a clip: means over the first, the second and the last third of its frames

CLIP = 5.0  # standard deviations of photographs at which a number is clipped; it becomes 127
STEPS = 127  # whole numbers on each side of zero in int8


@dataclass(frozen=True, eq=False)
class CellTable:
    """Numbers that are kept of each window of a picture, and the constants that center and scale them.

    Attributes:
        layers: statistics of each map, by the name of the module whose output it is.
        center: mean of each number over photographs, shape (c,); by layer, then statistic, then channel.
        scale: standard deviation of each number over photographs, shape (c,).
        times: grids of windows of a sample: 1 for an image, `TIMES` for a clip.
    """

    layers: Mapping[str, tuple[CellStatistic, ...]]
    center: NDArray[np.float32]
    scale: NDArray[np.float32]
    times: int = 1

    @property
    def windows(self) -> int:
        """Windows of a sample: 49 for an image, 147 for a clip, its first third first."""
        return self.times * WINDOWS

    @property
    def channels(self) -> int:
        """Numbers of a window, c."""
        return len(self.center)

    @property
    def space(self) -> str:
        """Digest of all that decides the values: cells of two sets can be compared if it is the same."""
        how = json.dumps([list(self.layers.items()), GRID, CLIP, STEPS, *[self.times] * (self.times > 1)])
        return sha256_of(how, self.center, self.scale)[:16]


def cell_table(card: Card) -> CellTable | None:
    """Return how a card makes cells; None for a card that does not.

    Raises:
        DataError: the table of constants is missing, or not the file that the card states.
    """
    stated = card.cells
    if stated is None:
        return None
    constants = _constants(stated.table, stated.sha256)
    if constants is None:
        raise DataError(
            f"card {card.name}: {stated.table} is not the table of cells that the card states: correct the table "
            "[cells], or remove it"
        )
    return CellTable(stated.layers, constants[:, 0].copy(), constants[:, 1].copy(), TIMES if card.clip else 1)


@lru_cache
def _constants(file: str, digest: str) -> NDArray[np.float32] | None:
    """Read the mean and the standard deviation of each number, (c, 2); None if the file is not that of the digest."""
    path = resources.files(CARDS) / file
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if sha256_of(text) != digest:
        return None
    columns = csv_columns(text.partition("\n")[2], file)  # the first line says what the constants are of
    return np.array([columns["center"], columns["scale"]], np.float32).T
