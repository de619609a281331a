"""Sets that share prompts: differences within prompts are found, and a design is not taken for random draws."""

import numpy as np
import pytest
from scipy import stats

import finc_eval as fe
from finc_eval.core.errors import UsageError
from finc_eval.partitions.blocks import _are_alike, _instead, dispersion, missing_values, needs_pairs

CENTERS = np.random.default_rng(0).normal(size=(40, 8)) * 6


def drawn(prompts, each, seed, wrong=(), wrong_to=0, column="prompt"):
    """Images near the center of their prompt; prompts that are wrong are drawn as another one, half of the time."""
    rng = np.random.default_rng(seed)
    of = np.repeat(prompts, each)
    shown = np.where(np.isin(of, wrong) & (rng.random(len(of)) < 0.5), wrong_to, of)
    rows = CENTERS[shown] + rng.normal(size=(len(of), 8))
    return fe.EmbeddingSet(rows.astype(np.float32), metadata={column: [f"prompt {one}" for one in of]})


EVERY = np.arange(40)


def test_a_model_that_draws_some_prompts_as_another_one_is_found_within_prompts():
    gen, ref = drawn(EVERY, 3, 1, wrong=(5, 6, 7)), drawn(EVERY, 3, 2)
    assert not fe.kinds({"gen": gen, "ref": ref}).significant()
    paired = fe.kinds({"gen": gen, "ref": ref}, pairs="prompt")
    assert paired.significant()
    assert paired.pairs.blocks == 40
    assert paired.pairs.asked
    assert "|pairs:prompt|" in str(paired.signature)


def test_named_groups_that_both_sets_have_pair_them_and_it_is_said():
    gen, ref = drawn(EVERY, 3, 1, wrong=EVERY[5:15]), drawn(EVERY, 3, 2)
    found = fe.compare(gen, ref, groups="prompt", features=100)
    assert found.pairs.blocks == 40
    assert not found.pairs.asked
    assert any("paired by prompt" in one for one in found.warnings)
    assert found.significant()


@pytest.mark.parametrize("prompts", [EVERY[:5], EVERY[:6]])
def test_too_few_prompts_in_common_are_refused(prompts):
    sets = {"gen": drawn(prompts, 5, 1), "ref": drawn(prompts, 5, 2)}
    if len(prompts) < 6:
        with pytest.raises(fe.DataError, match="have 5 values of 'prompt' in common: at least 6"):
            fe.kinds(sets, pairs="prompt")
    else:
        assert fe.kinds(sets, pairs="prompt").pairs.blocks == 6


