"""Copies of the reference in a release: verbatim, nearly verbatim, and none among fresh samples of one law."""

from math import floor

import numpy as np
import pytest
from _releases import release
from _said import values

import finc_eval as fe
from finc_eval.gates.first_policy import first_policy
from finc_eval.gates.policy import Policy

N, COPIED = 400, 120


def with_copies(noise):
    rows, ref = release(N, 1), release(N, 3)
    rows[:COPIED] = ref[:COPIED] + noise * np.random.default_rng(0).normal(size=(COPIED, 16)).astype(np.float32)
    return rows


CASES = [(0.0, "regressed", 0.3), (1e-3, "regressed", 0.262), (0.2, "regressed", 0.262), (1.0, "held", 0.0)]


@pytest.mark.parametrize(("noise", "verdict", "share"), CASES)
def test_copies_fail_as_far_as_they_are_nearly_verbatim(noise, verdict, share):
    """Of near copies, the share is a least share."""
    found = fe.gate(with_copies(noise), release(N, 2), release(N, 3), {"basics.copies": 0.01})
    (limit,) = found.limits
    assert limit.verdict == verdict and limit.value == pytest.approx(share, abs=0.01)
    said = {key: values(one) for key, one in found.headline_parts.items()}
    least = floor(1000 * limit.value + 1e-9) / 10
    assert said == ({"failed 1": f"{least:.1f} 0.0 1"} if verdict == "regressed" else {"held": ""})
    assert ("at least" in str(found.headline_parts)) == (verdict == "regressed" and noise > 0)


def test_the_first_policy_limits_copies_and_takes_what_the_baseline_has_as_given(tmp_path):
    (tmp_path / "gate.toml").write_text(first_policy([release(N, 2)], release(N, 3)))
    assert Policy.of(tmp_path / "gate.toml").basics.copies == 0.01
    (tmp_path / "gate.toml").write_text(first_policy([with_copies(0.0)], release(N, 3)))
    assert Policy.of(tmp_path / "gate.toml").basics.copies == pytest.approx(0.45)
