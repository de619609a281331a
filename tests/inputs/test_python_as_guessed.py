"""Calls that people guess work as they would think."""

import numpy as np
import pytest

import finc_eval as fe

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2, 300, 8)).astype(np.float32)
X[:60] += 6


@pytest.mark.long
def test_kinds_take_two_sets_as_compare_does():
    known = fe.kinds({"gen": X, "ref": Y})
    for found in (fe.kinds(X, Y), fe.kinds(X, ref=Y), fe.kinds({"gen": X}, Y), fe.kinds(X, Y, fe.KindSettings())):
        assert repr(found) == repr(known) and list(found.sets) == ["gen", "ref"]
    assert list(fe.kinds([X, Y], Y).sets) == ["set 1", "set 2", "ref"]
    assert repr(fe.kinds({"gen": X, "ref": Y}, fe.KindSettings())) == repr(known)
    with pytest.raises(fe.UsageError, match='called "ref" already'):
        fe.kinds({"gen": X, "ref": Y}, Y)
    with pytest.raises(fe.UsageError, match="list of sets, got ndarray"):
        fe.kinds(X)


@pytest.mark.parametrize(
    "make", [lambda: fe.kinds(X, Y), lambda: fe.compare(X, Y, features=100)], ids=["kinds", "compare"]
)
def test_a_frame_says_which_rows_are_significant(make):
    result = make()
    frame = result.to_frame()
    assert frame["significant"].tolist() == (frame["p_value"] <= 0.05).tolist()
    assert frame["significant"].sum() == len(result.significant()) > 0
