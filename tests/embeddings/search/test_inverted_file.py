"""Approximate neighbors: found by an inverted file beyond exact size, with a recall that is measured and told."""

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.embeddings.search import neighbors as inverted_file
from finc_eval.embeddings.search.neighbors import InvertedFile, nearest, radii

faiss = pytest.importorskip("faiss")
CPU = torch.device("cpu")
K = 5


def clustered(n, seed, dim=16):
    centers, rng = np.random.default_rng(0).standard_normal((50, dim)), np.random.default_rng(seed)
    return (5 + centers[rng.integers(0, 50, n)] + 0.5 * rng.standard_normal((n, dim))).astype(np.float32)


GEN, REF = clustered(1500, 1), clustered(4000, 2)


@pytest.fixture
def few_pairs(monkeypatch):
    """More pairs than 10 000 count as too many to compare all."""
    monkeypatch.setattr(inverted_file, "EXACT_PAIRS", 10_000)


def found_of(distances, exact):
    return np.mean([np.isin(mine, others).mean() for mine, others in zip(distances, exact, strict=True)])


def test_what_is_found_has_the_recall_that_is_told(few_pairs):
    exact, found = nearest(GEN, REF, K), nearest(GEN, REF, K, index="auto")
    assert exact.recall is None and 0.95 <= found.recall <= 1
    assert found_of(found.indices, exact.indices) == pytest.approx(found.recall, abs=0.03)
    same = found.indices == exact.indices
    np.testing.assert_allclose(found.distances[same], exact.distances[same], rtol=1e-6)
    assert (np.diff(found.distances) >= 0).all() and (found.distances >= exact.distances * (1 - 1e-6)).all()


def test_a_sample_is_not_its_own_neighbor_and_its_copies_are(few_pairs):
    rows = np.concatenate([REF, REF[:10]])
    found = nearest(rows, rows, K, exclude_self=True, index="auto")
    assert not (found.indices == np.arange(len(rows))[:, None]).any()
    assert (found.distances[:10, 0] == 0).all() and (found.indices[:10, 0] == np.arange(4000, 4010)).all()
    assert radii(rows, K, index="auto").recall == found.recall


def test_a_recall_that_is_too_low_makes_queries_look_further(few_pairs, monkeypatch):
    monkeypatch.setattr(inverted_file, "FIRST_PROBES", 1)
    monkeypatch.setattr("finc_eval.embeddings.search.neighbors.RECALL", 2.0)
    assert nearest(GEN, REF, K, index="auto").recall == 1  # all cells


def test_a_sample_alone_in_its_cells_looks_into_all(few_pairs, monkeypatch):
    monkeypatch.setattr(inverted_file, "FIRST_PROBES", 1)
    monkeypatch.setattr("finc_eval.embeddings.search.neighbors.RECALL", 0.0)
    rows = np.concatenate([REF[:3999], np.full((1, REF.shape[1]), 100, np.float32)])
    exact, found = radii(rows, K), radii(rows, K, index="auto")
    assert np.isfinite(found.squared).all() and found.squared[-1] == pytest.approx(exact.squared[-1], rel=1e-5)


def test_small_sets_are_searched_exactly_and_without_faiss_all_are(few_pairs, monkeypatch):
    assert nearest(GEN[:2], REF, K, index="auto").recall is None
    monkeypatch.setattr(inverted_file, "find_spec", lambda name: None)
    assert nearest(GEN, REF, K, index="auto").recall is None


@pytest.mark.long
def test_metrics_tell_the_recall_and_their_signature_that_neighbors_are_approximate(few_pairs):
    names = ["prdc", "realism", "rarity", "authpct"]
    exact, found = fe.metrics(GEN, REF, names), fe.metrics(GEN, REF, names, index="auto")
    for mine, other in zip(found, exact, strict=True):
        assert mine.value == pytest.approx(other.value, rel=0.05), mine.key
        assert "|index:ivf" in str(mine.signature) and "index" not in str(other.signature)
    assert all(
        any("of the exact neighbors" in note for note in found[key].notes) for key in ("density", "realism", "authpct")
    )


def test_another_index_is_refused():
    with pytest.raises(fe.UsageError, match="index"):
        fe.metrics(GEN, REF, ["prdc"], index="ivf")
    with pytest.raises(fe.UsageError, match="index"):
        fe.Settings(index="ivf")


