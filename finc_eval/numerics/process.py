"""Settings of the process that change numbers or speed: fixed while our own code runs, and then restored."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
import torch

AUTOCAST_DEVICES = ("cpu", "cuda", "mps", "xpu")


@contextmanager
def own_settings() -> Iterator[None]:
    """Run the block without the caller's autocast, default type and default device, which are restored after it."""
    dtype = torch.get_default_dtype()
    with ExitStack() as stack:
        for device in AUTOCAST_DEVICES:
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        if torch.get_default_device().type != "cpu":
            stack.enter_context(torch.device("cpu"))
        if dtype != torch.float32:
            stack.callback(torch.set_default_dtype, dtype)
            torch.set_default_dtype(torch.float32)
        yield


@contextmanager
def kept_random_states() -> Iterator[None]:
    """Run the block, and leave the random states of Python, numpy and torch as they were before it."""
    python, array, own = random.getstate(), np.random.get_state(), torch.get_rng_state()
    cards = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(array)
        torch.set_rng_state(own)
        torch.cuda.set_rng_state_all(cards)


@contextmanager
def single_threaded(small: bool = True) -> Iterator[None]:
    """Run torch's operations on the CPU in the block on one thread, if the problem is small.

    A small decomposition is thousands of tiny parallel steps, and at the end of each the threads wait for the slowest.
    On a busy machine that thread is often not running, and the others spin for it: with two threads next to two busy
    processes, `eigh` of 384 rows took 20 times as long as with one (benchmarks/busy_machine.py has whole comparisons).

    Blocks can be nested, and the number of threads is restored after an exception. A thread that uses torch for the
    first time while another is in the block gets one thread for good; this changes its speed, not its numbers.
    """
    before = torch.get_num_threads()
    if not small or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
