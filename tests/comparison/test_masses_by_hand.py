"""Masses, excesses and design effects of directions, by their definitions on a few samples."""

from dataclasses import replace
from math import ceil
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from _pages import a_kind
from scipy import stats

import finc_eval as fe
from finc_eval.comparison import sets_test
from finc_eval.comparison.assemble import place_in_kinds, share_of
from finc_eval.comparison.changes import _change
from finc_eval.comparison.estimates import HALVES_CORRELATION, Estimates, Masses
from finc_eval.comparison.findings import clear_among
from finc_eval.comparison.fits import direction_count
from finc_eval.comparison.inputs import SketchedSet
from finc_eval.comparison.score_pass import ScorePass
from finc_eval.findings.finding import Finding, part_in_words, two_shares
from finc_eval.numerics.exchanges import sketched_p_value
from finc_eval.numerics.moments import Moments

RNG = np.random.default_rng(0)


def tensor(*values):
    return torch.tensor(values, dtype=torch.double)


def unit(n, seed, q=4):
    rows = torch.from_numpy(np.random.default_rng(seed).normal(size=(n, q)))
    return rows / rows.norm(dim=1, keepdim=True)


def test_the_mass_of_both_folds_is_their_mean_by_size_and_its_variance_counts_independent_samples():
    masses = Masses(tensor(30, 70), tensor([0.2], [0.4]), tensor([0.09], [0.14]), tensor(5))
    mass, variance = masses.pooled()
    assert float(mass) == pytest.approx(0.3 * 0.2 + 0.7 * 0.4)
    assert float(variance) == pytest.approx(5 * (0.3**2 * 0.09 / 30 + 0.7**2 * 0.14 / 70))


@pytest.mark.parametrize("sampled", [0, 7])
def test_masses_of_moments_are_exact_and_their_variances_are_those_of_the_sample_and_one_more(sampled):
    rows, vectors = [unit(20, fold) for fold in (0, 1)], [unit(3, fold + 2).T for fold in (0, 1)]
    folds = tuple(Moments(4, "float64", torch.device("cpu")) for _ in rows)
    for moments, own in zip(folds, rows, strict=True):
        moments.update(own)
    squares = [(own[:sampled] @ v).square() for own, v in zip(rows, vectors, strict=True)]
    powers = torch.stack([torch.stack([one.sum(0), one.square().sum(0)]) for one in squares])
    found = Masses.of_sketch(folds, tuple(vectors), powers, 3.0)
    assert found.n.tolist() == [20, 20] and found.effect.tolist() == [3, 3, 3]
    for fold in (0, 1):
        mean = (rows[fold] @ vectors[fold]).square().mean(0)
        fourth = mean * (squares[fold].square().sum(0) + 1) / (squares[fold].sum(0) + 1)
        np.testing.assert_allclose(found.mean[fold], mean)
        np.testing.assert_allclose(found.variance[fold], (fourth - mean**2).clamp_min(0))


def test_an_excess_has_the_errors_of_both_sets_and_of_halves_that_are_alike():
    first = Masses(tensor(50, 50), tensor([0.5, 0.3], [0.3, 0.2]), tensor([0.04, 0.01], [0.02, 0.03]), tensor(1, 1))
    second = Masses(tensor(50, 50), tensor([0.1, 0.2], [0.1, 0.1]), tensor([0.03, 0.02], [0.01, 0.02]), tensor(1, 1))
    found = Estimates.of(first, second, 2.0)
    np.testing.assert_allclose(found.excess, [0.4 - 0.2, 0.25 - 0.3])
    variance = first.pooled()[1] + 4 * second.pooled()[1]
    np.testing.assert_allclose(found.error, ((1 + HALVES_CORRELATION) * variance).sqrt())
    np.testing.assert_allclose(found.p_values(), stats.norm.sf(found.excess / found.error))
    paired = Estimates.of(first, second, 2.0, tensor(0.01, 0.04))
    np.testing.assert_allclose(paired.error, np.sqrt([0.015, 0.06]))
    half = stats.norm.ppf(1 - 0.05 / 12) * np.sqrt(0.015)
    assert paired.interval(0, 6, 2.0) == pytest.approx((0.2 - half, 0.2 + half))


def test_an_interval_of_an_excess_ends_where_no_excess_can_be():
    far = Estimates(tensor(0.9), tensor(0.0), tensor(0.9), tensor(5.0))
    assert far.interval(0, 1, 0.5) == (-0.5, 1)


