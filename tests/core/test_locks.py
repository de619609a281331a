"""Locks of files: one holder at a time, and no lock file afterwards."""

import errno
import os
import threading
import time

import pytest

from finc_eval.core import storage as locks
from finc_eval.core.errors import DataError
from finc_eval.core.storage import after_other_writers_of, only_writer_of


def test_a_lock_has_one_holder_and_leaves_no_file(tmp_path):
    path = tmp_path / "x.h5"
    with only_writer_of(path):
        assert [file.name for file in tmp_path.iterdir()] == [".x.h5.lock"]
        with pytest.raises(DataError, match="is being written by another process"), only_writer_of(path):
            pass
    assert not list(tmp_path.iterdir())
    with only_writer_of(path):
        pass


def test_an_error_releases_the_lock(tmp_path):
    with pytest.raises(KeyError), after_other_writers_of(tmp_path / "x.h5"):
        raise KeyError
    assert not list(tmp_path.iterdir())


def test_those_who_wait_take_turns_though_each_holder_removes_the_lock_file(tmp_path):
    """Without the check that the locked file is still at its path, two of them would hold the lock at once."""
    inside, most, turns = [], [], []

    def work():
        for _ in range(30):
            with after_other_writers_of(tmp_path / "x.h5"):
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
    with only_writer_of(tmp_path / "x.h5"):
        pass
    assert not list(tmp_path.iterdir())


def test_a_long_wait_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "SILENT_SECONDS", 0.0)
    inside = threading.Event()

    def work():
        with only_writer_of(tmp_path / "x.h5"):
            inside.set()
            time.sleep(0.1)

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    with pytest.warns(UserWarning, match="another process holds"), after_other_writers_of(tmp_path / "x.h5"):
        pass
    thread.join()


def test_a_lock_in_a_folder_that_becomes_read_only_is_let_go_without_a_word(tmp_path, monkeypatch):
    def refused(self, **_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))

    with monkeypatch.context() as patch, only_writer_of(tmp_path / "x.h5"):
        patch.setattr("pathlib.Path.unlink", refused)
    with only_writer_of(tmp_path / "x.h5"):
        pass
    assert not list(tmp_path.iterdir())
