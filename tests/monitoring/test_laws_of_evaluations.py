"""Laws of evaluations: counts, means and distances by their definition, what an alarm needs, and what is said."""

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.stats import norm

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.monitoring.basis import FAR, REPEAT, Basis, divide_reference
from finc_eval.monitoring.betting import weigh
from finc_eval.monitoring.course import choose_step
from finc_eval.monitoring.evaluations import EvaluationPart, Evaluations
from finc_eval.monitoring.evidence.saturation import saturation_of
from finc_eval.monitoring.exchange import score_of_shares
from finc_eval.monitoring.followed import FLAGS, SCORES, SHARES, Alarm, CopiesAtStep, say
from finc_eval.monitoring.measuring import measure, with_repeats, without_copied, without_fitted
from finc_eval.monitoring.naming import name_kinds, unique_names
from finc_eval.monitoring.needed import evaluations_needed, samples_alone, say_needed
from finc_eval.monitoring.seen import SeenRepeats
from finc_eval.monitoring.shown import MOST_STEPS, ShownSamples, Strips


def rows(n, seed=0, dim=4):
    return np.float32(np.random.default_rng(seed).normal(size=(n, dim)))


def part(values, phi, shares=((1, 4),)):
    """The part of a look with one share and one score."""
    sums = [(float(shares[0][0]), float(shares[0][1])), (values.sum(), len(values))]
    return EvaluationPart(
        len(phi), np.array(shares), (values,), np.array(sums), phi.sum(0), np.zeros((0, 16)), np.zeros(0, bool)
    )


def units(n, seed):
    found = np.random.default_rng(seed).normal(size=(n, 5))
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def apart(one, other):
    """Squared distance of two means of φ by all pairs of different samples."""

    def inside(values):
        inner = values @ values.T
        return (inner.sum() - np.trace(inner)) / (len(values) * (len(values) - 1))

    return inside(one) + inside(other) - 2 * (one @ other.T).mean()


def test_looks_know_means_spreads_and_distances():
    features = [units(n, n) for n in (30, 8, 9, 12)]
    values = [np.random.default_rng(n).normal(n, 1 + n, 20) for n in range(4)]
    found = Evaluations.of(part(values[0], features[0], ((3, 10),)))
    assert found.spread == pytest.approx([values[0].std()])
    assert np.isnan(Evaluations.of(part(values[0][:1], features[0])).spread).all()
    for number in (1, 2, 3):
        found.add(float(number), part(values[number], features[number], ((number, 4),)), 0)
    assert found.means()[:, 0].tolist() == [0.25, 0.5, 0.75]
    assert found.means()[:, 1] == pytest.approx([one.mean() for one in values[1:]])
    before, after = found.before_and_after(1)
    assert before == pytest.approx([4 / 14, np.r_[values[0], values[1]].mean()])
    assert after == pytest.approx([5 / 8, np.r_[values[2], values[3]].mean()])
    wanted = [[apart(features[look], features[other]) for other in (0, 1, look - 1)] for look in (1, 2, 3)]
    wanted[0][1:] = [0, 0]
    assert found.distances == pytest.approx(np.array(wanted))
    assert found.is_followed.all() and found.count == 3
    assert found.shares.tolist() == [[9, 22]]


def test_scores_compare_a_look_to_all_before():
    low, high = np.linspace(0, 1, 40), np.linspace(2, 3, 40)
    found = Evaluations.of(part(low, units(9, 0), ((0, 40),)))
    found.add(1.0, part(high, units(9, 1), ((40, 40),)), 0)
    assert (found.scores[0] > 3).all()
    found.add(2.0, part(low, units(9, 2), ((0, 40),)), 0)
    assert (found.scores[1] < -3).all()


def test_a_share_of_an_empty_look_says_nothing_and_a_certain_one_is_finite():
    rng = np.random.default_rng(0)
    pairs = {(0, 0, 3, 9): False, (3, 9, 0, 0): False, (0, 9, 0, 9): False, (1, 9, 0, 9): True, (9, 9, 8, 9): True}
    for (own, of, has, before), speaks in pairs.items():
        assert np.isfinite(score_of_shares(np.array([[own, of]]), np.array([[has, before]]), rng))[0] == speaks
    huge = score_of_shares(np.array([[900, 900]]), np.array([[0, 900]]), rng)[0]
    assert huge == pytest.approx(norm.ppf(1 - 1e-12))
    assert score_of_shares(np.array([[0, 900]]), np.array([[900, 900]]), rng)[0] == pytest.approx(-huge, rel=1e-4)


