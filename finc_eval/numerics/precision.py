"""Products of float32 that round on no device: what the process sets otherwise is fixed for our code, and restored."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

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
    python, array, torch_state = random.getstate(), np.random.get_state(), torch.get_rng_state()
    cards = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(array)
        torch.set_rng_state(torch_state)
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


def round_mantissa(rows: torch.Tensor, bits: int) -> torch.Tensor:
    """Round away the last `bits` bits of the mantissa of float32 rows, any shape, to nearest, ties to even."""
    whole = rows.contiguous().view(torch.int32)
    # In place: each step of its own would be fresh memory.
    rounded = whole.bitwise_right_shift(bits).bitwise_and_(1).add_(whole).add_((1 << (bits - 1)) - 1)
    return rounded.bitwise_and_(-1 << bits).view(torch.float32)


@contextmanager
def arithmetic() -> Iterator[None]:
    """Run products and convolutions in the block in true float32, whatever torch is set to outside."""
    cudnn = torch.backends.cudnn
    with own_settings(), ExitStack() as stack:
        _round(stack, torch.backends.mkldnn, "matmul", "bf16" if _onednn_is_exact() else "ieee")
        _round(stack, torch.backends.mkldnn, "conv", "ieee")
        if not _round(stack, torch.backends.cuda, "matmul", "ieee"):
            stack.callback(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision())
            torch.set_float32_matmul_precision("highest")
        if not _round(stack, cudnn, "conv", "ieee"):
            stack.callback(setattr, cudnn, "allow_tf32", cudnn.allow_tf32)
            cudnn.allow_tf32 = False
        yield


def _round(stack: ExitStack, library: Any, operation: str, rounding: str) -> bool:
    """Let an operation of a library round float32 so until the stack ends; False for torch 2.8, without that switch.

    Products go to oneDNN only with "bf16", which allows it to round.
    """
    backend: Any = getattr(library, operation, None)
    if not hasattr(backend, "fp32_precision"):
        return False
    stack.callback(setattr, backend, "fp32_precision", backend.fp32_precision)
    backend.fp32_precision = rounding
    return True


@cache
def _onednn_is_exact() -> bool:
    """Return whether products that oneDNN may round are true float32 on this CPU.

    oneDNN rounds to bfloat16 only where the CPU has matrix units for it. Elsewhere it computes in float32, and on
    some CPUs twice as fast as torch's usual library.
    """
    tiny = 2.0**-12  # lost when 1 + tiny is rounded to bfloat16
    rows = torch.full((256, 256), 1 + tiny)
    with ExitStack() as stack:
        _round(stack, torch.backends.mkldnn, "matmul", "bf16")
        return abs(float((rows @ rows)[0, 0]) / (256 * (1 + tiny) ** 2) - 1) < 1e-6
