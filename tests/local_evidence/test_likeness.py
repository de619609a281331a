"""Likeness of pictures to themselves."""

import numpy as np
import pytest
from PIL import Image

from finc_eval.naming.likeness import LIKENESS, measure_likeness

RNG = np.random.default_rng(0)
HALF, WHOLE = RNG.integers(0, 256, (64, 32), np.uint8), RNG.integers(0, 256, (64, 64), np.uint8)


@pytest.mark.parametrize(
    ("place", "pixels"),
    [
        (0, np.hstack([HALF, HALF[:, ::-1]])),
        (1, np.hstack([HALF, HALF[:, ::-1]]).T),
        (2, np.hstack([HALF, HALF[::-1, ::-1]])),
        (3, np.hstack([HALF, HALF])),
        (4, np.hstack([HALF, HALF]).T),
    ],
)
def test_each_likeness_is_one_where_it_is_planted_and_nowhere_else(place, pixels):
    found = measure_likeness(Image.fromarray(pixels))
    assert found[place] == pytest.approx(1, abs=0.03)
    assert np.abs(np.delete(found, place)).max() < 0.2
    assert len(found) == len(LIKENESS)


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (640, 48), (28, 28)])
def test_any_size_has_a_likeness(size):
    pixels = RNG.integers(0, 256, size[::-1], np.uint8)
    assert np.isfinite(measure_likeness(Image.fromarray(pixels))).all()


def test_blank_pictures_are_not_like_themselves():
    assert not measure_likeness(Image.new("RGB", (64, 64), "red")).any()
