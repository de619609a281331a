"""Vectors of prompts, sets whose samples are pairs of a prompt and an image, and the fit of images to their prompts.

PromptSplit (arXiv 2602.04009) takes the leading eigenvectors of C_{T⊗X} − η·C_{T⊗Y}, covariances of φ_T(t) ⊗ φ_X(x).
The kernel of these features is k_T(t, t')·k_X(x, x'). With Gaussian kernels, that is the Gaussian kernel of (x, c·t) of
bandwidth σ_X, where c = σ_X / σ_T. So PromptSplit is FINC on rows that have the vector of the prompt beside the
embedding, and η is ρ. The fit is CLIPScore (arXiv 2104.08718), 2.5·max(cos, 0) of both vectors by one model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from importlib.resources import files
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from finc_eval.core.device import send
from finc_eval.core.digest import sha256_of
from finc_eval.core.errors import DataError, IncompatibleError, UsageError
from finc_eval.core.record import Record
from finc_eval.core.run import Run
from finc_eval.embeddings.base import Embeddings
from finc_eval.embeddings.columns import PLACES_OF_PROMPTS
from finc_eval.embeddings.needs import Check, Known
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.recipe import ARRAY_SPACE, extractor_of, spaces_of
from finc_eval.embeddings.subset import Subset
from finc_eval.estimates.estimate import Estimate
from finc_eval.extractors.card import BY_FRAMES, Card
from finc_eval.extractors.catalog import available_cards, card_again, load_card
from finc_eval.extractors.network import TextTower
from finc_eval.extractors.weights import check_weights
from finc_eval.naming.properties import TEXT_COLUMNS, split_words
from finc_eval.numerics.inference import mover
from finc_eval.numerics.kernels import median_bandwidth
from finc_eval.sketches.folds import SAMPLE_SIZE
from finc_eval.sketches.reference import bottom_rows

WORDS, WORDLLAMA = "words", "wordllama"
"""Vectors that need no file: of words and of neighboring words, and the mean of the tokens' vectors of wordllama."""

NO_WORDLLAMA = "text wordllama needs its package: pip install wordllama"

