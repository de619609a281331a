"""Laws of explanations: thresholds, distances and shares as other libraries have them, and both sides of limits."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import entropy, fisher_exact, ks_2samp, mannwhitneyu

from finc_eval.naming.causes import difference_parts, frequency_or_appearance, stratified_p
from finc_eval.naming.classes import sum_up
from finc_eval.naming.evidence import divergence
from finc_eval.naming.explained import (
    OTHER,
    Explained,
    _moved_part,
    _whole_or_part,
    _without_part,
    _z_of_part,
    distance,
    explain,
    name_cause,
    threshold_of,
)
from finc_eval.naming.properties import common_word
from finc_eval.naming.questions import _shares_apart, _some, enrichment_p, larger_p, log_odds
from finc_eval.naming.traits import TRAITS, Trait

PLACE = {trait.name: trait for trait in TRAITS}


def draw(seed, n=300):
    return np.random.default_rng(seed).normal(size=n)


FLOOR = np.zeros(300)
HALF, MOST, EVERY = (np.where(np.arange(300) < part * 300, 2 + np.abs(draw(0)), 0.0) for part in (0.55, 0.93, 1))
FLOORS = {
    "half above the floor": (HALF, FLOOR, False, 0.55),
    "most above the floor": (MOST, FLOOR, False, 0.93),
    "all above the floor": (EVERY, FLOOR, True, 1.0),
    "all, and some of the others": (EVERY, np.where(np.arange(300) < 30, 1.0, 0.0), True, 1.0),
}


@pytest.mark.parametrize("case", FLOORS)
def test_what_most_samples_have_nothing_of_is_counted_above_the_floor(case):
    gen, ref, whole, share = FLOORS[case]
    found = explain(PLACE["pattern"], 0, 20.0, 8.0, {"gen": gen, "ref": ref})
    shares, (low, high) = found.estimate({label: np.arange(300) for label in ("gen", "ref")})
    assert (found.whole, found.more_in) == (whole, "gen") and shares["gen"] == pytest.approx(share, abs=0.01)
    assert low <= shares["gen"] <= high and (low > 0.9) == whole
    assert found.name == (PLACE["pattern"].more if whole else PLACE["pattern"].high)


def test_samples_at_the_middle_count_half():
    order = {"gen": np.r_[np.zeros(40), np.ones(60)], "ref": np.r_[np.zeros(80), np.ones(20)]}
    whole = Explained(PLACE["sharpness"], 9.0, True, "gen", "blurrier", order, 0.0)
    assert whole.shares == pytest.approx({"gen": 0.8, "ref": 0.6})


def test_the_share_of_a_part_is_an_estimate_and_that_of_a_flag_a_count():
    units = {label: np.arange(300) for label in ("gen", "ref")}
    moved = {"gen": np.r_[draw(3, 200), draw(4, 100) + 4], "ref": draw(5)}
    part = Explained(PLACE["brightness"], 9.0, False, "gen", "bright", moved, threshold_of(moved["gen"], moved["ref"]))
    shares, (low, high) = part.estimate(units)
    assert shares["gen"] == pytest.approx(1 / 3, abs=0.08) and low < 1 / 3 < high
    flags = {"gen": np.r_[np.ones(30), np.zeros(270)], "ref": np.zeros(300)}
    gray = Explained(PLACE["gray"], 9.0, False, "gen", "gray", flags, 0.5)
    assert gray.estimate(units)[0] == {"gen": 0.1, "ref": 0.0}
    groups = {label: np.arange(300) // 10 for label in units}
    of_groups, alone = (gray.estimate(some)[1] for some in (groups, units))
    assert of_groups[1] - of_groups[0] > 2 * (alone[1] - alone[0])


def test_the_distance_of_samples_is_kolmogorovs_and_smirnovs():
    for own, rest in ((draw(0), draw(1, 200) + 0.5), (np.round(draw(2)), np.round(draw(3, 90)))):
        assert distance(own, rest) == pytest.approx(ks_2samp(own, rest).statistic)
    assert distance(draw(0), draw(0)) == 0


def test_samples_have_a_look_from_the_value_that_tells_the_sets_apart_and_few_others_exceed():
    own, rest = np.r_[draw(0, 270), 20 + np.arange(30)], draw(1, 300)
    threshold = threshold_of(own, rest)
    assert rest.max() < threshold <= 22
    values = np.unique(np.r_[own, rest])
    gaps = [(own >= one).mean() - 2 * (rest >= one).mean() for one in values]
    allowed = [gap if (rest >= one).mean() <= 0.05 else -np.inf for gap, one in zip(gaps, values, strict=True)]
    assert threshold == max(one for one, gap in zip(values, allowed, strict=True) if gap >= 0.95 * max(allowed))
    assert threshold_of(np.zeros(10), np.ones(10)) in (0.0, 1.0)


def test_a_part_has_a_z_of_two_shares():
    values = {"gen": np.r_[draw(0, 160), np.full(40, 9.0)], "ref": draw(1, 300)}
    z = _z_of_part(1, "gen", values)
    threshold = threshold_of(values["gen"], values["ref"])
    x, y = ((one >= threshold).sum() for one in values.values())
    pooled = (x + y) / 500
    assert z == pytest.approx((x / 200 - y / 300) / (pooled * (1 - pooled) * (1 / 200 + 1 / 300)) ** 0.5)
    mirrored = {"gen": -values["ref"], "ref": -values["gen"]}
    assert _z_of_part(-1, "ref", mirrored) == pytest.approx(z)


@pytest.mark.parametrize("part", [0.1, 0.3, 0.5])
def test_a_part_that_moved_is_undone_and_no_other_part(part):
    rest = draw(0, 2000)
    count = round(part * 2000)
    own = rest.copy()
    own[:count] += 2.5
    assert _moved_part(own, rest, part) < min(0.05, _moved_part(own, rest, part + 0.2))
    apart = rest.copy()
    apart[:count] = 50 + draw(1, count)
    assert _without_part(apart, rest) < 0.07 < distance(apart, rest)
    assert _without_part(np.r_[rest[:900], 50 + draw(2, 1100)], rest) == 1.0  # more than a half
    assert _without_part(rest, rest) < 0.06


WAYS = {
    "all moved": (lambda x: x + 1.0, (True, "gen", 1)),
    "all multiplied": (lambda x: 3.0 * x, (True, "gen", 1)),
    "a part moved": (lambda x: np.where(np.arange(len(x)) < len(x) // 4, x + 6, x), (False, "gen", 1)),
}


@pytest.mark.parametrize("case", WAYS)
def test_the_best_explanation_leaves_the_smallest_distance(case):
    change, way = WAYS[case]
    ref = np.exp(draw(0, 800) / 3) if "multiplied" in case else draw(0, 800)
    gen = change(np.exp(draw(1, 800) / 3) if "multiplied" in case else draw(1, 800))
    assert _whole_or_part(gen, ref, 1)[:3] == way
    if not way[0]:  # what the reference has in its lower part is said of the reference
        assert _whole_or_part(-ref, -gen, 1)[:3] == (False, "ref", -1)


def z_of(values):
    gen, ref = values["gen"], values["ref"]
    return float((gen.mean() - ref.mean()) / np.sqrt(gen.var() / len(gen) + ref.var() / len(ref)))


BRIGHT, DARK = (np.r_[draw(0, 240), side * 9 + draw(2, 60)] for side in (1, -1))
MOST_GRAY = {"gen": np.r_[np.ones(240), np.zeros(60)], "ref": np.ones(300)}
EXPLAINED = {
    "brighter": ("brightness", 0, {"gen": draw(0) + 1, "ref": draw(1)}, (True, "gen", "brighter")),
    "darker": ("brightness", 0, {"gen": draw(0) - 1, "ref": draw(1)}, (True, "gen", "darker")),
    "a bright part": ("brightness", 0, {"gen": BRIGHT, "ref": draw(1)}, (False, "gen", "bright")),
    "a dark part": ("brightness", 0, {"gen": DARK, "ref": draw(1)}, (False, "gen", "dark")),
    "a bright part of the reference": ("brightness", 0, {"gen": draw(1), "ref": BRIGHT}, (False, "ref", "bright")),
    "an upper tail": ("brightness", 1, {"gen": BRIGHT, "ref": draw(1)}, (False, "gen", "bright")),
    "a lower tail": ("brightness", -1, {"gen": DARK, "ref": draw(1)}, (False, "gen", "dark")),
    "a flag": ("blank", 1, {"gen": np.r_[np.zeros(240), np.ones(60)], "ref": np.zeros(300)}, (False, "gen", "blank")),
    "a flag of most of the reference": ("gray", 1, MOST_GRAY, (False, "gen", "in color")),
}  # fmt: skip


@pytest.mark.parametrize("case", EXPLAINED)
def test_a_look_is_of_a_part_or_of_the_whole_set(case):
    name, tail, values, (whole, more_in, words) = EXPLAINED[case]
    z = z_of(values) * (tail or 1)
    found = explain(PLACE[name], tail, z, 2.0 if whole else abs(z) / 1.5, values)
    assert (found.whole, found.more_in, found.name) == (whole, more_in, words)
    if not whole:
        assert found.shares[more_in] == pytest.approx(0.2, abs=0.02) and found.gap == pytest.approx(0.2, abs=0.03)
        assert found.has[more_in].mean() == found.shares[more_in]
    else:
        middle = np.median(np.concatenate([*found.order.values()]))
        assert found.threshold == pytest.approx(middle) and not found.has["gen"].any()
        assert found.gap > 0.2


def explained(name, z, *, whole=False, more_in="gen", rows=range(30), others=range(0), n=100):
    order = {"gen": np.isin(np.arange(n), [*rows]).astype(float), "ref": np.isin(np.arange(n), [*others]).astype(float)}
    return Explained(PLACE[name], z, whole, more_in, name, order, 0.5)


CAUSES = {
    "a look that brings the clearest": (explained("shades", 10), explained("sharpness", 7.1), "sharpness"),
    "a look that alone brings the clearest": (explained("warmth", 10), explained("blocks", 5.1), "blocks"),
    "a look that alone brings the clearest, too faint": (explained("warmth", 10), explained("blocks", 4.9), "warmth"),
    "looks that bring each other": (explained("noise", 10), explained("specks", 7.1), "specks"),
    "looks that bring each other, one much clearer": (explained("noise", 10), explained("specks", 6.9), "noise"),
    "an upscaled set that is much blurrier": (explained("sharpness", 10), explained("mosaic", 5.5), "sharpness"),
    "a tint, which is vivid": (explained("warmth", 10), explained("saturation", 9), "warmth"),
    "vivid pictures, which are tinted": (explained("saturation", 10), explained("warmth", 6), "saturation"),
    "dark edges, which are a mark": (explained("mark", 10), explained("edges", 5.5), "edges"),
    "a mark that brightens edges a little": (explained("mark", 10), explained("edges", 3), "mark"),
    "a look that does not bring it": (explained("top", 10), explained("warmth", 7.1), "warmth"),
    "a look that does not bring it, too faint": (explained("top", 10), explained("warmth", 6.9), "top"),
    "of other samples": (explained("top", 10), explained("warmth", 9, rows=range(16, 46)), "top"),
    "of half the same samples": (explained("top", 10), explained("warmth", 9, rows=range(15, 45)), "warmth"),
    "of a smaller share": (explained("top", 10), explained("warmth", 9, rows=range(20)), "top"),
    "of nearly the share": (explained("top", 10), explained("warmth", 9, rows=range(22)), "warmth"),
    "of the other set": (explained("top", 10), explained("warmth", 9, more_in="ref", others=range(30)), "top"),
    "whole": (explained("noise", 10, whole=True), explained("specks", 8, whole=True), "specks"),
    "whole, and a part": (explained("noise", 10, whole=True), explained("specks", 6), "noise"),
    "a part, and whole": (explained("noise", 10), explained("specks", 9, whole=True), "noise"),
}  # fmt: skip


@pytest.mark.parametrize("case", CAUSES)
def test_a_cause_is_the_first_look_that_shows_it(case):
    first, other, name = CAUSES[case]
    order = [trait.name for trait in TRAITS]
    if "top" in (first.trait.name, other.trait.name):
        order = ["warmth", "top"]
    assert name_cause([first, other], order).trait.name == name


def test_parts_of_a_difference_are_of_kitagawa_and_add_up():
    samples, members = np.array([[40, 60], [70, 30]]), np.array([[20, 12], [14, 3]])
    (p, q), rate = samples / 100, members / samples
    frequency = ((p - q) * rate.mean(0)).sum()
    appearance = ((p + q) / 2 * (rate[0] - rate[1])).sum()
    assert difference_parts(members, samples) == pytest.approx((frequency, appearance))
    assert frequency + appearance == pytest.approx(32 / 100 - 17 / 100)


def test_the_stratified_test_is_the_sum_of_hypergeometric_numbers():
    members, samples = np.array([[5, 3], [1, 2]]), np.array([[10, 12], [9, 11]])
    from scipy.stats import hypergeom

    laws = [hypergeom(int(total), int(own), int(inside)) for own, total, inside in
            zip(samples[0], samples.sum(0), members.sum(0), strict=True)]  # fmt: skip
    exact = sum(laws[0].pmf(x) * laws[1].pmf(y) for x in range(7) for y in range(6) if x + y >= 8)
    assert stratified_p(members, samples) == pytest.approx(exact)
    assert stratified_p(members[:, :1], samples[:, :1]) == pytest.approx(
        fisher_exact([[5, 5], [1, 8]], "greater").pvalue
    )


def test_labels_of_half_of_the_members_make_a_cause_of_frequency():
    labels = {"gen": ["a"] * 60 + ["b"] * 25 + ["c"] * 15, "ref": ["a"] * 20 + ["b"] * 40 + ["c"] * 40}
    members = {name: np.flatnonzero(np.isin(mine, ["a"])) for name, mine in labels.items()}
    found = frequency_or_appearance(labels, members)
    # Of three labels, Fisher's test of one counts three times, and Holm's correction doubles the smaller p-value.
    p = fisher_exact([[60, 40], [20, 80]], "greater").pvalue
    assert (found.kind, found.labels, found.frequency_p) == ("frequency", ("a",), pytest.approx(6 * p))
    two = {name: np.flatnonzero(np.isin(mine, ["b", "c"])) for name, mine in labels.items()}
    assert frequency_or_appearance(labels, {**two, "gen": two["gen"][:0]}).labels == ("b",)


@pytest.mark.parametrize("counts", [(3, 10, 2, 30), (0, 10, 2, 30), (10, 10, 1, 30)])
def test_members_have_a_property_more_often_by_fishers_test(counts):
    own, members, other, others = counts
    wanted = fisher_exact([[own, members - own], [other, others - other]], "greater").pvalue
    assert float(enrichment_p(*(np.array(one) for one in counts))) == pytest.approx(wanted)


def test_larger_members_are_told_by_ranks_and_by_the_best_threshold():
    members, others = np.column_stack([draw(0, 40) + 0.4, np.ones(40)]), np.column_stack([draw(1, 90), np.ones(90)])
    p, auc = larger_p(members, others)
    test = mannwhitneyu(members[:, 0], others[:, 0], alternative="greater", method="asymptotic")
    assert p == pytest.approx([test.pvalue, 1.0]) and auc == pytest.approx([test.statistic / 3600, 0.5])
    own, rest = _shares_apart(members, others)
    assert own[0] - rest[0] == pytest.approx(ks_2samp(members[:, 0], others[:, 0], "less").statistic)
    assert (own[1], rest[1]) == (1, 1)


def test_log_odds_are_those_of_monroe_and_others():
    ours, theirs = np.array([[30, 5, 1]]), np.array([[20, 50, 0]])
    prior = 500 * (ours + theirs) / (ours + theirs).sum()
    y, x = ours + prior, theirs + prior
    delta = np.log(y / (y.sum() - y)) - np.log(x / (x.sum() - x))
    assert log_odds(ours, theirs) == pytest.approx(delta / np.sqrt(1 / y + 1 / x), rel=1e-4)
    with np.errstate(all="raise"):
        assert log_odds(ours[:, :1], theirs[:, :1]).tolist() == [[0.0]], "a single word has no others"


def test_bits_are_those_of_two_shares():
    for own, others in ((0.6, 0.2), (1.0, 0.3), (0.5, 0.0)):
        q = max(others, 0.001)
        assert divergence(own, others) == pytest.approx(entropy([own, 1 - own], [q, 1 - q], base=2))
    assert divergence(0.2, 0.2) == divergence(0.1, 0.6) == 0


def test_nouns_are_told_by_what_members_are_seen_as_more_than_others():
    from finc_eval.extractors.imagenet import imagenet_tree

    tree = imagenet_tree()
    members, others = np.zeros((1, 1000)), np.full((1, 1000), 0.001)
    members[0, [281, 282]] = 0.5, 0.3
    part, found = sum_up(members, others, tree)
    more = np.array([0.499, 0.299])
    place = tree.names.index("tabby")
    s, n = more[0] / more.sum(), tree.parts[place]
    assert part[0, place] == pytest.approx(s)
    assert found[0, place] == pytest.approx(entropy([s, 1 - s], [n, 1 - n]))
    assert found[0][part[0] <= tree.parts].max() == 0


@pytest.mark.parametrize(("count", "of"), [(5, 3), (5, 5), (3, 8), (1, 8)])
def test_some_samples_are_spread_evenly(count, of):
    mask = np.arange(20) % 2 == 0
    mask[2 * of :] = False
    found = _some(mask, count)
    assert len(found) == min(count, of) and set(found) <= set(np.flatnonzero(mask))
    if count > 1:
        assert found[-1] == np.flatnonzero(mask)[-1] and found[0] == 0


def test_a_common_word_is_that_of_four_fifths_and_less_than_half_of_all():
    every = ["cat"] * 4 + ["dog"] * 6
    assert common_word(["cat"] * 4 + ["dog"], every) == "cat"
    assert common_word(["cat"] * 3 + ["dog"], every) == ""
    assert common_word(["cat"] * 4, ["cat"] * 5 + ["dog"] * 5) == ""
    assert Counter(every)["cat"] == 4


HEAVY = {
    "exponential": lambda rng, n: rng.exponential(size=n),
    "log-normal": lambda rng, n: np.exp(rng.normal(size=n)),
    "log-normal, wide": lambda rng, n: np.exp(2 * rng.normal(size=n)),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "Pareto": lambda rng, n: 1 + rng.pareto(1.0, n),
    "t with 2 degrees": lambda rng, n: rng.standard_t(2, n),
}


def measured_score(values):
    """The z of the mean of clipped values, and of the clearer tail, as all looks are tested."""
    both = np.concatenate([*values.values()])
    scale = 1.4826 * np.median(np.abs(both - np.median(both)))
    columns = [np.clip((both - np.median(both)) / scale, -4, 4), both < np.quantile(both, 0.05)]
    z = []
    for one in [*columns, both > np.quantile(both, 0.95)]:
        own, rest = np.split(one.astype(float), [len(values["gen"])])
        z.append((own.mean() - rest.mean()) / (one.std() * np.sqrt(1 / len(own) + 1 / len(rest))))
    return z[0], max(map(abs, z[1:]))


@pytest.mark.one_of_each("law")
@pytest.mark.parametrize("law", HEAVY.values(), ids=HEAVY)
@pytest.mark.parametrize("part", [0.2, 0.3])
def test_a_part_beyond_most_of_a_heavy_tailed_reference_is_a_part(law, part):
    """The twentieth of both sets in a tail lies beyond the part: its share hardly differs."""
    parts = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        values = {"gen": law(rng, 300), "ref": law(rng, 300)}
        place = 1.5 * np.quantile(values["ref"], 0.95)
        values["gen"][: int(300 * part)] = place + 0.01 * values["gen"][: int(300 * part)]
        parts.append(explain(Trait("v", "low", "high", "less", "more"), 0, *measured_score(values), values))
    assert sum(one.whole for one in parts) <= 2
    assert np.median([one.shares["gen"] for one in parts]) == pytest.approx(part, abs=0.06)


@pytest.mark.one_of_each("law")
@pytest.mark.parametrize("law", HEAVY.values(), ids=HEAVY)
@pytest.mark.parametrize("factor", [3.0, 5.0])
def test_a_heavy_tailed_set_that_moves_as_a_whole_is_whole(law, factor):
    wholes = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        values = {"gen": np.abs(law(rng, 300)) * factor, "ref": np.abs(law(rng, 300))}
        wholes += explain(Trait("v", "low", "high", "less", "more"), 0, *measured_score(values), values).whole
    assert wholes >= 8


@pytest.mark.parametrize(("gen", "ref"), [(0.2, 0.08), (0.15, 0.05), (0.08, 0.2), (0.35, 0.2)])
def test_values_that_many_share_at_the_top_are_high_in_the_set_that_has_more_of_them(gen, ref):
    rng = np.random.default_rng(1)
    values = {}
    for label, share in (("gen", gen), ("ref", ref)):
        values[label] = np.minimum(rng.normal(6, 2, 500), 9.99)
        values[label][rng.random(500) < share] = 10.0
    trait = Trait("score", "low", "high", "lower", "higher")
    z = 5.0 if gen > ref else -5.0
    found = explain(trait, 1, z, abs(z), values)
    shares, (low, high) = found.estimate({label: np.arange(500) for label in values})
    assert (found.name, found.more_in) == ("high", "gen" if gen > ref else "ref")
    assert shares[found.more_in] > shares[OTHER[found.more_in]] and low <= shares[found.more_in] <= high
