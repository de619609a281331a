"""Locks of files: one holder at a time, and no lock file afterwards."""

import threading
import time

import pytest

from finc_eval.core.locks import HeldByAnother, held


def test_a_lock_has_one_holder_and_leaves_no_file(tmp_path):
    path = tmp_path / "x.h5"
    with held(path):
        assert [file.name for file in tmp_path.iterdir()] == [".x.h5.lock"]
        with pytest.raises(HeldByAnother), held(path, wait=False):
            pass
    assert not list(tmp_path.iterdir())
    with held(path, wait=False):
        pass


def test_an_error_releases_the_lock(tmp_path):
    with pytest.raises(KeyError), held(tmp_path / "x.h5"):
        raise KeyError
    assert not list(tmp_path.iterdir())


def test_those_who_wait_take_turns_though_each_holder_removes_the_lock_file(tmp_path):
    """Without the check that the locked file is still at its path, two of them would hold the lock at once."""
    inside, most, turns = [], [], []

    def work():
        for _ in range(30):
            with held(tmp_path / "x.h5"):
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.0002)
                inside.pop()
            turns.append(1)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(turns) == 180 and max(most) == 1
    assert not list(tmp_path.iterdir())


def test_a_lock_file_that_a_kill_left_is_no_obstacle(tmp_path):
    (tmp_path / ".x.h5.lock").touch()
    with held(tmp_path / "x.h5", wait=False):
        pass
    assert not list(tmp_path.iterdir())