def scored(squares, groups, folds):
    """Pass over scores whose squares are given, shape (n, t); direction i scores entry i of a feature."""
    features = torch.from_numpy(np.sqrt(squares)).float()
    t = features.shape[1]
    passed = ScorePass(torch.eye(t), (torch.eye(t), torch.eye(t)), np.bincount(groups))
    for fold in (0, 1):
        index = torch.from_numpy(np.flatnonzero(folds == fold))
        passed.update(features[index], fold, index, torch.from_numpy(groups)[index])
    return passed.result()


GROUPS = np.repeat(np.arange(7), [1, 3, 2, 4, 1, 5, 2])
SQUARES = RNG.uniform(0, 0.3, (18, 2)) * RNG.choice([0.2, 1, 2], (7, 1))[GROUPS]
FOLDS = RNG.integers(0, 2, 18)


def test_scores_of_groups_have_the_spread_of_their_sums_over_that_of_independent_samples():
    found, typical = scored(SQUARES, GROUPS, FOLDS), tensor(0.4, 0.5)
    shares = found.grouped(typical)
    sizes, sums = np.bincount(GROUPS), np.array([np.bincount(GROUPS, column) for column in SQUARES.T]).T
    mean = SQUARES.mean(0)
    between = ((sums - sizes[:, None] * mean) ** 2).sum(0)
    alone = sum((fold == FOLDS).sum() * SQUARES[fold == FOLDS].var(0, ddof=1) for fold in (0, 1))
    np.testing.assert_allclose(shares.seen, between / alone, rtol=1e-5)
    np.testing.assert_allclose(shares.members, (SQUARES**2).sum(0) / typical.numpy() ** 2, rtol=1e-5)
    np.testing.assert_allclose(shares.groups, np.minimum((sums / typical.numpy()) ** 2, 1).sum(0), rtol=1e-5)
    np.testing.assert_allclose(shares.around, np.maximum(sizes @ sums / SQUARES.sum(0), 1), rtol=1e-5)
    masses = found.masses(tensor(1, 1))
    for fold in (0, 1):
        np.testing.assert_allclose(masses.mean[fold], SQUARES[fold == FOLDS].mean(0), rtol=1e-5)
        np.testing.assert_allclose(masses.variance[fold], SQUARES[fold == FOLDS].var(0, ddof=1), rtol=1e-4)


def test_what_groups_of_both_sets_share_cancels_in_the_variance_of_their_difference():
    other = np.roll(SQUARES, 3, 0)[:14] + 0.1
    others = np.repeat(np.arange(7), 2)
    first, second = scored(SQUARES, GROUPS, FOLDS), scored(other, others, np.arange(14) % 2)
    parts = [
        np.array([np.bincount(group, column - column.mean()) for column in rows.T]).T / len(rows)
        for rows, group in ((SQUARES, GROUPS), (other, others))
    ]
    wider = stats.t.isf(0.0005, 6) / stats.norm.isf(0.0005)  # at a confidence of 0.999
    expected = ((parts[0] - parts[1]) ** 2).sum(0) * 7 / 6 * wider**2
    np.testing.assert_allclose(first.paired_variance(second), expected, rtol=1e-4)


@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_the_test_of_sketches_is_that_of_the_covariance_of_both_sets_together(shift):
    rng = np.random.default_rng(1)
    sets = [rng.normal(size=(n, 5)).astype(np.float32) + change for n, change in ((60, shift), (90, 0.0))]
    phi = fe.RandomFourierFeatures(dim=5, features=10, sigma=3.0, seed=0)
    sketches = [fe.Sketch.of(one, phi) for one in sets]
    sketched = [SketchedSet(label, one, sketch=one) for label, one in zip("ab", sketches, strict=True)]
    features = [phi(torch.from_numpy(one)).double().numpy() for one in sets]
    distance = ((features[0].mean(0) - features[1].mean(0)) ** 2).sum()
    expected = sketched_p_value(distance, np.cov(np.concatenate(features).T), (60, 90))
    assert sets_test._of_sketches(*sketched) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (1.0, "all"),
        (0.97, "97.0 %"),
        (0.88, "88.0 %"),
        (0.5, "half"),
        (0.54, "half"),
        (0.46, "half"),
        (0.449, "44.9 %"),
        (0.556, "55.6 %"),
        (0.24, "a quarter"),
        (0.109, "a tenth"),
        (0.08, "8.0 %"),
        (0.3334, "a third"),
    ],
)
def test_a_share_within_a_tenth_of_a_simple_part_has_its_name(share, words):
    assert part_in_words(share, two_shares(share, 0.0)[0]) == words


def finding(share, before, what="kind", *, whole=False, p_value=0.001):
    return Finding("dots", what, whole, share, before, p_value)


