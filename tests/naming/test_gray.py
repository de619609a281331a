"""What counts as gray: a table of pictures in color and without, as generators and codecs leave them."""

import io

import numpy as np
import pytest
from _runs_of_scenes import noise, scenes
from PIL import Image, ImageEnhance

from finc_eval.demo.planted import shipped_digits
from finc_eval.naming.traits import TRAITS, measure_looks

PLACE = [one.name for one in TRAITS].index("gray")
SCENES = scenes(30)
DIGITS = [np.repeat(one[..., None], 3, -1) for one in shipped_digits()[0][:30]]
GRAY_SCENES = [np.asarray(Image.fromarray(one).convert("L").convert("RGB")) for one in SCENES]


def coded(pictures):
    found = []
    for one in pictures:
        stored = io.BytesIO()
        Image.fromarray(one).save(stored, "JPEG", quality=60)
        found.append(np.asarray(Image.open(stored)))
    return found


def paler(pictures, factor):
    return [np.asarray(ImageEnhance.Color(Image.fromarray(one)).enhance(factor)) for one in pictures]


@pytest.mark.parametrize("made", [DIGITS, GRAY_SCENES], ids=["digits", "scenes"])
@pytest.mark.parametrize(
    "change",
    [lambda some: some, lambda some: noise(some, 1), lambda some: noise(some, 4), coded],
    ids=["as it is", "noise of 1/255", "noise of 4/255", "JPEG"],
)
def test_gray_pictures_stay_gray_under_what_nobody_sees(made, change):
    assert measured(change(made)).all()


@pytest.mark.parametrize(
    "change", [lambda some: some, lambda some: noise(some, 4), coded, lambda some: paler(some, 0.5)]
)
def test_pictures_in_color_are_not_gray(change):
    assert not measured(change(SCENES)).any()


@pytest.mark.parametrize("paint", [(255, 0, 0), (255, 200, 160), (150, 150, 255)], ids=["red", "skin", "pale blue"])
def test_digits_in_one_color_are_not_gray(paint):
    assert not measured([np.rint(one / 255 * np.array(paint)).astype(np.uint8) for one in DIGITS]).any()


def measured(pictures):
    return measure_looks([Image.fromarray(one) for one in pictures])[0][:, PLACE].astype(bool)
