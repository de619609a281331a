"""A watermark has an alarm by its own name: what pictures of an evaluation share at the same places."""

import numpy as np
import pytest
from PIL import Image, ImageFilter

import finc_eval as fe
from finc_eval.demo.planted import shipped_digits
from finc_eval.naming.texture import shared_marks

STEPS, CHANGE = 8, 3


def pictures(rng, count, mark=None):
    """Smooth random pictures in color, 32 × 32 pixels, with a mark added to each."""
    found = []
    for _ in range(count):
        small = Image.fromarray(rng.integers(0, 256, (8, 8, 3), np.uint8)).resize((32, 32), Image.Resampling.BICUBIC)
        values = np.asarray(small.filter(ImageFilter.GaussianBlur(1)), float) + rng.normal(0, 3, (32, 32, 1))
        if mark is not None:
            shape, strength = mark
            values = values * (1 - strength * shape) + 255 * strength * shape
        found.append(Image.fromarray(values.clip(0, 255).astype(np.uint8)))
    return found


def text(rows, columns):
    """A mark of strokes: every third pixel of a box."""
    shape = np.zeros((32, 32, 1))
    shape[rows, columns][::3] = 1
    return shape


MARKS = {
    "at a corner": (text(np.s_[20:30], np.s_[18:30]), 0.5),
    "in the middle": (text(np.s_[10:22], np.s_[8:24]), 0.4),
    "at the top": (text(np.s_[2:8], np.s_[4:28]), 0.5),
}


@pytest.mark.parametrize("case", MARKS)
def test_a_watermark_in_all_pictures_is_the_first_alarm(case):
    rng = np.random.default_rng(0)
    monitor = follow(
        pictures(rng, 120), [pictures(rng, 40, MARKS[case] if step >= CHANGE else None) for step in range(STEPS)]
    )
    assert monitor.findings[0].name == "more clearly watermarked"
    assert len(monitor.alarms) <= 2 and all(alarm.since >= CHANGE for alarm in monitor.alarms)


def test_pictures_that_are_aligned_have_no_mark():
    images, labels = shipped_digits()
    ones, rest = (np.flatnonzero((labels == 1) == is_one) for is_one in (True, False))
    rng = np.random.default_rng(0)
    drawn = [
        rng.permutation(np.r_[ones[:20], rest])[:40] if step < CHANGE else rng.permutation(rest)[:40]
        for step in range(STEPS)
    ]
    monitor = follow(
        [Image.fromarray(images[row]) for row in rng.permutation(len(images))[:120]],
        [[Image.fromarray(images[row]) for row in rows] for rows in drawn],
    )
    assert not monitor.history.is_followed[monitor.names.index("mark")]


def follow(reference, evaluations):
    monitor = fe.Monitor(as_set(reference))
    for step, images in enumerate(evaluations):
        monitor.update(step, as_set(images))
    return monitor


def as_set(images):
    small = [np.asarray(one.convert("RGB").resize((4, 4), Image.Resampling.BOX), np.float32).ravel() for one in images]
    return fe.EmbeddingSet(np.stack(small) / 255, images=images)


def test_units_share_the_mean_product_of_their_residuals():
    residuals = np.random.default_rng(0).integers(-127, 128, (3, 4, 50)).astype(np.int8)
    own = residuals / 127
    expected = [np.mean([unit[i] @ unit[j] for i in range(4) for j in range(i)]) for unit in own]
    assert shared_marks(residuals) == pytest.approx(expected, abs=1e-4)
