"""Intervals of grouped samples: samples of a unit that are alike count as one, in every metric with an interval."""

from math import sqrt
from types import SimpleNamespace

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.embeddings.base import ArrayEmbeddings
from finc_eval.estimates.estimate import difference
from finc_eval.estimates.shares import share_interval
from finc_eval.gates.scores import _measure
from finc_eval.measures import mmd
from finc_eval.measures.inputs import OF_LIKE_GROUPS, MetricInputs
from finc_eval.measures.registry import METRICS
from finc_eval.numerics.inference import wilson

OF_KERNELS = ("kid", "mmd", "cmmd", "jedi", "rke")
OF_MEANS = ("fld", "rarity", "realism", "precision_recall", "prdc", "authpct", "inception_score")
OF_BLOCKS = ("fd", "sfid", "fvmd", "mind", "vendi", "vendi_q2", "vendi_qinf")
LIKE_OTHERS = {"fid", "fd_dinov2", "fvd", "fwd", "prd", "clipped", "vendi_truncated"}  # the same code as one above
BY_PROMPTS = {"clip_score", "conditional_rke", "conditional_vendi", "scendi"}  # units are prompts, whatever the groups
WITHOUT = {"fd_infinity", "ken", "ndb"}  # no interval


def sets_of_units(seed, samples, groups):
    """Three sets whose units have so many samples, which are nearly alike, with these groups or without groups."""
    found, rng = {}, np.random.default_rng(seed)
    for label, n, shift in (("gen", 210, 0.4), ("ref", 220, 0.0), ("test", 205, 0.0)):
        rows = rng.normal(shift, 1, (n, 6)).repeat(samples, 0)
        rows += 1e-4 * np.random.default_rng(0).normal(size=rows.shape)
        one = ArrayEmbeddings(rows.astype("f4"), label)
        units = np.arange(n * samples, dtype=np.uint64) // np.uint64(samples)
        found[label] = one.with_groups(units, "video") if groups else one
    return found


def widths(name, sets):
    """Width of each interval of a metric, by key."""
    metric, used = METRICS[name], {label: sets[label] for label in METRICS[name].sets}
    if name == "authpct":  # where the training set repeats, all samples are authentic, whatever they are
        used["ref"] = sets_of_units(9, 1, groups=False)["ref"]
    scores = metric.compute(MetricInputs(name, **used))
    return {one.key: one.interval[1] - one.interval[0] for one in scores if one.interval is not None}


@pytest.mark.one_of_each(by=lambda name: "vendi" if "vendi" in name else name)
@pytest.mark.parametrize("name", [*OF_KERNELS, *OF_MEANS, *OF_BLOCKS])
def test_three_samples_of_a_unit_that_are_alike_say_as_much_as_one(name):
    """The error of the same samples is sqrt(3) times as large with their groups as without."""
    draws = range(6 if "vendi" in name else 2)  # ten blocks know an error to a quarter
    grouped, plain = ([widths(name, sets_of_units(seed, 3, groups)) for seed in draws] for groups in (True, False))
    assert plain[0]
    for key in plain[0]:
        ratio = np.mean([one[key] for one in grouped]) / np.mean([one[key] for one in plain])
        assert sqrt(3) / 1.35 < ratio < sqrt(3) * 1.35, key


@pytest.mark.parametrize("name", [*OF_KERNELS, *OF_MEANS])
def test_groups_of_a_single_sample_change_no_interval(name):
    grouped, plain = (widths(name, sets_of_units(0, 1, groups)) for groups in (True, False))
    assert grouped == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize("name", ["kid", "mmd", "cmmd", "jedi", "mind", "rarity", "realism"])
def test_a_set_of_a_single_group_has_no_interval_and_says_why(name):
    sets = sets_of_units(0, 1, groups=False)
    sets["gen"] = sets["gen"].with_groups(np.zeros(210, np.uint64), "video")
    score = METRICS[name].compute(MetricInputs(name, **{label: sets[label] for label in METRICS[name].sets}))[0]
    assert np.isfinite(score.value) and score.interval is None and score.standard_error is None
    assert score.notes[-1] == "no interval: all samples of a set are of one group"


