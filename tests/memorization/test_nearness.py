"""Nearness by several measures: each pair is told by the one that fewest fresh samples reach, with its own partner."""

import numpy as np

from finc_eval.core.run import Run
from finc_eval.embeddings.embedding_set import EmbeddingSet
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.embeddings.search.neighbors import Neighbors
from finc_eval.memorization import nearness
from finc_eval.memorization.nearness import Near, Nearness


def near(gen, fresh, partners):
    return Near(np.array(gen), np.array(fresh), np.array(partners))


def test_pairs_are_told_by_the_measure_that_fewest_fresh_samples_reach():
    found = Nearness(
        {
            "calibrated": near([0.3, 0.05, 0.9], [0.1, 0.2, 0.4, 0.5], [0, 1, 2]),
            "hash": near([0.35, 0.8, 0.6], [0.4, 0.5, 0.6, 0.7], [3, 4, 5]),
        },
        bits=(np.array([12.0, 99.0, 50.0]), np.array([80.0, 80.0, 80.0, 80.0])),
    )
    gen, train = as_embeddings(np.zeros((3, 2))), as_embeddings(np.ones((6, 2)))
    pairs = found.pairs(gen, train, [None] * 3, 3)
    told = [(one.gen, one.train, one.shown_by, one.hash_distance, one.fresh_share) for one in pairs]
    assert told == [("1", "1", "calibrated", None, 0.0), ("0", "3", "hash", 12, 0.0), ("2", "5", "hash", 50, 0.75)]


def test_a_sample_that_is_nearer_by_a_view_has_the_partner_of_that_view(monkeypatch):
    moved = [(np.array([0.1, 0.8]), np.array([7, -1])), (np.array([0.5]), np.array([-1]))]
    monkeypatch.setattr(nearness, "multi_view_distances", lambda *_: moved)
    monkeypatch.setattr(nearness, "SuspectViews", lambda *_: None)
    rows = [np.zeros((2, 2)), np.ones((1, 2)), np.ones((9, 2))]
    gen, fresh, train = (EmbeddingSet(row, images=np.zeros((len(row), 8, 8, 3), np.uint8)) for row in rows)
    by_embedding = (
        Neighbors(np.array([[0.4], [0.8]]), np.array([[2], [3]])),
        Neighbors(np.ones((1, 1)), np.ones((1, 1), int)),
    )
    found = nearness.nearness_to(("train", train), {"gen": gen, "holdout": fresh}, by_embedding, Run()).ways["views"]
    assert found.partners.tolist() == [7, 3]
    assert found.gen.tolist() == [0.1, 0.8]
