"""A fixture that makes audits quick, for tests that do not look at the membership-inference score."""

import pytest

from finc_eval.memorization import attacks


@pytest.fixture(scope="module")
def few_permutations():
    """Nine permutations behind the score, which takes half of a small audit's time; test_attacks has all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attacks, "PERMUTATIONS", 9)
        yield