@pytest.mark.parametrize(
    ("share", "before", "words", "change"),
    [
        (0.3, 0.1, "too many dots", "more"),
        (0.1, 0.1, "too many dots", "more"),
        (0.1, 0.4, "too few dots", "less"),
        (0.081, 0.4, "too few dots", "less"),
        (0.08, 0.4, "lacks dots", "lost"),
        (0.0, 0.4, "lacks dots", "lost"),
    ],
)
def test_a_set_lacks_a_kind_of_which_it_has_at_most_a_fifth(share, before, words, change):
    one = finding(share, before)
    assert one.words == words and one.change().startswith(f"{change}: dots")
    assert one.size == pytest.approx(abs(share - before))


def test_a_look_of_the_whole_set_is_the_largest_and_whole_sets_are_as_large_as_they_are_told_apart():
    assert finding(0.6, 0.5, "look", whole=True).size == 1
    assert finding(0.6, 0.5, "look").size == pytest.approx(0.1)
    apart, alike = (finding(share, 0.5, "sets", whole=True) for share in (0.7, 0.5))
    assert apart.size == pytest.approx(0.2)
    assert "assigns 70 %" in apart.say("reference") and "assigns" not in alike.say("reference")
    assert finding(0.1, 0.1, "repeat").words == "dots" and finding(0.1, 0.2, "repeat").words == "fewer repeats: dots"


@pytest.mark.parametrize(
    ("what", "level", "sets"),
    [
        ("kind", 0.05, 1),
        ("kind", 0.005, 10),
        ("look", 0.0125, 1),
        ("look", 0.0125 / 50, 50),
        ("look", 1 / 8000, 1000),  # as small as all exchanges allow
        ("sets", 0.0125 / 20, 20),
        ("sets", 1 / 2000, 1000),
    ],
)
def test_of_many_sets_a_finding_is_clear_up_to_its_part_of_the_level(what, level, sets):
    clear, not_clear = (finding(0.3, 0.1, what, p_value=level * factor) for factor in (1 - 1e-9, 1 + 1e-9))
    assert clear_among([clear], sets) == (clear,) and clear_among([not_clear], sets) == ()


def test_that_sets_differ_as_a_whole_is_said_only_where_nothing_names_it():
    kind, sets = finding(0.3, 0.1), finding(0.6, 0.5, "sets", whole=True, p_value=1e-4)
    assert clear_among([kind, sets], 1) == (kind,) and clear_among([sets], 1) == (sets,)


@pytest.mark.parametrize(
    ("old", "new", "p", "p_old", "p_new", "status", "role"),
    [
        (0.1, 0.3, 0.01, 0.9, 0.01, "new", "over"),
        (0.3, 0.1, 0.01, 0.01, 0.9, "gone", "over"),
        (0.1, 0.02, 0.01, 0.9, 0.01, "new", "under"),
        (0.02, 0.1, 0.01, 0.01, 0.9, "gone", "under"),
        # Both differ from the reference, or the lesser difference is half of the larger.
        (0.12, 0.3, 0.01, 0.01, 0.01, "grown", "over"),
        (0.3, 0.12, 0.01, 0.01, 0.01, "shrunk", "over"),
        (0.21, 0.3, 0.01, 0.06, 0.01, "grown", "over"),
        (0.19, 0.3, 0.01, 0.06, 0.01, "new", "over"),
        (0.19, 0.3, 0.01, 0.05, 0.01, "grown", "over"),
        # What is not shown to have changed.
        (0.1, 0.3, 0.06, 0.9, 0.01, "undecided", "over"),
        (0.24, 0.3, 0.06, 0.9, 0.01, "unchanged", "over"),
        (0.19, 0.3, 0.05, 0.06, 0.05, "new", "over"),
        (0.02, 0.12, 0.06, 0.01, 0.9, "undecided", "under"),
        # The release that differs more clearly, and the new one where both do alike, has more or less.
        (0.05, 0.2, 0.01, 0.02, 0.03, "grown", "under"),
        (0.05, 0.2, 0.01, 0.02, 0.02, "grown", "over"),
    ],
)
def test_what_became_of_a_kind_follows_from_its_distances_from_the_reference(old, new, p, p_old, p_new, status, role):
    kind = replace(a_kind("k1", new, old, labels=("new", "old")), p_value=p)
    found = _change(kind, 0.1, p_old, p_new, 0.05)
    assert (found.status, found.role, found.share_ref) == (status, role, 0.1)


@pytest.fixture(scope="module")
def mixed():
    """A comparison and its sets: two kinds differ, and noise makes some directions that mean nothing."""
    rng = np.random.default_rng(3)

    def drawn(n, shares):
        labels = rng.choice(4, n, p=shares)
        return (5 * np.eye(4, 8)[labels] + rng.normal(size=(n, 8))).astype(np.float32)

    gen, ref = drawn(160, [0.4, 0.1, 0.25, 0.25]), drawn(240, [0.1, 0.4, 0.25, 0.25])
    return fe.compare(gen, ref, features=60, modes=5, method=fe.Finc(clusters=False), rho=1.25), gen, ref


