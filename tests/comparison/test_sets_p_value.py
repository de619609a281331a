"""The test of the sets: a slight change of every sample is found and said, from arrays, pairs and sketches alike."""

from dataclasses import replace

import numpy as np
import pytest
from _pages import LESS, MORE, SAME, a_comparison

import finc_eval as fe
from finc_eval.comparison.sets_test import Separability
from finc_eval.naming.looks import LOOKS_ALPHA, Look

N, AXES, FEATURES, SLIGHT = 400, 16, 128, 0.12
BLURRED = Look(
    "blurred", False, "gen", 0.26, 0.01, 0.001, "sharpness", 1.0, 0.0, {"gen": ("1",), "ref": ("2",)}, (MORE.id,)
)
ALIKE = {"difference": 0.01, "difference_interval": (0.0, 0.04), "difference_p_value": 0.4, "detectable": None}


def rows(seed, n=N, shift=0.0):
    return (np.random.default_rng(seed).normal(size=(n, AXES)) + shift).astype(np.float32)


@pytest.fixture(scope="module")
def shifted():
    return fe.compare(rows(11, shift=SLIGHT), rows(12), features=FEATURES)


def test_a_slight_change_of_every_sample_is_found_and_said(shifted):
    assert shifted.sets_p_value <= 0.01 and not shifted.significant() and shifted.difference_p_value > 0.05
    assert "no kind does: everything may have changed a little" in shifted.headline
    assert "not more different" not in shifted.headline
    apart = shifted.separability
    # The best line between both laws is right for 59.5 of 100.
    assert apart.interval[0] <= 0.595 <= apart.interval[1] and 0.5 < apart.value < 0.65
    assert f"assigns {100 * apart.value:.0f} % [" in shifted.headline
    assert {label: len(one) for label, one in apart.surest.items()} == {"gen": 8, "ref": 8}


def test_sets_of_one_law_are_not_said_to_differ():
    found = fe.compare(rows(1), rows(2), features=FEATURES)
    assert found.sets_p_value > LOOKS_ALPHA and found.separability is None and found.looks == ()
    assert "not more different than" in found.headline


def test_it_is_the_same_each_time_and_comes_back_from_a_file(shifted, tmp_path):
    shifted.save(tmp_path / "found.h5")
    stored = fe.load(tmp_path / "found.h5")
    assert (stored.sets_p_value, stored.separability) == (shifted.sets_p_value, shifted.separability)
    again = fe.compare(rows(11, shift=SLIGHT), rows(12), features=FEATURES)
    assert again.sets_p_value == shifted.sets_p_value


def test_a_ratio_of_shares_has_no_test_of_the_sets():
    assert fe.compare(rows(11, shift=SLIGHT), rows(12), features=FEATURES, rho=2.0).sets_p_value is None


@pytest.mark.parametrize(("shift", "low", "high"), [(0.0, LOOKS_ALPHA, 1.0), (SLIGHT, 0.0, 0.01)])
def test_sketches_alone_are_tested_too(shift, low, high):
    gen, ref = rows(11, shift=shift), rows(12)
    reference = fe.Sketch.reference(ref, features=FEATURES)
    sketches = [fe.Sketch.of(one, reference.feature_map) for one in (gen, ref)]
    found = fe.compare(*sketches)
    assert low < found.sets_p_value <= high
    of_rows = fe.compare(gen, ref, features=FEATURES).sets_p_value
    assert found.sets_p_value == pytest.approx(of_rows, abs=0.1)


def test_frames_of_a_video_are_not_samples_of_their_own():
    rng = np.random.default_rng(0)
    sets = []
    for seed in (1, 2):
        frames = np.repeat(rows(seed, 30), 12, axis=0) + 0.2 * rng.normal(size=(360, AXES)).astype(np.float32)
        sets.append(fe.EmbeddingSet(frames, metadata={"video": [place // 12 for place in range(360)]}))
    assert fe.compare(*sets, features=FEATURES).sets_p_value <= 0.01  # as if all were independent
    assert fe.compare(*sets, features=FEATURES, groups="video").sets_p_value > LOOKS_ALPHA


@pytest.mark.parametrize(("shift", "low", "high"), [(0.0, LOOKS_ALPHA, 1.0), (0.1, 0.0, 0.01)])
def test_images_of_one_prompt_are_exchanged_with_those_of_the_same_prompt(shift, low, high):
    prompts = rows(5, 150)
    gen, ref = (prompts + 0.3 * rows(seed, 150, one) for seed, one in ((1, shift / 0.3), (2, 0.0)))
    sets = [fe.EmbeddingSet(one, metadata={"prompt": [f"p{k}" for k in range(150)]}) for one in (gen, ref)]
    paired = fe.compare(*sets, features=FEATURES, pairs="prompt")
    assert low < paired.sets_p_value <= high
    # Without the prompts, as slight a change is not seen.
    assert fe.compare(*sets, features=FEATURES, pairs=None).sets_p_value > LOOKS_ALPHA


def test_a_look_comes_first_and_its_kinds_are_not_told_again():
    told = a_comparison(kinds=[MORE, SAME], looks=(BLURRED,), **ALIKE).headline
    assert told.startswith("26 % of the generated set is blurred (1 % of the reference).")
    assert "largest difference" not in told and "not more different" not in told
    both = a_comparison(kinds=[MORE, LESS, SAME], looks=(BLURRED,)).headline
    assert f"The largest difference: {LESS.id}:" in both


def test_where_the_whole_set_looks_different_no_kind_is_named():
    darker = replace(BLURRED, name="darker", whole=True, kinds=())
    told = a_comparison(kinds=[MORE, LESS, SAME], looks=(darker,)).headline
    assert told.startswith("The whole generated set is darker.") and "largest difference" not in told


def test_a_classifier_that_may_guess_is_not_told():
    apart = Separability(0.53, (0.48, 0.58), {})
    told = a_comparison(kinds=[SAME], sets_p_value=0.01, separability=apart, **ALIKE).headline
    assert told == (
        "The sets differ (p = 0.01), but no kind does: everything may have changed a little, or a kind that is too "
        "rare to be found."
    )
