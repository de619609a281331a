import math
from dataclasses import replace

import pytest
import torch
from _points import Points

from finc_eval.core.errors import BudgetError, FincEvalError, UsageError
from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.privacy import Guarantee, Ledger
from finc_eval.private.dp import gaussian_mechanism as gaussian
from finc_eval.private.dp.gaussian_mechanism import diameter_of
from finc_eval.private.hermite.coordinate_kernels import CoordinateProduct, CoordinateSum, SumAndProduct
from finc_eval.private.hermite.hermite import TotalDegree
from finc_eval.private.synthesis import dp_hp
from finc_eval.private.synthesis.dp_hp import draw_labels, fit, release_embedding
from finc_eval.private.synthesis.generators import Bounded
from finc_eval.private.synthesis.released_features import BoundedMoments, Statistic

pytestmark = pytest.mark.usefixtures("seeded_noise")

BUDGET = Guarantee.of(1, 1e-5)
CLASSES = 3


def statistics():
    """One of each kind, on records of 4 entries, the last of all records and not by class."""
    view = torch.eye(4)[:, :2]
    return [
        Statistic(TotalDegree(4, 2, length_scale=1.0), budget=2.0),
        Statistic(CoordinateSum(2, 5, length_scale=0.5), view),
        Statistic(CoordinateProduct(2, 3, length_scale=0.5), view, 0.5),
        Statistic(RandomFourierFeatures(4, 20, sigma=1.0, orthogonal=False)),
        Statistic(BoundedMoments(4, 2, length_scale=1.0)),
        Statistic(SumAndProduct(2, (3, 5), length_scale=(0.5, 2.0), product_order=2), view),
        Statistic(TotalDegree(4, 3, length_scale=1.0), by_class=False),
    ]