@pytest.mark.long
def test_a_comparison_by_rarity_tells_its_recall(few_pairs):
    exact, found = (
        fe.compare(GEN, REF, method="rarity", features=50, modes=2, index=index) for index in ("exact", "auto")
    )
    assert "|index:ivf|" in str(found.signature) and any("of the exact neighbors" in text for text in found.warnings)
    assert "index" not in str(exact.signature) and not any("of the exact neighbors" in text for text in exact.warnings)
    assert found.settings.index == "auto"


@pytest.mark.long
def test_a_method_without_neighbors_has_the_signature_of_the_exact_one(few_pairs):
    exact, found = (fe.compare(GEN, REF, features=50, modes=2, index=index) for index in ("exact", "auto"))
    assert exact.signature == found.signature


@pytest.mark.long
def test_an_evaluation_hands_the_index_to_all_its_parts(few_pairs):
    found = fe.evaluate(GEN[:200], REF[:200], features=20, modes=2, index="auto")
    assert "|index:ivf" in str(found.scores["density"].signature)
    assert "|index:ivf|" in str(found.methods.comparisons["rarity"].signature)


@pytest.mark.long
def test_an_audit_by_an_inverted_file_finds_the_copies_and_tells_its_recall(few_pairs):
    train, holdout, gen = (clustered(600, seed) for seed in (3, 4, 5))
    gen[:30] = train[:30]
    exact, found = (fe.audit(gen, train, holdout, index=index) for index in ("exact", "auto"))
    assert found.copying.copies == exact.copying.copies and found.copying.copies.same_embedding == 30
    for mine, other in zip(found.attacks, exact.attacks, strict=True):
        assert mine.statistics.auc == pytest.approx(other.statistics.auc, abs=0.03)
    assert "|index:ivf|" in str(found.signature) and any("of the exact neighbors" in text for text in found.warnings)


def test_what_is_within_a_radius_is_counted():
    inverted = InvertedFile(ArrayEmbeddings(REF), CPU)
    while inverted.look_further():
        pass
    squared = ((GEN[:50, None].astype(float) - REF) ** 2).sum(2)
    assert (inverted.within(ArrayEmbeddings(GEN[:50]), 8.0) == (squared < 8).sum(1)).all()


@pytest.fixture
def pretended_gpu(monkeypatch):
    """A GPU of faiss: an index on it is a copy that counts its calls, and has neither a direct map nor radii."""
    calls = []

    class OnGpu:
        def __init__(self, index):
            self.held, self.nprobe = faiss.clone_index(index), 1

        def train(self, rows):
            calls.append("train")
            self.held.train(rows)

        def add(self, rows):
            calls.append("add")
            self.held.add(rows)

        def search(self, rows, k):
            assert k <= 2048 and self.nprobe <= 2048
            calls.append("search")
            self.held.nprobe = self.nprobe
            return self.held.search(rows, k)

    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1)
    monkeypatch.setattr(faiss, "StandardGpuResources", lambda: "resources", raising=False)
    monkeypatch.setattr(faiss, "index_cpu_to_gpu", lambda resources, number, index: OnGpu(index), raising=False)
    monkeypatch.setattr(faiss, "index_gpu_to_cpu", lambda index: faiss.clone_index(index.held), raising=False)
    return calls


def test_a_gpu_trains_fills_and_searches_and_finds_the_same(pretended_gpu):
    base, queries, cuda = ArrayEmbeddings(REF), ArrayEmbeddings(GEN), torch.device("cuda")
    there, here = InvertedFile(base, cuda), InvertedFile(base, CPU)
    assert pretended_gpu == ["train", "add"]
    for mine, other in zip(there.search(queries, K), here.search(queries, K), strict=True):
        np.testing.assert_array_equal(mine, other)
    assert pretended_gpu.count("search") == 2
    np.testing.assert_array_equal(there.within(queries, 8.0), here.within(queries, 8.0))


def test_what_is_too_much_for_a_gpu_is_searched_on_the_cpu(pretended_gpu):
    there = InvertedFile(ArrayEmbeddings(REF), torch.device("cuda"))
    squared, _ = there.search(ArrayEmbeddings(GEN[:5]), 2049)
    assert squared.shape == (5, 2049) and "search" not in pretended_gpu


def test_faiss_without_cuda_stays_on_the_cpu(monkeypatch):
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0)
    assert InvertedFile(ArrayEmbeddings(REF), torch.device("cuda")).search(ArrayEmbeddings(GEN), K)[0].shape == (
        1500,
        K,
    )
