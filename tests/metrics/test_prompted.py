"""Diversity given the prompt, and the fit of image and prompt, against their equations on small matrices."""

import numpy as np
import pytest
import torch
from scipy import stats

import finc_eval as fe
from finc_eval.demo.prompts import prompted_sets
from finc_eval.measures.inputs import reference_bandwidth
from finc_eval.measures.prompted import clip_score, conditional_vendi, scendi
from finc_eval.numerics.kernels import median_bandwidth

PROMPTS = [f"prompt {one}" for one in range(12)]
VECTORS = np.random.default_rng(0).normal(size=(12, 6)).astype(np.float32)


@pytest.fixture
def text(tmp_path):
    np.savez(tmp_path / "vectors.npz", embeddings=VECTORS, prompts=np.array(PROMPTS))
    return str(tmp_path / "vectors.npz")


def images(seed=0, n=60, dim=6):
    rng = np.random.default_rng(seed)
    of = rng.integers(0, 12, n)
    rows = (rng.normal(size=(12, dim))[of] + 0.5 * rng.normal(size=(n, dim))).astype(np.float32)
    return fe.EmbeddingSet(rows, metadata={"prompt": [PROMPTS[one] for one in of]}), rows.astype(float), of


def gaussian(rows, sigma):
    return np.exp(-((rows[:, None] - rows[None]) ** 2).sum(2) / (2 * sigma**2))


def entropy(matrix, order):
    p = np.linalg.eigvalsh(matrix / np.trace(matrix))
    p = p[p > 1e-15]
    return -(p * np.log(p)).sum() if order == 1 else np.log((p**order).sum()) / (1 - order)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_conditional_vendi_is_the_entropy_of_both_without_that_of_the_prompts(text, order):
    one, rows, of = images()
    k_x = gaussian(rows, 2.0)
    k_t = gaussian(VECTORS[of].astype(float), median_bandwidth(torch.from_numpy(VECTORS)))
    found = conditional_vendi(one, 2.0, text=text, order=order)
    assert found.value == pytest.approx(np.exp(entropy(k_x * k_t, order) - entropy(k_t, order)), rel=1e-5)


def test_scendi_is_the_entropy_of_the_schur_complement(text):
    one, rows, of = images()
    x = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    t = (VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True))[of].astype(float)
    c_xx, c_tt, c_tx = x.T @ x / 60, t.T @ t / 60, t.T @ x / 60
    values = np.linalg.eigvalsh(c_xx - c_tx.T @ np.linalg.solve(c_tt, c_tx)).clip(0)
    assert scendi(one, text=text).value == pytest.approx(
        np.exp(-(values * np.log(values / values.sum())).sum()), rel=1e-6
    )


def test_images_that_their_prompts_decide_have_no_diversity_of_their_own(text):
    of = np.repeat(np.arange(12), 5)
    one = fe.EmbeddingSet(VECTORS[of] @ np.eye(6, dtype=np.float32), metadata={"prompt": [PROMPTS[row] for row in of]})
    assert scendi(one, text=text).value == pytest.approx(1, abs=1e-6)
    assert conditional_vendi(one, 0.01, text=text).value < 1.5 < conditional_vendi(images()[0], 0.01, text=text).value


def test_a_model_that_repeats_its_pictures_scores_less():
    faulty, sound = (fe.EmbeddingSet(one.rows, metadata={"prompt": one.prompts}) for one in prompted_sets(60, 4))
    for name in ("conditional_vendi", "conditional_rke"):
        metric = getattr(fe.metrics, name)
        assert metric(faulty, sound).value < metric(sound, sound).value


def drawn(seed, prompts=50, each=3):
    """Images of prompts of eight kinds; some kinds vary more than others."""
    rng, middles = np.random.default_rng(seed), 2 * np.random.default_rng(99).normal(size=(8, 8))
    kind, spread = rng.integers(0, 8, prompts), rng.gamma(1.0, 1.0, prompts)
    of = np.repeat(np.arange(prompts), each)
    rows = middles[kind[of]] + 0.7 * spread[of][:, None] * rng.normal(size=(len(of), 8))
    names = [f"w{one} v{rng.integers(6)} {place}" for place, one in enumerate(kind)]
    return fe.EmbeddingSet(rows.astype(np.float32), metadata={"prompt": [names[row] for row in of]})


MEASURES = {
    "conditional Vendi": lambda one, text="words": conditional_vendi(one, 2.0, text=text),
    "conditional RKE": lambda one, text="words": conditional_vendi(one, 2.0, order=2, text=text),
    "scendi": lambda one, text="words": scendi(one, text=text),
}


@pytest.fixture
def kinds_of_text(tmp_path):
    """A function that writes the vectors of the prompts of a set, one of eight, and returns the path."""

    def write(one):
        prompts = np.unique(one.column("prompt"))
        vectors = np.eye(8, dtype=np.float32)[[int(prompt[1]) for prompt in prompts]]
        np.savez(tmp_path / "text.npz", embeddings=vectors, prompts=prompts)
        return str(tmp_path / "text.npz")

    return write


