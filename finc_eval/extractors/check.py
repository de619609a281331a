"""Whether an extractor gives on this machine what its card says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from finc_eval.extractors.card import Card
from finc_eval.extractors.network import Embedder
from finc_eval.extractors.preprocess import resized

SEED = 0
SHOWN = 4


@dataclass(frozen=True)
class Report:
    """What one sample of noise gave.

    Attributes:
        name: of the card.
        device: where the network ran.
        dimension: of the embedding, which is as the card says or an error.
        finite: whether embedding and further outputs are numbers throughout.
        golden: "agrees" or "differs", within the card's tolerance; "none" where the card has no golden values.
        norm: Euclidean norm of the embedding.
        first: its first values, as many as the card's golden values, or four.
        deviation: the largest relative deviation from the golden values; None without them.
    """

    name: str
    device: str
    dimension: int
    finite: bool
    golden: Literal["agrees", "differs", "none"]
    norm: float
    first: tuple[float, ...]
    deviation: float | None

    @property
    def passed(self) -> bool:
        """Whether nothing speaks against using the extractor."""
        return self.finite and self.golden != "differs"


def check(card: Card, device: str | torch.device | None = None) -> Report:
    """Embed one sample of noise and compare it with the card's golden values.

    Args:
        card: the extractor.
        device: where the network runs; CUDA where there is one when left out.

    Raises:
        FincEvalError: the weights are missing or wrong, the network refuses them, or its outputs are not as the card
            says.
    """
    embedder, golden = Embedder(card, device), card.golden
    frames = (card.clip.frames,) if card.clip else ()
    shape, seed = (golden.shape, golden.seed) if golden else ((*frames, *card.preprocessing.size, 3), SEED)
    noise = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    row = embedder(torch.from_numpy(np.stack([resized(noise, card.preprocessing)])))[0].double().cpu()
    embedding = row[: card.output.dimension]
    norm, first = float(embedding.norm()), embedding[: len(golden.first) if golden else SHOWN].tolist()
    deviation = None
    if golden:
        # Single values are measured against the size of a typical one: small ones are differences of large ones.
        typical = golden.norm / len(embedding) ** 0.5
        deviation = max(
            abs(norm / golden.norm - 1),
            *(abs(now - then) / max(abs(then), typical) for now, then in zip(first, golden.first, strict=True)),
        )
    return Report(
        name=card.name,
        device=str(embedder.device),
        dimension=len(embedding),
        finite=bool(row.isfinite().all()),
        golden="none"
        if deviation is None or golden is None
        else "agrees"
        if deviation <= golden.tolerance
        else "differs",
        norm=norm,
        first=tuple(first),
        deviation=deviation,
    )
