"""`Run`: how a computation is carried out, as opposed to what it computes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from finc_eval.core.errors import UsageError, check_count
from finc_eval.core.progress import Plan, Progress, Stage, automatic, divide_stage

if TYPE_CHECKING:
    import torch

BATCH_SIZE = 2048
"""Samples per matrix product on a CPU: large enough for full speed, small enough for any memory. No option changes it:
products of other sizes have other last bits, and the same inputs are to give the same bytes."""

GPU_BATCH_SIZE = 16384  # samples at once on a GPU, which fewer do not fill: 262 MB of features of 4 000 entries
WORKERS = min(16, os.cpu_count() or 1)  # threads that decode samples


@dataclass(frozen=True)
class Run:
    """Device, batches, threads and progress of a computation.

    Neither batch size nor workers changes a bit of a result from the same embeddings; another device does.

    Args:
        device: where to compute, such as "cpu" or "cuda:1"; default: CUDA if available.
        batch_size: samples per pass through a network, halved if memory does not suffice; it bounds the memory.
            Default: by the size of the network's inputs. Embeddings by EfficientNet-Lite0 differ by up to 4.5e-6
            between batch sizes, embeddings by "pixels" not at all.
        workers: number of threads that decode and resize samples.
        progress: called with (stage, done, total); default: bars in notebooks, and silent elsewhere.

    Raises:
        UsageError: the batch size or the number of threads is not a positive whole number.

    Example:
        >>> import finc_eval as fe
        >>> fe.Run(device="cpu", batch_size=512).batch_size
        512
    """

    device: str | torch.device | None = None
    batch_size: int | None = None
    workers: int = WORKERS
    progress: Progress = automatic

    def __post_init__(self) -> None:
        if self.batch_size is not None:
            check_count("batch_size", self.batch_size)
        check_count("workers", self.workers)

    @classmethod
    def of(cls, run: Run | None) -> Run:
        """Return the run, or a run with the defaults.

        Raises:
            UsageError: it is something else, such as the name of a device.
        """
        if run is not None and not isinstance(run, Run):
            raise UsageError(f'run must be a Run, got {run!r}: give run=fe.Run(device="cpu"), for example')
        return run or cls()

    @property
    def portion(self) -> int:
        """Samples per matrix product: the same in every run on a kind of device."""
        return BATCH_SIZE if self.torch_device.type == "cpu" else GPU_BATCH_SIZE

    @property
    def torch_device(self) -> torch.device:
        """The device as torch represents it.

        Raises:
            UsageError: this machine does not have the device.
        """
        from finc_eval.core.device import usable_device  # torch takes seconds to import

        return usable_device(self.device)

    def named(self, stage: str) -> Run:
        """Return the same run with this name for every stage of its progress."""
        return replace(self, progress=lambda _, done, total: self.progress(stage, done, total))

    def planned(self, *stages: str, seconds: float | None = None) -> Run:
        """Return the same run, which says of each of these stages its place, "2 of 5: sketch", and the time left.

        `seconds` is the time of all stages together, if it is known: it is shown before the work begins.
        """
        return replace(self, progress=Plan(self.progress, stages, seconds))

    def over(self, stage: str, sizes: Sequence[int]) -> list[Run]:
        """Return a run for each of several passes, which are one stage together."""
        if any(sizes):
            self.progress(stage, 0, sum(sizes))
        return [replace(self, progress=part) for part in divide_stage(self.progress, stage, sizes)]

    @contextmanager
    def step(self, stage: str) -> Iterator[None]:
        """Show a stage that is a single step."""
        self.progress(stage, 0, 1)
        try:
            yield
        finally:
            self.progress(stage, 1, 1)

    def prefixed(self, name: str) -> Run:
        """Return the same run with this name before every stage of its progress."""

        def progress(stage: str, done: int, total: int) -> None:
            known = getattr(stage, "shorter", None), getattr(stage, "cost", None)
            self.progress(Stage(f"{name}: {stage}", *known), done, total)

        return replace(self, progress=progress)
