"""Motion without weights: dense optical flow between the frames of a clip, and histograms of what moves how.

Flow follows Lucas and Kanade (1981) at every pixel, refined from coarse to fine (Bouguet 2001), on frames whose
local mean and contrast are evened out, so that flicker and fading do not pass for motion. Velocities are in heights of
the picture a second, by the times of the frames. Frames that repeat at the end of a short clip, at equal times, do not
count.
"""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch.nn.functional import adaptive_avg_pool2d, avg_pool2d, grid_sample, interpolate, pad

from finc_eval.core.errors import DataError
from finc_eval.extractors.card import Card

LUMA = (0.299, 0.587, 0.114)

MIN_SIDE = 12
"""Side of the coarsest pictures in pixels, at least."""

STEPS = 3
"""Refinements of the flow at each size."""

WINDOW = 5
"""Side of the neighborhood in which the flow is constant, in pixels."""

DAMPING = 0.02
"""Square of the local contrast below which a place says nothing of motion, and counts as still."""

CONTRAST = 0.02
"""Contrast, in shares of white, below which a place is not evened out: it is noise."""

BLOCK = 4
"""Side of the blocks in pixels, within which the flow is averaged before it is counted."""

DIRECTIONS = 8
CELLS = 3
"""Directions of motion, and cells along a side of the picture, that histograms distinguish."""

SPEED, FORCE = 0.02, 0.5
"""Speed in heights a second, and acceleration in heights a second squared, that noise of the flow looks like."""

LIGHT, DRIFT, CHANGE = 0.1, 0.016, 0.002
"""Change of brightness in shares of white that noise looks like: a second, over a clip, and of a pixel in a frame."""

FVMD_SIDE, FVMD_RATE, FVMD_POINTS, FVMD_CELL, FVMD_CUBE = 256, 25.0, 20, 5, 4
"""FVMD's histograms: pixels along a side, rate a second, points along a side and of a cell, and frames of a cube."""


