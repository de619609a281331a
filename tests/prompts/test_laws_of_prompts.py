"""Laws of prompts: variances by all signs, sums over images by their definition, intervals as scipy has them."""

from itertools import product

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from scipy.stats import t

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.estimates.estimate import Estimate
from finc_eval.numerics.families import share_as_large
from finc_eval.partitions.blocks import pair
from finc_eval.partitions.kind_tree import KindTree
from finc_eval.prompts.images import (
    MOST_APART,
    Permuted,
    common_distance,
    coordinates,
    difference_interval,
    distance_of_means,
    images_of,
    unit_of,
    vendi_score,
)
from finc_eval.prompts.table import prompt_differences
from finc_eval.prompts.text import hash_words
from finc_eval.prompts.words import AXES, _observe, _statistics, whiten

PROMPT = np.array([0, 0, 0, 1, 1, 2, 3, 3])
HAS = csr_matrix(np.array([[1.0, 0, 1], [1, 1, 0], [1, 0, 0], [0, 1, 0]]))


def of_words(data, signs):
    """T of each word: inner products of the differences of all its pairs, under signs."""
    signed = data * signs[:, None] if data.ndim > 1 else data * signs
    found = []
    for word in HAS.toarray().T > 0:
        if data.ndim == 1:
            found.append(signed[word].sum())
            continue
        own = signed[np.isin(PROMPT, np.flatnonzero(word))]
        found.append(float((own @ own.T).sum() - (own**2).sum()))
    return np.array(found)


@pytest.mark.parametrize("axes", [0, 3])
def test_a_statistic_has_the_variance_of_all_signs(axes):
    rng = np.random.default_rng(axes)
    data = rng.normal(size=(8, axes)) if axes else rng.normal(size=4)
    every = [of_words(data, np.array(signs)) for signs in product((-1.0, 1.0), repeat=len(data))]
    scale = np.std(every, axis=0)
    place = PROMPT if axes else np.arange(4)
    z, own, found = _observe(HAS, data, place)
    assert found == pytest.approx(np.where(scale > 1e-9, scale, np.inf))
    assert z == pytest.approx(of_words(data, np.ones(len(data))) / found)
    squares = [(data[np.isin(place, np.flatnonzero(word))] ** 2).sum() for word in HAS.toarray().T]
    assert own == pytest.approx(squares)
    observed, drawn = _statistics(HAS, data, place, np.random.default_rng(0))
    assert observed == pytest.approx(z)
    known = np.isfinite(found)
    assert drawn.mean(0) == pytest.approx(np.zeros(3), abs=0.15)
    assert drawn.std(0)[known] == pytest.approx(np.ones(known.sum()), abs=0.1)
    possible = np.array(every)[:, known] / found[known]
    for column, values in zip(drawn.T[known], possible.T, strict=True):
        assert np.abs(column[:, None] - values).min(1).max() < 1e-6


def test_p_values_count_what_is_as_large_with_what_was_seen():
    drawn = np.array([[1.0], [2.0], [3.0], [2.0]])
    assert share_as_large(np.array([0.5, 2.0, 2.5, 9.0]), drawn) == pytest.approx([1, 4 / 5, 2 / 5, 1 / 5])


def test_differences_are_divided_by_their_spread_along_their_axes():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(300, 40)) * np.r_[100.0, np.ones(39)]
    found = whiten(data)
    assert found.shape == (300, AXES)
    inner = found.T @ found
    assert inner == pytest.approx(np.diag(np.diag(inner)), abs=1e-8)
    values = np.linalg.eigvalsh(data.T @ data)[::-1][:AXES]
    ridge = np.diag(inner) * 0 + values / np.diag(inner) - values
    assert ridge == pytest.approx(np.full(AXES, ridge[0])) and 0 < ridge[0] < values.mean()
    flipped = data.copy()
    flipped[::2] *= -1
    assert np.abs(whiten(flipped)[1::2]) == pytest.approx(np.abs(found[1::2]), rel=1e-6)


NAMES = ["a cat", "a dog", "a car", "a tree", "a boat", "a bird"]


