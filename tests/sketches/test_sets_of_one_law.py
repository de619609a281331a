"""Whether sets are samples of one law: sums over units, p-values, and a classifier of held-out samples."""

import numpy as np
import pytest
import torch

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.embeddings.opening import as_embeddings
from finc_eval.numerics.arrays import fold_of
from finc_eval.numerics.blocks import Blocked
from finc_eval.numerics.eigen import unit_of
from finc_eval.numerics.inference import clopper_pearson
from finc_eval.sketches.one_law import KeptSample, UnitFeatures, _is_testable, block_units, separate, sets_p_values


def drawn(n, seed, shift=0.0, groups=None):
    rows = np.random.default_rng(seed).normal(size=(n, 5)).astype(np.float32) + np.float32(shift)
    if groups is None:
        return as_embeddings(fe.EmbeddingSet(rows, ids=[f"{seed}-{i}" for i in range(n)]))
    labelled = fe.EmbeddingSet(
        rows, ids=[f"{seed}-{i}" for i in range(n)], metadata={"clip": [f"c{g}" for g in groups]}
    )
    return as_embeddings(labelled).grouped("clip")


@pytest.mark.parametrize(
    ("size", "columns"), [(6, range(6)), (1024, range(1024)), (1030, [*range(512), *range(515, 1027)])]
)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_units_have_the_sums_of_their_samples_on_the_first_512_frequencies(size, columns, is_weighted):
    rng, units = np.random.default_rng(0), np.array([0, 2, 2, 1, 0])
    features, weights = rng.normal(size=(5, size)).astype(np.float32), np.array([1.0, -2, 3, 0, 0.5])
    found = UnitFeatures(units, weights if is_weighted else None, size, torch.device("cpu"))
    for index in ([0, 1], [4, 2, 3]):
        found.update(torch.from_numpy(features[index]), torch.tensor(index))
    rows = features * weights[:, None] if is_weighted else features
    expected = [rows[units == unit].sum(0)[list(columns)] for unit in range(3)]
    np.testing.assert_allclose(found.result().sums, expected, rtol=1e-5, atol=1e-5)
    assert found.result().sizes.tolist() == [2, 1, 2]


def test_paired_sets_have_equal_numbers_of_units_and_weights_of_their_difference():
    blocked = Blocked(np.array([0, 0, 1, 2, 0, 1, 1, 2]), np.repeat([0, 1], 4))
    (first, weights), (second, others) = (block_units(blocked, one) for one in (0, 1))
    assert first.tolist() == [0, 0, 1, 2, 2] and second.tolist() == [0, 1, 1, 2, 2]
    common = np.array([2 / 3, 2 / 3, 1 / 2]) / (2 / 3 + 2 / 3 + 1 / 2)
    np.testing.assert_allclose(weights, [common[0] / 2, common[0] / 2, common[1], common[2], 0])
    np.testing.assert_allclose(others, [-common[0], -common[1] / 2, -common[1] / 2, -common[2], 0])


@pytest.mark.parametrize(("n", "expected"), [(11, False), (12, True)])
def test_a_set_is_tested_from_four_independent_samples_on(n, expected):
    """Groups of three; three of four samples are too few without groups."""
    groups = np.arange(n) // 3 if n == 12 else np.r_[np.arange(8) // 4, 2, 2, 2]
    assert _is_testable(drawn(n, 0, groups=groups)) is expected
    assert not _is_testable(drawn(3, 0)) and _is_testable(drawn(4, 0))


@pytest.mark.parametrize("is_screened", [False, True])
def test_a_set_that_is_shifted_differs_from_all_others_and_halves_of_one_law_do_not(is_screened):
    sets = {"a": drawn(80, 1), "b": drawn(90, 2), "c": drawn(70, 3, 1.0)}
    options = {"seed": 0, "run": Run(), "exchanges": 199, "is_screened": is_screened}
    p = sets_p_values(sets, **options)
    assert p["c"] == 1 / 200
    alike = sets_p_values({"a": sets["a"], "b": sets["b"]}, **options)
    apart = sets_p_values({"a": sets["a"], "c": sets["c"]}, **options)
    assert alike["a"] == alike["b"] > 0.05 and apart["a"] == apart["c"] == 1 / 200
    # Exchanges give multiples of 1 / 200; two moments, where no exchanges are drawn, do not.
    assert (abs(alike["a"] * 200 - round(alike["a"] * 200)) > 1e-9) is is_screened
    assert sets_p_values({"a": sets["a"], "few": drawn(3, 4)}, **options) == {"a": None, "few": None}


@pytest.mark.parametrize("groups", [1, 4])
def test_a_classifier_is_judged_on_the_fold_that_it_was_not_fitted_to(groups):
    """Fisher's discriminant with a tenth of the mean variance on each axis; half of the independent samples count."""
    sets = [drawn(n, seed, shift, np.arange(n) // groups) for n, seed, shift in ((60, 1, 0.8), (100, 2, 0.0))]
    kept = [KeptSample.of(one) for one in sets]
    found = separate(*kept)
    every = torch.cat([one.sample.rows for one in kept])
    centered = every - every.mean(0)
    rows = (centered / unit_of(centered)).double().numpy()
    folds = np.concatenate([fold_of(one.sample.keys) for one in kept])
    owner, scores = np.repeat([0, 1], [60, 100]), np.zeros(160)
    for fold in (0, 1):
        parts = [rows[(folds != fold) & (owner == one)] for one in (0, 1)]
        within = sum(np.cov(part.T) for part in parts) / 2 + 0.1 * (rows**2).mean() * np.eye(5)
        normal = np.linalg.solve(within, parts[0].mean(0) - parts[1].mean(0))
        scores[folds == fold] = (rows[folds == fold] - (parts[0].mean(0) + parts[1].mean(0)) / 2) @ normal
    value = ((scores[:60] > 0).mean() + (scores[60:] < 0).mean()) / 2
    assert found.value == pytest.approx(value) and 0.6 < value < 1
    half = 2 / (groups / 60 + groups / 100)
    assert found.interval == pytest.approx(tuple(float(one) for one in clopper_pearson(value * half, half)))
    surest = [kept[0].sample.ids[place] for place in np.argsort(-scores[:60])[:8]]
    others = [kept[1].sample.ids[place] for place in np.argsort(scores[60:])[:8]]
    assert found.surest == {"gen": tuple(surest), "ref": tuple(others)}


def test_sets_of_hardly_any_samples_have_no_classifier():
    assert separate(KeptSample.of(drawn(1, 0)), KeptSample.of(drawn(50, 1))) is None
    assert separate(KeptSample.of(drawn(2, 0)), KeptSample.of(drawn(50, 1))) is None
