"""Laws of two runs: distances and shares by their definition, names of what is behind broken pairs, and reasons."""

from types import SimpleNamespace

import numpy as np
import pytest
from _runs_of_scenes import OLD, SIDE, noise, run_of, scenes
from _said import values as numbers_in
from scipy.stats import beta

import finc_eval as fe
from finc_eval.core.run import Run
from finc_eval.same_ids import compare_ids, pairs
from finc_eval.same_ids.compare_ids import Harm, MeasuredRuns
from finc_eval.same_ids.page import NO_STAND, legend_of
from finc_eval.same_ids.pairs import PairTable, align, measure, measure_clips, measure_pictures, nearest_others
from finc_eval.same_ids.reasons import reasons_of
from finc_eval.same_ids.result import ById
from finc_eval.same_ids.run_names import name_run
from finc_eval.same_ids.seen import SeenPairs
from finc_eval.same_ids.verdict import RunVerdict, judge_run
from finc_eval.same_ids.worse import Margin


def aligned(gen, ref):
    names = np.array([f"{row:04d}" for row in range(len(ref))])
    sets = {label: fe.EmbeddingSet(np.float32(one), [*names]) for label, one in (("gen", gen), ("ref", ref))}
    return align(dict.fromkeys(sets, names), sets)


def rows(n, seed, dim=3):
    return np.float32(np.random.default_rng(seed).normal(size=(n, dim)))


