"""Dense optical flow between two frames: where each pixel has moved to.

It follows Lucas and Kanade (1981) at every pixel, refined from coarse to fine (Bouguet 2001), on frames whose local
mean and contrast are evened out, so that flicker and fading do not pass for motion.
"""

from __future__ import annotations

import torch
from torch.nn.functional import avg_pool2d, grid_sample, interpolate, pad

FLOW_WINDOW = 5  # side of the neighborhood in which the flow is constant, in pixels
DAMPING = 0.02  # square of the local contrast below which a place says nothing of motion, and counts as still


def optical_flow(first: torch.Tensor, second: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute where each pixel of the first frames has moved to in the second frames.

    Frames are gray, (n, 1, height, width). The displacement is in pixels, to the right and downwards, (n, 2, height,
    width); next to it stands the mean difference of evened pixels that it leaves, (n,).
    """
    pairs = [(even_contrast(first), even_contrast(second))]
    coarse = first, second
    # 12: side of the coarsest pictures in pixels, at least.
    while min(coarse[0].shape[2:]) >= 2 * 12:
        coarse = avg_pool2d(coarse[0], 2), avg_pool2d(coarse[1], 2)
        pairs.append((even_contrast(coarse[0]), even_contrast(coarse[1])))
    flow = first.new_zeros(len(first), 2, *pairs[-1][0].shape[2:])
    for before, after in reversed(pairs):
        size = before.shape[2:]
        if flow.shape[2:] != size:
            flow = 2 * interpolate(flow, size, mode="bilinear", align_corners=False)
        flow = _refine(flow, before, after)
    before, after = pairs[0]
    return flow, (_warp(after, flow) - before).abs().mean((1, 2, 3))


def _refine(flow: torch.Tensor, before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """Refine the flow at one size: each step solves (ΣJJᵀ + λI)·δ = −ΣJ·e in the window around every pixel."""
    edges = pad(before, (1, 1, 1, 1), mode="replicate")
    across = (edges[:, :, 1:-1, 2:] - edges[:, :, 1:-1, :-2]) / 2
    down = (edges[:, :, 2:, 1:-1] - edges[:, :, :-2, 1:-1]) / 2
    products = _average_windows(torch.cat([across * across, across * down, down * down], 1))
    xx, xy, yy = products[:, :1] + DAMPING, products[:, 1:2], products[:, 2:] + DAMPING
    determinant = xx * yy - xy * xy
    # 3: refinements of the flow at each size.
    for _ in range(3):
        error = _warp(after, flow) - before
        errors = _average_windows(torch.cat([across * error, down * error], 1))
        ex, ey = errors[:, :1], errors[:, 1:]
        step = torch.cat([xy * ey - yy * ex, xy * ex - xx * ey], 1) / determinant
        flow = flow + step.clamp(-1, 1)
    return _average_windows(flow)


def _warp(frames: torch.Tensor, flow: torch.Tensor) -> torch.Tensor:
    """Read each pixel where the flow says that it has moved to."""
    height, width = frames.shape[2:]
    rows = torch.arange(height, device=flow.device, dtype=flow.dtype)
    columns = torch.arange(width, device=flow.device, dtype=flow.dtype)
    across = (columns + flow[:, 0]) * (2 / (width - 1)) - 1
    down = (rows[:, None] + flow[:, 1]) * (2 / (height - 1)) - 1
    target = torch.stack([across, down], 3)
    return grid_sample(frames, target, mode="bilinear", padding_mode="border", align_corners=True)


def _average_windows(values: torch.Tensor, side: int = FLOW_WINDOW) -> torch.Tensor:
    """Average over the window around each pixel, without what lies beyond the border.

    Sums of shifted pictures take a fifth of the time of torch's pooling on a CPU.
    """
    for axis in (2, 3):
        length, half = values.shape[axis], side // 2
        wide = pad(values, (0, 0, half, half) if axis == 2 else (half, half))
        total = wide.narrow(axis, 0, length).clone()
        for shift in range(1, side):
            total += wide.narrow(axis, shift, length)
        index = torch.arange(length, device=values.device)
        inside = (index + half).clamp_max(length - 1) - (index - half).clamp_min(0) + 1
        values = total / (inside[:, None] if axis == 2 else inside)
    return values


def even_contrast(frames: torch.Tensor) -> torch.Tensor:
    """Subtract the local mean and divide by the local contrast."""
    mean, square = (_average_windows(values, 2 * FLOW_WINDOW - 1) for values in (frames, frames * frames))
    # 0.02: contrast, in shares of white, below which a place is not evened out: it is noise.
    return (frames - mean) / ((square - mean * mean).clamp_min(0) + 0.02**2).sqrt()