def test_directions_are_significant_first_then_by_how_much_more_of_the_set_are_members(mixed):
    found = mixed[0].directions
    assert {one.p_value > 0.05 for one in found} == {False, True}
    for role in (mixed[0].over, mixed[0].under):
        assert [one.p_value > 0.05 for one in role] == sorted(one.p_value > 0.05 for one in role)
        for is_clear in (True, False):
            leads = [abs(one.share_difference) for one in role if (one.p_value <= 0.05) is is_clear]
            assert leads == sorted(leads, reverse=True)
    assert all(one.excess > 0 and one.fitted_excess > 0 for one in found)
    assert all(one.name is None for one in found if one.p_value > 0.05)


def test_the_first_tail_of_a_direction_has_most_of_the_excess(mixed):
    comparison, gen, ref = mixed
    for one in comparison.directions:
        own, other = (gen, ref) if one.role == "over" else (ref, gen)
        scores = [comparison.feature_map(torch.from_numpy(rows)).numpy() @ one.direction for rows in (own, other)]
        energy = [
            (np.maximum(sign * scores[0], 0) ** 2).mean() - 1.25 * (np.maximum(sign * scores[1], 0) ** 2).mean()
            for sign in (1, -1)
        ]
        assert [tail.share for tail in one.tails] == pytest.approx(np.array(energy) / sum(energy), abs=1e-3)
        assert energy[0] >= energy[1]


def test_the_share_of_a_set_of_too_few_independent_samples_can_be_anything():
    few = SimpleNamespace(scores=SimpleNamespace(n=40), sketched=SimpleNamespace(is_testable=False))
    assert share_of(few, 0, 10, 0.95) == (0, 0.25, 1)


@pytest.mark.parametrize(
    ("places", "kinds", "is_shown"),
    [
        ([0, 0, 0, 1], ("a",), True),
        ([0, 0, 1, 1], ("a",), True),
        ([0, 0, 0, 0, 1, 1, 1, 2, 2], ("a", "b"), False),
        ([2, 2, 2, 0, 0, 0], ("a",), True),
        ([2, 2, 2, 0, 0], ("c",), False),
        ([0, 0, 1, 1, 2, 2, 2], ("c", "a"), False),
    ],
)
def test_a_direction_is_placed_in_the_kinds_with_half_of_its_best_samples(places, kinds, is_shown, mixed):
    """Kind "a" differs in the same way."""
    one = mixed[0].directions[0]
    tails = tuple(replace(tail, gen=np.arange(len(places)), ref=np.arange(len(places))) for tail in one.tails)
    at = SimpleNamespace(rows_at=lambda rows: rows)
    divided = SimpleNamespace(places=lambda rows, run: np.array(places)[rows])
    listed = [SimpleNamespace(id=name) for name in "abc"]
    found = place_in_kinds(replace(one, tails=tails), at, listed, np.array([True, False, False]), divided, None)
    assert (found.kinds, found.shown_by_kinds) == (kinds, is_shown)


@pytest.mark.parametrize(("modes", "features", "n"), [(3, 60, 90), (40, 5, 90), (40, 400, 9)])
def test_no_more_directions_are_fitted_than_a_half_of_the_samples_or_of_the_features_has(modes, features, n):
    """A third more directions than asked for; a half of five frequencies has two, with a cosine and a sine each."""
    phi = fe.RandomFourierFeatures(dim=4, features=features, sigma=2.0, seed=0)
    sketch = fe.Sketch.of(unit(n, 3).numpy(), phi)
    sets = [SketchedSet(name, sketch, sketch=sketch) for name in ("gen", "ref")]
    settings = fe.Settings(features=features, modes=modes, method=fe.Finc(clusters=False))
    samples = min(sum(one.sketch.folds[fold].n for one in sets) for fold in (0, 1))
    assert direction_count(sets, settings) == min(ceil(1.3 * modes), samples, 2 * (features // 2))


def test_a_ratio_is_that_of_the_masses_and_a_muted_direction_shows_only_typical_samples(mixed):
    for one in mixed[0].directions:
        assert one.ratio == pytest.approx(one.mass_gen / one.mass_ref)
        shown = one.shown("gen", 4)
        assert (len(shown) > 4) is (one.p_value <= 0.05) and shown[:1] == list(one.typical("gen"))[:1]
    assert replace(mixed[0].directions[0], mass_ref=0.0).ratio == np.inf
