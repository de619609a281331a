"""Comparisons of sets whose samples are grouped by a column of metadata."""

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.comparison.inputs import open_inputs
from finc_eval.core.errors import UsageError
from finc_eval.core.run import Run

SETTINGS = fe.Settings(features=20, modes=2, groups="clip", method=fe.Finc(clusters=False))


def frames(seed: int, n: int = 120, column: str = "clip"):
    rows = np.random.default_rng(seed).normal(size=(n, 4)).astype(np.float32)
    return fe.EmbeddingSet(rows, metadata={column: [row // 3 for row in range(n)]})


def test_a_comparison_groups_by_a_column_and_says_so_in_its_signature():
    found = fe.compare(frames(0), frames(1), SETTINGS)
    assert found.settings.groups == "clip"
    assert dict(found.signature.fields)["groups"] == "clip"
    alone = fe.compare(frames(0), frames(1), SETTINGS, groups=None)
    assert "groups" not in dict(alone.signature.fields)


def test_a_set_without_the_column_keeps_every_sample_for_itself():
    opened, _ = open_inputs({"gen": frames(0), "ref": frames(1, column="label")}, SETTINGS, Run())
    assert len(np.unique(opened["gen"].group_hashes())) == 40 and opened["ref"].group_hashes() is None
    found = fe.compare(frames(0), frames(1, column="label"), SETTINGS)
    assert dict(found.signature.fields)["groups"] == "clip/none"


def test_a_sketch_brings_its_groups():
    sketch = fe.Sketch.reference(frames(1), features=20, groups="clip")
    found = fe.compare(frames(0), sketch, SETTINGS)
    assert dict(found.signature.fields)["groups"] == "clip"


def test_a_column_that_no_set_has_is_refused():
    with pytest.raises(UsageError, match=r"none of gen, ref has the column 'clop'.*did you mean .clip.*they have clip"):
        fe.compare(frames(0), frames(1), features=20, groups="clop")
    with pytest.raises(UsageError, match=r"as a column of a file metadata\.csv"):
        fe.compare(np.zeros((50, 4)), np.zeros((50, 4)), groups="clip")


def test_sweeps_group_too():
    for parameter, values in (("sigma", [1.0]), ("rho", [1.0])):
        sweep = fe.sweep(frames(0), frames(1), parameter, values, SETTINGS)
        assert dict(sweep.points[0].comparison.signature.fields)["groups"] == "clip"


def test_exact_repeats_are_counted_once_and_near_repeats_are_named():
    rows = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
    ref = np.random.default_rng(1).normal(size=(300, 4)).astype(np.float32)
    copied = fe.compare(np.repeat(rows[:60], 5, 0), ref, SETTINGS, groups=None)
    assert any("gen has only 60 distinct samples among 300" in warning for warning in copied.warnings)
    assert dict(copied.signature.fields)["groups"] == "exact repeats/none"
    near = np.repeat(rows[:150], 2, 0) + np.float32(0.001) * rows
    found = fe.compare(near, ref, SETTINGS, groups=None)
    assert any("have a near-copy in gen" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("call", "distinct"), [(fe.compare, 3), (lambda gen, ref, **_: fe.kinds({"gen": gen, "ref": ref}), 2)]
)
def test_a_set_that_repeats_hardly_any_samples_is_not_tested(call, distinct):
    rng = np.random.default_rng(0)
    few, ref = rng.normal(size=(20, 4)), rng.normal(size=(300, 4)).astype(np.float32)
    gen = few[[3, 17, 5][:distinct] * (300 // distinct)].astype(np.float32)
    found = call(gen, ref, features=20)
    assert not found.significant() and {kind.p_value for kind in found.kinds} <= {1.0}
    assert {mode.p_value for mode in getattr(found, "directions", ())} <= {1.0}
    (note,) = [note for note in found.warnings if "nothing is tested" in note]
    assert f"repeat so few that they are equivalent to {distinct} independent samples" in note


def test_directions_against_a_reference_of_few_distinct_samples_are_not_tested():
    rng = np.random.default_rng(0)
    few, gen = rng.normal(size=(13, 4)) + 3, rng.normal(size=(300, 4))
    ref = few[[0] * 240 + [*range(1, 13)] * 5].astype(np.float32)  # worth 1.6 independent samples
    found = fe.compare(gen, ref, features=50, sigma=2.0, method=fe.Finc(clusters=False))
    assert found.directions and {mode.p_value for mode in found.directions} == {1.0}
    assert (found.tested, found.kinds_tested) == (0, 0) and "No kind of samples was tested" in found.headline
    for mode in found.directions:
        assert mode.share_ref_interval == (0, 1) and mode.interval == (-1, 1)
        assert mode.share_difference_interval[0] <= 0 <= mode.share_difference_interval[1]


def test_a_collapsed_generator_is_a_finding():
    rng = np.random.default_rng(0)
    few, ref = rng.normal(size=(13, 4)) + 3, rng.normal(size=(300, 4))
    gen = few[[0] * 240 + [*range(1, 13)] * 5].astype(np.float32)
    found = fe.compare(gen, ref, method="clusters", features=50)
    assert "80 % of the generated set is one sample, 240 times (reference 0 %)." in found.headline
    largest = max(found.significant(), key=lambda kind: kind.share_gen)
    assert largest.share_gen >= 0.8 > 0.01 > largest.share_ref and largest.p_value < 1e-6
    assert set(largest.shares["gen"].top) <= set(range(240))


def test_a_set_whose_few_distinct_samples_lie_in_one_half_is_refused():
    rng = np.random.default_rng(0)
    few, ref = rng.normal(size=(20, 4)), rng.normal(size=(300, 4))
    with pytest.raises(fe.DataError, match="the 300 samples of gen repeat so few that one half of these has hardly"):
        fe.compare(few[[3, 17] * 150].astype(np.float32), ref, features=20)


def test_the_sample_of_a_sketch_shows_that_repeats_are_draws_of_a_discrete_law():
    atoms = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    gen, ref = (atoms[np.random.default_rng(seed).integers(30, size=300)] for seed in (1, 2))
    found = fe.compare(gen, fe.Sketch.reference(ref, features=20), modes=2)
    assert any("gen has only 30 distinct samples" in note and "count as independent" in note for note in found.warnings)
    assert "groups" not in dict(found.signature.fields)


def test_too_few_groups_to_cut_a_set_in_two_are_refused():
    one = fe.EmbeddingSet(np.random.default_rng(0).normal(size=(50, 4)), metadata={"clip": ["a"] * 50})
    with pytest.raises(fe.DataError, match="the 50 samples of gen lie in too few groups by clip"):
        fe.compare(one, frames(1), SETTINGS)


def test_groups_that_are_worth_few_independent_samples_give_a_warning():
    sizes = [*range(70), *[70] * 50]  # M = 21.4
    rows = np.random.default_rng(0).normal(size=(120, 4)).astype(np.float32)
    found = fe.compare(fe.EmbeddingSet(rows, metadata={"clip": sizes}), frames(1), SETTINGS)
    (note,) = [note for note in found.warnings if "independent samples" in note]
    assert note.startswith("the groups of gen are so few or so large that its 120 samples are equivalent to 6 ")


@pytest.mark.parametrize(
    ("metadata", "note"),
    [
        ({"other": range(300)}, "gen has no column 'clip': each of its samples is taken for a group of its own"),
        ({"clip": [""] * 300}, "all 300 samples of gen have no value in the column 'clip': each of them"),
        ({"clip": ["", *range(299)]}, "1 of the 300 samples of gen have no value in the column 'clip': each of them"),
    ],
)
def test_samples_without_a_group_give_a_warning(metadata, note):
    rows = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
    found = fe.compare(fe.EmbeddingSet(rows, metadata=metadata), frames(1), SETTINGS)
    assert [one for one in found.warnings if one.startswith(note)]


VERBS = {
    "compare": lambda gen, ref, groups: fe.compare(gen, ref, features=20, modes=2, groups=groups),
    "sweep": lambda gen, ref, groups: fe.sweep(gen, ref, "rho", [1], features=20, modes=2, groups=groups),
    "kinds": lambda gen, ref, groups: fe.kinds({"gen": gen, "ref": ref}, groups=groups),
    "leaderboard": lambda gen, ref, groups: fe.leaderboard({"gen": gen}, ref, metrics=["fd"], groups=groups),
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_opens_groups_by_one_rule(verb):
    run, other = VERBS[verb], frames(1, column="label")
    note = "ref has no column 'clip': each of its samples is taken for a group of its own"
    assert note in run(frames(0), other, "clip").warnings
    assert not any("column" in line for line in run(frames(0), frames(1), "clip").warnings)
    with pytest.raises(UsageError, match=r"none of gen, ref has the column 'clop'.*they have clip"):
        run(frames(0), frames(1), "clop")


def test_a_gate_refuses_a_set_without_the_groups_of_its_policy():
    policy = {"groups": "clip", "kinds": {"lose": 0.5}}
    with pytest.raises(UsageError, match="has no column 'clip'"):
        fe.gate(frames(0), frames(1, column="label"), frames(2), policy)


def test_a_pairing_by_prompt_is_not_told_to_name_groups():
    """Four near-copies of each of 40 prompts are images of one prompt, which the pairing knows."""
    rng = np.random.default_rng(0)
    middles = rng.normal(size=(40, 8)) * 9
    prompts = [f"prompt {number}" for number in range(40) for _ in range(4)]
    sets = [
        fe.EmbeddingSet(np.repeat(middles, 4, 0) + rng.normal(size=(160, 8)) * s, metadata={"prompt": prompts})
        for s in (0.01, 1)
    ]
    alone, paired = (fe.compare(*sets, SETTINGS, groups=None, pairs=pairs) for pairs in (None, "prompt"))
    assert any("near-copy" in one for one in alone.warnings)
    assert not any("near-copy" in one for one in paired.warnings)
