"""Extraction that a key, a kill, a full disk or a lost folder interrupts, and the run after it."""

import errno
import os
import signal
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from _cards import pixel_card
from _extraction import BATCH, N, Steps, extract, leftovers, message
from _forks import FORKS, exit_code, forked

from finc_eval.embeddings import writer as cache_writer
from finc_eval.embeddings.cache import EmbeddingCache
from finc_eval.embeddings.writer import part_of
from finc_eval.samples.opening import open_source
from finc_eval.samples.source import Sample, prefetch

pytestmark = pytest.mark.usefixtures("own_cache_folder")


def extract_and_die(source, out, target, count):
    """Extract, and be killed at this call of the target."""
    calls = 0

    def step():
        nonlocal calls
        calls += 1
        if calls == count:
            os.kill(os.getpid(), signal.SIGKILL)

    def killing(function):
        return lambda *arguments, **options: (step(), function(*arguments, **options))[1]

    if target == "fsync":
        os.fsync = killing(os.fsync)
    if target == "unlink":
        Path.unlink = killing(Path.unlink)
    progress = lambda stage, *_: stage.startswith(target) and step()  # noqa: E731
    extract(source, out=out, batch_size=BATCH, progress=progress)


def extract_and_wait(source, out, begun, may_go_on):
    def progress(stage, done, total):
        if stage.startswith("embed"):
            begun.set()
            may_go_on.wait(60)

    extract(source, out=out, batch_size=BATCH, progress=progress)


def test_ctrl_c_while_the_reader_is_started_ends_what_it_reads(monkeypatch):
    start, reading, may_go_on, ended = threading.Thread.start, threading.Event(), threading.Event(), []

    def items():
        try:
            reading.set()
            may_go_on.wait(60)
            yield "an item"
        finally:
            ended.append(threading.current_thread())

    def start_and_interrupt(thread):
        start(thread)
        assert reading.wait(60)
        monkeypatch.undo()
        threading.Timer(0.1, may_go_on.set).start()
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", start_and_interrupt)
    with pytest.raises(KeyboardInterrupt), closing(items()) as made:
        next(prefetch(made))
    assert ended == [threading.current_thread()]


def test_ctrl_c_leaves_a_part_that_the_next_run_resumes(tmp_path, images):
    out = tmp_path / "gen.h5"
    with pytest.raises(KeyboardInterrupt):
        extract(images, out=out, batch_size=BATCH, progress=Steps("embed", 3, KeyboardInterrupt()))
    assert part_of(out).exists()
    assert not out.exists()
    steps = Steps()
    cache = extract(images, out=out, batch_size=BATCH, progress=steps)
    assert steps.of("embed") == [16, 24, 32, 40]
    np.testing.assert_array_equal(cache, extract(images))
    assert not part_of(out).exists()


@pytest.mark.one_of_each
@pytest.mark.parametrize(
    ("target", "count", "resumes_at"),
    [
        pytest.param("embed", 1, 0, marks=pytest.mark.long),  # nothing done yet
        ("embed", 3, 16),  # between batches
        pytest.param("fsync", 1, 8, marks=pytest.mark.long),  # rows written, their checkpoint not
        ("fsync", 3, 24),
        ("write cache", 1, N),  # while the whole cache is written
        pytest.param("fsync", 6, N, marks=pytest.mark.long),  # the whole cache written, not yet in its place
        ("unlink", 3, None),  # the whole cache in its place, the unfinished one still there
    ],
)
def test_kill_9_loses_nothing_that_was_done(tmp_path, broken_folder, target, count, resumes_at):
    out = tmp_path / "out" / "gen.h5"
    assert exit_code(forked(extract_and_die, broken_folder, out, target, count)) == -signal.SIGKILL
    assert out.exists() == (resumes_at is None)

    steps = Steps()
    cache = extract(broken_folder, out=out, batch_size=BATCH, progress=steps)
    assert steps.of("embed")[:1] == ([] if resumes_at is None else [resumes_at])
    whole = extract(broken_folder, out=tmp_path / "whole.h5", batch_size=BATCH)
    np.testing.assert_array_equal(cache, whole)
    np.testing.assert_array_equal(cache.content, whole.content)
    assert (cache.ids, cache.failures) == (whole.ids, whole.failures)
    assert sorted(file.name for file in out.parent.iterdir()) == ["gen.h5"]