class Motion(torch.nn.Module):
    """(n, 3, frames, height, width) in 0…1 and times (n, frames) in seconds -> the outputs "motion" and "fvmd".

    "motion" joins histograms of one clip. Each holds the roots of its shares, so that its length is one:
    velocities by direction and speed in 3 x 3 cells; accelerations by direction and size; speeds in each third of the
    clip; how much speed changes between frames; changes of brightness, their changes, and the drift over the clip; what
    the flow does not explain; and whether any pixel changes.
    """

    takes_times = True

    def forward(self, frames: torch.Tensor, times: torch.Tensor) -> dict[str, torch.Tensor]:
        """Describe the motion of clips."""
        gray = torch.einsum("nctyx,c->ntyx", frames.float(), frames.new_tensor(LUMA).float())
        n, count, height, width = gray.shape
        gaps = times.diff(dim=1).float()
        valid = gaps > 0
        first, second = (part.reshape(-1, 1, height, width) for part in (gray[:, :-1], gray[:, 1:]))
        flow, unexplained = optical_flow(first, second)
        rate = torch.where(valid, 1 / gaps.clamp_min(1e-6), 0.0)
        velocity = flow.view(n, count - 1, 2, height, width) * (rate / height)[:, :, None, None, None]
        coarse = avg_pool2d(velocity.flatten(0, 2)[:, None], BLOCK).view(*velocity.shape[:3], height // BLOCK, -1)
        return {
            "motion": _join_histograms(gray, coarse, unexplained.view(n, count - 1), rate, valid),
            "fvmd": _fvmd(velocity, valid),
        }


def load(card: Card, weights: Path | None) -> Motion:
    """Return the network, which has no weights.

    Raises:
        DataError: the card has weights.
    """
    if card.weights is not None:
        raise DataError(f"card {card.name}: the loader motion takes no weights: remove that table")
    return Motion()


def _join_histograms(
    gray: torch.Tensor, velocity: torch.Tensor, unexplained: torch.Tensor, rate: torch.Tensor, valid: torch.Tensor
) -> torch.Tensor:
    """Join the histograms of a clip.

    Args:
        gray: (n, t + 1, height, width).
        velocity: heights a second, (n, t, 2, height, width).
        unexplained: mean difference that the flow leaves between two frames, (n, t).
        rate: frames a second, (n, t).
        valid: pairs that count, (n, t).
    """
    both = valid[:, 1:] & valid[:, :-1]
    per_pixel = [
        _polar(velocity, SPEED, 4, 1.5),
        _polar(velocity.diff(dim=1) * rate[:, 1:, None, None, None], FORCE, 3, 2),
    ]
    cells = _over_time(_pool(per_pixel[0], CELLS), valid)
    forces = _over_time(per_pixel[1].mean((3, 4)), both)
    speeds = _log(velocity.norm(dim=2), SPEED)
    speed = speeds.mean((2, 3))
    third = _thirds(valid)
    light, change = gray.mean((2, 3)), gray.diff(dim=1).abs().mean((2, 3))
    brighter, drift = light.diff(dim=1) * rate, torch.where(valid, light.diff(dim=1), 0.0).sum(1, keepdim=True)
    jump = (speed[:, 1:] - speed[:, :-1]).abs() / (speed[:, 1:] + speed[:, :-1] + 0.1)
    histograms = [
        cells.flatten(2).transpose(1, 2).clamp_min(0).sqrt().flatten(1) / CELLS,
        forces.clamp_min(0).sqrt(),
        *(_over_time(_hats(speed, 6), third == part).sqrt() / math.sqrt(3) for part in range(3)),
        _over_time(_hats(6 * jump, 6), both).sqrt(),
        _over_time(_hats(_log(brighter.abs(), LIGHT), 6), valid).sqrt(),
        _over_time(_hats(_log(brighter.diff(dim=1).abs(), LIGHT), 6), both).sqrt(),
        _hats(3 + 0.6 * drift.sign() * _log(drift.abs(), DRIFT), 6)[:, 0].sqrt(),
        _over_time(_hats(5 * unexplained, 6), valid).sqrt(),
        _over_time(_hats(_log(change, CHANGE), 1), valid).sqrt(),
    ]
    return torch.cat(histograms, 1)


def _polar(vectors: torch.Tensor, unit: float, levels: int, step: float) -> torch.Tensor:
    """Distribute vectors over bins of direction and length: the first is "still", then directions of each length.

    Args:
        vectors: (n, t, 2, height, width).
        unit: length that noise looks like.
        levels: bins of length beyond "still".
        step: doublings of the length from bin to bin.

    Returns:
        (n, t, 1 + levels · 8, height, width), nonnegative, with the sum 1 over the bins; a vector between two bins
        belongs to both by its distance from each.
    """
    right, down = vectors.unbind(2)
    angle = torch.atan2(down, right) * (DIRECTIONS / (2 * math.pi))
    away = (
        angle[:, :, None] - torch.arange(DIRECTIONS, device=angle.device)[:, None, None] + DIRECTIONS / 2
    ) % DIRECTIONS
    direction = (1 - (away - DIRECTIONS / 2).abs()).clamp_min(0)
    length = _hats(_log(vectors.norm(dim=2), unit) / step, levels).movedim(-1, 2)
    moving = (length[:, :, 1:, None] * direction[:, :, None]).flatten(2, 3)
    return torch.cat([length[:, :, :1], moving], 2)


def _pool(values: torch.Tensor, side: int) -> torch.Tensor:
    """Average pictures (n, t, c, height, width) to (n, t, c, side, side)."""
    return adaptive_avg_pool2d(values.flatten(0, 1), side).view(*values.shape[:3], side, side)


def _hats(values: torch.Tensor, last: int) -> torch.Tensor:
    """Distribute values over bins at 0, 1 … `last`, in a new last axis: linear between two, and clipped beyond."""
    away = values.clamp(0, last)[..., None] - torch.arange(last + 1, device=values.device)
    return (1 - away.abs()).clamp_min(0)


def _log(values: torch.Tensor, unit: float) -> torch.Tensor:
    """Count the doublings of a size: log2(1 + x / unit)."""
    return torch.log2(1 + values / unit)


def _over_time(bins: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
    """Average histograms (n, t, bins, …) over the pairs that count, (n, t); without any, all is in the first bin."""
    weights = counted.float().view(*counted.shape, *[1] * (bins.dim() - 2))
    still = torch.zeros_like(bins[:, 0])
    still[:, 0] = 1
    total = weights.sum(1)
    return torch.where(total > 0, (bins * weights).sum(1) / total.clamp_min(1), still)


def _thirds(valid: torch.Tensor) -> torch.Tensor:
    """Number the thirds of the pairs that count, 0 to 2, (n, t); −1 for the others."""
    place = valid.cumsum(1) - 1
    return torch.where(valid, (3 * place) // valid.sum(1, keepdim=True).clamp_min(1), -1)


MEASURED = (
    *("speed", "right", "down", "outward", "unevenness", "flicker", "brightening", "jumps", "repetition"),
    "speeding up",
)
"""Measurements that can be read off an embedding, in order."""


def measurements(rows: torch.Tensor) -> torch.Tensor:
    """Read off embeddings how clips move, in the order of `MEASURED`, in units of the bins of their histograms.

    Args:
        rows: output "motion" of clips, (n, 380).

    Returns:
        (n, 10): speed; motion to the right, downwards, and away from the middle, which is negative for the opposite;
        change of speed between frames; flicker; how much brighter the end is than the start; what the flow does not
        explain, as at cuts; the share of frames that are as the one before; and how much faster the end is.
    """
    shares = rows.double() ** 2
    sizes = [CELLS**2 * (1 + 4 * DIRECTIONS), 1 + 3 * DIRECTIONS, 7, 7, 7, 7, 7, 7, 7, 7, 2]
    cells, _, *parts = shares.split(sizes, 1)  # type: ignore[no-untyped-call]
    first, middle, last, uneven, _, flicker, drift, unexplained = (
        (part / part.sum(1, keepdim=True)) @ torch.arange(7, device=part.device).double() for part in parts[:-1]
    )
    moving = cells.view(len(rows), CELLS**2, -1)[:, :, 1:].reshape(len(rows), CELLS, CELLS, 4, DIRECTIONS)
    by_direction = torch.einsum("nijkd,k->nijd", moving, torch.arange(1, 5, device=rows.device).double())
    angles = torch.arange(DIRECTIONS, device=rows.device) * (2 * math.pi / DIRECTIONS)
    right, down = by_direction @ angles.cos().double(), by_direction @ angles.sin().double()
    place = torch.linspace(-1, 1, CELLS, device=rows.device, dtype=torch.float64)
    outward = (right * place + down * place[:, None]).sum((1, 2))
    speed = (first + middle + last) / 3
    right, down, repeated = right.sum((1, 2)), down.sum((1, 2)), parts[-1][:, 0]
    found = (speed, right, down, outward, uneven, flicker, drift - 3, unexplained, repeated, last - first)
    return torch.stack(found, dim=1)


def motion_histograms(vectors: torch.Tensor) -> torch.Tensor:
    """Sum sizes of motion by direction in cells of 5 x 5 points, as FVMD does (Liu et al. 2024, arXiv:2407.16124).

    Args:
        vectors: pixels of a picture of 256 x 256 from frame to frame, to the right and downwards, (…, 20, 20, 2).

    Returns:
        (…, 4, 4, 8): for each cell and direction, the sum of ⌈log2(1 + |v|)⌉ / 8, with |v| up to 255.
    """
    angle = torch.atan2(vectors[..., 0], vectors[..., 1])
    direction = ((angle + math.pi) / (2 * math.pi / DIRECTIONS)).floor().clamp(0, DIRECTIONS - 1).long()
    size = torch.log2(1 + vectors.norm(dim=-1).clamp(0, FVMD_SIDE - 1)).ceil() / math.log2(FVMD_SIDE)
    sizes = size[..., None] * torch.nn.functional.one_hot(direction, DIRECTIONS)
    cells = vectors.shape[-2] // FVMD_CELL
    return sizes.reshape(*vectors.shape[:-3], cells, FVMD_CELL, cells, FVMD_CELL, DIRECTIONS).sum((-4, -2))


def _fvmd(velocity: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
    """Return FVMD's histograms of velocity and acceleration, for the thirds of a clip in place of cubes of four frames.

    Where FVMD follows points that a network tracks, the flow is read on the same 20 x 20 points of every frame.
    """
    scale = FVMD_SIDE / FVMD_RATE
    points = _pool(velocity, FVMD_POINTS) * scale
    points = points.movedim(2, -1)
    both = valid[:, 1:] & valid[:, :-1]
    found = []
    for vectors, counted in ((points, valid), (points.diff(dim=1), both)):
        histograms, third = motion_histograms(vectors), _thirds(counted)
        for part in range(3):
            weights = (third == part).float()
            mean = (
                torch.einsum("nt...,nt->n...", histograms, weights) / weights.sum(1).clamp_min(1)[:, None, None, None]
            )
            found.append(FVMD_CUBE * mean)
    return torch.stack(found, 1).flatten(1)


def optical_flow(first: torch.Tensor, second: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute where each pixel of the first frames has moved to in the second ones.

    Args:
        first: gray frames, (n, 1, height, width).
        second: frames that follow them, of the same shape.

    Returns:
        Displacement in pixels, to the right and downwards, (n, 2, height, width); and the mean difference of evened
        pixels that it leaves between the frames, (n,).
    """
    pairs = [(_even_contrast(first), _even_contrast(second))]
    one, other = first, second
    while min(one.shape[2:]) >= 2 * MIN_SIDE:
        one, other = avg_pool2d(one, 2), avg_pool2d(other, 2)
        pairs.append((_even_contrast(one), _even_contrast(other)))
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
    for _ in range(STEPS):
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
    place = torch.stack([across, down], 3)
    return grid_sample(frames, place, mode="bilinear", padding_mode="border", align_corners=True)


def _average_windows(values: torch.Tensor, side: int = WINDOW) -> torch.Tensor:
    """Average over the window around each pixel, without what lies beyond the border.

    Sums of shifted pictures take a fifth of the time of torch's pooling on a CPU.
    """
    for axis in (2, 3):
        length, half = values.shape[axis], side // 2
        wide = pad(values, (0, 0, half, half) if axis == 2 else (half, half))
        total = wide.narrow(axis, 0, length).clone()
        for shift in range(1, side):
            total += wide.narrow(axis, shift, length)
        place = torch.arange(length, device=values.device)
        inside = (place + half).clamp_max(length - 1) - (place - half).clamp_min(0) + 1
        values = total / (inside[:, None] if axis == 2 else inside)
    return values


def _even_contrast(frames: torch.Tensor) -> torch.Tensor:
    """Subtract the local mean and divide by the local contrast."""
    mean, square = (_average_windows(values, 2 * WINDOW - 1) for values in (frames, frames * frames))
    return (frames - mean) / ((square - mean * mean).clamp_min(0) + CONTRAST**2).sqrt()