@pytest.fixture(scope="module")
def reference():
    return fe.EmbeddingSet(rows(240), metadata={"label": ["a" if one < 150 else "b" for one in range(240)]})


@pytest.fixture(scope="module")
def basis(reference):
    return Basis.fit(reference, np.arange(120), 0, Run())


def distances(one, other):
    return np.linalg.norm(one[:, None].astype(float) - other[None], axis=2)


def test_what_is_held_fixed_follows_from_nearest_distances_and_shares(reference, basis):
    fitted = reference.rows_at(np.arange(120)).numpy()
    nearest = (distances(fitted, fitted) + np.diag(np.full(120, np.inf))).min(1)
    assert basis.far == pytest.approx(np.quantile(nearest, FAR), rel=1e-5)
    assert basis.repeat == pytest.approx(REPEAT * np.median(nearest), rel=1e-5)
    leaf, _ = basis.tree.assign(torch.from_numpy(fitted), Run())
    shares = basis.tree.tree.members[:, leaf].mean(1)
    assert basis.nodes.tolist() == [node for node, share in enumerate(shares) if 0.03 <= share <= 0.97]
    covariance = np.cov(basis.phi(torch.from_numpy(fitted)).double().numpy().T)
    assert basis.noise == pytest.approx((covariance**2).sum(), rel=1e-4)
    assert basis.overlap(basis.names[0], basis.names[0])


@pytest.mark.parametrize(("n", "count"), [(40, 13), (41, 13), (9000, 2000)])
def test_a_third_of_a_reference_is_fitted_and_2000_at_most(n, count):
    fitted, rest = divide_reference(fe.EmbeddingSet(np.arange(n, dtype=np.float32)[:, None]), 0)
    assert (len(fitted), len(rest)) == (count, n - count)
    assert sorted([*fitted, *rest]) == [*range(n)]


def test_the_same_samples_are_known_by_their_traces(basis):
    traces = basis.trace(torch.from_numpy(rows(300, 5)))
    step = 0.5 * basis.repeat / REPEAT
    one = np.zeros(traces.shape)
    one[:, 0] = 1
    assert basis.are_the_same(traces, traces + 0.98 * step * one)
    assert not basis.are_the_same(traces, traces + 1.02 * step * one)
    far = traces + 1.02 * step * one
    far[:151] = traces[:151]
    assert basis.are_the_same(traces, far)
    assert not basis.are_the_same(traces, traces[:9]) and not basis.are_the_same(traces[:0], traces[:0])
    apart = np.linalg.norm(traces[:150] - traces[150:], axis=1) / np.linalg.norm(
        rows(300, 5)[:150] - rows(300, 5)[150:], axis=1
    )
    assert np.median(apart) == pytest.approx(1, abs=0.15)


def test_a_look_is_measured_by_its_distances_in_units_of_samples(basis):
    own = rows(50, 3)
    own[7], own[20], own[31] = own[6], own[6] + 1e-4, 40.0
    prompts = np.arange(50) // 3
    found = measure(fe.EmbeddingSet(own), basis, np.random.default_rng(4), prompts=prompts, fits=own[:, 0], run=Run())
    order = np.random.default_rng(4).permutation(50)
    inside = distances(own, own)
    pairs = np.triu_indices(4, 1)
    between = [inside[np.ix_(unit, unit)][pairs].mean() for unit in order[:48].reshape(12, 4)]
    score = dict(zip(SCORES, found.scores, strict=False))
    nearest = distances(own, basis.fitted.numpy()).min(1)
    assert score["diversity"] == pytest.approx(between, rel=1e-5)
    assert score["distance"] == pytest.approx(nearest, rel=1e-4)
    assert score["fit"].tolist() == own[:, 0].tolist()
    within = [
        inside[np.ix_(group, group)][np.triu_indices(len(group), 1)].mean()
        for group in np.split(np.arange(50), range(3, 50, 3))
    ]
    assert score["diversity within prompts"] == pytest.approx(within, rel=1e-5)
    kinds = len(basis.nodes)
    twins = ((inside + np.diag(np.full(50, np.inf))).min(1) < basis.repeat).sum()
    none = SeenRepeats.of(basis.trace(torch.from_numpy(rows(40, 4))), basis.repeat)
    whole, seen, scores = with_repeats(found, basis, none, np.random.default_rng(0))
    originals = basis.originals.rows.numpy()
    reach = 0.55 * (distances(originals, originals) + np.diag(np.full(len(originals), np.inf))).min(1)
    apart = distances(own, originals)
    near = (apart.min(1) < reach[apart.argmin(1)]).sum()
    assert found.shares[kinds : kinds + 3].tolist() == [[(nearest > basis.far).sum(), 50], [near, 50], [0, 0]]
    place = kinds + SHARES.index("repeats")
    assert twins == 3 and whole.sums[place].tolist() == whole.shares[place].tolist() == [3, 50]
    assert len(seen.traces) == 90 and scores[place] > 0
    first = len(found.shares)
    assert found.sums[first : first + 4] == pytest.approx(
        np.array([[nearest.sum(), 50], [sum(between), 12], [sum(within), 17], [own[:, 0].sum(dtype=float), 50]]),
        rel=1e-4,
    )
    assert np.linalg.norm(found.phi / 50) <= 1 and found.n == 50
    alone = measure(fe.EmbeddingSet(own), basis, np.random.default_rng(4), alone=prompts, run=Run())
    assert alone.shares[0, 1] == 17 and alone.sums[0, 1] == 50 and len(alone.scores[SCORES.index("distance")]) == 17