@pytest.mark.one_of_each
@pytest.mark.parametrize(
    ("name", "tolerance"), [("conditional Vendi", 0.5), ("conditional RKE", 1e-6), ("scendi", 0.5)]
)
def test_the_influence_of_prompts_is_what_leaving_them_out_changes(kinds_of_text, name, tolerance):
    """The vectors of prompts are one of eight, so that their bandwidth is the same without any prompt."""
    one, measure = drawn(3, 30), MEASURES[name]
    column = np.array(one.column("prompt"))
    prompts = np.unique(column)
    text = kinds_of_text(one)
    found = measure(one, text)
    left = []
    for prompt in prompts:
        kept = np.flatnonzero(column != prompt)
        part = fe.EmbeddingSet(one.rows_at(kept).numpy(), metadata={"prompt": column[kept].tolist()})
        left.append(np.log(measure(part, text).value))
    error = np.sqrt(29 / 30 * ((left - np.mean(left)) ** 2).sum())
    degrees = 29 if name == "conditional RKE" else 9  # ten blocks of prompts estimate an error to a quarter
    half = (np.log(found.interval[1]) - np.log(found.value)) / stats.t.ppf(0.975, degrees)
    assert half == pytest.approx(error, rel=tolerance)


@pytest.mark.one_of_each
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("conditional Vendi", "words"),
        ("conditional RKE", "words"),
        ("scendi", "kinds"),
        pytest.param("scendi", "words", marks=pytest.mark.long),
    ],
)
def test_intervals_hold_the_mean_score_of_other_prompts(kinds_of_text, name, text):
    sets, runs = map(drawn, range(20)), 20
    found = [MEASURES[name](one, kinds_of_text(one) if text == "kinds" else text) for one in sets]
    middle = np.mean([one.value for one in found])
    held = sum(one.interval[0] <= middle <= one.interval[1] for one in found)
    assert held >= stats.binom.ppf(0.001, runs, 0.95)
    widths = [one.interval[1] - one.interval[0] for one in found]
    assert np.median(widths) < 2.5 * 3.92 * np.std([one.value for one in found])


def test_one_prompt_has_no_interval_and_scores_of_sets_show_theirs():
    rows = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
    assert conditional_vendi(fe.EmbeddingSet(rows, metadata={"prompt": ["a"] * 40}), 2.0).interval is None
    one = drawn(0)
    for name in ("conditional_rke", "scendi"):
        score = getattr(fe.metrics, name)(one, one)[name]
        assert score.interval[0] < score.value < score.interval[1]


class Tower(torch.nn.Module):
    """A small tower with random weights: one projection to the common space."""

    def __init__(self, entries, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.layer = torch.nn.Linear(entries, 6)

    def forward(self, x):
        return torch.tanh(self.layer(x))


def test_clip_score_is_that_of_random_small_towers(tmp_path):
    rng = np.random.default_rng(1)
    of = np.array([0] * 9 + [1] * 2 + [2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
    with torch.no_grad():
        x = Tower(20, 1)(torch.from_numpy(rng.normal(size=(len(of), 20))).float()).numpy()
        t = Tower(5, 2)(torch.from_numpy(rng.normal(size=(12, 5))).float()).numpy()
    np.savez(tmp_path / "t.npz", embeddings=t, prompts=np.array(PROMPTS))
    one = fe.EmbeddingSet(x, metadata={"prompt": [PROMPTS[row] for row in of]})
    cosines = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(x, t[of], strict=True)]
    expected = 2.5 * np.maximum(cosines, 0)
    found = clip_score(one, str(tmp_path / "t.npz"))
    assert found.value == pytest.approx(expected.mean(), rel=1e-5)
    assert found.by_prompt[PROMPTS[0]] == pytest.approx(expected[:9].mean(), rel=1e-5)
    assert found.interval[0] < found.value < found.interval[1]
    score = fe.metrics.clip_score(one, one, text=str(tmp_path / "t.npz"))
    assert score["clip_score"].value == pytest.approx(found.value)
    assert score["clip_score"].higher_is_better


@pytest.mark.long
def test_intervals_of_clip_score_hold_the_mean_of_other_prompts(tmp_path):
    """Thirty prompts of one to five images, with effects of their own."""
    rng, held, names = np.random.default_rng(5), 0, [f"p{one}" for one in range(30)]
    vectors = np.stack([1.0 + np.arange(30), np.zeros(30)], 1)
    np.savez(tmp_path / "t.npz", embeddings=vectors, prompts=np.array(names))
    for _ in range(200):
        of = np.repeat(np.arange(30), rng.integers(1, 6, 30))
        cosine = rng.uniform(0.2, 0.8, 30)[of] + 0.1 * rng.uniform(-1, 1, len(of))
        rows = np.stack([cosine, np.sqrt(1 - cosine**2)], 1).astype(np.float32)
        one = fe.EmbeddingSet(rows, metadata={"prompt": [names[row] for row in of]})
        low, high = clip_score(one, str(tmp_path / "t.npz")).interval
        held += low <= 2.5 * 0.5 <= high
    assert stats.binom.ppf(0.001, 200, 0.95) <= held < 200


def test_what_cannot_be_scored_is_refused(text):
    one = images()[0]
    with pytest.raises(fe.DataError, match="needs text, a card or a file of vectors"):
        clip_score(one, "words")
    with pytest.raises(fe.DataError, match="images have 4 entries and prompts 6: embed both by one model"):
        clip_score(images(dim=4)[0], text)
    with pytest.raises(fe.DataError, match="needs prompts in all sets"):
        scendi(np.ones((30, 3), np.float32), text=text)
    assert reference_bandwidth(one) > 0
