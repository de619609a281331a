"""Runs of a benchmark go on where a design draws sets that the tool refuses."""

import _runs
import pytest

from finc_eval.core.errors import DataError


def test_sets_that_are_refused_are_drawn_again_from_another_seed():
    def one(regime, seed):
        if seed < _runs.NEXT_SEED:
            raise DataError("the samples lie in too few groups")
        return {"seed it used": seed}

    figures = _runs.timed(one, "powers", 7)
    assert figures["seed it used"] == 7 + _runs.NEXT_SEED


def test_a_design_whose_sets_are_always_refused_is_an_error():
    def one(regime, seed):
        raise DataError("the samples lie in too few groups")

    with pytest.raises(RuntimeError, match="the sets of powers were refused 10 times from seed 7 on"):
        _runs.timed(one, "powers", 7)
