"""Planted kinds, comparisons that are checked to hold numbers in their ranges, and what must be found."""

import warnings
from math import isfinite

import numpy as np
import pytest

import finc_eval as fe

CENTERS = 6 * np.eye(5, 6)

#                    more            fewer           as many
GEN, REF = np.array([[0.40, 0.25, 0.05, 0.10, 0.20], [0.10, 0.05, 0.25, 0.40, 0.20]])


def normal(n, dim, seed=0):
    return np.random.default_rng(seed).standard_normal((n, dim)).astype(np.float32)


def draw(shares, n, seed, spread=0.3):
    """Five kinds; `spread` of all of them, or of each."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(5, n, p=shares)
    spreads = np.broadcast_to(spread, 5)[kinds, None]
    return (CENTERS[kinds] + spreads * rng.standard_normal((n, 6))).astype(np.float32)


def compared(gen, ref, **settings):
    """A comparison, checked to hold nothing but numbers in their ranges."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fe.compare(gen, ref, **{"features": 150, **settings})
    found.to_json()  # refuses NaN and infinity
    for kind in found.kinds:
        assert 0 <= kind.p_value <= 1 and kind.interval[0] <= kind.difference <= kind.interval[1]
        for share in kind.shares.values():
            assert 0 <= share.interval[0] <= share.share <= share.interval[1] <= 1
    if found.kinds:
        assert [sum(kind.shares[label].count for kind in found.kinds) for label in ("gen", "ref")] == [
            found.gen.n,
            found.ref.n,
        ]
        assert 0 <= found.explained <= found.difference <= 1
    for mode in found.directions:
        numbers = (mode.excess, *mode.interval, mode.standard_error, mode.fitted_excess)
        shares = (mode.mass_gen, mode.mass_ref, mode.p_value, mode.share_gen, mode.share_ref)
        intervals = (mode.share_gen_interval, mode.share_ref_interval, mode.share_difference_interval)
        assert all(isfinite(number) for number in numbers)
        assert all(0 <= share <= 1 for share in shares)
        assert mode.stability is None or 0 <= mode.stability <= 1
        assert mode.share_difference == pytest.approx(mode.share_gen - mode.share_ref)
        for value, (low, high) in zip((mode.share_gen, mode.share_ref, mode.share_difference), intervals, strict=True):
            assert low <= value <= high
        assert mode.interval[0] <= mode.excess <= mode.interval[1]
        assert np.isfinite(mode.direction).all()
        assert np.linalg.norm(mode.direction) == pytest.approx(1, abs=1e-4)
    assert np.isfinite([*found.spectrum.over, *found.spectrum.under]).all()
    return found


def differing(found):
    """The significant directions."""
    return [mode for mode in found.directions if mode.p_value <= 0.05]


def planted_kinds(found, scale=1.0):
    """The significant directions that show planted kinds: (role, kind) to (mass in gen, mass in ref)."""
    likeness = found.feature_map(scale * CENTERS).numpy() @ np.array([m.direction for m in differing(found)]).T
    kinds = (likeness**2).argmax(0)
    return {
        (mode.role, int(kind)): (mode.mass_gen, mode.mass_ref)
        for mode, kind in zip(differing(found), kinds, strict=True)
        if mode.excess > 0.03
    }


def check_planted(found, scale=1.0, tolerance=0.06):
    kinds = planted_kinds(found, scale)
    assert set(kinds) == {("over", 0), ("over", 1), ("under", 2), ("under", 3)}
    for (_, kind), masses in kinds.items():
        assert masses == pytest.approx((GEN[kind], REF[kind]), abs=tolerance)
    shares = np.array([kind.share_difference for kind in found.significant()])
    if found.kinds:  # a planted kind may lie in several
        assert (shares[shares > 0].sum(), shares[shares < 0].sum()) == pytest.approx((0.5, -0.5), abs=0.05)


def check_same_modes(mine, other, tolerance=1e-3):
    assert [kind.id for kind in mine.significant()] == [kind.id for kind in other.significant()]
    assert [mode.id for mode in differing(mine)] == [mode.id for mode in differing(other)]
    for one, same in zip(differing(mine), differing(other), strict=True):
        assert abs(float(one.direction @ same.direction)) > 0.999
        assert one.p_value == pytest.approx(same.p_value, abs=tolerance)
        assert one.excess == pytest.approx(same.excess, abs=tolerance)
