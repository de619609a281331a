"""Motion without weights: dense optical flow between the frames of a clip, and histograms of what moves how.

Velocities are in heights of the picture a second, by the times of the frames. Frames that repeat at the end of a short
clip, at equal times, do not count.
"""

from __future__ import annotations

import math

import torch
from torch.nn.functional import adaptive_avg_pool2d, avg_pool2d

from finc_eval.extractors.card import Card
from finc_eval.extractors.networks.flow import even_contrast, optical_flow

LUMA = (0.299, 0.587, 0.114)  # weights of red, green and blue in light (ITU-R BT.601), as Pillow has them

BLOCK = 4  # side of the blocks in pixels, within which the flow is averaged before it is counted

DIRECTIONS = 8
CELLS = 3  # directions of motion, and cells along a side of the picture, that histograms distinguish

SPEED, FORCE = 0.02, 0.5
"""Speed in heights a second, and acceleration in heights a second squared, that noise of the flow looks like."""

LIGHT_NOISE, LIGHT_DRIFT, CHANGE = 0.1, 0.016, 0.002
"""Change of brightness in shares of white that noise looks like: a second, over a clip, and of a pixel in a frame."""

STEP_NOISE, SHARP = 0.03, 0.02
"""Doublings of a step, and of sharpness from frame to frame and back, that noise looks like."""

DOUBLINGS = 4  # doublings of noise from which a rhythm is full
PERIODS = range(2, 7)  # periods of flicker in frames: longer ones come fewer than five times in the 33 frames of a clip

OFTEN = 0.25
"""Share of the pairs of frames between which motion must turn back: a cut, or the two of a loop, touch 4 of 31. Half of
it is the share of the steps that must be longer than those around them: each has two neighbors that are not."""

CUT_RESIDUAL = 0.25
"""Mean of evened pixels that the flow leaves at a cut, at least: half of what it leaves between two scenes, .54."""

FVMD_SIDE, FVMD_RATE, FVMD_POINTS, FVMD_CELL, FVMD_CUBE = 256, 25.0, 20, 5, 4
"""Histograms of FVMD (arXiv 2407.16124): pixels along a side, rate a second, points along a side and of a cell, and
frames of a cube."""


class Motion(torch.nn.Module):
    """(n, 3, frames, height, width) in 0…1 and times (n, frames) in seconds -> the outputs "motion" and "fvmd".

    "motion" joins histograms of one clip. Each holds the roots of its shares, so that its length is one:
    velocities by direction and speed in 3 x 3 cells; accelerations by direction and size; speeds in each third of the
    clip; how long a step is, relative to its neighbors; changes of brightness, flicker by its period, and the drift of
    brightness and of sharpness over the clip; what the flow does not explain, and how much more that is at one frame;
    whether frames come again; whether motion turns back; whether any pixel changes; and the periods of steps and of
    sharpness.
    """

    takes_times = True

    def forward(self, frames: torch.Tensor, times: torch.Tensor) -> dict[str, torch.Tensor]:
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


def create(_: Card) -> Motion:
    """Make the network."""
    return Motion()