def test_every_metric_is_a_case():
    assert {*OF_KERNELS, *OF_MEANS, *OF_BLOCKS} | LIKE_OTHERS | BY_PROMPTS | WITHOUT == set(METRICS)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("size", [1, 4, 25])
def test_a_share_of_units_that_are_all_alike_is_as_sure_as_of_one_sample_each(share, size):
    units = 120
    own = np.arange(units) < round(share * units)
    found = share_interval(own.repeat(size), np.arange(units).repeat(size))
    wanted = wilson(float(own.mean()), units)
    assert found == pytest.approx(wanted, abs=1e-9 if size == 1 else 0.012)
    assert share_interval(own) == wanted


def test_a_share_of_units_whose_samples_are_independent_is_nearly_as_sure_as_without_units():
    rng = np.random.default_rng(0)
    has, units = rng.random(4000) < 0.3, np.arange(4000) // 4
    grouped, plain = (np.ptp(share_interval(has, of)) for of in (units, None))
    assert plain <= grouped < 1.1 * plain


@pytest.mark.parametrize("spread", [0.0, 1.5])
def test_the_interval_of_a_share_holds_it_with_units_of_unlike_sizes(spread):
    rng, held = np.random.default_rng(3), 0
    truth = np.mean(1 / (1 + np.exp(-(np.random.default_rng(9).normal(-1, spread, 100_000)))))
    for _ in range(400):
        units = np.arange(60).repeat(rng.integers(1, 12, 60))
        p = 1 / (1 + np.exp(-(rng.normal(-1, spread, 60))))[units]
        low, high = share_interval(rng.random(len(units)) < p, units)
        held += low <= truth <= high
    assert held >= 365  # 380 on average; fewer than 366 have a chance of .0007


def test_bins_of_a_single_group_are_refused_in_one_sentence_and_other_metrics_stay():
    rows = np.random.default_rng(0).normal(size=(2, 60, 4)).astype(np.float32)
    for groups, failed in ((1, {"ndb"}), (2, set())):
        metadata = {"clip": [f"c{row % groups}" for row in range(60)]}
        gen, ref = (fe.EmbeddingSet(own, metadata=metadata).grouped("clip") for own in rows)
        scores = fe.metrics(gen, ref, ["kid", "ndb"])
        assert {*scores.failures} == failed and "kid_mean" in {score.name for score in scores}
        assert all("at least 2 independent samples" in text for text in scores.failures.values())


# ── kernel distances: samples of one unit are not independent ───────────────────────────────────────────────────────

SIZES = np.array([1, 5, 2, 7, 3, 9])
POLYNOMIAL = {"kid": (1, 3, 1.0), "jedi": (0, 2, 100.0)}  # constant, exponent, factor


def of_units(rng, sizes, label, alike=0.9, dim=3):
    units = np.arange(len(sizes)).repeat(sizes)
    rows = np.sqrt(alike) * rng.normal(size=(len(sizes), dim))[units]
    rows += np.sqrt(1 - alike) * rng.normal(size=(len(units), dim))
    order = rng.permutation(len(units))
    return ArrayEmbeddings(rows[order].astype("f4"), label).with_groups(units[order].astype(np.uint64), "video")


def mean_kernels(name, first, second, keep=None):
    """The mean kernel of pairs of unlike units within each set, and of all pairs across, by the whole matrices."""
    constant, exponent, factor = POLYNOMIAL[name]
    rows = [np.asarray(one.rows_at(np.arange(one.n)), float) for one in (first, second)]
    groups = [one.group_hashes() for one in (first, second)]
    if keep is not None:
        rows[0], groups[0] = rows[0][keep], groups[0][keep]

    def kernel(x, y):
        return (x @ y.T / x.shape[1] + constant) ** exponent

    within = [kernel(x, x)[group[:, None] != group].mean() for x, group in zip(rows, groups, strict=True)]
    return factor * (sum(within) - 2 * kernel(*rows).mean())


