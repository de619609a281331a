"""Devices of computation."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch

from finc_eval.core.errors import UsageError, first_line
from finc_eval.core.words import join_words

Device = str | torch.device | None  # device as callers name it; None for CUDA if available

Place = Callable[[torch.Tensor], torch.Tensor]
"""Function that the reader of batches applies to the rows of each, such as a function that sends them to a device."""


def default_device() -> torch.device:
    """Return the current CUDA device if there is one, else the CPU.

    The processes of one machine that torchrun started have their number in LOCAL_RANK, and each has its own GPU.
    """
    if not torch.cuda.is_available():
        return torch.device("cpu")
    rank = os.environ.get("LOCAL_RANK", "")
    return torch.device("cuda", int(rank) % torch.cuda.device_count()) if rank.isdecimal() else torch.device("cuda")


def usable_device(device: Device) -> torch.device:
    """Return the device of a name, or the default one."""
    try:
        where = torch.device(device) if device else default_device()
        torch.empty(0, device=where)
    except (RuntimeError, AssertionError) as error:
        if device is None:
            raise UsageError(
                f"torch finds a GPU that cannot be used ({first_line(error)}): mend that, or compute without "
                'it, run=fe.Run(device="cpu") (--device cpu)'
            ) from error
        here = join_words(["cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))])
        raise UsageError(
            f'the device "{device}" cannot be used: torch finds only {here} on this machine, so leave the device out, '
            "or name what is here"
        ) from error
    return where


def send(rows: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Copy rows to a device. Rows of the host go to a GPU from pinned memory, so that the host does not wait.

    A plain copy waits until the GPU has done all that it was asked before.
    """
    if rows.device.type == "cpu" and device.type not in ("cpu", "mps"):
        return rows.pin_memory().to(device, non_blocking=True)
    return rows.to(device)