def _join_histograms(
    gray: torch.Tensor, velocity: torch.Tensor, unexplained: torch.Tensor, rate: torch.Tensor, valid: torch.Tensor
) -> torch.Tensor:
    """Join the histograms of a clip.

    Frames are gray, (n, t + 1, height, width), with velocities in heights a second, (n, t, 2, height, width). Three
    more have a value for each pair of frames: the mean difference that the flow leaves, the rate, and which pairs
    count.
    """
    both = valid[:, 1:] & valid[:, :-1]
    inner = both[:, 1:] & both[:, :-1]
    cells = _over_time(_pool(_polar(velocity, SPEED, 4, 1.5), CELLS), valid)
    force = _polar(velocity.diff(dim=1) * rate[:, 1:, None, None, None], FORCE, 3, 2)
    forces = _over_time(force.mean((3, 4)), both)
    speed = _log(velocity.norm(dim=2), SPEED).mean((2, 3))
    third = _thirds(valid)
    change = gray.diff(dim=1).abs().mean((2, 3))
    brighter, drift = _light(gray, change, rate, valid)
    sharpness = _log_sharpness(gray)
    steps = torch.where(inner & (change.unfold(1, 3, 1).amin(2) > CHANGE), _steps(velocity), 0.0)
    histograms = [
        cells.flatten(2).transpose(1, 2).clamp_min(0).sqrt().flatten(1) / CELLS,
        forces.clamp_min(0).sqrt(),
        *(_over_time(_hats(speed, 6), third == part).sqrt() / math.sqrt(3) for part in range(3)),
        _hats(3 + 2 * steps, 6).mean(1).sqrt(),
        _over_time(_hats(_log(brighter.abs(), LIGHT_NOISE), 6), valid).sqrt(),
        _rhythm(brighter.diff(dim=1) / LIGHT_NOISE, both).sqrt(),
        _hats(3 + 0.6 * drift.sign() * _log(drift.abs(), LIGHT_DRIFT), 6)[:, 0].sqrt(),
        _over_time(_hats(5 * unexplained, 6), valid).sqrt(),
        _over_time(_hats(_log(change, CHANGE), 1), valid).sqrt(),
        _hats(3 + 1.5 * _growth(sharpness[:, 1:], third), 6)[:, 0].sqrt(),
        _hats(5 * _above_mean(unexplained, valid), 6)[:, 0].sqrt(),
        _hats(6 * _loops(gray, valid), 6)[:, 0].sqrt(),
        _hats(6 * _quantile(_turned(velocity), both, 1 - OFTEN), 6)[:, 0].sqrt(),
        _hats(6 * _quantile(steps, inner, 1 - OFTEN / 2), 6)[:, 0].sqrt(),
        _rhythm(steps / STEP_NOISE, inner).sqrt(),
        _rhythm(sharpness.diff(dim=1).diff(dim=1) / SHARP, both).sqrt(),
    ]
    return torch.cat(histograms, 1)


