"""Limits of memory: sizes are read as people write them, and threads wait for each other's bytes."""

import threading
import time
from functools import partial

import pytest

from finc_eval.core.errors import DataError, UsageError
from finc_eval.core.memory import VARIABLE, Budget, check_decoded, excess, max_decoded, max_pixels, readable

MB = 10**6


@pytest.mark.parametrize(
    ("given", "size"),
    [("", 1 << 30), ("1000", 1000), ("4GiB", 4 << 30), ("500 MB", 500 * MB), ("1.5gb", 1500 * MB), ("2kib", 2048)],
)
def test_a_size_is_read_as_people_write_it(monkeypatch, given, size):
    monkeypatch.setenv(VARIABLE, given)
    assert max_decoded() == size
    assert max_pixels() == size // 12


@pytest.mark.parametrize("given", ["much", "-1", "0", "4 gigs", "1e9", "GB"])
def test_what_is_not_a_size_is_one_sentence(monkeypatch, given):
    monkeypatch.setenv(VARIABLE, given)
    with pytest.raises(UsageError, match=f"{VARIABLE} must be a size such as 4GiB or 500MB, got '{given}'"):
        max_decoded()


def test_what_is_too_large_is_named_with_its_size_and_what_to_do(monkeypatch):
    assert excess(1 << 30) is None
    with pytest.raises(DataError, match=r"labels.npz takes 4.29 GB when decoded, above the 1.07 GB of FINC_EVAL_MAX_"):
        check_decoded(4 << 30, "labels.npz")
    monkeypatch.setenv(VARIABLE, "8GiB")
    check_decoded(4 << 30, "labels.npz")
    assert [readable(size) for size in (5, 99_000, 3_200_000, 5 * 10**15)] == ["5 bytes", "99 kB", "3.2 MB", "5,000 TB"]


def run_in_threads(tasks):
    """Run tasks in threads that end with the tests, however long they wait, and fail unless all of them end well."""
    done = []
    threads = [threading.Thread(target=lambda task=task: done.append(task()), daemon=True) for task in tasks]
    for thread in threads:
        thread.start()
    until = time.monotonic() + 20
    for thread in threads:
        thread.join(max(0, until - time.monotonic()))
    assert len(done) == len(tasks)


def used_together(monkeypatch, sizes, allowed):
    """Return the most bytes that tasks of these sizes, a thread each, held at the same time."""
    monkeypatch.setenv(VARIABLE, str(allowed))
    budget, held, most, lock = Budget(), [0], [0], threading.Lock()

    def task(size):
        with budget:
            budget.take(size)
            with lock:
                held[0] += size
                most[0] = max(most[0], held[0])
            time.sleep(0.01)
            with lock:
                held[0] -= size

    run_in_threads([partial(task, size) for size in sizes])
    return most[0]


def test_threads_never_hold_more_together_than_is_allowed(monkeypatch):
    assert used_together(monkeypatch, [40 * MB] * 12, 100 * MB) <= 80 * MB
    assert used_together(monkeypatch, [150 * MB, 40 * MB, 40 * MB], 100 * MB) <= 150 * MB  # the largest runs alone


def test_a_second_portion_of_one_task_does_not_wait_and_all_is_given_back(monkeypatch):
    monkeypatch.setenv(VARIABLE, str(100 * MB))
    budget = Budget()
    budget.take(10**12)  # nobody would give it back

    def work():
        for _ in range(3):
            with budget:
                budget.take(90 * MB)
                budget.take(90 * MB)

    run_in_threads([work])
    assert budget._used == 0


def test_a_task_that_fails_gives_its_bytes_back(monkeypatch):
    monkeypatch.setenv(VARIABLE, str(100 * MB))
    from finc_eval.samples.source import ahead, count_decoding

    taken = Budget()
    monkeypatch.setattr("finc_eval.core.memory.DECODED", taken)

    def work(number):
        taken.take(90 * MB)
        if number % 2:
            raise ValueError(number)
        return number

    for number in range(6):
        results = ahead(count_decoding(work), [number], 1)
        if number % 2:
            with pytest.raises(ValueError, match=str(number)):
                list(results)
        else:
            assert list(results) == [number]