def records(m=40, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(m, 4, generator=generator), torch.randint(CLASSES, (m,), generator=generator)


def released_of(x, y, asked=None, **rest):
    return release_embedding(x, y, asked or statistics(), BUDGET, **({"ledger": None, "classes": CLASSES} | rest))


@pytest.fixture
def without_noise(monkeypatch):
    monkeypatch.setattr(dp_hp, "add_gaussian_noise", lambda statistic, scale: statistic)


@pytest.mark.parametrize("bound", ["tight", "paper"])
def test_the_parts_of_a_release_spend_its_guarantee_and_no_more(monkeypatch, bound):
    scales = []
    monkeypatch.setattr(dp_hp, "add_gaussian_noise", lambda statistic, scale: scales.append(scale) or statistic)
    target = released_of(*records(), bound=bound)
    diameters = [diameter_of(one.phi, bound) for one in target.statistics]
    assert diameters[0] == (math.sqrt(2) if bound == "tight" else 2)
    assert diameters[3] == 2  # Fourier features have no better bound
    spent = sum((far / 40 / scale) ** 2 for far, scale in zip([*diameters, math.sqrt(2)], scales, strict=True))
    assert math.sqrt(spent) == pytest.approx(BUDGET.mu, rel=1e-12)
    assert (scales[1] / scales[0]) ** 2 == pytest.approx(2)  # half the budget, twice the variance


def test_one_replaced_record_moves_no_part_farther_than_its_sensitivity(without_noise):
    x, y = records()
    before = released_of(x, y)
    for seed in range(1, 60):
        generator = torch.Generator().manual_seed(seed)
        x[0] = torch.randn(4, generator=generator) * 10 ** float(torch.randn(1, generator=generator))
        y[0] = seed % CLASSES
        if seed % 10 == 0:
            x[0, 1] = torch.nan
        after = released_of(x, y)
        for statistic, one, other in zip(before.statistics, before.means, after.means, strict=True):
            assert float((one - other).norm()) <= diameter_of(statistic.phi, "tight") / 40 * (1 + 1e-5)


def test_the_mean_is_that_of_features_times_class(without_noise):
    x, y = records()
    target = released_of(x, y)
    features = target.statistics[0](x)
    for label in range(CLASSES):
        torch.testing.assert_close(target.means[0][label], features[y == label].sum(0) / 40)
    torch.testing.assert_close(target.means[-1][0], target.statistics[-1](x).mean(0))
    assert target.shares.tolist() == pytest.approx((torch.bincount(y) / 40).tolist())


def test_noise_has_the_stated_deviation():
    x, y = records(1000)
    statistic = Statistic(TotalDegree(4, 9, length_scale=1.0))
    one, other = released_of(x, y, [statistic]), released_of(x, y, [statistic])
    off = (one.means[0] - other.means[0]) / one.scales[0] / math.sqrt(2)
    assert float(off.square().mean()) == pytest.approx(1, abs=4 * math.sqrt(2 / off.numel()))


def test_records_that_are_not_numbers_and_unknown_classes_do_not_change_the_form(without_noise):
    x, y = records()
    spoilt, unknown = x.clone(), y.clone()
    spoilt[0], spoilt[1, 2], unknown[2] = torch.nan, torch.inf, 77
    target = released_of(spoilt, unknown)
    assert [mean.shape for mean in target.means] == [mean.shape for mean in released_of(x, y).means]
    assert all(bool(mean.isfinite().all()) for mean in target.means)
    torch.testing.assert_close(target.means[0].sum(0), target.statistics[0](x[3:]).sum(0) / 40)


def test_shares_are_shares_even_where_noise_makes_counts_negative():
    y = torch.zeros(40, dtype=torch.long)
    for _ in range(20):
        shares = released_of(records()[0], y).shares
        assert float(shares.min()) > 0
        assert float(shares.sum()) == pytest.approx(1, abs=1e-6)


def test_spending_is_on_the_disk_before_noise_is_drawn(tmp_path, monkeypatch):
    ledger = Ledger.create(tmp_path / "ledger", 1, 1e-5)

    def crash(statistic, scale):
        raise RuntimeError("the power is gone")

    monkeypatch.setattr(dp_hp, "add_gaussian_noise", crash)
    with pytest.raises(RuntimeError):
        released_of(*records(), ledger=ledger, name="wards")
    (line,) = Ledger(tmp_path / "ledger").spendings(["wards"])
    assert line.mu == BUDGET.mu
    assert line.purpose == "data generation"


def test_a_second_release_of_the_same_records_is_refused_when_the_budget_is_spent(tmp_path):
    x, y = records()
    ledger = Ledger.create(tmp_path / "ledger", 1, 1e-5)
    released_of(x, y, ledger=ledger)
    with pytest.raises(BudgetError, match="nothing is left after 1 release"):
        released_of(x, y, ledger=tmp_path / "ledger")
    released_of(x + 1, y, ledger=ledger)


def test_points_are_fitted_until_only_noise_is_left(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    monkeypatch.setattr(
        gaussian, "secure_normal", lambda shape: torch.randn(shape, generator=generator, dtype=torch.double)
    )
    y = torch.arange(1000) % 2
    x = torch.where(y[:, None] == 0, 0.2, 0.8) + 0.05 * torch.randn(1000, 2, generator=generator)
    target = released_of(x, y, [Statistic(CoordinateProduct(2, 4, length_scale=0.5))], classes=2)
    points = Points(Bounded(2), 2, 20, seed=0)
    course = fit(points, target, steps=100, rate=0.3, until=1.4)  # 50 numbers, of which a fifth is chance
    assert course[-1] <= 1.4 < 20 < course[0]
    assert len(course) < 100
    made = points.sample(y, 0)
    for label, center in ((0, 0.2), (1, 0.8)):
        assert made[y == label].mean(0).tolist() == pytest.approx([center] * 2, abs=0.05)


def test_discrepancy_of_the_true_means_is_1_in_expectation():
    x, y = records(2000)
    asked = statistics()
    exact = [torch.stack([one(x[y == label]).mean(0) for label in range(CLASSES)]) for one in asked]
    found = released_of(x, y, asked, label_budget=0.5).discrepancy(exact)
    assert float(found) == pytest.approx(1, abs=0.4)


def test_weights_of_eq_16_replace_those_of_the_noise_and_the_discrepancy_of_noise_stays_1():
    x, y = records(2000)
    first, second = statistics()[:2]
    exact = [torch.stack([one(x[y == label]).mean(0) for label in range(CLASSES)]) for one in (first, second)]
    off = [exact[0], exact[1] + 1]
    found = []
    for gamma in (1e-9, 1.0, 1e9):
        asked = [replace(first, weight=1.0), replace(second, weight=gamma)]
        target = released_of(x, y, asked, label_budget=0.5)
        assert float(target.discrepancy(exact)) == pytest.approx(1, abs=0.6)
        found.append(float(target.discrepancy(off)))
    assert found[0] < 1.6 < 100 < found[1] < found[2]


def test_without_a_guarantee_the_means_are_exact_and_a_ledger_refuses(tmp_path):
    x, y = records()
    target = release_embedding(x, y, statistics(), None, ledger=None, classes=CLASSES)
    exact = statistics()[0](x)[y == 1].sum(0) / 40
    assert target.guarantee is None
    torch.testing.assert_close(target.means[0][1], exact)
    assert target.shares.tolist() == pytest.approx((torch.bincount(y) / 40).tolist())
    ledger = Ledger.create(tmp_path / "ledger", 1, 1e-5)
    with pytest.raises(UsageError, match="a ledger holds private releases alone"):
        release_embedding(x, y, statistics(), None, ledger=ledger, classes=CLASSES)
    assert not ledger.spendings()


def test_drawn_labels_have_the_shares_they_should():
    labels = draw_labels(torch.tensor([0.5, 0.3, 0.2]), 1000, 0)
    assert torch.bincount(labels).tolist() == [500, 300, 200]
    assert len(draw_labels(torch.tensor([1.0, 1.0, 1.0]), 100, 0)) == 100


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"asked": []}, "at least one statistic"),
        ({"asked": [Statistic(TotalDegree(4, 1, length_scale=1), budget=0)]}, "budget must be a positive number"),
        ({"classes": 800, "asked": [Statistic(CoordinateProduct(4, 15, length_scale=1))]}, "52,428,800 numbers"),
        ({"classes": 0}, "classes must be a whole number of at least 1, got 0"),
        ({"label_budget": 1.0}, "label_budget must lie between 0 and 1"),
        ({"bound": "papre"}, 'did you mean "paper"'),
        ({"y": None}, "40 records in 3 classes came without labels: pass one label per sample"),
        ({"x": torch.zeros(0, 4), "y": torch.zeros(0)}, "shape \\(m, k\\)"),
        ({"guarantee": Guarantee.of(1, 1e-5, "zero-out")}, 'adjacency "replace"'),
        ({"guarantee": Guarantee.of(1, 0.025)}, "0.025 is not below one over the 40 records"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence_before_anything_is_spent(tmp_path, change, message):
    x, y = records()
    ledger = Ledger.create(tmp_path / "ledger", 1, 1e-5)
    given = {"x": x, "y": y, "asked": statistics(), "guarantee": BUDGET} | change
    rest = {key: value for key, value in given.items() if key not in ("x", "y", "asked", "guarantee")}
    with pytest.raises(FincEvalError, match=message):
        release_embedding(
            given["x"],
            given["y"],
            given["asked"],
            given["guarantee"],
            **({"ledger": ledger, "classes": CLASSES} | rest),
        )
    assert not ledger.spendings()


def test_a_fit_refuses_steps_and_rates_that_are_none():
    target = released_of(*records())
    with pytest.raises(UsageError, match="steps must be a whole number of at least 1, got 0"):
        fit(Points(Bounded(4), CLASSES, 5), target, steps=0, rate=0.1)
    with pytest.raises(UsageError, match="rate must be a positive number, got 0"):
        fit(Points(Bounded(4), CLASSES, 5), target, steps=1, rate=0)
