"""Motion drawn over the frames of a preview: a short line from where something is to where it goes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image, ImageDraw
from torch.nn.functional import adaptive_avg_pool2d

from finc_eval.extractors.networks.flow import optical_flow

SIDE, LINES = 64, 8
"""Pixels along a side on which flow is computed, and lines along a side."""

LEAST = 0.01
"""Motion from one shown frame to the next, in sides of the picture, below which no line is drawn: less than a pixel."""

REACH, COLOR = 0.8 / LINES, (255, 214, 0)
"""Length of a line at most, so that lines stand apart, and their color."""


def draw_motion(pictures: Sequence[Image.Image], frames: npt.NDArray[np.uint8], shown: npt.NDArray[np.int64]) -> None:
    """Draw on pictures of frames how each eighth of them moves until the next picture.

    Args:
        pictures: small pictures of the shown frames, which are drawn on.
        frames: all frames of the clip, RGB, shape (frames, height, width, 3).
        shown: places of the shown frames, ascending.
    """
    small = [
        np.asarray(Image.fromarray(one).convert("L").resize((SIDE, SIDE))) for one in frames[shown[0] : shown[-1] + 1]
    ]
    gray = torch.from_numpy(np.stack(small))[:, None].float() / 255
    if len(gray) < 2:
        return
    flow, _ = optical_flow(gray[:-1], gray[1:])
    cells = adaptive_avg_pool2d(flow, LINES) / SIDE
    for picture, start, stop in zip(pictures, shown, shown[1:], strict=False):
        moves = cells[start - shown[0] : stop - shown[0]].sum(0).clamp(-REACH, REACH)
        draw, (width, height) = ImageDraw.Draw(picture), picture.size
        for row, column in (moves.norm(dim=0) > LEAST).nonzero().tolist():
            across, down = moves[:, row, column].tolist()
            x, y = (column + 0.5) / LINES, (row + 0.5) / LINES
            ends = [(x * width, y * height), ((x + across) * width, (y + down) * height)]
            draw.line(ends, fill=COLOR)
            draw.point(ends[1], fill=(255, 255, 255))
