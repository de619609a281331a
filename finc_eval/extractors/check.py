"""Check of an extractor on this machine: one sample of noise against the golden values of its card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from finc_eval.extractors.card import Card
from finc_eval.extractors.network import Embedder
from finc_eval.extractors.preprocess import resize_frames

NOISE_SEED = 0
VALUES_SHOWN = 4
"""Seed of the noise, and first values reported, for a card without golden values."""


@dataclass(frozen=True)
class ExtractorCheck:
    """Embedding of one sample of noise, compared with the card's golden values."""

    name: str  # name of the card
    device: str  # device of the network
    dimension: int  # dimension of the embedding
    finite: bool  # whether all values of the embedding and of the further outputs are finite
    # "agrees" or "differs", within the card's tolerance; "none" for a card without golden values
    golden: Literal["agrees", "differs", "none"]
    norm: float  # Euclidean norm of the embedding
    first: tuple[float, ...]  # first values of the embedding, as many as the card has golden values, or four
    deviation: float | None  # largest relative deviation from the golden values; None without them

    @property
    def passed(self) -> bool:
        """Return whether the values are finite and do not differ from the golden ones."""
        return self.finite and self.golden != "differs"


def check(card: Card, device: str | torch.device | None = None) -> ExtractorCheck:
    """Embed one sample of noise and compare it with the card's golden values."""
    embedder, golden = Embedder(card, device), card.golden
    frames = (card.clip.frames,) if card.clip else ()
    shape, seed = (golden.shape, golden.seed) if golden else ((*frames, *card.preprocessing.size, 3), NOISE_SEED)
    noise = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    row = embedder(torch.from_numpy(np.stack([resize_frames(noise, card.preprocessing)])))[0].double().cpu()
    embedding = row[: card.output.dimension]
    norm, first = float(embedding.norm()), embedding[: len(golden.first) if golden else VALUES_SHOWN].tolist()
    deviation = None
    if golden:
        # Relative to a typical value where the value itself is smaller: small ones are differences of large ones.
        typical = golden.norm / len(embedding) ** 0.5
        deviation = max(
            abs(norm / golden.norm - 1),
            *(abs(now - then) / max(abs(then), typical) for now, then in zip(first, golden.first, strict=True)),
        )
    return ExtractorCheck(
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