def made(counts, seed, repeated=False):
    rows = np.random.default_rng(seed).normal(size=(sum(counts), 6)).astype(np.float32)
    prompts = [name for name, count in zip(NAMES, counts, strict=True) for _ in range(count)]
    order = np.random.default_rng(seed).permutation(len(rows))
    if repeated:
        rows[1] = rows[0]
    return fe.EmbeddingSet(rows[order], metadata={"prompt": [prompts[row] for row in order]})


@pytest.mark.parametrize("repeated", [False, True])
def test_sums_over_the_images_of_a_prompt_are_by_their_definition(repeated):
    sets = {"gen": made((3, 1, 4, 2, 2, 3), 0, repeated), "ref": made((2, 3, 4, 1, 3, 2), 1)}
    tree = KindTree.of_sets([made((9,) * 6, 2)], 0, Run())
    pairing, _ = pair(sets, "prompt")
    found = images_of(pairing, tree, Run())
    least = np.array([2, 1, 4, 1, 2, 2])
    names = [str(one) for one in pairing.names]
    least = np.array([dict(zip(NAMES, least, strict=True))[name] for name in names])
    every = []
    for label, one in sets.items():
        rows = coordinates(one.rows_at(np.arange(one.n)), tree).numpy()
        every.append(rows)
        of = np.array([names.index(name) for name in one.column("prompt")])
        mine = found[label]
        for block in range(6):
            own = rows[of == block]
            assert mine.mean[block] == pytest.approx(own.mean(0))
            assert mine.total[block] == pytest.approx((own**2).sum())
            wanted = own.var(0, ddof=1).sum() if len(own) > 1 else np.nan
            assert mine.within[block] == pytest.approx(wanted, nan_ok=True)
            few = own[: least[block]]
            assert mine.alike[block] == pytest.approx(few.var(0, ddof=1).sum() if len(few) > 1 else np.nan, nan_ok=True)
            assert mine.distinct[block] == len(np.unique(own, axis=0)) and mine.n[block] == len(own)
            assert rows[mine.rows(block)] == pytest.approx(own)
            first = mine.paired[:block].sum()
            tested = 1 if repeated and names[block] == "a cat" else least[block]
            assert mine.paired[block] == tested
            assert mine.pairs[first : first + tested] == pytest.approx(own[:tested])
        values = np.random.default_rng(3).normal(size=one.n)
        wanted = [values[of == block][: least[block]].mean() for block in range(6)]
        assert mine.means(values, least) == pytest.approx(wanted)
    whole = np.concatenate(every)
    squares = ((whole[:, None] - whole[None]) ** 2).sum(2)
    assert unit_of([*found.values()]) == pytest.approx(squares.mean() ** 0.5)


def test_the_score_of_vendi_counts_what_is_unlike():
    assert vendi_score(np.zeros((5, 2))) == pytest.approx(1)
    assert vendi_score(100.0 * np.eye(5)) == pytest.approx(5)
    rows = np.random.default_rng(0).normal(size=(4, 3))
    kernel = np.exp(-((rows[:, None] - rows[None]) ** 2).sum(2) / (2 * 0.5**2))
    values = np.linalg.eigvalsh(kernel / 4)
    assert vendi_score(rows) == pytest.approx(np.exp(-(values * np.log(values)).sum()))


def test_distances_of_prompts_are_held_against_permutations_of_their_images():
    found = Permuted(3)
    rng = np.random.default_rng(0)
    weight = np.repeat([1 / 4, -1 / 4], 4)
    signs = np.array([rng.permutation(weight) for _ in range(400)])
    near, far = rng.normal(size=(8, 3)), rng.normal(size=(8, 3)) + 5 * (weight > 0)[:, None]
    for block, rows in ((0, near), (2, far)):
        found.add(block, rows, weight, signs)
        apart = [((one @ rows) ** 2).sum() for one in signs]
        wanted = (((weight @ rows) ** 2).sum() - np.mean(apart)) / np.std(apart)
        assert found.z[-1] == pytest.approx(wanted)
    found.add(1, np.ones((8, 3)), weight, signs)  # equal images say nothing
    p_values = found.p_values()
    assert np.isnan(p_values[1]) and p_values[2] < 0.05 < p_values[0]
    assert np.isnan(Permuted(2).p_values()).all()