def test_fitted_samples_say_nothing_of_kinds_and_distances(basis):
    found = measure(fe.EmbeddingSet(rows(50, 3)), basis, np.random.default_rng(4), run=Run())
    less = without_fitted(found, basis)
    fitted, copied = len(basis.nodes) + len(SHARES), len(basis.nodes) + SHARES.index("copies")
    others = np.arange(fitted) != copied
    assert not less.shares[:fitted][others].any() and not less.sums[:fitted][others].any()
    assert (less.shares[copied] == found.shares[copied]).all() and less.shares[copied, 1] == 50
    assert not without_copied(found, basis).shares[copied].any()
    place = fitted + len(FLAGS)
    assert not less.sums[place].any() and len(less.scores[0]) == 0
    assert (less.sums[place + 1 :] == found.sums[place + 1 :]).all() and found.sums[place + 1].all()
    whole = found + found
    assert (whole.n, whole.brought) == (100, 100) and (whole.sums == 2 * found.sums).all()
    assert (whole.phi == 2 * found.phi).all() and len(whole.scores[1]) == 2 * len(found.scores[1])


def test_a_kind_has_the_label_of_more_than_half_of_its_members_or_those_that_it_is_made_of():
    labels = fe.EmbeddingSet(rows(9), metadata={"label": [*"aaabbbcd", ""]})
    has = np.array([[1] * 5 + [0] * 4, [1] * 6 + [0] * 3, [0] * 6 + [1, 0, 0], [0] * 8 + [1]], bool)
    assert name_kinds(labels, np.arange(9), has) == ("a", "a and b", "c", "samples like “8”")


def test_a_kind_without_words_is_like_its_most_typical_sample():
    vectors = np.float32([[9, 9], [0, 0], [0.1, 0], [1, 1]])
    one = fe.EmbeddingSet(vectors, ids=["far", "middle", "near", "other"])
    assert name_kinds(one, np.arange(4), np.array([[0, 1, 1, 1]], bool)) == ("samples like “near”",)


def test_a_kind_has_the_words_of_its_prompts_as_a_comparison_says_them():
    prompts = ["a red cat"] * 20 + ["a red dog"] * 20
    one = fe.EmbeddingSet(rows(40), metadata={"prompt": prompts})
    has = np.arange(40) < np.array([[20], [40]])
    has[1] ^= has[0]
    assert name_kinds(one, np.arange(40), has) == ("prompt with “cat”", "prompt with “dog”")


def test_a_kind_without_labels_looks_like_what_sets_its_members_apart(monkeypatch):
    chance = np.zeros((60, 1000), np.float32)
    chance[:20, 281], chance[20:40, 207], chance[40:60, 817] = 1, 1, 1  # tabbies, golden retrievers, sports cars
    monkeypatch.setattr(
        "finc_eval.naming.classes.probabilities", lambda reference, rows: torch.from_numpy(chance[np.asarray(rows)])
    )
    monkeypatch.setattr("finc_eval.naming.classes.classifier_of", lambda space: "a last layer")
    has = np.arange(60)[None] // 20 == np.array([[0], [1], [2]])
    tabby, retriever, car = name_kinds(fe.EmbeddingSet(rows(60)), np.arange(60), has)
    assert "tabby" in tabby and "retriever" in retriever and "car" in car