WORD_BLOCKS, WORD_HASHES = 8, 64
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
    values = {label: embeddings.column(column) for label, embeddings in sets.items()}
    prompts = sorted({name for of_set in values.values() for name in of_set})
    vectors, unread = embed_prompts(prompts, text)
    if sigma is None:
        sample = [bottom_rows(sets[label], SAMPLE_SIZE // len(reference)) for label in reference]
        sigma = median_bandwidth(torch.cat(sample).cpu())
    drawn = np.random.default_rng(0).permutation(len(vectors))[:SAMPLE_SIZE]
    scaled = vectors * (sigma / median_bandwidth(vectors[drawn]) if len(vectors) > 1 else 1.0)
    at = {name: row for row, name in enumerate(prompts)}
    places = {label: np.array([at[name] for name in of_set]) for label, of_set in values.items()}
    return (
        {label: Joint(embeddings, scaled, places[label], prompts) for label, embeddings in sets.items()},
        sigma,
        unread,
    )


def text_column(sets: Mapping[str, Known], who: str) -> str:
    """Return the first of prompt, caption and text that all sets have as a column; `who` needs it."""
    for name in TEXT_COLUMNS:
        if all(name in embeddings.columns for embeddings in sets.values()):
            return name
    raise DataError(f"{who} prompts in all sets, in a column prompt, caption or text: {PLACES_OF_PROMPTS}")


def needs_text(text: str | None, column: str | None) -> Check:
    """Return the check that all sets have prompts, and that `text` can embed them; see `join_text`. None asks nothing.

    The prompts are of `column` if all sets have it.
    """

    def check(sets: Mapping[str, Known]) -> None:
        if text is None:
            return
        shared = all(column in embeddings.columns for embeddings in sets.values())
        named = column if column is not None and shared else text_column(sets, f"text {text!r} needs")
        prompts = sorted({name for embeddings in sets.values() for name in embeddings.column(named)})
        if text == WORDLLAMA and find_spec("wordllama") is None:
            raise UsageError(NO_WORDLLAMA)
        if text in (WORDS, WORDLLAMA):
            return
        if (card := card_of_text(text)) is not None:
            check_weights(card)
        else:
            _rows_of_prompts(_file_of_text(text), prompts, text)

    return check


def _file_of_text(text: str) -> Embeddings:
    """Open the file of vectors of prompts that a text names."""
    if not Path(text).suffix:
        raise UsageError(
            f"text must be {WORDS}, {WORDLLAMA}, a card with a text tower, or the path of a file of embeddings, "
            f"got {text!r}"
        )
    return as_embeddings(text)


def _rows_of_prompts(texts: Embeddings, prompts: Sequence[str], text: str) -> NDArray[np.int64]:
    """Return the rows of a file of vectors that are of these prompts."""
    column = next((name for name in TEXT_COLUMNS if name in texts.columns), None)
    names = texts.ids_between(0, texts.n) if column is None else texts.column(column)
    at = {name: row for row, name in enumerate(names)}
    missing = [name for name in prompts if name not in at]
    if missing:
        raise DataError(
            f"{text} has no embedding for {len(missing):,} of {len(prompts):,} prompts, such as {missing[0]!r:.60}: "
            "name its rows by the prompts, as ids or in a column prompt"
        )
    return np.array([at[name] for name in prompts])


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
            raise UsageError(NO_WORDLLAMA) from error
        # From the files of its package: nothing is downloaded.
        model = wordllama.WordLlama.load(cache_dir=files(wordllama), disable_download=True)
        return torch.from_numpy(np.asarray(model.embed(list(prompts), norm=True), np.float32)), ""
    if (card := card_of_text(text)) is not None:
        tower = TextTower(card, Run.of(run).torch_device)
        return tower(prompts), tower.unread(prompts)
    texts_file = _file_of_text(text)
    return texts_file.rows_at(_rows_of_prompts(texts_file, prompts, text)).cpu(), ""


def hash_words(prompts: Sequence[str]) -> NDArray[np.float32]:
    """Return the signed counts of hashed words and of pairs of neighboring words, of length 1, shape (p, 512)."""
    hashes = np.zeros((len(prompts), WORD_BLOCKS, WORD_HASHES), np.float32)
    for row, prompt in zip(hashes, prompts, strict=True):
        words = split_words(prompt)
        for term in (*words, *map(" ".join, pairwise(words))):
            hashed = np.frombuffer(blake2b(term.encode(), digest_size=WORD_BLOCKS).digest(), np.uint8).astype(int)
            row[range(WORD_BLOCKS), hashed % WORD_HASHES] += np.where(hashed < 128, 1, -1)
    flat = hashes.reshape(len(prompts), -1)
    return np.asarray(flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-6), np.float32)


Array = NDArray[np.float64]

CLIP_SCALE = 2.5  # factor of CLIPScore


@dataclass(frozen=True)
class Fit(Record):
    """Difference of how well the images of two sets fit their prompts.

    Attributes:
        difference: mean over prompts of the difference of their CLIPScores, the first set's minus the second's.
        interval: 95 % interval of it, which holds by itself: of sets for other prompts, of a prompt for other images.
        p_value: of sets, p-value of "they fit alike"; of a prompt, p-value of "its images have one law of fits",
            adjusted for all prompts, or None if there are too many images to permute.
    """

    difference: float
    interval: tuple[float, float]
    p_value: float | None


@dataclass(frozen=True)
class ModelFit(Record):
    """The fit of the images of a set to their prompts.

    Attributes:
        value: mean CLIPScore of its images.
        interval: 95 % interval of it, for other prompts, which holds by itself.
    """

    value: float
    interval: tuple[float, float]


def tower_of(text: str | None, embeddings: Embeddings) -> str:
    """Return the card whose text tower embeds prompts in the space of a set, or the path of their vectors."""
    is_array = embeddings.space.startswith(ARRAY_SPACE)
    if text is None and is_array:
        raise DataError(
            "the embeddings do not say which model made them: name its card, such as clip-vitb32, or a file of vectors "
            "of the prompts, as text"
        )
    name = text or card_again(extractor_of(embeddings.space))
    card = card_of_text(name)
    if card is None or is_array:
        return name
    if card.text is None:
        raise UsageError(
            f"{card.name} has no text tower, which embeds prompts as its images: embed images by clip-vitb32 or "
            "clip-vitl14-336"
        )
    made_by = extractor_of(embeddings.space)
    if made_by == card.name:
        check_weights(card)
    if embeddings.space not in spaces_of(card):
        also = "" if made_by != card.name else " of other weights or settings"
        raise IncompatibleError(
            f"{embeddings.name} was embedded with {made_by}, and its prompts would be with {card.name}{also}: embed "
            "both by one model"
        )
    return name


def difference_interval(first: Array, second: Array, most: float) -> tuple[float, tuple[float, float]]:
    """Return the difference of two means, which lies within ± most, and its 95 % interval.

    Each mean has its own interval by Student's t, as Cochran's test has: a set of two images that vary much is not
    taken for as well known as a set of eight. With one degree of freedom for each image but two, the interval missed in
    12 % of runs for 2 images against 8, and in 22 % where the 2 vary three times as much. It is ± most for one image.
    """
    value = float(first.mean() - second.mean())
    if min(len(first), len(second)) < 2:
        return value, (-most, most)
    of_first, of_second = (Estimate.of_mean(values) for values in (first, second))
    (a_low, a_high), (b_low, b_high) = (estimate.within(-most, most) for estimate in (of_first, of_second))
    low, high = mover((a_low, of_first.value, a_high), (b_low, of_second.value, b_high))
    return value, (max(float(low), -most), min(float(high), most))


def scores_by_set(
    sets: Mapping[str, Embeddings],
    block: Mapping[str, NDArray[np.int64]],
    prompts: Sequence[str],
    text: str | None,
    run: Run,
) -> tuple[dict[str, Array], str]:
    """Return the CLIPScore of each image of each set, by label, and what is not read; see `tower_of` for errors.

    `block` has the prompt of each image of a set, shape (n,).
    """
    (name, *_) = [tower_of(text, embeddings) for embeddings in sets.values()]
    if name == WORDS:
        raise DataError(
            "the fit of images and prompts needs text, a card or a file of vectors of the prompts by one model"
        )
    vectors, unread = embed_prompts(prompts, name, run)
    dim = next(iter(sets.values())).dim
    if vectors.shape[1] != dim:
        raise DataError(f"images have {dim} entries and prompts {vectors.shape[1]}: embed both by one model")
    vectors, scores = _unit(vectors), {}
    for label, embeddings in sets.items():
        own_scores = scores[label] = np.empty(embeddings.n)
        for batch in embeddings.batches(run.portion):
            part = slice(batch.start, batch.start + len(batch.rows))
            cosines = (_unit(batch.rows.cpu()) * vectors[torch.from_numpy(block[label][part])]).sum(1)
            own_scores[part] = CLIP_SCALE * cosines.clip(min=0).numpy()
    return scores, unread


def fits_of(sets: Mapping[str, Embeddings], text: str | None, run: Run) -> dict[str, Array]:
    """Return the CLIPScore of each image of each set, by label; none without prompts or a text tower."""
    column = next(
        (name for name in TEXT_COLUMNS if all(name in embeddings.columns for embeddings in sets.values())), None
    )
    if column is None:
        return {}
    texts = np.concatenate([np.array(embeddings.column(column)) for embeddings in sets.values()])
    prompts, of = np.unique(texts, return_inverse=True)
    block = dict(zip(sets, np.split(of, np.cumsum([embeddings.n for embeddings in sets.values()])[:-1]), strict=True))
    try:
        return scores_by_set(sets, block, prompts.tolist(), text, run)[0]
    except (DataError, IncompatibleError, UsageError):
        return {}


def fit_to_prompts(embeddings: Embeddings, prompts: Sequence[str], text: str | None, run: Run) -> Array | None:
    """Return the CLIPScore of each image to its prompt, shape (n,); None without a text tower.

    Raises:
        FincEvalError: `text` is given and gives no vectors; see `tower_of`.
    """
    names, of = np.unique(np.array(prompts), return_inverse=True)
    try:
        scores, _ = scores_by_set({"": embeddings}, {"": of}, names.tolist(), text, run)
    except (DataError, IncompatibleError, UsageError):
        if text is not None:
            raise
        return None
    return scores[""]


def _unit(rows: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.normalize(rows.double(), dim=1)
