import itertools

import pytest
import torch

from finc_eval.core.errors import UsageError
from finc_eval.feature_maps.fourier import RandomFourierFeatures
from finc_eval.private.hermite.coordinate_kernels import CoordinateProduct, CoordinateSum, SumAndProduct
from finc_eval.private.hermite.hermite import TotalDegree
from finc_eval.private.synthesis.columns import Category, Number
from finc_eval.private.synthesis.generators import (
    Bounded,
    Convolutional,
    FullyConnected,
    Network,
    ProductMixture,
    Smooth,
)
from finc_eval.private.synthesis.released_features import (
    BoundedMoments,
    Statistic,
    channel_by_channel,
    cosine_basis,
    pool,
)
from finc_eval.private.synthesis.tabular import Table

TABLE = Table(
    (Number.between("age", 0, 90, 4), Category("ward", ("a", "b", "c")), Category("smokes", ("no", "yes"), "no")),
    Category("ill", ("0", "1")),
)
WIDTH = TABLE.codes.shape[1]
AMOUNTS = TABLE.amounts.shape[1]


@pytest.mark.parametrize(
    "statistic",
    [
        Statistic(TotalDegree(WIDTH, 1, length_scale=0.9), TABLE.codes),
        Statistic(TotalDegree(WIDTH, 2, length_scale=0.9), TABLE.codes),
        Statistic(BoundedMoments(AMOUNTS, 1, length_scale=0.9), TABLE.amounts),
        Statistic(BoundedMoments(AMOUNTS, 2, lowest=2, length_scale=0.9), TABLE.amounts),
        Statistic(CoordinateSum(3, 6, length_scale=0.7), TABLE.positions),
        Statistic(CoordinateProduct(3, 3, length_scale=0.7, coordinates=[0, 2]), TABLE.positions),
        Statistic(CoordinateProduct(3, 2, length_scale=0.7), TABLE.positions),
        Statistic(CoordinateProduct(3, (2, 4, 3), length_scale=(0.5, 0.7, 2.0)), TABLE.positions),
        Statistic(SumAndProduct(3, 5, length_scale=0.7, product_order=2, coordinates=[1, 2]), TABLE.positions),
        Statistic(RandomFourierFeatures(WIDTH, 30, sigma=0.8, orthogonal=False), TABLE.codes),
    ],
    ids=lambda statistic: f"{type(statistic.phi).__name__} {statistic.phi.size}",
)
def test_the_mean_embedding_of_a_mixture_is_the_expectation_over_all_records_it_can_make(statistic):
    mixture = ProductMixture(TABLE, components=3, seed=1)
    levels = torch.tensor(list(itertools.product(*map(range, TABLE.levels))))
    features = statistic(TABLE.one_hot(levels))
    columns = [p.view(2, 3, -1) for p in mixture.probabilities]
    chance = torch.ones(2, 3, len(levels))
    for place, p in enumerate(columns):
        chance = chance * p[:, :, levels[:, place]]
    expected = chance.mean(1) @ features
    torch.testing.assert_close(mixture.means([statistic])[0], expected, rtol=1e-4, atol=1e-6)


def test_samples_of_a_mixture_have_the_shares_of_its_levels():
    mixture = ProductMixture(TABLE, components=2, seed=0)
    labels = torch.zeros(20_000, dtype=torch.long)
    records = mixture.sample(labels, seed=0)
    shares = torch.cat([p[:2].mean(0) for p in mixture.probabilities])
    assert records.mean(0).tolist() == pytest.approx(shares.tolist(), abs=0.015)
    assert torch.equal(records, mixture.sample(labels, seed=0))


def test_a_mixture_refuses_features_whose_expectation_it_does_not_know():
    mixture = ProductMixture(TABLE, components=2)
    with pytest.raises(UsageError, match="is not known"):
        mixture.means([Statistic(TotalDegree(WIDTH, 3, length_scale=1), TABLE.codes)])
    with pytest.raises(UsageError, match="coordinates of its own"):
        mixture.means([Statistic(TotalDegree(2, 1, length_scale=1), torch.ones(sum(TABLE.levels), 2))])
    with pytest.raises(UsageError, match="components must be a whole number"):
        ProductMixture(TABLE, components=0)


