"""`as_embeddings`: open whatever the caller has of a set of embeddings."""

from __future__ import annotations

from pathlib import Path

from finc_eval.embeddings.array_files import is_array_file, read_array_file
from finc_eval.embeddings.base import ArrayEmbeddings, CachedEmbeddings, Embeddings
from finc_eval.embeddings.cache import EmbeddingCache


def as_embeddings(source: object, name: str = "embeddings") -> Embeddings:
    """Open the embeddings in an array, a tensor, an `EmbeddingSet`, a cache, or a file.

    Args:
        source: array-like or tensor of shape (n, d), `EmbeddingSet`, `EmbeddingCache`, or the path of a cache or of
            an .npy, .npz, .pt, .safetensors or .parquet file of embeddings.
        name: name of an array in messages.
    """
    if isinstance(source, Embeddings):
        return source
    if isinstance(source, str | Path):
        return read_array_file(source) if is_array_file(source) else CachedEmbeddings(EmbeddingCache(source))
    if isinstance(source, EmbeddingCache):
        return CachedEmbeddings(source)
    return ArrayEmbeddings(source, name)  # type: ignore[arg-type]  # anything else must be an array
