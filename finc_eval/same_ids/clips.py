"""Measures of two clips of one id: of their frames as of pictures, and of how they move."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.nn.functional import interpolate

from finc_eval.extractors.networks.flow import optical_flow
from finc_eval.extractors.networks.motion import LUMA
from finc_eval.gallery.thumbnails import spread_evenly
from finc_eval.same_ids.shown import THUMB, Thumbs, make_thumbnails

Array = NDArray[np.float64]
Clips = Sequence[NDArray[np.uint8]]

FRAMES, STEPS, EDGE = 8, 4, 64
"""Frames of a clip that are measured, places where its motion to the next frame is, and pixels of the longer edge for
motion. `broken.UNLIKE_MOTION` was measured with these, on 12 clips."""

FROZEN_CLIP = "frozen"  # name of a clip that stands still

LEAST_CHANGE, FROZEN, MATCHED = 2.0, 0.2, 0.7
"""Root mean square of what differs between the frames of a clip, in steps of 1/255 of its thumbnails, from which it
moves; the part of it up to which another clip stands still; and the correlation of frames that are the same."""

MOTION = ("motion", "speed")  # names of what `measure_motion` measures

LEAST_MOTION = 0.25  # pixels of motion from frame to frame; below, noise of 2/255 moves a clip as much


def frames_of(clips: Clips) -> list[list[Image.Image]]:
    """Return the frames of each clip that are measured."""
    return [[Image.fromarray(clip[place]) for place in spread_evenly(len(clip), FRAMES)] for clip in clips]


def thumbnails_of_clips(clips: Clips) -> Thumbs:
    """Return the thumbnails of as many frames of each clip, one under the other, (n, 8 × 16, 16, 3)."""
    found = [
        make_thumbnails([clip[place] for place in np.linspace(0, len(clip) - 1, FRAMES).round().astype(int)])
        for clip in clips
    ]
    return np.stack(found).reshape(len(clips), FRAMES * THUMB, THUMB, 3)


def measure_motion(first: Clips, second: Clips) -> dict[str, Array]:
    """Measure how unlike pairs of clips, (frames, h, w, 3) uint8 each, move.

    Returns:
        "motion", (n,): the mean length of the difference of both flows, over that of the second's flow plus a quarter
        of a pixel. "speed", (n,): the mean length of the first's flow over the same.
    """
    found = np.zeros((2, len(first)))
    for row, pair in enumerate(zip(first, second, strict=True)):
        steps = max(1, min(STEPS, *(len(clip) - 1 for clip in pair)))  # a clip may be cut short
        own, other = (_flow(clip, pair[1].shape[1:3], steps) for clip in pair)
        scale = float(other.norm(dim=1).mean()) + LEAST_MOTION
        found[:, row] = float((own - other).norm(dim=1).mean()) / scale, float(own.norm(dim=1).mean()) / scale
    return dict(zip(MOTION, found, strict=True))


def _flow(clip: NDArray[np.uint8], size: tuple[int, ...], steps: int) -> torch.Tensor:
    """Return the flow at some places of a clip, (steps, 2, h, w), on frames of the given size made small."""
    places = spread_evenly(max(len(clip) - 1, 1), steps)
    later = np.minimum(places + 1, len(clip) - 1)
    light = torch.from_numpy(np.concatenate([clip[places], clip[later]])).float() / 255 @ torch.tensor(LUMA)
    scale = min(1.0, EDGE / max(size))
    small = [max(1, round(side * scale)) for side in size]
    frames = interpolate(light[:, None], small, mode="bilinear", antialias=True)
    return optical_flow(*frames.chunk(2))[0]


def moves_otherwise(first: Thumbs, second: Thumbs) -> NDArray[np.str_]:
    """Say how each first clip moves otherwise, by the thumbnails of its frames, (n,): "" where it does not.

    Only what differs between the frames of a clip counts, where the second clip moves at all.
    """
    moves = [thumbs.reshape(len(thumbs), FRAMES, -1).astype(np.float32) for thumbs in (first, second)]
    own, other = (move - move.mean(1, keepdims=True) for move in moves)
    strength = [np.sqrt((moved**2).mean((1, 2))) for moved in (own, other)]
    inner = np.einsum("nak,nbk->nab", own, other)
    norms = np.linalg.norm(own, axis=2)[:, :, None] * np.linalg.norm(other, axis=2)[:, None] + 1e-6
    alike = inner / norms  # (n, 8, 8): frames of the first with frames of the second
    kept = np.trace(alike, axis1=1, axis2=2) / FRAMES
    backwards = np.trace(alike[:, ::-1], axis1=1, axis2=2) / FRAMES
    reordered = alike.max(2).mean(1)
    does_move = strength[1] > LEAST_CHANGE
    return np.select(
        [
            does_move & (strength[0] < FROZEN * strength[1]),
            does_move & (backwards > MATCHED) & (backwards > kept + MATCHED / 2),
            does_move & (reordered > MATCHED) & (reordered > kept + MATCHED / 2),
        ],
        [FROZEN_CLIP, "played backwards", "with frames in another order"],
        "",
    )