@pytest.mark.parametrize("block", [7, 2048])
@pytest.mark.parametrize("name", POLYNOMIAL)
def test_the_unbiased_value_of_units_leaves_out_pairs_of_one_unit(name, block, monkeypatch):
    monkeypatch.setattr(mmd, "KERNEL_BLOCK", block)
    rng = np.random.default_rng(0)
    gen, ref = of_units(rng, SIZES, "gen"), of_units(rng, SIZES[::-1], "ref")
    (score, *_) = METRICS[name].compute(MetricInputs(name, gen=gen, ref=ref))
    assert score.unbiased == score.center == pytest.approx(mean_kernels(name, gen, ref), rel=1e-9)
    assert score.value != pytest.approx(score.unbiased) and mmd.OF_GROUPS in score.notes
    plain = [ArrayEmbeddings(one.rows_at(np.arange(one.n)), one.name) for one in (gen, ref)]
    assert METRICS[name].compute(MetricInputs(name, *plain))[0].value == pytest.approx(score.value, rel=1e-9)


@pytest.mark.parametrize("name", POLYNOMIAL)
def test_influences_of_units_of_one_size_are_those_of_a_jackknife_over_them(name):
    rng = np.random.default_rng(1)
    gen, ref = of_units(rng, np.full(6, 4), "gen"), of_units(rng, SIZES, "ref")
    without = [mean_kernels(name, gen, ref, gen.group_hashes() != unit) for unit in range(6)]
    found = METRICS[name].estimator(ref, Run())(gen, None)
    assert found.variance_of("gen") == pytest.approx(5 / 6 * np.square(without - np.mean(without)).sum(), rel=1e-6)


@pytest.mark.parametrize("name", ["kid", "mmd", "cmmd", "jedi"])
@pytest.mark.parametrize("sizes", [np.full(8, 12), np.repeat([2, 12], 6)], ids=["even", "uneven"])
def test_a_set_of_units_is_as_far_from_its_own_law_as_a_set_of_single_samples(name, sizes):
    """The mean over draws of sets of one law is 0 in standard errors of the mean; with pairs of one unit it is not."""
    rng, found = np.random.default_rng(2), []
    for _ in range(60):
        gen, ref = of_units(rng, sizes, "gen"), of_units(rng, np.ones(60, int), "ref")
        (score, *_) = METRICS[name].compute(MetricInputs(name, gen=gen, ref=ref))
        found.append((score.unbiased, score.value))
    mean, error = np.mean(found, 0), np.std(found, 0, ddof=1) / sqrt(len(found))
    assert abs(mean[0]) < 3 * error[0] and mean[1] > 5 * error[1]


def test_a_gate_calls_a_release_in_groups_no_farther_than_a_baseline_of_single_samples():
    """Of 40 pairs of sets of one law, at most 4 are worse at 5 %; with pairs of one unit more than half were."""
    rng, worse = np.random.default_rng(3), 0
    for _ in range(40):
        gen, old = of_units(rng, np.repeat([2, 12], 8), "gen"), of_units(rng, np.ones(100, int), "old")
        estimate = METRICS["mmd"].estimator(of_units(rng, np.ones(200, int), "ref"), Run())
        worse += difference(estimate(gen, None), estimate(old, None), is_paired=False).upper_p < 0.05
    assert worse <= 4


# ── all metrics that a gate compares: groups of unlike sizes ─────────────────────────────────────────────────────────

UNEVEN = np.repeat([2, 12], 16)
COMPARED = {  # number that a gate compares: samples are drawn here, and the number is not of groups
    "fd": "fd",
    "kid": "kid_mean",
    "mmd": "mmd",
    "cmmd": "cmmd",
    "jedi": "jedi",
    "mind": "mind",
    "precision_recall": "precision",
    "prdc": "density",
    "clipped": "clipped_density",
    "realism": "realism",
    "sfid": "sfid",
}
OF_LIKE_GROUPS_ALONE = {
    "recall": "precision_recall",
    "coverage": "prdc",
    "prd_recall": "prd",
    "inception_score_mean": "inception_score",
}
LIKE_FD = {"fid", "fd_dinov2", "fvd", "fvmd"}  # the code of fd or of sfid


def as_a_gate_has_it(name, key, gen, ref):
    """The estimate that a gate has of a number: with the error by units, or else with that of its interval."""
    metric = METRICS[name]
    score = next(one for one in metric.compute(MetricInputs(name, gen=gen, ref=ref)) if one.key == key)
    known = metric.estimator(ref, Run())(gen, None) if metric.estimator else None
    return _measure(score, SimpleNamespace(all={"gen": gen}, ref=ref), "gen", known).times(
        -1 if score.higher_is_better else 1
    )


