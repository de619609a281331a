"""Samples far from all others of their set, found in one pass."""

import numpy as np
import pytest
import torch

from finc_eval.core.run import Run
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.sketches.folds import FAR, FarSamples, fold_chunks
from finc_eval.sketches.reference import bottom_rows


def looked_at(rows):
    embeddings = as_embeddings(np.asarray(rows, np.float32), "gen")
    far = FarSamples(bottom_rows(embeddings), torch.device("cpu"))
    for chunk in fold_chunks(embeddings, Run(device="cpu"), torch.as_tensor, "look"):
        far.update(chunk)
    return far.result(embeddings)


@pytest.fixture
def rows():
    return np.random.default_rng(0).standard_normal((5000, 30))


@pytest.mark.parametrize("scale", [1.0, 1e-25, 1e15])
def test_far_samples_are_counted_and_the_farthest_is_told(rows, scale):
    middle = np.median(rows, 0)
    typical = np.median(np.linalg.norm(rows - middle, axis=1))
    for place, times in ((17, 1.2 * FAR), (4200, 3 * FAR), (4999, 0.9 * FAR)):
        rows[place] = middle + times * typical / np.sqrt(30)
    found = looked_at(scale * rows)
    assert (found.count, found.farthest) == (2, 4200)
    assert found.distance == pytest.approx(3 * FAR, rel=0.05)


def test_a_distance_that_does_not_fit_into_float32_is_told(rows):
    rows[3] = 3e38
    found = looked_at(rows)
    assert (found.count, found.farthest) == (1, 3)
    assert found.distance == pytest.approx(3e38 * np.sqrt(30) / np.median(np.linalg.norm(rows, axis=1)), rel=0.05)


def test_sets_without_far_samples_and_sets_that_are_mostly_one_sample_have_none(rows):
    assert looked_at(rows) is None
    rows[:4000] = 1
    assert looked_at(rows) is None
