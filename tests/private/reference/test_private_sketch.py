"""Private sketches: what a release spends, scores, merges and withstands."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from _pages import check_fits_a_terminal
from _private import DELTA, sketch_of

import finc_eval as fe
from finc_eval.core.errors import FincEvalError
from finc_eval.privacy import Guarantee, PrivateSketch, PublicTransform, release_sketch
from finc_eval.private.hermite.hermite import TotalDegree
from finc_eval.private.reference.release import SQUARE_WEIGHT, largest_tail, sensitivity_of
from finc_eval.private.reference.result import PrivateComparison, PrivateScore

pytestmark = pytest.mark.usefixtures("seeded_noise")


def test_a_release_scores_generators_and_ranks_the_one_that_lacks_a_digit_last(sets, transform):
    _, private, whole, without, _ = sets
    sketch = sketch_of(private, transform, 8)
    good, bad = sketch.score(whole), sketch.score(without)
    assert good.interval[0] < 0 < good.interval[1]
    assert bad.interval[0] > 0
    comparison = sketch.compare({"bad": without, "good": whole})
    assert [score.name for score in comparison.scores] == ["good", "bad"]
    (pair,) = comparison.pairs
    assert (pair.first, pair.second) == ("good", "bad")
    assert pair.p_value < 1e-3
    assert pair.value == pytest.approx(good.value - bad.value, abs=1e-15)


def test_a_paired_difference_is_surer_than_the_two_scores(sets, transform):
    _, private, whole, without, _ = sets
    sketch = sketch_of(private, transform, 0.3)
    comparison = sketch.compare({"one": whole, "other": without})
    alone = math.hypot(*(score.standard_error for score in comparison.scores))
    assert comparison.pairs[0].standard_error < 0.5 * alone


def test_parts_by_degree_and_by_class_add_to_the_score(sets, transform):
    _, private, whole, _, labels = sets
    sketch = sketch_of(private, transform, labels=labels, classes=[str(digit) for digit in range(10)])
    kinds = np.arange(len(whole)) % 10  # labels that tell nothing
    score = sketch.score(whole, kinds)
    assert sum(part.value for part in score.degrees) == pytest.approx(score.value, rel=1e-9)
    assert sum(part.value for part in score.classes) == pytest.approx(score.value, rel=1e-9)
    assert [part.name for part in score.degrees] == ["degree 0", "degree 1", "degree 2"]
    assert sum(part.features for part in score.degrees) == sketch.size == 10 * 66


def test_labels_that_are_wrong_are_seen_by_a_sketch_by_class(sets, transform, digits):
    _, private, whole, _, labels = sets
    right = digits[1][2500:]
    sketch = sketch_of(private, transform, 3, labels=labels, classes=[str(digit) for digit in range(10)])
    assert sketch.score(whole, right).interval[0] < 0.002
    assert sketch.score(whole, np.roll(right, 1)).interval[0] > 0.005
    with pytest.raises(FincEvalError, match="has no labels"):
        sketch.score(whole)


def test_classes_are_called_by_their_names_whatever_they_are(sets, transform, seeded_noise):
    _, private, _, _, labels = sets
    made = []
    for classes in (range(10), [str(digit) for digit in range(10)]):
        seeded_noise(1)
        made.append(sketch_of(private, transform, labels=labels, classes=classes))
    assert torch.equal(made[0].mean, made[1].mean)
    assert made[0].classes == made[1].classes


def test_a_record_of_no_listed_class_counts_as_nothing(sets, transform):
    _, private, _, _, labels = sets
    labels = labels.astype(object)
    labels[:700] = "a class nobody listed"
    classes = [str(digit) for digit in range(10)]
    sketch = sketch_of(private, transform, 1e3 - 1, labels=labels, classes=classes, max_undescribed=1)
    # The order-0 features are all positive and near 1, so their sum over classes is near the share that counts.
    zeroth = sketch.mean.view(10, -1)[:, 0].sum() * len(private) / (len(private) - 700)
    everyone = sketch_of(private, transform, 1e3 - 1).mean[0]
    assert zeroth == pytest.approx(float(everyone), rel=0.05)
    assert sketch.m == len(private)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_counts_as_the_center_and_changes_no_form(sets, transform, seeded_noise, value):
    private = sets[1].copy()
    private[3] = transform.center.numpy()
    seeded_noise(1)
    expected = sketch_of(private, transform)
    private[3, 5] = value
    seeded_noise(1)
    found = sketch_of(private, transform)
    assert torch.equal(found.mean, expected.mean)
    assert found.header == expected.header


@pytest.mark.parametrize("value", [1e30, 3e38, 1e300])
def test_an_outlier_moves_a_release_by_no_more_than_the_sensitivity(sets, transform, seeded_noise, value):
    private = sets[1].astype(np.float64)
    seeded_noise(1)
    expected = sketch_of(private, transform)
    private[3] = value
    private[3, ::2] *= -1
    seeded_noise(1)
    found = sketch_of(private, transform)
    moved = float((found.mean - expected.mean).norm())
    assert 0 < moved <= math.sqrt(2) / len(private) + 1e-6 * found.noise * math.sqrt(found.size)
    noisy = dict.fromkeys(("releases", "signature", "mean"))
    assert replace(found.header, **noisy) == replace(expected.header, **noisy)


def test_no_two_data_sets_that_differ_in_a_record_are_farther_apart_than_the_sensitivity(transform):
    rng = np.random.default_rng(0)
    phi = TotalDegree(10, 3, length_scale=transform.length_scale, rho=0.1)
    far = np.concatenate([rng.normal(size=(300, 784)) * scale for scale in (0.1, 1, 10, 1e4)])
    features = phi.in_double(transform(torch.from_numpy(far)))
    squares = features.square().sum(1)
    moved = torch.cdist(features, features).square() + SQUARE_WEIGHT**2 * (squares[:, None] - squares).square()
    assert moved.max().sqrt() <= sensitivity_of(1, phi, "replace", SQUARE_WEIGHT)
    assert squares.max() <= 1 + 1e-12


@pytest.mark.parametrize(("adjacency", "expected"), [("replace", math.sqrt(2)), ("zero-out", 1.0)])
def test_the_noise_follows_from_adjacency(sets, transform, adjacency, expected):
    sketch = sketch_of(sets[1], transform, adjacency=adjacency)
    (made,) = sketch.releases
    assert largest_tail(sketch.feature_map, transform.radius) > 1e-3
    assert made.sensitivity == pytest.approx(math.hypot(expected, SQUARE_WEIGHT) / len(sets[1]))
    assert sketch.noise == pytest.approx(made.sensitivity * 3.7306316348, rel=1e-9)
    assert made.guarantee == Guarantee.of(1.0, DELTA, adjacency)


def test_no_coordinate_is_spent_on_the_norm_where_it_is_known_to_be_one(sets):
    public = PublicTransform.constant(784, 2, length_scale=10, radius=3, center=0.13)
    phi = TotalDegree(2, 6, length_scale=10, rho=0.05)
    assert largest_tail(phi, 3) < 1e-3
    sketch = sketch_of(sets[1], public, feature_map=phi)
    assert sketch.releases[0].sensitivity == pytest.approx(math.sqrt(2) / len(sets[1]))
    assert sketch.releases[0].square == 1


def test_the_degree_follows_from_epsilon_and_the_number_of_records_alone():
    public = PublicTransform.constant(3, length_scale=2, radius=3)
    rows = np.random.default_rng(0).normal(size=(5000, 3))
    assert sketch_of(rows, public, 1).feature_map.order == 3
    assert sketch_of(rows, public, 0.99).feature_map.order == 2
    assert sketch_of(rows[1:], public, 1).feature_map.order == 2
    everything = PublicTransform.constant(20, length_scale=6, radius=6)
    classes = [str(number) for number in range(10)]
    by_class = sketch_of(np.zeros((5000, 20)), everything, labels=["0"] * 5000, classes=classes)
    assert by_class.feature_map.order == 2  # degree 3 of ten classes has no covariance that fits


def test_merged_owners_score_like_one_with_all_records(sets, transform):
    _, private, whole, _, _ = sets
    first = sketch_of(private[:500], transform, 3)
    second = sketch_of(private[500:], first, 1)
    merged = PrivateSketch.merge([first, second])
    assert merged.m == len(private)
    assert merged.noise == pytest.approx(math.hypot(first.noise / 3, second.noise * 2 / 3))
    assert torch.allclose(merged.mean, first.mean / 3 + second.mean * 2 / 3)
    assert [made.guarantee.epsilon for made in merged.releases] == [3, 1]
    assert len(merged.score(whole).guarantees) == 2
    whole_set = sketch_of(private, transform, 3).score(whole)
    assert merged.score(whole).value == pytest.approx(whole_set.value, abs=4 * merged.score(whole).standard_error)


def test_only_sketches_of_one_transform_merge_and_each_release_once(sets, transform):
    public, private, *_ = sets
    first, second = sketch_of(private[:700], transform), sketch_of(private[700:], PublicTransform.fit(public, 9))
    with pytest.raises(FincEvalError, match="differ in their transform and feature map"):
        PrivateSketch.merge([first, second])
    third = sketch_of(private[700:], first)
    with pytest.raises(FincEvalError, match="one release is in two"):
        PrivateSketch.merge([PrivateSketch.merge([first, third]), first])
    with pytest.raises(FincEvalError, match="at least two sketches"):
        PrivateSketch.merge([first])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"adjacent": "replace"}, "unknown option 'adjacent' .did you mean \"adjacency"),
        ({"epsilon": 0}, "epsilon must be a positive number, got 0"),
        ({"adjacency": "replaced"}, 'did you mean "replace"'),
        ({"classes": ["a", "a"], "labels": ["a"] * 1500}, "classes must be different names"),
        ({"classes": ["a"]}, "no labels"),
        ({"delta": 1 / 1500}, "is not below one over the 1500 records"),
        ({"classes": ["a"], "labels": ["a"]}, "1,500 samples came with 1 label:"),
        ({"feature_map": TotalDegree(4, 2, length_scale=1)}, "takes 4 entries, the transform gives 10"),
        ({"feature_map": TotalDegree(10, 6, length_scale=1)}, "8,008 features are more than 5,000"),
    ],
)
def test_what_cannot_be_released_is_refused_in_one_sentence(sets, transform, change, message):
    with pytest.raises(FincEvalError, match=message):
        release_sketch(sets[1], **{"public": transform, "epsilon": 1.0, "ledger": None} | change)


def test_the_same_set_twice_is_not_told_apart(sets, transform):
    sketch = sketch_of(sets[1], transform)
    for rows in (sets[2], np.repeat(sets[2][:1], 50, 0)):
        (pair,) = sketch.compare({"one": rows, "same": rows}).pairs
        assert (pair.value, pair.p_value) == (0, 1)


def test_scores_are_documents_with_their_guarantee(sets, transform, tmp_path, monkeypatch, capsys):
    _, private, whole, without, _ = sets
    sketch = sketch_of(private, transform)
    score = sketch.score(whole, name="<mine>")
    assert json.loads(score.to_json())["interval"] == list(score.interval)
    assert PrivateScore.from_dict(json.loads(score.to_json())) == score
    score.signature.check_comparable(sketch.score(without).signature)
    page = score.to_html(tmp_path / "p.html").read_text()
    with pytest.raises(fe.UsageError, match="show no samples"):
        score.to_html(tmp_path / "p.html", samples={"gen": whole})
    assert "&lt;mine&gt;" in page and "<mine>" not in page
    assert "≤ 0.575" in page and "(1, 1e-05)-DP" in page
    assert json.loads(score.to_json())["guarantees"][0]["ceilings"]["auc"] == pytest.approx(0.575, abs=5e-4)
    assert "&lt;mine&gt;" in score._repr_html_() and "(1, 1e-05)-DP" in score._repr_html_()
    comparison = sketch.compare({"a": whole, "b": without})
    assert comparison._repr_html_().count('<th scope="row"') == 10  # 2 scores, 1 pair, 6 parts, 1 guarantee
    for result in (score, comparison):
        check_fits_a_terminal(result, monkeypatch, capsys)
    assert json.loads(comparison.to_json())["pairs"][0]["p_value"] == comparison.pairs[0].p_value
    assert PrivateComparison.from_dict(json.loads(comparison.to_json())) == comparison
    assert "Who is nearer" in comparison.to_html(tmp_path / "c.html").read_text()


def test_the_attack_on_the_worst_pair_of_a_release_stays_under_its_ceiling(seeded_noise):
    """Two data sets differ in one record by as much as two records can: the likelihood ratio tells them apart best."""
    public = PublicTransform.constant(2, length_scale=1, radius=6)
    phi = TotalDegree(2, 10, length_scale=1, rho=0.3)
    rows = np.random.default_rng(0).normal(size=(20, 2))
    other = rows.copy()
    rows[0], other[0] = (3.0, 0.0), (-3.0, 0.0)
    epsilon, draws = 3.0, 120
    exact = [phi.in_double(public(torch.from_numpy(one))).mean(0) for one in (rows, other)]
    assert float((exact[0] - exact[1]).norm()) == pytest.approx(math.sqrt(2) / 20, rel=1e-2)
    seeded_noise(2)
    scores = [
        np.array(
            [float((exact[0] - exact[1]) @ sketch_of(one, public, epsilon, feature_map=phi).mean) for _ in range(draws)]
        )
        for one in (rows, other)
    ]
    auc = (scores[0][:, None] > scores[1]).mean()
    ceiling = Guarantee.of(epsilon, DELTA).ceilings.auc
    standard_error = math.sqrt(ceiling * (1 - ceiling) / draws)
    assert auc <= ceiling + 2 * standard_error
    assert auc >= ceiling - 4 * standard_error  # the noise is not larger than needed


def test_order_and_batches_do_not_matter(sets, transform, monkeypatch):
    _, private, whole, *_ = sets
    sketch = sketch_of(private, transform)
    one, other = sketch.score(whole), sketch.score(whole[::-1].copy())
    assert other.value == pytest.approx(one.value, rel=1e-8)
    assert other.standard_error == pytest.approx(one.standard_error, rel=1e-8)


def test_a_generator_that_makes_one_sample_only_is_far_off_with_error_bars(sets, transform):
    _, private, whole, *_ = sets
    score = sketch_of(private, transform).score(np.repeat(whole[:1], 50, 0))
    assert score.interval[0] > 0.1
    assert all(math.isfinite(number) for number in itertools.chain(score.interval, score.noise_interval))