def test_kinds_of_the_same_words_have_names_with_ids():
    assert unique_names(["cat", "dog", "cat"], [4, 9, 7]) == ("kind cat, k4", "kind dog", "kind cat, k7")


def test_the_saturation_of_a_picture_is_a_mean_of_order_8_in_which_vivid_parts_weigh_more():
    pixels = np.full((64, 64, 3), 100, np.uint8)
    pixels[:16, :, 0], pixels[16:32, :, 1] = 200, 150
    pixels[32:48] = (30, 20, 20)
    values = [0.5, 1 / 3, (10 / 255) / 0.2, 0.0]
    expected = np.mean(np.array(values) ** 8) ** (1 / 8)
    assert saturation_of([Image.fromarray(pixels)])[0] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("shift", "reference", "samples"), [(0.5, 1000, 64), (0.4, 600, 32), (1.0, 60, 16)])
def test_an_alarm_comes_at_the_first_look_whose_evidence_is_enough(shift, reference, samples):
    found = evaluations_needed(shift, reference, samples, 40, 0.05)
    scores = []
    for look in range(found):
        # The mean before is of the reference, and of looks that have moved already.
        before = shift * samples * look / (reference + samples * look)
        scores.append((shift - before) / (1 / samples + 1 / (reference + samples * look)) ** 0.5)
    evidence = [weigh(np.array(scores)[:count, None])[0] for count in range(1, found + 1)]
    assert evidence[-1] >= np.log(40 / 0.05) > max(evidence[:-1])
    assert found > 1


@pytest.mark.parametrize("shift", [0.3, 0.5, 1.0])
def test_a_look_alone_needs_as_many_samples_as_bonferroni_asks(shift):
    needed = samples_alone(shift, 400, 30, 0.05)
    level = norm.ppf(1 - 0.05 / 60)
    assert shift / (1 / needed + 1 / 400) ** 0.5 >= level > shift / (1 / (needed - 1) + 1 / 400) ** 0.5
    least = (level / shift) ** 2
    assert samples_alone(shift, int(least), 30, 0.05) is None
    assert samples_alone(shift, int(least) + 1, 30, 0.05) > needed


def test_what_is_said_to_be_needed_is_of_a_shift_and_of_a_kind_of_a_tenth_that_vanishes():
    said = say_needed(2000, 64, 30, 0.05)
    for shift, thing in ((0.5, "by 0.5 standard deviations"), (1 / 3, "a kind of 10 % that vanishes")):
        looks, alone = evaluations_needed(shift, 2000, 64, 30, 0.05), samples_alone(shift, 2000, 30, 0.05)
        assert f"{thing} has an alarm after {looks} evaluations" in said and f"{alone} samples" in said


SAID = {
    "gone": (("kind k1", 0.2, 0.019), "is gone: 1.9 % (before: 20 %)"),
    "rarer": (("kind k1", 0.2, 0.021), "is rarer: 2.1 % (before: 20 %)"),
    "more frequent": (("kind k1", 0.2, 0.39), "is more frequent: 39 % (before: 20 %)"),
    "grown": (("kind k1", 0.2, 0.41), "has grown: 41 % (before: 20 %)"),
    "new kinds": (("new kinds", 0.02, 0.05), "5.0 % are far from every kind of the reference (before: 2.0 %)"),
    "repeats": (("repeats", 0.05, 0.02), "2.0 % repeat another sample of their step (before: 5.0 %)"),
    "farther": (("distance", 2.0, 2.5), "farther from the reference (+25 %)"),
    "less diverse": (("diversity", 2.0, 1.5), "less diverse (−25 %)"),
    "in spreads": (("warmth", -0.1, 0.3), "(warmth of the tint +0.8 σ)"),
    "in spreads, less": (("warmth", 0.3, -0.1), "(warmth of the tint −0.8 σ)"),
    "fit": (("fit", 0.0, 0.4), "fit their prompts better (+0.8 σ)"),
}


@pytest.mark.parametrize("case", SAID)
def test_an_alarm_says_the_way_and_the_size_of_a_change(case):
    (name, before, after), words = SAID[case]
    assert say(name, before, after, 0.5).endswith(words)


@pytest.mark.parametrize(
    ("words", "said"), [("cat", ", such as “cat” ("), ("samples like “a.png”", ": samples like “a.png” (")]
)
def test_new_kinds_are_called_by_a_noun_or_by_their_samples(words, said):
    assert f"of the reference{said}" in say("new kinds", 0.02, 0.05, 1.0, words)


