"""A call in a process of its own has an end, whatever it does, and leaves its caller as it was."""

import multiprocessing
import os
import signal
import sys
import threading

import pytest

from finc_eval.core.isolation import IsolationError, Pool, TooLongError, check_ended

CALLEE = """
import os, signal
from finc_eval.core.isolation import ProcessLimits

def serve(line):
    facts, data, files = line.hear()
    limits = ProcessLimits()
    if "signal" in facts:
        os.kill(os.getpid(), facts["signal"])
    if "hang" in facts:
        limits.set(0.2, 1 << 30)
        while True:
            pass
    if "bytes" in facts:
        limits.set(10, 64 << 20)
        try:
            bytearray(facts["bytes"])
            answer = {"memory": "enough"}
        except MemoryError:
            answer = {"memory": "too little"}
        limits.lift()
        line.tell(answer)
        return
    if files:
        with os.fdopen(files[0], "rb") as file:
            data = file.read()
    line.tell({"process": os.getpid(), "supervisor": os.getppid()}, bytes(data)[::-1])
"""


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    folder = tmp_path_factory.mktemp("callee")
    (folder / "callee_of_a_test.py").write_text(CALLEE)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield Pool("callee_of_a_test.serve")


def call(pool, facts=None, data=b"", file=None):
    """Call the function, and raise what its process ended with."""
    with pool.worker() as line:
        line.tell(facts or {}, data, file)
        told, answer, _ = line.hear()
        check_ended(told)
        return told, bytes(answer)


def test_bytes_and_files_reach_the_worker_and_come_back(pool, tmp_path):
    assert call(pool, data=b"abc")[1] == b"cba"
    large = os.urandom(3 << 20)
    assert call(pool, data=large)[1] == large[::-1]
    (tmp_path / "x").write_bytes(b"from a file")
    with (tmp_path / "x").open("rb") as file:
        assert call(pool, file=file.fileno())[1] == b"elif a morf"


def test_a_worker_is_used_again_and_side_by_side_there_are_several(pool):
    first, second = (call(pool)[0]["process"] for _ in range(2))
    assert first == second != os.getpid()
    with pool.worker() as line:
        other = call(pool)[0]["process"]
        line.tell({})
        assert line.hear().facts["process"] != other


def test_a_call_that_never_ends_is_ended_and_the_next_one_works(pool):
    with pool.worker() as line:
        line.tell({"hang": True})
        with pytest.raises(TooLongError):
            check_ended(line.hear().facts)
        line.tell({}, b"ab")  # another process has taken its place
        assert line.hear().data == b"ba"


def test_memory_has_a_limit(pool):
    assert call(pool, {"bytes": 1 << 20})[0] == {"memory": "enough"}
    assert call(pool, {"bytes": 1 << 28})[0] == {"memory": "too little"}


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS])
def test_a_crash_is_a_fault_of_the_call(pool, number):
    with pytest.raises(ValueError, match=f"crashed .{number.name}"):
        call(pool, {"signal": number})
    assert call(pool, data=b"ab")[1] == b"ba"


def test_what_others_end_is_not_a_fault_of_the_call(pool):
    with pytest.raises(IsolationError, match="ended by another program"):
        call(pool, {"signal": signal.SIGKILL})
    os.kill(call(pool)[0]["supervisor"], signal.SIGKILL)
    os.kill(pool._template.pid, signal.SIGKILL)
    pool._template.wait()
    with pool.worker() as one:  # idle before, and its process lives on
        one.tell({}, b"ab")
        with pytest.raises(IsolationError), pool.worker():
            pass
        assert one.hear().data == b"ba"
    assert call(pool, data=b"ab")[1] == b"ba"


def test_forked_and_daemonic_processes_have_workers_of_their_own(pool):
    mine = call(pool)[0]["process"]
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    process = context.Process(target=lambda: answers.put(call(pool, data=b"ab")), daemon=True)
    process.start()
    theirs, answer = answers.get(timeout=60)
    process.join()
    assert answer == b"ba" and theirs["process"] != mine == call(pool)[0]["process"]


def test_threads_call_at_once(pool):
    found = {}

    def ask(number):
        found[number] = call(pool, data=b"%d" % number * 2)[1]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == {number: (b"%d" % number * 2)[::-1] for number in range(6)}


def test_workers_end_with_the_process_that_asked_for_them(pool):
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        try:  # whatever fails, no copy of this process goes on with the tests
            os.write(writing, str(call(pool)[0]["process"]).encode())
        finally:
            os._exit(0)
    os.waitpid(process, 0)
    worker = int(os.read(reading, 100))
    for one in (reading, writing):
        os.close(one)
    ended = threading.Event()
    for _ in range(600):
        if not os.path.exists(f"/proc/{worker}"):  # noqa: PTH110
            ended.set()
            break
        ended.wait(0.1)
    assert ended.is_set()


def test_the_working_folder_has_no_modules_for_a_worker(pool, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", ".", *sys.path])
    for name in ("json", "struct", "finc_eval"):
        (tmp_path / f"{name}.py").write_text("open('PWNED', 'w')")
    assert call(Pool("callee_of_a_test.serve"), data=b"ab")[1] == b"ba"
    assert not (tmp_path / "PWNED").exists()


def test_the_process_is_the_python_that_runs_whatever_programs_lie_in_the_path(pool, tmp_path, monkeypatch):
    for name in ("python", "python3", f"python3.{sys.version_info.minor}"):
        (tmp_path / name).write_text(f'#!/bin/sh\ntouch {tmp_path}/PWNED\nexec {sys.executable} "$@"\n')
        (tmp_path / name).chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".{os.pathsep}{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert call(Pool("callee_of_a_test.serve"), data=b"ab")[1] == b"ba"
    assert not (tmp_path / "PWNED").exists()
