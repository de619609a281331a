"""The test of the sets: a slight change of every sample is found and said, from arrays, pairs and sketches alike."""

from math import inf, nan
from types import SimpleNamespace

import numpy as np
import pytest

import finc_eval as fe
from finc_eval.comparison.sets_test import read_law
from finc_eval.numerics.inference import BESIDE_ALPHA

N, AXES, FEATURES, SLIGHT = 400, 16, 128, 0.12
ALONE = fe.Finc(clusters=False)


def rows(seed, n=N, shift=0.0):
    return (np.random.default_rng(seed).normal(size=(n, AXES)) + shift).astype(np.float32)


@pytest.fixture(scope="module")
def shifted():
    return fe.compare(rows(11, shift=SLIGHT), rows(12), features=FEATURES)


def test_a_slight_change_of_every_sample_is_found_and_said(shifted):
    assert shifted.sets_p_value <= 0.01 and not shifted.significant() and shifted.difference_p_value > 0.05
    assert "no kind does: what differs has no name, such as many small changes" in shifted.headline
    assert "sets do not differ" not in shifted.headline
    apart = shifted.separability
    # The best line between both laws is right for 59.5 of 100.
    assert apart.interval[0] <= 0.595 <= apart.interval[1] and 0.5 < apart.value < 0.65
    assert f"assigns {100 * apart.value:.0f} % [" in shifted.headline
    assert {label: len(one) for label, one in apart.surest.items()} == {"gen": 8, "ref": 8}


def test_sets_of_one_law_are_not_said_to_differ():
    found = fe.compare(rows(1), rows(2), features=FEATURES)
    assert found.sets_p_value > BESIDE_ALPHA and found.separability is None and found.looks == ()
    assert found.headline.startswith("The sets do not differ significantly. A lost class of ")
    assert found.visible.blurred is None and found.visible.lost > found.detectable and found.visible.copies > 0


def test_it_is_the_same_each_time_and_comes_back_from_a_file(shifted, tmp_path):
    shifted.save(tmp_path / "found.h5")
    stored = fe.load(tmp_path / "found.h5")
    assert (stored.sets_p_value, stored.separability) == (shifted.sets_p_value, shifted.separability)
    again = fe.compare(rows(11, shift=SLIGHT), rows(12), features=FEATURES, method=ALONE)
    assert again.sets_p_value == shifted.sets_p_value


def test_a_ratio_of_shares_has_no_test_of_the_sets():
    assert fe.compare(rows(11, shift=SLIGHT), rows(12), features=20, rho=2.0, method=ALONE).sets_p_value is None


@pytest.mark.one_of_each
@pytest.mark.parametrize(("shift", "low", "high"), [(0.0, BESIDE_ALPHA, 1.0), (SLIGHT, 0.0, 0.01)])
def test_sketches_alone_are_tested_too(shift, low, high):
    gen, ref = rows(11, shift=shift), rows(12)
    reference = fe.Sketch.reference(ref, features=FEATURES)
    sketches = [fe.Sketch.of(one, reference.feature_map) for one in (gen, ref)]
    found = fe.compare(*sketches, method=ALONE)
    assert low < found.sets_p_value <= high
    of_rows = fe.compare(gen, ref, features=FEATURES, method=ALONE).sets_p_value
    assert found.sets_p_value == pytest.approx(of_rows, abs=0.1)


@pytest.mark.long
def test_frames_of_a_video_are_not_samples_of_their_own():
    rng = np.random.default_rng(0)
    sets = []
    for seed in (1, 2):
        frames = np.repeat(rows(seed, 30), 12, axis=0) + 0.2 * rng.normal(size=(360, AXES)).astype(np.float32)
        sets.append(fe.EmbeddingSet(frames, metadata={"video": [place // 12 for place in range(360)]}))
    assert fe.compare(*sets, features=FEATURES).sets_p_value <= 0.01  # as if all were independent
    assert fe.compare(*sets, features=FEATURES, groups="video").sets_p_value > BESIDE_ALPHA


@pytest.mark.parametrize(
    ("shift", "low", "high"), [pytest.param(0.0, BESIDE_ALPHA, 1.0, marks=pytest.mark.long), (0.1, 0.0, 0.01)]
)
def test_images_of_one_prompt_are_exchanged_with_those_of_the_same_prompt(shift, low, high):
    prompts = rows(5, 150)
    gen, ref = (prompts + 0.3 * rows(seed, 150, one) for seed, one in ((1, shift / 0.3), (2, 0.0)))
    sets = [fe.EmbeddingSet(one, metadata={"prompt": [f"p{k}" for k in range(150)]}) for one in (gen, ref)]
    paired = fe.compare(*sets, features=FEATURES, pairs="prompt", method=ALONE)
    assert low < paired.sets_p_value <= high
    # Without the prompts, as slight a change is not seen.
    assert fe.compare(*sets, features=FEATURES, pairs=None, method=ALONE).sets_p_value > BESIDE_ALPHA


@pytest.mark.parametrize(
    ("header", "units"), [({}, inf), ({"law_units": 8.0}, 8.0), ({"law_units": 7.9}, None), ({"law_units": nan}, None)]
)
def test_a_law_of_an_older_file_has_no_number_of_units_and_a_law_of_too_few_is_refused(header, units):
    file = SimpleNamespace(header={"law": [1.0, 0.5], **header}, array=lambda *_, **__: np.zeros(3))
    if units is None:
        with pytest.raises(ValueError, match="too few units"):
            read_law(file)
    else:
        assert read_law(file).units == units