def test_numbers_of_groups_are_not_taken_for_the_same_things():
    sets = [drawn(EVERY, 3, seed) for seed in (1, 2)]
    numbered = [
        fe.EmbeddingSet(one.rows_at(np.arange(one.n)).numpy(), metadata={"clip": [str(row // 3) for row in range(120)]})
        for one in sets
    ]
    assert fe.kinds(numbered, groups="clip").pairs is None


def test_prompts_that_a_model_lacks_are_named_and_set_apart():
    found = fe.kinds({"gen": drawn(EVERY[:32], 3, 1), "ref": drawn(EVERY, 3, 2)}, pairs="prompt")
    lacks = found.pairs.sets["gen"]
    assert lacks.missing == 8
    assert "prompt 35" in lacks.missing_values
    assert found.pairs.sets["ref"].apart == 24
    assert any(one.startswith("gen lacks 8 of the 40 values of prompt") for one in found.warnings)
    assert not found.significant()


@pytest.mark.parametrize("paired", [{}, {"pairs": "prompt"}])
def test_a_design_is_said_and_its_upper_end_is_not_below_the_plain_difference(paired):
    """The tree sees which prompt an image is of, and a model that lacks 8 of 40 has moved a fifth."""
    sets = {"gen": drawn(EVERY, 3, 1), "ref": drawn(EVERY, 3, 2)}
    found = fe.kinds(sets, **paired)
    shares = found.divided.tallies
    nodes = found.divided.tree.tree.cut(50)
    plain = 0.5 * np.abs(shares["gen"].members[nodes] / 120 - shares["ref"].members[nodes] / 120).sum()
    assert found.difference_interval[1] >= plain
    assert any(("paired by" if paired else "a design, not random draws") in one for one in found.warnings)


def test_counts_of_random_draws_are_not_a_design():
    rng = np.random.default_rng(0)
    assert sum(dispersion(np.bincount(rng.integers(0, 30, 300), minlength=30)) < 1 for _ in range(500)) <= 1
    assert dispersion(np.full(30, 5)) < 1e-3
    assert dispersion(np.array([5] * 28 + [4, 3])) < 0.1
    assert dispersion(np.array([50, 50])) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("values", "n", "m"),
    [(10, 60, 60), *(pytest.param(*one, marks=pytest.mark.long) for one in ((30, 100, 300), (100, 400, 200)))],
)
def test_values_that_random_draws_lack_are_rarely_named(values, n, m):
    rng, runs = np.random.default_rng(values), 120
    shares = rng.dirichlet(np.ones(values))
    named = 0
    for _ in range(runs):
        sets = {
            label: fe.EmbeddingSet(
                np.zeros((size, 2), np.float32), metadata={"prompt": rng.choice(values, size, p=shares).astype(str)}
            )
            for label, size in (("gen", n), ("ref", m))
        }
        named += any("lacks" in one for one in missing_values(sets, []))
    assert named <= stats.binom.ppf(0.999, runs, 0.05)


@pytest.mark.parametrize(
    ("lacking", "values", "is_named"), [(5, 2, False), (6, 2, True), (6, 10, False), (9, 10, True), (9, 40, False)]
)
def test_a_value_is_named_if_chance_would_seldom_leave_out_any_of_all(lacking, values, is_named):
    """In sets of one size, all k samples of a value are in one given set with probability ½ᵏ; all values share 5 %."""
    others = [f"{number % (values - 1)}" for number in range(400)]
    sets = {
        label: fe.EmbeddingSet(np.zeros((400, 2), np.float32), metadata={"prompt": names})
        for label, names in (("gen", others), ("ref", ["lacking"] * lacking + others[lacking:]))
    }
    assert any("lacks 1 of" in one for one in missing_values(sets, [])) == is_named


def test_a_value_that_is_surely_not_by_chance_lacking_is_named():
    sets = {"gen": drawn(EVERY[:10], 12, 1), "ref": drawn(EVERY[:11], 12, 2)}
    assert any(one.startswith("gen lacks 1 of the 11 values of prompt") for one in missing_values(sets, []))


@pytest.mark.one_of_each
@pytest.mark.parametrize("policy", [{}, {"pairs": "prompt"}, {"groups": "prompt"}, {"kinds.column": "prompt"}])
def test_a_release_that_lacks_a_fifth_of_the_prompts_fails_a_limit_of_a_tenth(policy):
    old, ref = drawn(EVERY, 4, 2), drawn(EVERY, 8, 3)
    limits = {"kinds.moved": 0.1, **policy}
    verdict = fe.gate(drawn(EVERY[:32], 4, 1), old, ref, limits)
    (limit,) = verdict.limits
    assert verdict.overall == "regression"
    assert limit.interval[0] - 1e-9 <= 0.2 <= limit.interval[1]
    assert "gen lacks 8 of the 40 values of prompt that another set has, such as" in limit.note
    assert fe.gate(drawn(EVERY, 4, 4), old, ref, limits).overall != "regression"


def test_a_board_names_prompts_that_a_model_lacks():
    models = {"all": drawn(EVERY, 3, 1), "some": drawn(EVERY[:30], 3, 4)}
    board = fe.leaderboard(models, drawn(EVERY, 3, 2), metrics=["kid"])
    assert any("some lacks 10 of the 40 values of prompt" in one for one in board.warnings)
    paired = fe.leaderboard(models, drawn(EVERY, 3, 2), pairs="prompt", metrics=["kid"])
    assert board["some"].scores["unmatched"].interval[1] >= 0.2
    assert paired["some"].scores["unmatched"].value < 0.1
    wrong = fe.leaderboard(
        models | {"wrong": drawn(EVERY, 3, 5, wrong=EVERY[:20])}, drawn(EVERY, 3, 2), pairs="prompt", metrics=["kid"]
    )
    assert not wrong.separable("all", "some", by="unmatched")
    assert wrong.separable("all", "wrong", by="unmatched")


def test_an_unknown_column_to_pair_by_is_refused():
    with pytest.raises(fe.UsageError, match="gen has no column 'promt' to pair by"):
        fe.kinds({"gen": drawn(EVERY, 3, 1), "ref": drawn(EVERY, 3, 2)}, pairs="promt")
    with pytest.raises(fe.UsageError, match="rho is 2"):
        fe.Settings(rho=2, pairs="prompt")


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [("aabb", "bbaa", True), ("aabb", "ccdd", True), ("aabb", "aaab", False), ("aabb", "aab", False)],
)
def test_groups_pair_sets_unasked_if_there_are_as_many_samples_of_each(first, second, alike):
    values = [np.array([*one]) for one in (first, second)]
    assert _are_alike(values) is alike and _are_alike(values[:1])
    assert not _are_alike([values[0]] * 3)


def with_ids(ids):
    return fe.EmbeddingSet(np.random.default_rng(0).normal(size=(len(ids), 4)).astype(np.float32), ids=tuple(ids))


@pytest.mark.parametrize(("common", "n", "is_said"), [(6, 12, True), (5, 9, False), (6, 13, False), (7, 14, True)])
def test_names_that_agree_are_advised_from_six_and_half_of_the_larger_set_on(common, n, is_said):
    shared = [f"x{place}.png" for place in range(common)]
    more = [f"y{place}.png" for place in range(n - common)]
    assert bool(_instead({"a": with_ids(shared), "b": with_ids([*shared, *more])}, "prompt")) is is_said
    assert _instead({"a": with_ids(shared), "b": with_ids(shared)}, "id") == ""


def test_a_single_set_has_nothing_to_be_paired_with():
    needs_pairs("prompt")({"a": with_ids("abcdefg")})
    with pytest.raises(UsageError, match="prompt"):
        needs_pairs("prompt")({"a": with_ids("abcdefg"), "b": with_ids("abcdefg")})
    needs_pairs(None)({"a": with_ids("abcdefg"), "b": with_ids("abcdefg")})
