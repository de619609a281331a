"""Where computation runs when the caller does not say."""

from __future__ import annotations

import torch


def default_device() -> torch.device:
    """The current CUDA device if there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
