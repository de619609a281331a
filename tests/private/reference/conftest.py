"""Digits of owners and generators, and the transform of the public ones."""

import pytest

from finc_eval.privacy import PublicTransform


@pytest.fixture(scope="session")
def sets(digits):
    """Disjoint digits: public, private, and two generated sets, the second without sevens; and the private labels."""
    images, labels = digits
    rest, kinds = images[2500:], labels[2500:]
    return images[:1000], images[1000:2500], rest, rest[kinds != 7], labels[1000:2500]


@pytest.fixture(scope="session")
def transform(sets):
    return PublicTransform.fit(sets[0], 10)
