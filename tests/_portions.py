"""Smaller portions of a computation, so that a small set has several of them."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def portions_of(size: int | None) -> Iterator[None]:
    """Let matrix products in the block take so many samples; None: as many as they always do."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("BATCH_SIZE", "GPU_BATCH_SIZE") if size else ():
            patch.setattr(f"finc_eval.core.run.{name}", size)
        yield
