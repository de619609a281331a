"""Embeddings of some pictures of a set upside down, by its own extractor, which are kept on the disk.

They are beside the embedding caches, a file for the pictures of each set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from finc_eval.core.digest import sha256_of
from finc_eval.core.doors import create_file
from finc_eval.core.errors import DataError
from finc_eval.core.files.npz import NpzFile
from finc_eval.core.places import user_folder
from finc_eval.core.progress import Stage
from finc_eval.core.run import Run
from finc_eval.core.storage import write_whole
from finc_eval.embeddings.recipe import ARITHMETIC, extractor_of, space_of
from finc_eval.extractors.card import Card
from finc_eval.extractors.catalog import available_cards, load_card
from finc_eval.extractors.preprocess import resize_frames
from finc_eval.extractors.weights import locate

if TYPE_CHECKING:
    from PIL import Image

    from finc_eval.extractors.network import CardNetwork

TURNED = 300
"""Pictures of a set that are embedded upside down. Each takes as long as its embedding: 21 ms on a core, 6 s in all."""

LEAST_TURNED = 100
"""Pictures of a set below which none is turned: the classifier that knows what is upright learns from both sets."""

TOGETHER = 16  # pictures that the network takes at once

MOST_FILES = 100  # files on the disk, of 1.5 MB each; of more, those that were written first go

TURN = Stage("look at pictures upside down", cost=20.0)

Floats = NDArray[np.float32]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TurnedRows:
    """Embeddings of pictures that were turned by 180°.

    Attributes:
        rows: row number of each picture in its set, shape (k,), ascending.
        values: embeddings, shape (k, d).
    """

    rows: Indices
    values: Floats


class Turner:
    """Embeds pictures of a set upside down as they pass by, unless it is known what that gives."""

    def __init__(self, card: Card, run: Run, rows: Indices, places: Indices, path: Path) -> None:
        self._card, self._run, self._rows, self._places, self._path = card, run, rows, places, path
        self._values = _read(path, (len(rows), card.output.dimension))
        self._embedder: CardNetwork | None = None
        self._made: list[Floats] = []

    @classmethod
    def of(
        cls, space: str, content: NDArray[np.uint64] | None, looked: Indices, rows: Indices, run: Run
    ) -> Turner | None:
        """Return what turns some pictures of a set; None for few of them, or without their network.

        Networks without cells are not asked: nobody has measured what they know of upright.

        Args:
            space: extractor of the set, as name@digest.
            content: digest of the pixels of each sample, shape (n,); None if it is unknown.
            looked: rows of the pictures that pass by, ascending.
            rows: some of these, which are turned.
            run: run, on whose device they are embedded.
        """
        name = extractor_of(space)
        if content is None or len(rows) < LEAST_TURNED or name not in available_cards():
            return None
        card = load_card(name)
        is_at_hand = card.cells is not None and card.weights is not None and locate(card.weights) is not None
        if not is_at_hand or space != space_of(card):
            return None
        path = _folder() / f"{sha256_of(f'180 {space} {ARITHMETIC}', content[rows])}.npz"
        return cls(replace(card, cells=None, extra={}), run, rows, np.searchsorted(looked, rows), path)

    def add(self, start: int, images: Sequence[Image.Image]) -> None:
        """Take the pictures of the samples that are looked at, from number `start` on."""
        if self._values is not None:
            return
        inside = self._places[(self._places >= start) & (self._places < start + len(images))] - start
        for first in range(0, len(inside), TOGETHER):
            self._made.append(self._embed([images[place] for place in inside[first : first + TOGETHER].tolist()]))
            self._run.progress(TURN, sum(map(len, self._made)), len(self._rows))

    def keep(self) -> TurnedRows:
        """Return the embeddings of all pictures that were to be turned, which are now also on the disk."""
        if self._values is None:
            self._values = np.concatenate(self._made)
            _write(self._path, self._values)
        return TurnedRows(self._rows, self._values)

    def _embed(self, images: Sequence[Image.Image]) -> Floats:
        import torch  # seconds of import, and of the network, which kept embeddings do not need

        from finc_eval.extractors.network import CardNetwork

        if self._embedder is None:
            self._embedder = CardNetwork(self._card, self._run.torch_device)
        ready = [resize_frames(np.asarray(image.convert("RGB")), self._card.preprocessing) for image in images]
        turned = np.stack(ready)[:, ::-1, ::-1].copy()
        return self._embedder(torch.from_numpy(turned)).cpu().numpy()


def _folder() -> Path:
    """Return the folder of turned pictures, beside the embedding caches; another number is for another layout."""
    return user_folder("embeddings") / "turned-1"


def _read(path: Path, shape: tuple[int, int]) -> Floats | None:
    """Return what the disk has; None without a whole file of this shape."""
    try:
        if not path.is_file():
            return None
        file = NpzFile(path)
        header = file.header("values") if "values" in file.names else None
        if header is None or header.shape != shape or header.dtype != np.float32:
            return None
        values = file.array("values")
    except (DataError, OSError):
        return None
    return values if np.isfinite(values).all() else None


def _write(path: Path, values: Floats) -> None:
    """Keep embeddings on the disk; of too many files, the oldest go. What cannot be written is made again."""
    try:
        with write_whole(path) as temporary, create_file(temporary) as file:
            np.savez(file, values=values)
        by_age = sorted(path.parent.glob("*.npz"), key=lambda entry: entry.stat().st_mtime)
        for old in by_age[: max(0, len(by_age) - MOST_FILES)]:
            old.unlink(missing_ok=True)
    except (DataError, OSError):
        return
