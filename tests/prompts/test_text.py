"""Pairs of prompt and image: PromptSplit's eigenvalues, from its equations, and the prompts that it isolates."""

from itertools import pairwise

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.demo.prompts import prompted_sets
from finc_eval.numerics.kernels import median_bandwidth
from finc_eval.prompts.text import embed_prompts, hash_words

PROMPTS = [
    f"a {color} {thing}" for color in ("red", "blue", "green", "pink") for thing in ("cat", "dog", "car", "tree")
]
VECTORS = np.random.default_rng(3).normal(size=(len(PROMPTS), 6)).astype(np.float32)


@pytest.fixture
def path(tmp_path):
    np.savez(tmp_path / "vectors.npz", embeddings=VECTORS, prompts=np.array(PROMPTS))
    return str(tmp_path / "vectors.npz")


def images(seed, wrong=(), each=4):
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(len(PROMPTS)), each)
    rows = np.eye(len(PROMPTS))[of] * 5 + rng.normal(size=(len(of), len(PROMPTS)))
    rows[np.isin(of, wrong)] += 4
    return fe.EmbeddingSet(rows.astype(np.float32), metadata={"prompt": [PROMPTS[one] for one in of]})


def rows_of(one):
    return one.rows_at(np.arange(one.n)).double().numpy()


def places(one):
    return [PROMPTS.index(name) for name in one.column("prompt")]


def gaussian(x, sigma):
    return np.exp(-((x[:, None] - x[None]) ** 2).sum(2) / (2 * sigma**2))


def features(x, sigma):
    """φ of some rows, with φ(x)·φ(y) = k(x, y): the rows of K^½."""
    values, axes = np.linalg.eigh(gaussian(x, sigma))
    return axes * np.sqrt(values.clip(0)) @ axes.T


def split(x, y, sigma_x, sigma_t, eta):
    """Eigenvalues of C_{T⊗X} − η·C_{T⊗Y}, descending: means of the outer products of φ_T(t) ⊗ φ_X(x), as they stand."""
    of_images = features(np.concatenate([rows_of(x), rows_of(y)]), sigma_x)
    of_prompts = features(VECTORS.astype(float), sigma_t)[places(x) + places(y)]
    pairs = np.array([np.kron(t, image) for t, image in zip(of_prompts, of_images, strict=True)])
    first, second = pairs[: x.n], pairs[x.n :]
    return np.linalg.eigvalsh(first.T @ first / x.n - eta * second.T @ second / y.n)[::-1]


@pytest.mark.parametrize(
    "options",
    [{}, {"pairs": "prompt"}, *(pytest.param(one, marks=pytest.mark.long) for one in ({"sigma": 4.0}, {"rho": 2.0}))],
    ids=["", "paired", "sigma", "eta"],
)
def test_the_exact_eigenvalues_are_those_of_promptsplit(path, options):
    gen, ref = images(1, wrong=(2, 5), each=2), images(2, each=2)
    found = fe.compare(gen, ref, method=fe.Ken(), text=path, features=50, **options)
    sigma_t = median_bandwidth(torch.from_numpy(VECTORS))
    over, under = found.spectrum.over, found.spectrum.under
    rho = options.get("rho", 1.0)
    assert found.settings.sigma == options.get("sigma", found.settings.sigma)
    assert min(len(over), len(under)) >= 5
    expected = split(gen, ref, found.settings.sigma, sigma_t, rho)
    assert np.abs(np.array(over) - expected[: len(over)]).max() < 1e-6
    expected = split(ref, gen, found.settings.sigma, sigma_t, rho)  # the other role: what ref has more of
    assert np.abs(np.array(under) - expected[: len(under)]).max() < 1e-6


def test_random_features_are_those_of_the_product(path):
    """φ(t, x) = cos and sin of ω_X·x + ω_T·t, over √r: eigenvalues of the features of both sets."""
    gen, ref = images(1, wrong=(2, 5)), images(2)
    found = fe.compare(gen, ref, text=path, features=64)
    phi, scale = found.feature_map, found.settings.sigma / median_bandwidth(torch.from_numpy(VECTORS))
    covariances = []
    for one in (gen, ref):
        joint = np.concatenate([rows_of(one), scale * VECTORS[places(one)]], 1)
        angles = (joint - phi.center.double().numpy()) @ phi.frequencies.double().numpy()
        features = np.concatenate([np.cos(angles), np.sin(angles)], 1) / np.sqrt(phi.features)
        covariances.append(features.T @ features / one.n)
    expected = np.linalg.eigvalsh(covariances[0] - covariances[1])[::-1]
    over = np.array(found.spectrum.over)
    assert np.abs(over - expected[: len(over)]).max() < 1e-6


