"""Vectors of prompts, and sets whose samples are pairs of a prompt and an image.

PromptSplit (arXiv 2602.04009) takes the leading eigenvectors of C_{T⊗X} − η·C_{T⊗Y}, covariances of φ_T(t) ⊗ φ_X(x).
The kernel of these features is k_T(t, t')·k_X(x, x'). With Gaussian kernels, that is the Gaussian kernel of (x, c·t) of
bandwidth σ_X, where c = σ_X / σ_T. So PromptSplit is FINC on rows that have the vector of the prompt beside the
embedding, and η is ρ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.device import send
from finc_eval.core.digest import sha256_of
from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings, Subset
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.extractors.card import BY_FRAMES, Card
from finc_eval.extractors.catalog import available_cards, load_card
from finc_eval.extractors.network import TextTower
from finc_eval.naming.properties import TEXT_COLUMNS, WORD
from finc_eval.numerics.kernels import median_bandwidth
from finc_eval.sketches.folds import SAMPLE_SIZE
from finc_eval.sketches.reference import bottom_rows

WORDS, WORDLLAMA = "words", "wordllama"
"""Vectors that need no file: of words and of neighboring words, and the mean of the tokens' vectors of wordllama."""

BLOCKS, BLOCK = 8, 64
"""Blocks of a vector of words, and entries of a block: a term has an entry in each (sparse Johnson-Lindenstrauss)."""


class Joint(Subset):
    """A set with the vector of its prompt, of (p, k) in the units of the embeddings, beside each embedding."""

    def __init__(
        self, source: Embeddings, vectors: torch.Tensor, place: NDArray[np.int64], prompts: Sequence[str]
    ) -> None:
        super().__init__(source, np.arange(source.n))
        self.vectors, self.place, self.prompts = vectors, place, prompts
        self.dim = source.dim + vectors.shape[1]

    @property
    def digest(self) -> str:
        """Digest of the embeddings and the vectors."""
        return sha256_of(self.source.digest, self.vectors.numpy(), self.place)

    def rows_at(self, indices: NDArray[np.int64]) -> torch.Tensor:
        """Return embeddings with the vectors of their prompts."""
        return self._join(self.source.rows_at(indices), self.place[indices])

    def grouped(self, column: str | None) -> Joint:
        """Return the same set, its samples grouped by a column."""
        return Joint(self.source.grouped(column), self.vectors, self.place, self.prompts)

    def _rows_in_order(self, size: int) -> Iterator[torch.Tensor]:
        start = 0
        for batch in self.source.batches(size):
            yield self._join(batch.rows, self.place[start : (start := start + len(batch.rows))])

    def _join(self, rows: torch.Tensor, place: NDArray[np.int64]) -> torch.Tensor:
        return torch.cat([rows, send(self.vectors[torch.from_numpy(place)], rows.device)], 1)


def join_text(
    sets: Mapping[str, Embeddings], reference: Sequence[str], text: str, column: str | None, sigma: float | None
) -> tuple[dict[str, Joint], float, str]:
    """Return sets of prompts and images, the bandwidth of images, to which prompts are scaled, and what is not read.

    The sets `reference` decide the bandwidth, unless it is given. `text` is "words", "wordllama", a card with a text
    tower, or the path of a file with an embedding for each prompt.
    """
    column = column or text_column(sets, f"text {text!r} needs")
    values = {label: one.column(column) for label, one in sets.items()}
    prompts = sorted({name for of_set in values.values() for name in of_set})
    vectors, unread = embed_prompts(prompts, text)
    if sigma is None:
        sample = [bottom_rows(sets[label], SAMPLE_SIZE // len(reference)) for label in reference]
        sigma = median_bandwidth(torch.cat(sample).cpu())
    drawn = np.random.default_rng(0).permutation(len(vectors))[:SAMPLE_SIZE]
    scaled = vectors * (sigma / median_bandwidth(vectors[drawn]) if len(vectors) > 1 else 1.0)
    at = {name: row for row, name in enumerate(prompts)}
    places = {label: np.array([at[name] for name in of_set]) for label, of_set in values.items()}
    return {label: Joint(one, scaled, places[label], prompts) for label, one in sets.items()}, sigma, unread


def text_column(sets: Mapping[str, Embeddings], who: str) -> str:
    """Return the first of prompt, caption and text that all sets have as a column; `who` needs it."""
    for name in TEXT_COLUMNS:
        if all(name in one.columns for one in sets.values()):
            return name
    raise DataError(f"{who} prompts in all sets, in a column prompt, caption or text: add them")


def card_of_text(text: str) -> Card | None:
    """Return the card that a text names, whose text tower embeds prompts; None for other texts."""
    known = text.removesuffix(BY_FRAMES) in available_cards() or Path(text).suffix == ".toml"
    return load_card(text) if known else None


def embed_prompts(prompts: Sequence[str], text: str, run: Run | None = None) -> tuple[torch.Tensor, str]:
    """Return the vectors of prompts, shape (p, k), float32, and a sentence on what is not read; see `join_text`."""
    if text == WORDS:
        return torch.from_numpy(hash_words(prompts)), ""
    if text == WORDLLAMA:
        try:
            import wordllama
        except ImportError as error:
            raise UsageError("text wordllama needs its package: pip install wordllama") from error
        # From the files of its package: nothing is downloaded.
        model = wordllama.WordLlama.load(cache_dir=files(wordllama), disable_download=True)
        return torch.from_numpy(np.asarray(model.embed(list(prompts), norm=True), np.float32)), ""
    if (card := card_of_text(text)) is not None:
        tower = TextTower(card, Run.of(run).torch_device)
        return tower(prompts), tower.unread(prompts)
    if not Path(text).suffix:
        raise UsageError(
            f"text must be {WORDS}, {WORDLLAMA}, a card with a text tower, or the path of a file of embeddings, "
            f"got {text!r}"
        )
    found = as_embeddings(text)
    column = next((name for name in TEXT_COLUMNS if name in found.columns), None)
    names = found.ids_between(0, found.n) if column is None else found.column(column)
    at = {name: row for row, name in enumerate(names)}
    missing = [name for name in prompts if name not in at]
    if missing:
        raise DataError(
            f"{text} has no embedding for {len(missing):,} of {len(prompts):,} prompts, such as {missing[0]!r:.60}: "
            "name its rows by the prompts, as ids or in a column prompt"
        )
    return found.rows_at(np.array([at[name] for name in prompts])).cpu(), ""


def hash_words(prompts: Sequence[str]) -> NDArray[np.float32]:
    """Return the signed counts of hashed words and of pairs of neighboring words, of length 1, shape (p, 512)."""
    found = np.zeros((len(prompts), BLOCKS, BLOCK), np.float32)
    for row, prompt in zip(found, prompts, strict=True):
        words = WORD.findall(prompt.lower())
        for term in (*words, *map(" ".join, pairwise(words))):
            hashed = np.frombuffer(blake2b(term.encode(), digest_size=BLOCKS).digest(), np.uint8).astype(int)
            row[range(BLOCKS), hashed % BLOCK] += np.where(hashed < 128, 1, -1)
    flat = found.reshape(len(prompts), -1)
    return np.asarray(flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-6), np.float32)
