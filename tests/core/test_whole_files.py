"""Files that are written whole, alone and together, and what kills leave of them."""

import signal
import threading

import pytest
from _forks import killed_after

from finc_eval.core.errors import DataError
from finc_eval.core.storage import only_writer_of, write_text, write_together, write_whole

FILES = ("comparison.h5", "comparison.json", "comparison.html")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write_set(folder, text):
    with write_together():
        for name in FILES:
            write_text(folder / name, text)


def texts(folder):
    return {path.name: path.read_text() for path in folder.iterdir() if not path.name.startswith(".")}


def test_files_that_are_write_together_appear_together(tmp_path):
    with write_together():
        write_text(tmp_path / "a", "first")
        write_text(tmp_path / "b", "second")
        write_text(tmp_path / "a", "third")
        assert not texts(tmp_path)
    assert texts(tmp_path) == {"a": "third", "b": "second"}
    assert names(tmp_path) == ["a", "b"]


def test_an_error_leaves_all_the_old_files_and_nothing_else(tmp_path):
    write_set(tmp_path, "old")
    with pytest.raises(ZeroDivisionError), write_together():
        write_text(tmp_path / FILES[0], "new")
        with write_together():
            write_text(tmp_path / FILES[1], "new")
        raise ZeroDivisionError
    assert texts(tmp_path) == dict.fromkeys(FILES, "old")
    write_text(tmp_path / "after", "alone")  # nothing waits for the block that failed
    assert names(tmp_path) == sorted([*FILES, "after"])


@pytest.mark.long
def test_a_kill_at_any_step_never_leaves_new_files_beside_old_ones_and_the_next_run_cleans_up(tmp_path):
    seen = set()
    for count in range(40):
        folder = tmp_path / str(count)
        folder.mkdir()
        write_set(folder, "old")
        end = killed_after(count, write_set, folder, "new")
        left = texts(folder)
        assert len(set(left.values())) == 1
        assert [*left] and set(left) == set(FILES[: len(left)])
        seen.add((len(left), *set(left.values())))
        write_set(folder, "again")
        assert names(folder) == sorted(FILES)
        if end == 0:
            break
        assert end == -signal.SIGKILL
    else:
        pytest.fail("the steps never ended")
    assert seen >= {(3, "old"), (1, "old"), (1, "new"), (2, "new"), (3, "new")}


def test_temporary_files_of_the_killed_are_removed_and_those_of_the_living_left_alone(tmp_path):
    dead, living, other = (tmp_path / f".{name}.tmp" for name in ("a.txt.123456789", "a.txt.4", "a.txt.b.5"))
    for path in (dead, living, other, tmp_path / f".{dead.name}.lock"):
        path.write_text("x")
    with only_writer_of(living):
        write_text(tmp_path / "a.txt", "whole")
        assert names(tmp_path) == sorted([f".{living.name}.lock", living.name, other.name, "a.txt"])


def test_two_threads_do_not_write_one_file_at_the_same_time(tmp_path):
    errors = []

    def write():
        try:
            write_text(tmp_path / "a", "second")
        except DataError as error:
            errors.append(str(error))

    with write_whole(tmp_path / "a") as temporary:
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
        temporary.write_text("first")
    assert (tmp_path / "a").read_text() == "first"
    assert "is being written by another process" in errors[0]


def test_a_text_that_utf8_cannot_hold_is_escaped(tmp_path):
    """A forged file can name a sample by half of a surrogate pair."""
    assert write_text(tmp_path / "page.html", "a\ud800b").read_text() == "a\\ud800b"
