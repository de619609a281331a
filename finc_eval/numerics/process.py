"""Settings of the process that would change numbers: fixed while our own code runs, and then given back."""

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
