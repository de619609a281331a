"""Sets of wide rows are read a few rows at a time, whatever holds them, and say the same as if they were read whole."""

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.core.errors import UsageError
from finc_eval.embeddings import base, keys
from finc_eval.embeddings.array_files import StoredArrays
from finc_eval.embeddings.base import ArrayEmbeddings, CachedEmbeddings, rows_together
from finc_eval.embeddings.subset import Subset
from finc_eval.numerics import arrays
from finc_eval.prompts.text import Joint

ROWS = np.random.default_rng(0).normal(size=(40, 48)).astype("f4")


def in_cache(folder):
    images = np.random.default_rng(0).integers(0, 256, (40, 4, 4, 3), dtype=np.uint8)
    return CachedEmbeddings(fe.extract(images, "pixels", out=folder / "a.h5"))


def in_file(folder):
    np.save(folder / "a.npy", ROWS)
    return StoredArrays(folder / "a.npy")


HOLDERS = {
    "array": lambda _: ArrayEmbeddings(ROWS),
    "cache": in_cache,
    "file": in_file,
    "subset": lambda _: Subset(ArrayEmbeddings(ROWS), np.arange(40)),
    "with prompts": lambda _: Joint(ArrayEmbeddings(ROWS), torch.zeros(1, 8), np.zeros(40, np.int64), ["a"]),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_batches_have_few_entries_whatever_holds_the_rows(holder, tmp_path, monkeypatch):
    monkeypatch.setattr(base, "BATCH_ENTRIES", 200)
    found = HOLDERS[holder](tmp_path)
    batches = [*found.batches()]
    assert max(batch.rows.numel() for batch in batches) <= max(200, found.dim)
    assert [batch.start for batch in batches] == [*range(0, 40, max(1, 200 // found.dim))]
    assert torch.equal(torch.cat([batch.rows for batch in batches]), found.rows_at(np.arange(40)))


@pytest.mark.parametrize(
    ("size", "dim", "rows"),
    [(2048, 16, 2048), (2048, 2048, 2048), (2048, 4096, 1024), (10, 4096, 10), (2048, 10**7, 1), (16384, 2048, 16384)],
)
def test_rows_of_common_networks_are_read_as_many_as_were_asked_for(size, dim, rows):
    assert rows_together(size, dim) == rows


@pytest.mark.parametrize("entries", [7, 48, 100])
def test_hashes_of_rows_do_not_depend_on_how_many_entries_are_hashed_together(entries, monkeypatch):
    whole = keys.hash_rows(torch.from_numpy(ROWS))
    monkeypatch.setattr(keys, "HASHED_ENTRIES", entries)
    assert torch.equal(keys.hash_rows(torch.from_numpy(ROWS)), whole)
    assert len(set(whole.tolist())) == 40


def test_a_sketch_takes_all_wide_rows_of_a_batch(monkeypatch):
    monkeypatch.setattr(base, "BATCH_ENTRIES", 200)
    sketch = fe.Sketch(fe.RandomFourierFeatures(dim=48, features=20, sigma=6.0, seed=0))
    sketch.update(ROWS)
    assert sketch.n == 40


@pytest.mark.parametrize("entries", [1, 100, 10**6])
def test_covariances_and_rounded_rows_are_known_in_parts(entries, monkeypatch):
    monkeypatch.setattr(arrays, "ENTRIES_SEEN", entries)
    assert arrays.is_covariance(np.cov(ROWS.T))
    other = np.cov(ROWS.T)
    other[3, 40] += 1
    assert not arrays.is_covariance(other)
    with pytest.raises(UsageError, match="is a symmetric matrix of 48 rows"):
        arrays.as_rows(np.cov(ROWS.T), "x")
    assert len(arrays.as_rows(np.eye(48), "x")) == 48
    far = ROWS.astype("f8")
    far[:, 33] += 1e9
    with pytest.raises(UsageError, match="has entries near 1e\\+09 that differ by"):
        arrays.as_rows(far, "x")