def _light(
    gray: torch.Tensor, change: torch.Tensor, rate: torch.Tensor, valid: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return how much brighter the whole frame becomes in a second, (n, t), and from the first to the last, (n, 1).

    `change` is the mean change of a pixel, (n, t). Light counts fully if all pixels change alike; less where they move.
    """
    step = gray.mean((2, 3)).diff(dim=1)
    alike = step.abs() / change.clamp_min(1e-6)
    return step * alike * rate, torch.where(valid, step, 0.0).sum(1, keepdim=True)


def _growth(values: torch.Tensor, third: torch.Tensor) -> torch.Tensor:
    """Return the mean of values, (n, t), over the last third of a clip minus that over the first, (n, 1)."""
    before, after = ((values * (third == part)).sum(1, keepdim=True) for part in (0, 2))
    return (after - before) / (third == 0).sum(1, keepdim=True).clamp_min(1)


def _above_mean(values: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
    """Return by how much the largest of the values that count is above their mean, (n, 1)."""
    counted = torch.where(valid, values, 0.0)
    return counted.amax(1, keepdim=True) - counted.sum(1, keepdim=True) / valid.sum(1, keepdim=True).clamp_min(1)


def _turned(velocity: torch.Tensor) -> torch.Tensor:
    """Return how far motion turns from frame to frame, (n, t − 1): −1 if it stays, 1 if all of it turns back."""
    lengths = velocity.norm(dim=2)
    along: torch.Tensor = (velocity[:, 1:] * velocity[:, :-1]).sum(2).sum((2, 3))
    most: torch.Tensor = (lengths[:, 1:] * lengths[:, :-1] + SPEED**2).sum((2, 3))
    return -along / most


def _steps(velocity: torch.Tensor) -> torch.Tensor:
    """Return the log2 of each inner step, (n, t − 2).

    A step is the multiple of the mean flow of its neighbors that is nearest to its own flow.
    """
    around = (velocity[:, 2:] + velocity[:, :-2]) / 2
    along, square = (velocity[:, 1:-1] * around).mean((2, 3, 4)), around.square().mean((2, 3, 4))
    return torch.log2(((along + SPEED**2) / (square + SPEED**2)).clamp(1 / 4, 4))


def _rhythm(changes: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
    """Divide a clip among "steady", changes without a period, and changes of each of `PERIODS`, (n, 7).

    Changes from frame to frame and back are in units of noise, (n, t). A period is a lag at which they are more alike
    than at all shorter lags, and more alike than not. Without a period, half of the frames must change: a cut does not
    flicker.
    """
    much = torch.log2(changes.abs().clamp(1, 2**DOUBLINGS)) / DOUBLINGS
    mean = (much * counted).sum(1) / counted.sum(1).clamp_min(1)
    values = torch.where(counted, changes, 0.0)
    alike = []
    for lag in (1, *PERIODS):
        late, early = values[:, lag:], values[:, :-lag]
        power = (late.square() * counted[:, :-lag] + early.square() * counted[:, lag:]).sum(1) / 2
        alike.append((late * early).sum(1) / power.clamp_min(1e-12))
    highest = (2 * torch.stack(alike, 1) - 1).clamp(0, 1).cummax(1).values
    by_period = mean[:, None] * highest.diff(dim=1)
    without = (torch.minimum(_quantile(much, counted, 0.5)[:, 0], mean) * (highest[:, -1] == 0))[:, None]
    return torch.cat([1 - without - by_period.sum(1, keepdim=True), without, by_period], 1)


def _quantile(values: torch.Tensor, counted: torch.Tensor, share: float) -> torch.Tensor:
    """Return what a share of the values that count lies below, (n, t) -> (n, 1); 0 without any."""
    return torch.nan_to_num(torch.where(counted, values, math.nan).nanquantile(share, 1)[:, None])


def _loops(gray: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
    """Return how far frames come back to what they were: 1 if all come again after less than half of the clip, (n, 1).

    Frames differ by D(p) from the frames p later. This is the largest 1 - 2 D(p) / D(q) of lags q < p, or 0: frames
    that come back by less than half of the way do not count.
    """
    n, count = gray.shape[:2]
    small = even_contrast(avg_pool2d(gray, 2).flatten(0, 1)[:, None]).view(n, count, -1)
    apart = torch.cdist(small, small, compute_mode="donot_use_mm_for_euclid_dist")
    frames = 1 + valid.sum(1)
    instant, unlike = torch.arange(count, device=gray.device), []
    for lag in range(1, count // 2 + 1):
        pairs = (instant[lag:] < frames[:, None]).float()
        mean = (apart.diagonal(lag, 1, 2) * pairs).sum(1) / pairs.sum(1).clamp_min(1)
        unlike.append(torch.where(2 * lag <= frames, mean, math.inf))
    lags = torch.stack(unlike, 1)
    most = torch.where(lags.isinf(), 0.0, lags).cummax(1).values
    return (1 - 2 * (lags + 1e-6) / (most + 1e-6)).amax(1, keepdim=True).clamp_min(0)


def _log_sharpness(gray: torch.Tensor) -> torch.Tensor:
    """Return log2 of how sharp each frame is: its Laplacian, relative to its contrast, (n, t)."""
    inner = gray[:, :, 1:-1, 1:-1]
    around = gray[:, :, :-2, 1:-1] + gray[:, :, 2:, 1:-1] + gray[:, :, 1:-1, :-2] + gray[:, :, 1:-1, 2:]
    edges = (4 * inner - around).square().mean((2, 3)).sqrt()
    return torch.log2((edges + CHANGE) / (gray.flatten(2).std(2) + CHANGE))


def _polar(vectors: torch.Tensor, unit: float, levels: int, step: float) -> torch.Tensor:
    """Distribute vectors over bins of direction and length: the first is "still", then directions of each length.

    Vectors (n, t, 2, height, width) become (n, t, 1 + levels · 8, height, width), with the sum 1 over the bins; a
    vector between two bins belongs to both by its distance from each. `unit` is the length that noise looks like, and
    `step` the doublings of the length from bin to bin.
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
    number = valid.cumsum(1) - 1
    return torch.where(valid, (3 * number) // valid.sum(1, keepdim=True).clamp_min(1), -1)


MEASURED = (
    *("speed", "right", "down", "outward", "unevenness", "brightening", "repetition", "speeding up", "sharpening"),
    *("jump", "cut", "loop", "turning", "skipping", "judder", "alternation", "flicker"),
    *(f"flicker of {period} frames" for period in PERIODS),
)
"""Measurements that can be read off an embedding, in order."""


def measurements(rows: torch.Tensor) -> torch.Tensor:
    """Read off embeddings how clips move, in the order of `MEASURED`, in units of the bins of their histograms.

    Args:
        rows: output "motion" of clips, (n, 429).

    Returns:
        (n, 22): speed; motion to the right, downwards, and away from the middle, which is negative for the opposite;
        change of speed between frames; how much brighter the end is than the start; the share of frames that are as the
        one before; how much faster, and how much sharper, the end is; how much more the flow leaves unexplained at one
        frame than on average, and how far that is beyond `CUT_RESIDUAL`; how far frames come again; how far motion
        turns back from frame to frame; how much longer than its neighbors an eighth of the steps are; judder, steps
        whose lengths have a period; how far sharpness has one; flicker without a period, and by its period.
    """
    shares = rows.double() ** 2
    sizes = [CELLS**2 * (1 + 4 * DIRECTIONS), 1 + 3 * DIRECTIONS, 7, 7, 7, 7, 7, 7, 7, 7, 2, 7, 7, 7, 7, 7, 7, 7]
    cells, _, *parts = shares.split(sizes, 1)  # type: ignore[no-untyped-call]
    juddering, alternating = (rhythm[:, 2:].sum(1) for rhythm in parts[-2:])
    flicker, steps, repeated = parts[5][:, 1:], parts[3], parts[8][:, 0]
    bins = torch.arange(7, device=rows.device).double()
    first, middle, last, _, _, _, drift, _, _, sharper, jump, loop, turning, skipped = (
        (part / part.sum(1, keepdim=True)) @ bins[: part.shape[1]] for part in parts[:-2]
    )
    uneven = steps @ (bins - 3).abs()
    moving = cells.view(len(rows), CELLS**2, -1)[:, :, 1:].reshape(len(rows), CELLS, CELLS, 4, DIRECTIONS)
    by_direction = torch.einsum("nijkd,k->nijd", moving, torch.arange(1, 5, device=rows.device).double())
    angles = torch.arange(DIRECTIONS, device=rows.device) * (2 * math.pi / DIRECTIONS)
    right, down = by_direction @ angles.cos().double(), by_direction @ angles.sin().double()
    position = torch.linspace(-1, 1, CELLS, device=rows.device, dtype=torch.float64)
    outward = (right * position + down * position[:, None]).sum((1, 2))
    speed = (first + middle + last) / 3
    right, down = right.sum((1, 2)), down.sum((1, 2))
    measured = (speed, right, down, outward, uneven, drift - 3, repeated, last - first, sharper - 3, jump)
    cut = (jump / 5 - CUT_RESIDUAL).clamp_min(0)
    return torch.stack([*measured, cut, loop, turning, skipped, juddering, alternating, *flicker.unbind(1)], dim=1)


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
    """Return FVMD's histograms of velocity and acceleration, for the thirds of a clip instead of cubes of four frames.

    Where FVMD follows points that a network tracks, the flow is read on the same 20 x 20 points of every frame.
    """
    scale = FVMD_SIDE / FVMD_RATE
    points = (_pool(velocity, FVMD_POINTS) * scale).movedim(2, -1)
    both = valid[:, 1:] & valid[:, :-1]
    parts = []
    for vectors, counted in ((points, valid), (points.diff(dim=1), both)):
        histograms, third = motion_histograms(vectors), _thirds(counted)
        for part in range(3):
            weights = (third == part).float()
            total = torch.einsum("nt...,nt->n...", histograms, weights)
            parts.append(FVMD_CUBE * (total / weights.sum(1).clamp_min(1)[:, None, None, None]))
    return torch.stack(parts, 1).flatten(1)
