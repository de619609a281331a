"""Calls in processes of their own, whose time and memory have limits: nothing else stops a decoder in C.

The first call starts a template: a Python that imports what the callee needs, and forks a worker for each caller. So
further workers start without imports, no thread of the caller's is forked, and a worker that a limit ends is replaced
at once. Workers end with the process that asked for them. Messages are JSON, followed by bytes: nothing is unpickled.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from finc_eval.core.errors import FincEvalError

HEAD = struct.Struct(">IQ")
"""Bytes before a message: how many of JSON, and how many after the JSON."""

OF_THE_CALL = frozenset({"SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGXCPU"})
"""Signals by which a process ends through its own fault."""

START = "import sys; sys.path[:] = sys.argv[4:]; from finc_eval.core.isolation import template; template()"


class IsolationError(FincEvalError):
    """A process of ours was ended from outside."""

    def __init__(self) -> None:
        super().__init__(
            "a process that decodes files was ended by another program, or by the system for lack of memory: run the "
            "same command again, with fewer workers"
        )


class TooLongError(ValueError):
    """A call took more time than it may."""


class Message(NamedTuple):
    """A message from one process to another."""

    facts: dict[str, Any]
    data: bytearray
    files: list[int]  # descriptors of files


class Line:
    """One end of a connection between two processes."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def tell(self, facts: Mapping[str, Any], data: bytes | memoryview = b"", file: int | None = None) -> None:
        """Send a message, with an open file for a worker."""
        text = json.dumps(facts).encode()
        head = HEAD.pack(len(text), len(data))
        if file is None:
            self._end.sendall(head + text)
        else:
            socket.send_fds(self._end, [head], [file])
            self._end.sendall(text)
        if len(data):
            self._end.sendall(data)

    def hear(self) -> Message:
        """Wait for a message; EOFError if the other process is gone."""
        head, files, _, _ = socket.recv_fds(self._end, HEAD.size, 1)
        text_size, size = HEAD.unpack(head + self._read(HEAD.size - len(head)))
        return Message(json.loads(self._read(text_size)), self._read(size), files)

    def _read(self, size: int) -> bytearray:
        data = bytearray(size)
        rest = memoryview(data)
        while len(rest):
            if not (done := self._end.recv_into(rest)):
                raise EOFError
            rest = rest[done:]
        return data

    def close(self) -> None:
        """End the connection, and so the worker at its other end."""
        self._end.close()


class Pool:
    """Workers of this process that call one function, which are made as they are needed."""

    def __init__(self, callee: str, needed: str = "sys") -> None:
        """Take the name of a function, "package.module.function", which serves a `Line` in each worker.

        `needed` is a package that the function imports when it is called.
        """
        self._callee, self._needed = callee, needed
        self._begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        """Have no workers, as a forked process, whose parent goes on using its own."""
        self._lock = threading.Lock()
        self._template: subprocess.Popen[bytes] | None = None
        self._control = socket.socket()  # to the template
        self._idle: list[Line] = []

    @contextmanager
    def worker(self) -> Iterator[Line]:
        """Lend a worker, which waits for its next caller after the block; an error in the block ends the worker.

        Raises:
            IsolationError: the worker was ended from outside.
        """
        with self._lock:
            line = self._idle.pop() if self._idle else self._new()
        try:
            yield line
        except (EOFError, ConnectionError) as error:
            line.close()
            with self._lock:
                self._template, self._idle = None, []  # the next caller starts anew
            raise IsolationError from error
        except BaseException:
            line.close()
            raise
        with self._lock:
            self._idle.append(line)

    def _new(self) -> Line:
        try:
            if self._template is None:
                self._control, theirs = socket.socketpair()
                with theirs:
                    self._template = self._start(theirs.fileno())
            ours, theirs = socket.socketpair()
            with theirs:
                socket.send_fds(self._control, [b"+"], [theirs.fileno()])
        except OSError as error:
            self._template = None
            raise IsolationError from error
        return Line(ours)

    def _start(self, control: int) -> subprocess.Popen[bytes]:
        paths = [path for path in (*sys.path, str(Path(__file__).parents[2])) if Path(path).is_absolute()]
        return subprocess.Popen(
            [sys.executable, "-P", "-c", START, str(control), self._callee, self._needed, *paths],
            pass_fds=[control],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # numpy starts threads otherwise, and a process is forked best before it has any.
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        )


def is_possible() -> bool:
    """Return whether this system can isolate calls: it forks, and knows which Python runs."""
    return hasattr(os, "fork") and hasattr(socket, "send_fds") and bool(sys.executable)


def check_ended(facts: Mapping[str, Any]) -> None:
    """Raise an error if a message says that the worker has ended, instead of an answer."""
    name = facts.get("ended")
    if name == "SIGPROF":
        raise TooLongError("took too long")
    if name in OF_THE_CALL:
        raise ValueError(f"its decoder crashed ({name})")
    if name is not None:
        raise EOFError(name)


def template() -> None:
    """Fork a worker for each connection that the starting process sends, until that process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the starting process
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    control = socket.socket(fileno=int(sys.argv[1]))
    module, _, name = sys.argv[2].rpartition(".")
    serve = getattr(importlib.import_module(module), name)
    importlib.import_module(sys.argv[3])
    while True:
        asked, files, _, _ = socket.recv_fds(control, 1, 1)
        if not asked:
            return
        if not os.fork():
            control.close()
            _supervise(socket.socket(fileno=files[0]), serve)
            os._exit(0)
        os.close(files[0])


def _supervise(end: socket.socket, serve: Callable[[Line], None]) -> None:
    """Run a worker, and run another when a signal has ended it, which its caller is told."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    while True:
        process = os.fork()
        if not process:
            try:
                while True:
                    serve(Line(end))
            finally:
                os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if code >= 0:
            return
        Line(end).tell({"ended": signal.Signals(-code).name})


class ProcessLimits:
    """Limits of the process that makes them.

    Attributes:
        size: bytes that the process may take beyond what it had.
    """

    def __init__(self) -> None:
        self.size = -1
        self._before = 0
        if sys.platform == "linux":  # elsewhere no system keeps a limit of the address space
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            self._before = pages * os.sysconf("SC_PAGE_SIZE")

    def set(self, seconds: float, size: int) -> None:
        """From now on, end this process after some seconds of computing, and let it have `size` bytes more at most."""
        signal.setitimer(signal.ITIMER_PROF, seconds)
        if size != self.size:
            self.size = size
            self._limit_memory(self._before + size)

    def lift(self) -> None:
        """Remove the limits."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        self._limit_memory(-1)

    def _limit_memory(self, most: int) -> None:
        import resource  # not on every system

        if self._before:
            hard = resource.getrlimit(resource.RLIMIT_AS)[1]
            is_lower = most >= 0 and (hard == resource.RLIM_INFINITY or most < hard)
            resource.setrlimit(resource.RLIMIT_AS, (most if is_lower else hard, hard))