def network(seed=0, head=None):
    head = head or Bounded(6)
    return Network(FullyConnected(3, (20,), head.width), head, classes=3, batch=10, seed=seed)


def test_the_means_of_a_network_are_those_of_the_features_of_its_batch():
    statistics = [Statistic(CoordinateProduct(6, 2, length_scale=1.0)), Statistic(TotalDegree(6, 2, length_scale=1.0))]
    one, other = network(), network()
    records = other._records(torch.arange(3).repeat_interleave(10), other._chance)
    for statistic, found in zip(statistics, one.means(statistics), strict=True):
        torch.testing.assert_close(found, statistic(records).view(3, 10, -1).mean(1))


def test_a_network_is_decided_by_its_seed_and_leaves_the_state_of_torch_alone():
    statistic = Statistic(BoundedMoments(16, 1, length_scale=1.0))
    made = [network(seed, Smooth((4, 4, 1))) for seed in (0, 0, 1)]
    before = torch.get_rng_state()
    means = [one.means([statistic])[0] for one in made]
    assert torch.equal(means[0], means[1])
    assert not torch.equal(means[0], means[2])
    labels = torch.tensor([0, 1, 2] * 100)
    assert torch.equal(made[0].sample(labels, 5), made[0].sample(labels, 5))
    assert torch.equal(torch.get_rng_state(), before)


def test_the_mean_of_a_network_has_gradients_for_every_weight():
    one = network()
    one.means([Statistic(TotalDegree(6, 2, length_scale=1.0))])[0].sum().backward()
    assert all(weight.grad is not None for weight in one.parameters())


@pytest.mark.parametrize("shape", [(28, 28, 1), (8, 12, 3)])
def test_a_convolutional_generator_makes_images_of_the_shape(shape):
    pixels = shape[0] * shape[1] * shape[2]
    one = Network(Convolutional(2, shape, hidden=8), Bounded(pixels), classes=2, batch=4)
    images = one.sample(torch.tensor([0, 1, 1]), 0)
    assert images.shape == (3, pixels)
    assert float(images.min()) >= 0
    assert float(images.max()) <= 1


def test_a_convolutional_generator_refuses_sides_it_cannot_halve_twice():
    with pytest.raises(UsageError, match="divisible by 4"):
        Convolutional(2, (30, 28, 1))


def test_heads_keep_their_promises():
    chance = torch.Generator().manual_seed(0)
    outputs = 3 * torch.randn(50, 7, generator=chance)
    assert float(Bounded(7, -1, 2)(outputs, chance).min()) >= -1
    smooth = Smooth((8, 8, 3), waves=5, grain=0.0)
    images = smooth(0.02 * torch.randn(50, smooth.width, generator=chance), chance)
    assert smooth.width == 15
    assert images.shape == (50, 192)
    residual = (images - smooth.brightness) - (images - smooth.brightness) @ smooth.basis @ smooth.basis.T
    assert float(residual.abs().max()) < 1e-5  # nothing but the waves


@pytest.mark.parametrize("shape", [(8, 8), (6, 10)])
def test_cosines_are_orthonormal_and_the_first_is_flat(shape):
    basis = cosine_basis(*shape, shape[0] * shape[1])
    torch.testing.assert_close(basis.T @ basis, torch.eye(shape[0] * shape[1]), rtol=0, atol=1e-5)
    assert float(basis[:, 0].std()) < 1e-6


def test_a_pooled_image_is_no_longer_than_the_image_and_has_no_negative_entry():
    view = pool((28, 28, 3))
    assert view.shape == (2352, 147)
    assert float(view.min()) >= 0
    torch.testing.assert_close(view.T @ view, torch.eye(147), rtol=0, atol=1e-5)
    assert channel_by_channel(torch.ones(2, 1), 3).shape == (6, 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bounded(2, 1, 0), "bounds must ascend"),
        (lambda: Network(FullyConnected(2, (), 2), Bounded(2), 2, batch=1), "at least 2 samples"),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(UsageError, match=message):
        make()