def test_strips_leave_out_the_step_whose_neighbors_are_nearest():
    strips = Strips()
    for step in (1, 10, 20, 22, 30, 40, 50):
        strips.add(step, ShownSamples({"kind k1": "picture"}))
    strips.add(60, ShownSamples())  # without a picture nothing is added
    assert len(strips.pictures) == MOST_STEPS == 7
    strips.add(60, ShownSamples({"kind k1": "picture"}))
    assert sorted(strips.pictures) == [1, 10, 20, 30, 40, 50, 60]


KEPT = {
    "the latest of the nearest": ([3.0, 1.0, 1.19, 2.0], [], [], 3),
    "the nearest, beyond the error": ([3.0, 1.0, 1.21, 2.0], [], [], 2),
    "before the first alarm": ([3.0, 1.0, 1.19, 2.0], [("tint", 4), ("tint", 3)], [], 2),
    "of a change from the first evaluation on": ([3.0, 1.19, 1.0, 2.0], [("tint", 1)], [], 2),
    "of a change from the first evaluation on, beyond the error": ([3.0, 1.21, 1.0, 2.0], [("tint", 1)], [], 3),
    "none of those that repeat": ([3.0, 1.19, 1.0, 2.0], [("repeats", 1)], [], None),
    "before it repeats, though another change holds from the first on": (
        [3.0, 2.0, 1.0, 1.0],
        [("tint", 1), ("repeats", 3)],
        [],
        2,
    ),
    "never as diverse as the reference": ([3.0, 1.19, 1.0, 2.0], [("diversity", 1)], [], 2),
    "before it collapses": ([3.0, 2.0, 1.0, 1.0], [("tint", 1), ("diversity", 3)], [], 2),
    "not what copies": ([3.0, 1.0, 1.19, 2.0], [], [3], 2),
    "nothing, as all copy": ([3.0, 1.0, 1.19, 2.0], [], [1, 2, 3, 4], None),
}
"""Distances to the reference at four steps, alarms by the step from which they hold, steps with copies, and the step to
keep."""


@pytest.mark.parametrize("case", KEPT)
def test_the_step_to_keep_is_near_the_reference_within_twice_the_error_and_before_alarms(case):
    apart, changed, copying, kept = KEPT[case]
    found = Evaluations.of(part(np.arange(20.0), units(30, 0)))
    for number in range(1, 5):
        found.add(float(number), part(np.arange(20.0), units(10, number), ((1, 10),)), 0)
    found.distances[:, 0] = apart
    found.sums[:, 0, 1] = 10
    noise = (0.1 / (1 / 10 + 1 / 30)) ** 2 / 2  # an error of 0.1
    names = ("repeats", *map(str, range(len(found.reference) - 1)))
    found.sums[:, 0, 0] = 3  # samples that repeat
    copies = [CopiesAtStep(float(step), 2, 12) for step in copying]

    def alarms(until):
        """Alarms whose start has an interval that ends so many steps later."""
        sizes = [(name, step, 0.2 if name == "diversity" else 0.05) for name, step in changed]
        return [
            Alarm(4.0, name, "", float(step), 0.1, 0.25 - before, (float(step), float(step + until)))
            for name, step, before in sizes
        ]

    assert choose_step(found, names, alarms(0), copies, noise)[0] == kept
    # What is surely there at the last look, and may have begun earlier, is dated by the earliest step.
    assert choose_step(found, names, alarms(3), copies, noise)[0] == kept
    assert choose_step(found, names, alarms(0), copies, noise)[1].endswith(".")


@pytest.mark.parametrize(
    ("changed", "copying", "words"), [(1, [], "4 steps its"), (3, [2, 3, 4], "1 step it has copies")]
)
def test_why_steps_are_not_kept_counts_each_step_once(changed, copying, words):
    found = Evaluations.of(part(np.arange(20.0), units(30, 0)))
    for number in range(1, 5):
        found.add(float(number), part(np.arange(20.0), units(10, number), ((1, 10),)), 0)
    found.sums[:, 0] = 3, 10
    names = ("repeats", *map(str, range(len(found.reference) - 1)))
    alarm = Alarm(4.0, "repeats", "", float(changed), 0.1, 0.2, (float(changed), 4.0))
    copies = [CopiesAtStep(float(step), 2, 12) for step in copying]
    assert words in choose_step(found, names, [alarm], copies, 0.1)[1]
