"""Which of several looks names a cause, where some of them are gained and others are lost."""

from dataclasses import replace

import numpy as np
import pytest

from finc_eval.naming.explained import Explained, name_cause
from finc_eval.naming.traits import TRAITS

ORDER = [trait.name for trait in TRAITS]


def a_look(name, z, more_in, *, whole=False):
    trait = next(one for one in TRAITS if one.name == name)
    order = {"gen": np.ones(20), "ref": np.zeros(20)}
    return Explained(
        trait, z, whole, more_in, name, order if more_in == "gen" else {"gen": np.zeros(20), "ref": np.ones(20)}, 0.5
    )


@pytest.mark.parametrize("clearest", ["noise", "frame"])
def test_noise_that_ends_frames_is_the_cause_however_clear_either_is(clearest):
    noise, frame = a_look("noise", 20.0, "gen", whole=True), a_look("frame", -22.0, "ref")
    found = [noise, frame] if clearest == "noise" else [frame, noise]
    assert name_cause(found, ORDER).trait.name == "noise"


def test_frames_that_come_name_the_noise_that_they_bring_and_dark_pictures_end_none():
    frame, noise = a_look("frame", 22.0, "gen"), a_look("noise", 20.0, "gen")
    assert name_cause([noise, frame], ORDER).trait.name == "frame"
    lost, dark = a_look("frame", -22.0, "ref"), a_look("brightness", -20.0, "gen", whole=True)
    assert name_cause([lost, dark], ORDER).trait.name == "frame"
    assert not replace(noise, more_in="ref").ends(lost)
