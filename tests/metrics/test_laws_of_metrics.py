"""Metrics beside their values: intervals, floors, influences and notes, against direct formulas on tiny sets."""

import re

import numpy as np
import pytest
import torch
from scipy import stats

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.core.signature import Signature
from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.measures import mmd as mmd_module
from finc_eval.measures.frechet import distance_of_gaussians, fd_infinity
from finc_eval.measures.gaussians.frechet_estimate import FrechetSet, estimate_frechet
from finc_eval.measures.gaussians.gaussian import from_embeddings, positive
from finc_eval.measures.histograms import best_f, prd, prd_curve
from finc_eval.measures.inception_score import inception_score
from finc_eval.measures.inputs import (
    MIN_INTERVAL_SAMPLES,
    MetricInputs,
    of_statistic,
    reference_bandwidth,
    split_reference,
)
from finc_eval.measures.mind import mind
from finc_eval.measures.mmd import biased_score, mmd
from finc_eval.measures.prompted import conditional_vendi
from finc_eval.measures.registry import METRICS
from finc_eval.measures.score import Score
from finc_eval.measures.vendi import FLOOR_SUBSETS, gaussian_vendi
from finc_eval.measures.wavelets import _notes
from finc_eval.partitions.kmeans import KMeansCells

LEAST = MIN_INTERVAL_SAMPLES


def rows(n, seed=0, dim=3, shift=0.0, scale=1.0):
    return (np.random.default_rng(seed).normal(size=(n, dim)) * scale + shift).astype(np.float32)


def drawn(n, seed=0, dim=3, shift=0.0, scale=1.0, name="gen"):
    return ArrayEmbeddings(rows(n, seed, dim, shift, scale), name)


def scores(name, gen, ref):
    return METRICS[name].compute(MetricInputs(name, gen, ref))


def gaussian(x, y, sigma):
    return np.exp(-((x[:, None].astype(float) - y[None]) ** 2).sum(2) / (2 * sigma**2))


def u_statistic(x, y, kernel):
    """Return MMD² without pairs of a sample with itself."""
    n, m = len(x), len(y)
    xx, yy = kernel(x, x), kernel(y, y)
    within = (xx.sum() - np.trace(xx)) / (n * (n - 1)) + (yy.sum() - np.trace(yy)) / (m * (m - 1))
    return within - 2 * kernel(x, y).mean()


# ── intervals of scores ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("interval", "side"), [((-1.0, 2.0), 2.0), ((-3.0, 1.0), 3.0)])
def test_the_error_of_a_score_is_that_of_the_longer_side_around_the_unbiased_value(interval, side):
    one = Score("x", 0.7, Signature.of("x", [3], "array-3"), unbiased=0.0, interval=interval)
    assert one.standard_error == pytest.approx(side / stats.norm.ppf(0.975))
    assert Score("x", 0.7, one.signature, interval=(0.8, 0.9)).interval == (0.7, 0.9)
    assert Score("x", 0.7, one.signature, interval=(0.1, 0.2)).interval == (0.1, 0.7)


def mean_of(one):
    return float(one.rows_at(np.arange(one.n)).mean())


SHIFT = of_statistic(
    "shift",
    "",
    lambda *both: lambda x, y: {"shift": mean_of(x) - mean_of(y)},
    higher_is_better=False,
    bounds=(0.1, 9.0),
)


@pytest.mark.parametrize("metric", [METRICS["fd"], METRICS["mind"], SHIFT], ids=lambda one: one.name)
def test_intervals_begin_at_the_least_number_of_samples_of_both_sets(metric):
    for n, m, has in ((LEAST, LEAST, True), (LEAST - 1, LEAST, False), (LEAST, LEAST - 1, False)):
        first = metric.compute(MetricInputs("x", drawn(n, dim=2), drawn(m, 1, dim=2, name="ref")))[0]
        assert (first.interval is not None) == has, (n, m)
        assert has or any(note.startswith("no interval") for note in first.notes)


@pytest.mark.parametrize(("shift", "wanted"), [(-3.0, 0.1), (3.0, 3.0), (9.0, 9.0)])
def test_a_statistic_ends_at_the_bounds_of_its_metric(shift, wanted):
    gen, ref = drawn(200, shift=shift), drawn(200, 1)
    (found,) = SHIFT.compute(MetricInputs("shift", gen, ref))
    assert found.value == pytest.approx(wanted, abs=0.2) and found.floor == pytest.approx(0.1, abs=0.2)
    half = stats.norm.ppf(0.975) * np.sqrt(2 / 600)
    low, high = np.clip([shift - half, shift + half], 0.1, 9.0)
    assert found.interval == pytest.approx((low, high), abs=0.2)
    assert 0.1 <= found.interval[0] <= found.value <= found.interval[1] <= 9.0