def test_of_two_extracts_at_once_one_is_refused_and_the_other_unharmed(tmp_path, folder):
    out = tmp_path / "gen.h5"
    begun, may_go_on = FORKS.Event(), FORKS.Event()
    process = forked(extract_and_wait, folder, out, begun, may_go_on)
    assert begun.wait(60)
    assert "gen.h5 is being written by another process" in message(extract, folder, out=out)
    may_go_on.set()
    assert exit_code(process) == 0
    np.testing.assert_array_equal(EmbeddingCache(out), extract(folder, out=tmp_path / "alone.h5"))


def test_a_disk_that_fills_up_keeps_what_was_done(tmp_path, images, monkeypatch):
    out, write, calls = tmp_path / "gen.h5", cache_writer.CacheWriter._checkpoint, []

    def full(writer):
        calls.append(writer)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(writer)

    monkeypatch.setattr(cache_writer.CacheWriter, "_checkpoint", full)
    text = message(extract, images, out=out, batch_size=BATCH)
    assert f"the disk is full while writing {out}: the finished part is kept in gen.h5.part" in text
    assert "run the same command again" in text
    steps = Steps()
    np.testing.assert_array_equal(extract(images, out=out, batch_size=BATCH, progress=steps), extract(images))
    assert steps.of("embed")[0] == 24


def test_a_disk_without_room_is_refused_before_the_work(tmp_path, images, monkeypatch):
    monkeypatch.setattr(cache_writer.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1000}))
    steps = Steps()
    assert "MB free and gen.h5 needs about" in message(extract, images, out=tmp_path / "gen.h5", progress=steps)
    assert steps.of("embed") == []


def test_a_folder_that_vanishes_midway_leaves_no_cache_that_would_pass_for_the_whole(tmp_path, folder):
    out, gone, steps = tmp_path / "gen.h5", tmp_path / "gone", []

    def vanish(stage, done, total):
        steps.append((stage, done))
        if stage.startswith("embed") and done == 16:
            folder.rename(gone)

    text = message(extract, folder, out=out, batch_size=4, workers=1, progress=vanish)
    assert f"{folder} changed while it was read (" in text and "no such file or directory" in text
    assert not out.exists()
    gone.rename(folder)
    again = Steps()
    cache = extract(folder, out=out, batch_size=4, progress=again)
    assert cache.failures == []
    assert again.of("embed")[0] >= 16
    np.testing.assert_array_equal(cache, extract(folder))


def test_a_sample_that_could_not_be_read_for_a_moment_is_no_failure_of_the_set(tmp_path, broken_folder, monkeypatch):
    source = open_source(broken_folder)
    sample, first = type(source).sample, []

    def flaky(self, number):
        if number == 20 and not first:
            first.append(number)
            return Sample(self.ids[number], None, "input/output error")
        return sample(self, number)

    monkeypatch.setattr(type(source), "sample", flaky)
    out = tmp_path / "gen.h5"
    text = message(extract, broken_folder, out=out, batch_size=4)
    assert "changed while it was read (020.png: input/output error)" in text
    assert [name for name, _ in extract(broken_folder, out=out, batch_size=4).failures] == ["003.png", "011.png"]


def test_what_fails_before_the_first_row_leaves_nothing_behind(tmp_path, images):
    card = pixel_card(tmp_path / "own.toml", ('layer = "input"', 'layer = "output"'))
    default = tmp_path / "default"
    assert "cannot be used" in message(extract, images, device="gpu")
    assert leftovers(default) == []
    assert "the network has no layer" in message(extract, images, card)
    assert leftovers(default) == []


def test_rows_that_were_done_survive_an_error_of_the_next_run(tmp_path, images):
    out = tmp_path / "gen.h5"
    with pytest.raises(KeyboardInterrupt):
        extract(images, out=out, batch_size=BATCH, progress=Steps("embed", 4, KeyboardInterrupt()))
    message(extract, images, out=out, batch_size=N, device="gpu")
    steps = Steps()
    extract(images, out=out, batch_size=BATCH, progress=steps)
    assert steps.of("embed")[0] >= BATCH
