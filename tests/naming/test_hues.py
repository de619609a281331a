"""The share of each color in a picture, from which traits of kinds such as “redder” are."""

import numpy as np
import pytest
from PIL import Image

from finc_eval.naming.questions import HUES, MEASURED, measure

COLORS = {
    "red": [(255, 0, 0), (200, 20, 60), (255, 40, 0)],
    "yellow": [(255, 128, 0), (255, 255, 0)],
    "green": [(128, 255, 0), (0, 255, 0), (0, 255, 160)],
    "blue": [(0, 255, 255), (0, 0, 255), (30, 0, 255)],
    "purple": [(128, 0, 255), (255, 0, 255), (255, 0, 128)],
    "none": [(128, 128, 128), (0, 0, 0), (255, 255, 255), (110, 100, 100), (30, 0, 0)],
}
"""Colors of pixels by the name of their hue; gray, black and pale pixels have none."""


def shares(pixels):
    """Return the share of each hue in a picture of these pixels."""
    image = Image.fromarray(np.array(pixels, np.uint8).reshape(1, -1, 3)).resize((64, 64), Image.Resampling.NEAREST)
    return dict(zip(MEASURED, measure(image), strict=True))


@pytest.mark.parametrize("hue", COLORS)
def test_a_picture_of_a_color_has_the_hue_of_it_and_no_other(hue):
    for color in COLORS[hue]:
        found = shares([color])
        assert {name: found[name] for name in HUES} == {name: float(name == hue) for name in HUES}, color


def test_each_hue_has_the_share_of_its_pixels():
    found = shares([COLORS["red"][0]] * 4 + [COLORS["blue"][1]] * 2 + [COLORS["purple"][1]] + [COLORS["none"][0]])
    expected = {"red": 1 / 2, "yellow": 0, "green": 0, "blue": 1 / 4, "purple": 1 / 8}
    assert {name: found[name] for name in HUES} == pytest.approx(expected)
