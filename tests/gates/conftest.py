"""Verdicts of releases that the tests of the gate share."""

from zlib import crc32

import _pictures
import pytest
from _quick import BOARDS, MAPS, quick
from _releases import release
from _stored import made_once

import finc_eval as fe


@pytest.fixture(scope="module", autouse=True)
def quick_results():
    with quick(BOARDS, MAPS):
        yield


@pytest.fixture(scope="session")
def sets():
    """A baseline, another draw of the same generator, and a reference."""
    return {"old": release(1600, 1), "same": release(1200, 2), "ref": release(1200, 3)}


@pytest.fixture(scope="session")
def policy():
    return fe.Policy.of({"kinds": {"lose": 0.5, "new": 0.02}})


@pytest.fixture(scope="session")
def passed(sets, policy, tmp_path_factory):
    with quick(BOARDS, MAPS):
        judge = lambda _: fe.gate(sets["same"], sets["old"], sets["ref"], policy)  # noqa: E731
        return made_once(tmp_path_factory, "a gate that passed", judge)


@pytest.fixture(scope="session")
def failed(sets, policy, tmp_path_factory):
    """The verdict of a release that has lost a kind and has a new one."""
    with quick(BOARDS, MAPS):
        new = release(1600, 4, lost=1, new=0.06)
        judge = lambda _: fe.gate(new, sets["old"], sets["ref"], policy)  # noqa: E731
        return made_once(tmp_path_factory, "a gate that failed", judge)


@pytest.fixture(scope="session")
def judged(tmp_path_factory):
    """Return a function of a change of pictures and a policy: the verdict, which is made once a run."""

    def of(change, policy):
        def judge(_):
            with quick(BOARDS, MAPS):
                return fe.gate(_pictures.release(3, change), _pictures.release(1), _pictures.release(2), policy)

        return made_once(tmp_path_factory, f"gate of {change.__name__} {crc32(repr(policy).encode())}", judge)

    return of