@pytest.mark.parametrize("n", [1, 2, 30])
def test_distances_are_in_parts_of_the_usual_distance_of_two_ids(n):
    gen, ref = rows(n, 0), rows(n, 1)
    apart = np.linalg.norm(gen[:, None] - ref[None], axis=2)
    own = np.diag(apart)
    others = np.where(np.eye(n, dtype=bool), np.inf, apart)
    typical = np.sort(others, axis=1)[:, (n - 1) // 2] if n > 1 else np.linalg.norm(ref, axis=1)
    found = measure(aligned(gen, ref), Run())
    assert found.values["distance"] == pytest.approx(own / np.median(typical), rel=1e-5)
    assert found.others == pytest.approx((others <= own[:, None]).sum(1) / n)
    place, near = found.nearest_id
    asked = found.others > 0
    assert place[asked].tolist() == others.argmin(1)[asked].tolist() and set(place[~asked]) <= {-1}
    assert near[asked] == pytest.approx((others.min(1) / np.median(typical))[asked], rel=1e-5)


def test_the_nearest_other_is_found_whatever_is_compared_at_once(monkeypatch):
    gen, ref = rows(40, 0), rows(40, 1)
    apart = np.linalg.norm(gen[:, None] - ref[None], axis=2) + np.diag(np.full(40, np.inf))
    monkeypatch.setattr(pairs, "OTHERS", 7)
    asked = np.array([3, 20, 39])
    place, near = nearest_others(aligned(gen, ref), asked)
    assert place.tolist() == apart.argmin(1)[asked].tolist()
    assert near == pytest.approx(apart.min(1)[asked], rel=1e-5)
    found = measure(aligned(gen, ref), Run())
    drawn = np.random.default_rng(0).permutation(40)[:7]
    own = np.linalg.norm(gen - ref, axis=1)
    assert found.others == pytest.approx((apart[:, drawn] <= own[:, None]).sum(1) / 7)


def test_of_two_tables_each_sample_has_the_nearer_pair():
    one, other = (PairTable({"mse": np.array(mse), "ssim": np.full(3, ssim)}, np.full(3, ssim), None)
                  for mse, ssim in (([1.0, 2.0, 3.0], 0.1), ([2.0, 1.0, np.nan], 0.2)))  # fmt: skip
    found = one.nearest(other)
    assert found.values["mse"].tolist() == [1, 1, 3]
    assert found.values["ssim"].tolist() == found.others.tolist() == [0.1, 0.2, 0.1]


def exact(count, n, error):
    low = beta.ppf(error, count, n - count + 1) if count else 0.0
    return low, beta.ppf(1 - error, count + 1, n - count) if count < n else 1.0


def runs_of(distance, floor=None, **rest):
    """Two measured runs whose pairs are so far apart."""

    def table(values):
        return PairTable({"distance": np.asarray(values, float)}, np.zeros(len(values)), None)

    seen = SeenPairs(np.full(len(distance), "same"), np.full(len(distance), ""), np.full(len(distance), -1))
    ids = SimpleNamespace(ids=np.array([f"{row}" for row in range(len(distance))]))
    known = {"runs": 1, "questions": [], "looks": lambda error: [], "seen": seen} | rest
    return MeasuredRuns(ids, table(distance), None if floor is None else table(floor), **known)


@pytest.mark.parametrize(("changed", "n"), [(0, 10), (7, 30), (30, 30)])
def test_without_a_baseline_what_is_not_equal_has_changed(changed, n):
    share, interval = runs_of(np.arange(n) < changed).changed(0.1)
    assert share == pytest.approx(changed / n)
    assert interval == pytest.approx(exact(changed, n, 0.05))


@pytest.mark.parametrize(("beyond", "apart"), [(0, 0), (12, 0), (12, 4), (3, 5)])
def test_the_share_that_changed_is_without_what_runs_of_the_baseline_have_themselves(beyond, apart):
    n, m = 60, 40
    floor = np.linspace(0.5, 0.6, m)
    floor[:apart] = 40.0
    share, interval = runs_of(np.where(np.arange(n) < beyond, 50.0, 0.55), floor).changed(0.1)
    own, usual = beyond / n, apart / m

    def without(share, part):
        return min(max((share - part) / (1 - part), 0), 1)

    (low, high), (least, most) = exact(beyond, n, 0.025), exact(apart, m, 0.025)
    assert share == pytest.approx(without(own, usual))
    assert interval == pytest.approx((without(low, most), without(high, least)))


def test_all_bounds_of_all_questions_share_the_error():
    asked = []

    def harm(count, verdict="not worse"):
        margin = Margin("x", "look", 0.0, (0.0, 0.0), 0.25, verdict)
        return Harm(count, lambda error: asked.append((count, error)) or [margin])

    runs = runs_of(np.zeros(24), questions=[harm(0), harm(3), harm(5, "undecided"), harm(2, "worse")])
    assert [one.verdict for one in runs.margins(0.1)] == ["not worse", "not worse", "undecided", "worse"]
    assert dict(asked) == {count: pytest.approx(0.1 / 2 / max(3 * count, 1)) for count in (0, 3, 5, 2)}
    assert runs.count_worse(0.1) == 1
    seen = []
    runs_of(np.zeros(24), questions=[harm(3)], looks=lambda error: seen.append(error) or [])._error(1)
    assert runs_of(np.zeros(24), questions=[harm(3)])._error(10) == pytest.approx(0.025 / 10)


@pytest.mark.parametrize(("missing", "unread", "is_sure"), [(3, 0, True), (0, 3, True), (2, 1, True), (3, 1, False)])
def test_nothing_is_shown_to_be_as_good_where_more_than_an_eighth_is_absent(missing, unread, is_sure):
    margins = [Margin("x", "look", 0.0, (0.0, 0.0), 0.25, one) for one in ("not worse", "worse")]
    runs = runs_of(np.zeros(21), missing=missing, unread=("a",) * unread, questions=[Harm(1, lambda error: margins)])
    assert runs.absent == missing + unread
    assert runs.is_sure_of_rest == is_sure
    assert [one.verdict for one in runs.margins()] == ["not worse" if is_sure else "undecided", "worse"]


@pytest.mark.parametrize("together", [4, 1000])
def test_diversity_is_the_mean_squared_distance_of_the_images_of_a_prompt(monkeypatch, together):
    monkeypatch.setattr(compare_ids, "OTHERS", together)
    gen, ref = rows(12, 0), rows(12, 1)
    prompts = np.array([f"prompt {one}" for one in (0, 1, 2, 0, 1, 0, 3, 1, 0, 4, 4, 1)])
    sets = {label: fe.EmbeddingSet(one, [f"{row:02d}" for row in range(12)], {"prompt": [*prompts]})
            for label, one in (("gen", gen), ("ref", ref))}  # fmt: skip
    names = np.array([f"{row:02d}" for row in range(12)])
    (found,) = compare_ids._diversity(align(dict.fromkeys(sets, names), sets))
    for one, values in zip((gen, ref), found, strict=True):
        expected = []
        for prompt in ("prompt 0", "prompt 1", "prompt 4"):
            own = one[prompts == prompt].astype(float)
            squares = ((own[:, None] - own[None]) ** 2).sum(2)
            expected.append(squares[np.triu_indices(len(own), 1)].mean())
        assert values == pytest.approx(expected, rel=1e-5)


def test_pictures_take_the_size_of_the_second_and_say_both():
    small, large = scenes(2, seed=3), [np.tile(one, (2, 1, 1)) for one in scenes(2, seed=3)]
    found = measure_pictures([*small, *large], [*large, *large])
    assert found["height"].tolist() == [SIDE, SIDE, 2 * SIDE, 2 * SIDE]
    assert found["height before"].tolist() == [2 * SIDE] * 4 and set(found["width"]) == {SIDE}
    assert (found["mse"][2:] == 0).all() and (found["mse"][:2] > 0).all()


def test_clips_are_measured_by_their_frames_and_by_their_motion():
    wide = scenes(1, seed=4)[0]
    clip = np.stack([np.roll(wide, 2 * frame, 1) for frame in range(4)])
    still = np.repeat(clip[:1], 4, 0)
    frozen, same = measure_clips([still], [clip]), measure_clips([clip, clip[:3]], [clip, clip])
    assert same["motion"][0] == pytest.approx(0, abs=1e-6)
    assert same["mse"].tolist()[0] == 0 and same["frames"].tolist() == [4, 3]
    assert same["frames before"].tolist() == [4, 4]
    # Motion of m pixels: m / (m + 1/4), and a still clip has no speed.
    moved = same["speed"][0]
    assert 0.5 < moved < 1 and frozen["speed"][0] < 0.1
    assert frozen["motion"][0] == pytest.approx(moved, abs=0.05)
    mse = [measure_pictures([clip[0]], [one])["mse"][0] for one in clip]
    assert frozen["mse"][0] == pytest.approx(np.mean(mse))


ALL = 24


def named(other, chosen=None, causes="another id", n=ALL):
    """Name a run of vectors by the id that each broken pair shows."""
    chosen = np.isin(np.arange(n), range(n) if chosen is None else [*chosen])
    causes = np.broadcast_to(np.array(causes), n)
    shows = np.where(chosen, causes, "same").astype("<U30")
    seen = SeenPairs(shows, np.where(chosen, causes, ""), np.where(chosen & (causes == "another id"), other, -1))
    table = PairTable({"distance": np.zeros(n)}, np.zeros(n), None)
    return name_run(table, seen, chosen, [f"{row}.png" for row in range(n)])


PLACES = np.arange(ALL)
NAMES = {
    "later": ((PLACES + 5) % ALL, None, "ids are shifted by 5 (each shows a later picture)"),
    "earlier": ((PLACES - 5) % ALL, None, "ids are shifted by 5 (each shows an earlier picture)"),
    "halves": ((PLACES + 12) % ALL, None, "ids are shifted by 12 (the halves are exchanged)"),
    "some later": (PLACES + 2, range(4, 16), "ids are shifted by 2 in 50 % of the pairs (each shows a later picture)"),
    "reversed": (PLACES[::-1], None, "ids are reversed"),
    "some reversed": (PLACES[::-1], range(8), "ids are reversed in 33 % of the pairs"),
    "blocks": (PLACES // 3 * 3 + (PLACES + 1) % 3, None, "ids are exchanged within blocks of 3"),
    "blocks of half": (PLACES // 12 * 12 + 5 * PLACES % 12, range(1, 24), "ids are exchanged within blocks of 12"),
    "no rule": (np.random.default_rng(1).permutation(ALL), None, "ids are exchanged"),
    "no rule, few": (np.random.default_rng(1).permutation(ALL), (3, 9, 20), ""),
    "too few": ((PLACES + 5) % ALL, (3, 4), ""),
}


@pytest.mark.parametrize("case", NAMES)
def test_ids_that_are_exchanged_are_named_by_their_rule(case):
    other, chosen, name = NAMES[case]
    assert named(other, chosen) == name


def causes(**counts):
    return np.concatenate([[name.replace("_", " ")] * count for name, count in counts.items()])


CAUSES = {
    "four fifths": (causes(black=16, blank=4), range(20), "pairs 1 to 20: black"),
    "less than four fifths": (causes(black=15, blank=5), range(20), ""),
    "other pictures": (causes(noise=10, another_picture=10), range(20), "pairs 1 to 20: another picture"),
    "other pictures, and some black": (causes(noise=10, another_picture=8, black=2), range(20), ""),
    "seven eighths": (causes(black=24), range(21), "nearly all pairs: black"),
    "fewer than seven eighths": (causes(black=24), range(20), "pairs 1 to 20: black"),
    "every third": (causes(black=24), range(2, 24, 3), "every 3rd pair from 3: black"),
    "every seventh": (causes(black=24), range(1, 24, 7), "every 7th pair from 2: black"),
    "every ninth": (causes(black=24), range(1, 24, 9), ""),
    "nearly a range": (causes(black=24), {*range(3, 14)} - {5}, "pairs 4 to 14: black"),
    "hardly a range": (causes(black=24), {*range(3, 14)} - {5, 9}, "38 % of the pairs: black"),
    "an eighth": (causes(black=24), (0, 9, 17), ""),
    "more than an eighth": (causes(black=24), (0, 5, 9, 17), "17 % of the pairs: black"),
    "three in a row": (causes(black=24), (5, 6, 7), "pairs 6 to 8: black"),
}  # fmt: skip


@pytest.mark.parametrize("case", CAUSES)
def test_broken_pairs_are_named_by_their_cause_and_where_they_are(case):
    known, chosen, name = CAUSES[case]
    whole = np.full(ALL, known[-1], "<U30")
    whole[: len(known)] = known
    assert named(np.full(ALL, -1), chosen, whole) == name


@pytest.mark.parametrize(
    ("n", "unclear", "verdict"), [(24, 3, "clean"), (24, 4, "undecided"), (19, 0, "clean"), (19, 1, "undecided")]
)
def test_a_run_is_clean_if_at_most_an_eighth_of_many_pairs_is_unclear(n, unclear, verdict):
    distance = np.where(np.arange(n) < unclear, 0.61, 0.59)
    found = judge_run(PairTable({"distance": distance}, np.zeros(n), None), None, [f"{row}" for row in range(n)])
    assert (found.verdict, int(found.unclear.sum())) == (verdict, unclear)
    assert found.is_sure_of_rest == (verdict == "clean")


def judged_pairs(new, causes=""):
    """Say what broken pairs of pictures look like, of which nothing is known."""
    names = np.array([f"{row:04d}.png" for row in range(len(new))])
    both = align({"gen": names, "ref": names}, {"gen": run_of(new), "ref": run_of(OLD[: len(new)])})
    n = len(new)
    verdict = RunVerdict("broken", "", np.ones(n, bool), np.full(n, causes), np.full(n, -1), np.zeros(n, bool))
    return [*reasons_of(both, measure(both, Run()), verdict).values()]


def moved(picture, right, down):
    """A picture that is moved, with its edge repeated."""
    at = [np.clip(np.arange(SIDE) - by, 0, SIDE - 1) for by in (down, right)]
    return picture[at[0]][:, at[1]]


def test_reasons_say_what_is_seen_at_second_sight():
    new = [
        moved(OLD[0], 7, -3), moved(OLD[1], -5, 0), moved(OLD[2], 0, 9), np.full_like(OLD[3], 14),
        np.full_like(OLD[4], 18), np.full_like(OLD[5], 241), np.full_like(OLD[6], 237),
        noise([OLD[1]], 2)[0], scenes(1, seed=70)[0], np.clip(OLD[9] * 0.55, 0, 255).astype(np.uint8), *OLD[10:20],
    ]  # fmt: skip
    found = judged_pairs(new)
    assert found[:3] == ["shifted by +7, -3 pixels", "shifted by -5, +0 pixels", "shifted by +0, +9 pixels"]
    assert found[3:7] == ["black", "blank", "white", "blank"]
    assert found[7:10] == ["the picture of 0001.png", "another picture", "in other colors or light"]
    assert judged_pairs(new[:2], "black") == ["black", "black"]


@pytest.mark.parametrize(("high", "is_inside"), [(0.01, True), (0.03, False)])
def test_the_table_says_why_an_interval_within_its_margin_is_undecided(high, is_inside):
    margin = Margin("framed", "part", 0.0, (0.0, high), 0.02, "undecided")
    assert (NO_STAND in legend_of([margin])) == is_inside


def test_shares_that_are_undecided_are_so_below_the_largest_that_they_may_be():
    margins = [
        Margin(name, "kind", 0.0, (-0.01, high), 0.02, "undecided") for name, high in (("a", 0.021), ("b", 0.034))
    ]
    (said,) = ById._undecided(SimpleNamespace(undecided=margins))
    assert numbers_in(said) == "3.4" and "a and b" in said