def test_the_unit_of_the_vectors_is_no_choice(tmp_path, path):
    np.savez(tmp_path / "large.npz", embeddings=VECTORS * 1000, prompts=np.array(PROMPTS))
    gen, ref = images(1, wrong=(2, 5)), images(2)
    spectra = [
        fe.compare(gen, ref, method=fe.Ken(), features=50, text=text).spectrum.over
        for text in (path, str(tmp_path / "large.npz"))
    ]
    assert np.allclose(*spectra, atol=1e-6)


def test_the_top_directions_hold_the_planted_words():
    gen, ref = (
        fe.EmbeddingSet(one.rows, metadata={"prompt": one.prompts}) for one in prompted_sets(60, 4, faults=True)
    )
    found = fe.compare(gen, ref, text="words", features=100, modes=2)
    for mode in found.over[:2]:
        shown = set(mode.typical("gen")[:8])
        at = dict(zip(gen.ids_between(0, gen.n), gen.column("prompt"), strict=True))
        assert sum(any(word in at[name] for word in ("seven", "purple", "pink")) for name in shown) >= 0.9 * len(shown)


def test_words_are_hashed_alike_everywhere():
    found = hash_words(["a red cat", "A RED cat!", "cat red a", "", "a red dog"])
    assert np.array_equal(found[0], found[1])
    assert found[0] @ found[4] == pytest.approx(0.6, abs=0.15)  # a, red, a red, of five
    assert found[0] @ found[2] == pytest.approx(0.6, abs=0.15)  # a, red, cat
    assert not found[3].any()


def test_hashed_words_keep_the_products_of_their_counts():
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{one}" for one in rng.integers(0, 300, 8)) for _ in range(200)]
    terms = [{*(words := text.split()), *map(" ".join, pairwise(words))} for text in texts]
    exact = np.array([[len(one & other) / np.sqrt(len(one) * len(other)) for other in terms] for one in terms])
    error = (hash_words(texts) @ hash_words(texts).T - exact)[np.triu_indices(200, 1)]
    assert abs(error.mean()) < 0.005
    assert error.std() < 1.2 / np.sqrt(512)


def test_wordllama_is_read_from_its_package():
    pytest.importorskip("wordllama")
    (cat, kitten, car), _ = embed_prompts(["a red cat", "a crimson kitten", "a car"], "wordllama")
    assert cat @ kitten > 0.4 > cat @ car


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": "word"}, "text must be words, wordllama, a card with a text tower, or the path"),
        ({"text": "words", "kernel": "cosine"}, "text multiplies Gaussian kernels, and the kernel is cosine"),
        ({"text": "absent.npz"}, "absent.npz"),
    ],
)
def test_unusable_texts_are_refused(options, message):
    with pytest.raises((fe.UsageError, fe.DataError), match=message):
        fe.compare(images(1), images(2), features=50, **options)


def test_prompts_without_a_vector_are_named(path):
    named = fe.EmbeddingSet(rows_of(images(1)), metadata={"prompt": ["a new prompt"] * 64})
    with pytest.raises(fe.DataError, match="has no embedding for 1 of 17 prompts, such as 'a new prompt'"):
        fe.compare(named, images(2), text=path, features=50)


def test_sets_without_prompts_and_sketches_are_refused(path):
    with pytest.raises(fe.DataError, match="needs prompts in all sets"):
        fe.compare(rows_of(images(1)), rows_of(images(2)), text=path, features=50)
    with pytest.raises(fe.UsageError, match="ref is a sketch, which has no prompts"):
        fe.compare(images(1), fe.Sketch.reference(images(2)), text=path)
    with pytest.raises(fe.UsageError, match="do not score images"):
        fe.compare(images(1), images(2), text=path, features=50).score(images(3))