def test_a_frechet_distance_has_an_interval_if_samples_are_more_than_dimensions():
    dim = LEAST + 10
    for n, has in ((dim, False), (dim + 1, True)):
        found = scores("fd", drawn(n, dim=dim), drawn(dim + 1, 1, dim=dim))[0]
        assert (found.interval is not None) == has
    assert f"takes {dim + 1} samples" in scores("fd", drawn(dim, dim=dim), drawn(dim + 1, 1, dim=dim))[0].notes[-1]


def test_what_cannot_be_below_zero_has_an_interval_that_is_not():
    gen, near, far = drawn(200, 0, 1), drawn(200, 51, 1), drawn(200, 51, 1, shift=1.0)
    for ref, is_near in ((near, True), (far, False)):
        low, high = METRICS["mind"].estimator(ref, Run())(gen, None).interval
        assert (low < 0) == is_near
        assert scores("mind", gen, ref)[0].interval == pytest.approx((max(low, 0), high))
    for seed, is_near in ((1, False), (2, True)):
        ref = drawn(200, seed)
        wanted = estimate_frechet(FrechetSet.of(drawn(200)), FrechetSet.of(ref)).value
        assert (wanted < 0) == is_near
        assert scores("fd", drawn(200), ref)[0].unbiased == pytest.approx(max(wanted, 0.0), abs=1e-12)


@pytest.mark.parametrize(("dim", "shift"), [(2, 0.2), (2, 0.02), (40, 0.0), (40, 0.5)])
def test_the_interval_of_a_frechet_distance_is_the_wider_of_its_own_and_that_of_its_root(dim, shift):
    sets = [FrechetSet.of(drawn(300, seed, dim, seed * shift)) for seed in (0, 1)]
    distance = distance_of_gaussians(*(each.statistics for each in sets)).value
    one = estimate_frechet(*sets, value=distance)
    if one.value <= 0:
        assert one.interval[0] == 0
        return
    plain = np.array([-1, 1]) * one.half
    ends = np.sqrt(one.value) + plain / (2 * np.sqrt(distance))  # by the derivative of a root
    of_both = np.stack([one.value + plain, np.sign(ends) * ends**2])
    assert one.interval == pytest.approx((max(of_both[:, 0].min(), 0), of_both[:, 1].max()), abs=1e-12)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_interval_of_an_inception_score_is_students_of_its_splits(confidence):
    logits = 3 * torch.randn(103, 20, generator=torch.Generator().manual_seed(0))
    found = inception_score(logits, splits=4)
    wanted = stats.t.interval(confidence, 3, np.mean(found.scores), stats.sem(found.scores))
    assert found.interval(confidence) == pytest.approx(wanted)
    few = inception_score(torch.randn(40, 3, generator=torch.Generator().manual_seed(1)), splits=2)
    assert few.interval()[0] == 1.0  # no score is below one
    with pytest.raises(fe.UsageError, match="two at least"):
        inception_score(logits, splits=1).interval()


@pytest.mark.parametrize(("n", "notes"), [(4_999, 1), (5_000, 0)])
def test_small_splits_are_noted(n, notes):
    logits = ArrayEmbeddings(rows(n, dim=5, scale=3.0))
    first = METRICS["inception_score"].compute(MetricInputs("inception_score", logits))[0]
    assert len(first.notes) == notes
    assert not notes or "each split has 499 samples" in first.notes[0]


# ── kernels ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("block", "n"), [(100, 200), (2048, 600)])
def test_the_floor_of_an_mmd_is_that_of_a_part_of_the_reference_and_the_rest(monkeypatch, block, n):
    monkeypatch.setattr(mmd_module, "KERNEL_BLOCK", block)
    gen, ref = drawn(n), drawn(230, 1)
    sigma = reference_bandwidth(ref)
    (found,) = scores("mmd", gen, ref)
    assert found.floor == pytest.approx(mmd(*split_reference(ref, n), sigma).value, abs=1e-12)
    whole = mmd(gen, ref, sigma)
    assert (found.value, *found.interval) == pytest.approx((whole.value, whole.low, whole.high), abs=1e-12)
    assert scores("mmd", drawn(LEAST - 1), ref)[0].floor is None