def worse_of_one_law(name, key, draws, seed):
    worse = 0
    for draw in range(draws):
        rng = np.random.default_rng([seed, draw])
        gen, old, ref = (
            of_units(rng, sizes, label, dim=8)
            for label, sizes in (("gen", UNEVEN), ("old", np.ones(224, int)), ("ref", np.ones(240, int)))
        )
        estimates = [as_a_gate_has_it(name, key, one, ref) for one in (gen, old)]
        worse += difference(*estimates, is_paired=False).upper_p < 0.05
    return worse


def test_every_number_that_a_gate_compares_is_a_case():
    """Other metrics have no better direction, no interval, or need a third set, which gates do not have."""
    others = {"authpct", "fld", "clip_score", "conditional_rke", "conditional_vendi", "scendi", "fwd", "rarity"}
    others |= WITHOUT | {name for name in METRICS if METRICS[name].at_equal_n} | {"vendi_truncated"} | LIKE_FD
    assert {*COMPARED, *OF_LIKE_GROUPS_ALONE.values()} | others == set(METRICS)
    assert not any(METRICS[name].is_for_like_groups(key) for name, key in COMPARED.items())
    assert all(METRICS[name].is_for_like_groups(key) for key, name in OF_LIKE_GROUPS_ALONE.items())


@pytest.mark.parametrize("name", ["fd", "mmd", "mind", "precision_recall"])
def test_few_releases_in_uneven_groups_are_worse_than_single_samples_of_their_law(name):
    """Of 12 at 5 %, 4 or more have a chance of .0022; of MIND with what groups add, 10 or more were."""
    assert worse_of_one_law(name, COMPARED[name], 12, 0) <= 3


@pytest.mark.long
@pytest.mark.by_turns(3)
@pytest.mark.parametrize("name", COMPARED)
def test_releases_in_uneven_groups_are_worse_at_the_level(name):
    """Of 150 at 5 %, 16 or more have a chance of .005."""
    assert worse_of_one_law(name, COMPARED[name], 150, 1) <= 15


@pytest.mark.long
@pytest.mark.parametrize("key", ["recall", "coverage", "prd_recall"])
def test_numbers_of_like_groups_alone_would_be_called_worse(key):
    assert worse_of_one_law(OF_LIKE_GROUPS_ALONE[key], key, 40, 2) > 10


@pytest.mark.parametrize("grouped", ["gen", "old"])
@pytest.mark.parametrize(("key", "compared"), [("recall", False), ("coverage", False), ("prd", False), ("mind", True)])
def test_a_gate_judges_no_number_that_groups_change_by_sets_of_unlike_groups(key, compared, grouped):
    """Its limit is missing and says why; sets of like groups, and limits of the number itself, are judged."""
    rng = np.random.default_rng(5)
    sizes = {"gen": np.ones(224, int), "old": np.ones(224, int)} | {grouped: UNEVEN}
    gen, old, alike = (of_units(rng, sizes[label], label, dim=8) for label in ("gen", "old", "gen"))
    ref = of_units(rng, np.ones(240, int), "ref", dim=8)
    policy = {"metrics": {key: {"difference": 5.0, "most": 50.0}}, "alpha": 0.05}
    absolute, relative = fe.gate(gen, old, ref, policy).limits
    assert absolute.verdict == "held"
    assert relative.verdict == ("held" if compared else "missing")
    assert ("groups of like sizes" in relative.note) is not compared
    assert fe.gate(alike, gen, ref, policy).limits[1].verdict != "missing"


def test_scores_of_groups_say_which_compare_for_like_groups_only():
    rng = np.random.default_rng(6)
    gen, ref = of_units(rng, UNEVEN, "gen", dim=8), of_units(rng, np.ones(240, int), "ref", dim=8)
    scores = fe.metrics(gen, ref, ["prdc", "vendi", "mind"])
    said = {score.key: OF_LIKE_GROUPS in score.notes for score in scores}
    assert said == {
        "precision": False,
        "recall": True,
        "density": False,
        "coverage": True,
        "vendi": True,
        "mind": False,
    }
    assert not any(OF_LIKE_GROUPS in score.notes for score in fe.metrics(ref, ref, ["prdc", "vendi"]))
