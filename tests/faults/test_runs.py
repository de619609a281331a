"""Runs that are killed, that find the disk full, and so on: a few here, all of them by benchmarks/broken_runs.py."""

import signal
import sys

import numpy as np
import pytest
from _turns import of_this_turn
from faults.runs import FAULTS, Runs, ended_well
from faults.steps import kill
from faults.verbs import SLOW, VERBS

from finc_eval.cli.app import VERBS as KNOWN

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, and counts steps as Linux has them")

WRITES_NOTHING = {"doctor"}
"""Verbs that write no files, and one whose downloads have their own tests."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return Runs(tmp_path_factory.mktemp("runs"), prepared=())


TRIALS = [(fault, verb) for fault in sorted(FAULTS.keys() - {"disk full"}) for verb in ("extract", "sketch")]
"""Each fault; it breaks each verb among the long tests."""

LIKE_OTHERS = {"permission denied", "folder becomes read-only", "killed at a moment"}
"""Faults that another of `make test` is like: a change of files that fails, and a kill at a change."""


@pytest.mark.by_turns(2)
@pytest.mark.parametrize(
    ("fault", "verb"),
    [
        pytest.param(*trial, marks=[pytest.mark.long] * (place % 4 in (1, 2) or trial[0] in LIKE_OTHERS))
        for place, trial in enumerate(TRIALS)  # verbs take turns
    ],
)
def test_a_broken_run_leaves_whole_files_alone_and_goes_on(runs, fault, verb):
    runs.trial(verb, fault, np.random.default_rng(1))


def test_a_file_that_is_not_written_whole_is_found(runs, monkeypatch):
    """The campaign itself: a program that copies its temporary file, and is killed in the middle."""

    def copy(temporary, target):
        target.write_bytes(temporary.read_bytes()[:500])
        kill()

    def killed_while_it_copies(runs, verb, whole, rng):
        with monkeypatch.context() as patch:
            patch.setattr("finc_eval.core.storage.Path.replace", copy)
            return ended_well("killed", runs.run(verb.words), -signal.SIGKILL)

    monkeypatch.setitem(FAULTS, "copies", killed_while_it_copies)
    with pytest.raises(AssertionError, match=r"sketch\.h5 is not whole"):
        runs.trial("sketch", "copies", np.random.default_rng(0))


@pytest.mark.long
def test_each_verb_that_writes_survives_a_kill(tmp_path):
    """A quarter of the verbs: four landings kill them all."""
    every = Runs(tmp_path)
    for number, name in of_this_turn(enumerate(sorted(VERBS.keys() - set(SLOW))), 4):
        every.trial(name, "killed at a change of files", np.random.default_rng(number))


def test_every_verb_that_writes_is_broken():
    known = {name for verbs in KNOWN.values() for name in verbs}
    assert {verb.words.split()[0] for verb in VERBS.values()} == known - WRITES_NOTHING