def test_the_score_of_a_v_statistic_has_the_u_statistic_and_its_interval_in_its_own_scale():
    gen, ref = rows(30, shift=0.5), rows(20, 1)
    kernel = lambda x, y: torch.exp(-torch.cdist(x, y).square() / 2)  # noqa: E731
    signature = Signature.of("x", [30, 20], "array-3")

    def score(x, y):
        inputs = MetricInputs("x", ArrayEmbeddings(x), ArrayEmbeddings(y))
        return biased_score(inputs, kernel, 50.0, lambda part, rest: float(part.n), signature)

    found, exact = score(gen, ref), mmd(gen, ref, 1.0)
    assert found.unbiased == pytest.approx(50 * u_statistic(gen, ref, lambda x, y: gaussian(x, y, 1.0)), rel=1e-6)
    assert found.interval == pytest.approx((50 * exact.low, 50 * exact.high))
    assert found.value == pytest.approx(50 * mmd_of_all_pairs(gen, ref), rel=1e-6) and found.value > found.unbiased
    assert found.floor == pytest.approx(10 * (1 / 30 + 1 / 20) / (1 / 10 + 1 / 10))
    for n, m, has in ((3, 3, True), (2, 3, False), (3, 2, False)):
        assert (score(gen[:n], ref[:m]).interval is not None) == has


def mmd_of_all_pairs(x, y):
    return gaussian(x, x, 1.0).mean() + gaussian(y, y, 1.0).mean() - 2 * gaussian(x, y, 1.0).mean()


def test_of_the_larger_set_mind_takes_a_random_part_before_it_draws_directions():
    x, y = rows(40, 0, 4), rows(60, 1, 4, 0.3)
    for gen, ref in ((x, y), (y, x)):
        draw = torch.Generator().manual_seed(5)
        parts = {60: torch.randperm(60, generator=draw)[:40].numpy(), 40: np.arange(40)}
        directions = torch.randn(25, 4, generator=draw).double()
        directions = (directions / directions.norm(dim=1, keepdim=True)).numpy()
        sides = (np.sort(one[parts[len(one)]] @ directions.T, 0) for one in (gen, ref))
        left, right = sides
        found = mind(gen, ref, projections=25, seed=5)
        assert found.value == pytest.approx(3 * 4 * ((left - right) ** 2).mean(), rel=1e-5)
        assert found.n == 40


