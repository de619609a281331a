"""Looks of pairs that need several pictures, or that nearly all pairs have."""

import numpy as np
import pytest
from PIL import Image

import finc_eval as fe
from finc_eval.naming import measured as measured_sets
from finc_eval.naming import traits
from finc_eval.same_ids import pair_looks

N = 60


def drawn(seed):
    rng = np.random.default_rng(seed)
    small = [Image.fromarray(one) for one in rng.integers(40, 200, (N, 8, 8, 3), np.uint8)]
    return [np.asarray(one.resize((48, 48), Image.Resampling.BICUBIC), float) for one in small]


def as_set(pictures):
    images = [Image.fromarray(one.clip(0, 255).astype(np.uint8)) for one in pictures]
    small = [np.asarray(one.resize((6, 6), Image.Resampling.BOX), np.float32).ravel() for one in images]
    return fe.EmbeddingSet(np.stack(small) / 255, images=images)


def stamped(picture, rows, columns, strength=0.5):
    marked = picture.copy()
    marked[rows, columns][::3] = (1 - strength) * marked[rows, columns][::3] + strength * 255
    return marked


MARK = "more clearly watermarked"
CASES = {
    "a watermark at a corner": (lambda one: stamped(one, np.s_[34:44], np.s_[28:44]), MARK),
    "a watermark in the middle": (lambda one: stamped(one, np.s_[18:30], np.s_[12:36]), MARK),
    "gray pictures": (lambda one: one.mean(-1, keepdims=True).repeat(3, -1), "gray, without color"),
    "a tint": (lambda one: one * [1.2, 1, 0.7], "redder, of a warmer tint"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_look_of_all_pairs_is_the_first_finding(case):
    change, name = CASES[case]
    before = drawn(0)
    result = fe.compare(as_set([*map(change, before)]), as_set(before), pairs="id", features=20)
    assert result.findings[0].name == name


def test_the_looks_of_a_picture_are_measured_once_for_its_set_and_its_pair(monkeypatch):
    measured, measure = [], traits.measure_looks

    def counted(images):
        measured.append(len(images))
        return measure(images)

    for module in (measured_sets, pair_looks):
        monkeypatch.setattr(module, "measure_looks", counted)
    before = drawn(0)
    gray = [one.mean(-1, keepdims=True).repeat(3, -1) for one in before]
    found = fe.compare(as_set(gray), as_set(before), pairs="id", features=20, modes=1)
    assert sum(measured) == 2 * N
    assert found.by_id.findings[0].name == "gray, without color"


@pytest.mark.parametrize("axis", [0, 1])
def test_a_run_that_motion_blurs_is_worse_though_streaks_are_not_bad(axis):
    rng = np.random.default_rng(3)
    before = [one + 12 * rng.normal(size=(48, 48, 1)) for one in drawn(0)]  # with details to be blurred
    moved = [np.mean([np.roll(one, step, axis) for step in (-1, 0, 1)], 0) for one in before]
    found = fe.compare(as_set(moved), as_set(before), pairs="id", features=20, modes=1).by_id
    assert "blurrier" in {margin.name for margin in found.worse}
    (cause,) = [finding for finding in found.findings if "blurrier" in (finding.name, *finding.explains)]
    assert cause.name.startswith("more streaked") and cause.is_worse
    assert cause.name in found.clauses["worse"]