def test_a_mean_of_prompts_has_the_p_value_of_student():
    values = np.random.default_rng(0).normal(0.3, 1, 25)
    assert Estimate.of_mean(values).p_value == pytest.approx(2 * t.sf(abs(values.mean()) * 5 / values.std(ddof=1), 24))
    assert tuple(Estimate.of_mean(one).p_value for one in (np.zeros(4), np.ones(4))) == (1, 0)


def test_prompts_are_hashed_by_words_and_pairs_of_words_to_length_one():
    one, same, turned, other, none = hash_words(["a red cat", "a red cat", "red a cat", "two dogs", ""])
    assert np.linalg.norm(one) == pytest.approx(1) and (one == same).all() and not none.any()
    assert 0.3 < one @ turned < 0.99 and abs(one @ other) < 0.3
    assert torch.from_numpy(one).isfinite().all()


def test_the_common_distance_of_prompts_has_the_error_of_a_jackknife():
    mean = np.random.default_rng(0).normal(0.5, 1, (40, 3))
    inner = mean @ mean.T
    np.fill_diagonal(inner, 0)
    value, (low, high) = common_distance(mean)
    whole = inner.sum() / (40 * 39)
    left = [(inner.sum() - 2 * inner[row].sum()) / (39 * 38) for row in range(40)]
    error = np.sqrt(39 / 40 * ((left - np.mean(left)) ** 2).sum())
    assert value**2 == pytest.approx(whole)
    assert (high**2 - low**2) / 2 == pytest.approx(t.ppf(0.975, 39) * error)


def test_a_distance_of_means_is_without_what_chance_makes():
    rng = np.random.default_rng(0)
    first, second = rng.normal(0.4, 0.1, (8, 3)), rng.normal(0, 0.2, (5, 3))
    apart = first.mean(0) - second.mean(0)
    distance = np.linalg.norm(apart)
    chance = first.var(0, ddof=1).sum() / 8 + second.var(0, ddof=1).sum() / 5
    value, (low, high) = distance_of_means(first, second)
    axis = apart / distance
    _, ends = difference_interval(first @ axis, second @ axis, np.inf)
    assert value**2 == pytest.approx(distance**2 - chance)
    assert (low**2, high**2) == pytest.approx((ends[0] ** 2 - chance, ends[1] ** 2 - chance))
    turned = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    assert distance_of_means(first @ turned, second @ turned)[0] == pytest.approx(value)
    assert distance_of_means(first, first[::-1])[0] == 0 and distance_of_means(first, first[::-1])[1][0] == 0
    assert distance_of_means(first[:1], second)[1] == (0.0, MOST_APART)


def test_prompts_have_the_spread_the_distance_and_the_score_of_their_images():
    counts = (6, 5, 4, 6, 5, 6)
    sets = {"gen": made(counts, 0), "ref": made(counts[::-1], 1)}
    tree = KindTree.of_sets([made((9,) * 6, 2)], 0, Run())
    pairing, _ = pair(sets, "prompt")
    unit = unit_of(images_of(pairing, tree, Run()).values())
    found = prompt_differences(pairing, tree, 0, Run())
    assert {one.text for one in found.prompts} == set(NAMES)
    for one in found.prompts:
        own = {}
        for label, each in sets.items():
            rows = np.flatnonzero([name == one.text for name in each.column("prompt")])
            own[label] = coordinates(each.rows_at(rows), tree).numpy() / unit
            known = one.sets[label]
            assert (known.n, known.distinct) == (len(rows), len(rows))
            assert known.vendi == pytest.approx(vendi_score(own[label]))
            assert known.spread == pytest.approx((2 * own[label].var(0, ddof=1).sum()) ** 0.5)
        gen, ref = own.values()
        value, interval = distance_of_means(gen, ref)
        assert (one.difference, *one.interval) == pytest.approx((value, *interval))
