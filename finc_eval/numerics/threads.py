"""One thread for small problems."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


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