@pytest.mark.parametrize("m", [250, 300])
def test_the_floor_of_mind_is_of_a_part_of_the_reference_for_as_many_samples(m):
    gen, ref = drawn(250), drawn(m, 1)
    part, rest = split_reference(ref, 250)
    assert scores("mind", gen, ref)[0].floor == pytest.approx(mind(part, rest).value * (m // 2) / 250)


# ── diversity ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("m", [40, 60, 90])
def test_the_floor_of_the_effective_number_is_the_reference_at_equal_n_where_it_can_be(m):
    gen, ref = drawn(60), drawn(m, 1)
    sigma = reference_bandwidth(ref)
    (found,) = scores("rke", gen, ref)
    if m <= 60:
        assert found.floor == pytest.approx(gaussian_vendi(ref, sigma, order=2))
        assert ("with as many it would be higher" in found.notes[0]) == (m < 60)
    else:
        draw = np.random.default_rng(0)
        parts = [rows(m, 1)[np.sort(draw.permutation(m)[:60])] for _ in range(FLOOR_SUBSETS)]
        assert found.floor == pytest.approx(np.mean([gaussian_vendi(one, sigma, order=2) for one in parts]))
        assert "subsets of 60 of its 90" in found.notes[0]


@pytest.mark.parametrize(
    ("n", "dim", "says"), [(60, 3, "about [1-9][0-9]?% higher"), (20, 60, "about higher"), (1000, 1, "")]
)
def test_a_note_says_what_more_samples_would_add(n, dim, says):
    (found,) = scores("rke", drawn(n, dim=dim), drawn(n, 1, dim=dim))
    about = [note for note in found.notes if "more samples would make it" in note]
    assert len(about) == bool(says)
    for note in about:
        assert re.search(says, note)


ONE_HOT = [f"p{one:02}" for one in range(7)]


def conditional(tmp_path, of, x):
    """Return conditional RKE of images of prompts whose vectors are at equal distances, so no prompt moves a width."""
    names = [ONE_HOT[one] for one in of]
    used = sorted({*names})
    np.savez(tmp_path / "t.npz", embeddings=np.eye(7)[[ONE_HOT.index(one) for one in used]], prompts=np.array(used))
    one = fe.EmbeddingSet(x, metadata={"prompt": names})
    return conditional_vendi(one, 1.5, order=2, text=str(tmp_path / "t.npz"))


def test_conditional_rke_has_the_interval_of_leaving_each_prompt_out(tmp_path):
    of = np.array([3, 0, 0, 1, 2, 2, 2, 4, 5, 5, 6, 6, 6, 6, 1])
    x = rows(15, 2, 4)
    found = conditional(tmp_path, of, x)
    left = np.log([conditional(tmp_path, of[of != one], x[of != one]).value for one in range(7)])
    error = np.sqrt(6 / 7 * ((left - left.mean()) ** 2).sum())
    half = stats.t.ppf(0.975, 6) * error
    ends = np.exp(np.log(found.value) + np.array([-half, half]))
    assert found.interval == pytest.approx((max(ends[0], 1.0), ends[1]), rel=1e-6)


def test_of_one_prompt_conditional_rke_is_that_of_its_images(tmp_path):
    x = rows(9, 2, 4)
    found = conditional(tmp_path, np.zeros(9, int), x)
    assert found.value == pytest.approx(1 / (gaussian(x, x, 1.5) ** 2).mean(), rel=1e-6)
    assert found.interval is None


# ── kinds ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_precision_and_recall_over_given_kinds_are_those_of_their_shares():
    middles = np.array([[0.0, 0], [50, 0], [0, 50]], np.float32)
    gen, ref = np.repeat([0, 1], [30, 10]), np.repeat([0, 1, 2], [10, 10, 5])
    cells = KMeansCells(torch.from_numpy(middles[[[0, 1, 2], [2, 1, 0]]]), torch.zeros(2))
    found = prd(ArrayEmbeddings(middles[gen]), ArrayEmbeddings(middles[ref]), cells=cells)
    wanted = prd_curve(np.array([0.75, 0.25, 0]), np.array([0.4, 0.4, 0.2]))
    assert found[0] == pytest.approx(wanted[0]) and found[1] == pytest.approx(wanted[1])
    # Where λ is large, all of the generated shares are of kinds that the reference has; where it is small, 4/5 is met.
    assert (found[0][-1], found[1][0]) == pytest.approx((1.0, 0.8))


@pytest.mark.parametrize("beta", [0.5, 1.0, 8.0])
def test_f_is_the_weighted_harmonic_mean_of_precision_and_recall(beta):
    for precision, recall in ((0.3, 0.9), (1.0, 0.2), (0.4, 0.4)):
        wanted = 1 / ((1 / precision + beta**2 / recall) / (1 + beta**2))
        assert best_f((np.array([precision]), np.array([recall])), beta) == pytest.approx(wanted)
    assert best_f((np.zeros(2), np.zeros(2)), beta) == 0


@pytest.mark.parametrize(("n", "kinds"), [(15, 2), (70, 7), (300, 20)])
def test_few_samples_make_few_kinds(monkeypatch, n, kinds):
    asked = []
    fit = KMeansCells.fit
    keep = lambda some, cells, seeds, run=None: asked.append(cells) or fit(some, cells, [0], run)  # noqa: E731
    monkeypatch.setattr("finc_eval.measures.histograms.KMeansCells.fit", keep)
    prd(drawn(n), drawn(n, 1))
    assert asked == [min(max(2 * n // 20, 2), 20)] == [kinds]


def test_a_reference_with_too_few_samples_for_100_bins_gets_fewer_and_a_note():
    for m, bins in ((499, 99), (500, 100)):
        first, share = scores("ndb", drawn(300), drawn(m, 1))
        assert f"bins:{bins}|" in f"{first.signature}|"
        assert any("the paper has 100" in note for note in first.notes) == (bins < 100)
        assert share.value == pytest.approx(first.value / bins)


# ── Gaussians ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("n", "holds_rows"), [(6, True), (7, False)])
def test_a_gaussian_holds_samples_if_they_are_at_most_as_many_as_dimensions(n, holds_rows):
    found = from_embeddings(drawn(n, dim=6))
    assert (found.rows is not None) == holds_rows and found.has_full_rank != holds_rows
    assert found.covariance.numpy() == pytest.approx(np.cov(rows(n, dim=6), rowvar=False), abs=1e-6)
    assert (found.root.T @ found.root).numpy() == pytest.approx(found.covariance.numpy(), abs=1e-12)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_which_eigenvalues_are_rounding_is_a_matter_of_their_ratio(unit):
    values = torch.tensor([1e-17, 1e-15, 1e-3, 1.0], dtype=torch.double)
    assert positive(unit * values).tolist() == [0, *(unit * values[1:]).tolist()]


def test_fd_infinity_is_a_line_against_one_over_n():
    x, y = rows(60, dim=4), rows(80, 1, dim=4)
    found = fd_infinity(x, y)
    line = stats.linregress(1 / np.array(found.sizes), found.distances)
    assert (found.slope, found.value) == pytest.approx((line.slope, line.intercept))
    assert found.sizes[0] == 6 and found.sizes[-1] == 60
    warned = [
        any("the smallest subset has" in one for one in fd_infinity(rows(60, dim=dim), rows(80, 1, dim=dim)).warnings)
        for dim in (5, 6)
    ]
    assert warned == [False, True]


@pytest.mark.parametrize(("sizes", "notes"), [((769, 769), 0), ((768, 769), 1), ((1, 768), 2)])
def test_a_wavelet_distance_of_too_few_samples_has_a_note(sizes, notes):
    assert len(_notes(*(drawn(n, dim=1) for n in sizes))) == notes
