"""Verdicts of releases that the tests of the gate share."""

import pytest
from _quick import BOARDS, quick
from _releases import release

import finc_eval as fe


@pytest.fixture(scope="module", autouse=True)
def few_exchanges():
    with quick(BOARDS):
        yield


@pytest.fixture(scope="session")
def sets():
    """A baseline, another draw of the same generator, and a reference."""
    return {"old": release(1600, 1), "same": release(1200, 2), "ref": release(1200, 3)}


@pytest.fixture(scope="session")
def policy():
    return fe.Policy.of({"kinds": {"lose": 0.5, "new": 0.02}})


@pytest.fixture(scope="session")
def passed(sets, policy):
    with quick(BOARDS):
        return fe.gate(sets["same"], sets["old"], sets["ref"], policy)


@pytest.fixture(scope="session")
def failed(sets, policy):
    """The verdict of a release that has lost a kind and has a new one."""
    with quick(BOARDS):
        return fe.gate(release(1600, 4, lost=1, new=0.06), sets["old"], sets["ref"], policy)
