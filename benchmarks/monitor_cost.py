"""Measure what a look costs beside the 50 steps of training before it, in CPU time.

    python benchmarks/monitor_cost.py

A small diffusion model of digits, 28 × 28, batches of 64, and looks of 64 samples: embeddings alone (pixels, d = 784),
and with pictures, whose looks are measured too. Sampling and embedding are not counted.
"""

import time

import numpy as np
import torch
from _record import record
from torch import nn

import finc_eval as fe


class Denoiser(nn.Module):
    """A convolutional network of two scales that predicts the noise."""

    def __init__(self, width=64):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(2, width, 3, padding=1), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1))
        self.low = nn.Sequential(
            *(nn.AvgPool2d(2), nn.Conv2d(width, 2 * width, 3, padding=1), nn.SiLU()),
            *(nn.Conv2d(2 * width, width, 3, padding=1), nn.Upsample(scale_factor=2)),
        )
        self.last = nn.Sequential(nn.SiLU(), nn.Conv2d(width, width, 3, padding=1), nn.SiLU(), nn.Conv2d(width, 1, 1))

    def forward(self, x, level):
        x = self.first(torch.cat([x, level.expand_as(x)], 1))
        return self.last(x + self.low(x))


def training(steps):
    """Return the CPU seconds of some steps of training."""
    model, data = Denoiser(), torch.rand(64, 1, 28, 28)
    optimizer = torch.optim.Adam(model.parameters())

    def step():
        level, noise = torch.rand(64, 1, 1, 1), torch.randn_like(data)
        loss = (model((1 - level).sqrt() * data + level.sqrt() * noise, level) - noise).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    step()
    start = time.process_time()
    for _ in range(steps):
        step()
    return time.process_time() - start


def looks(pictures, count=20):
    """Return the mean CPU seconds of a look."""
    rng = np.random.default_rng(0)

    def draw(n):
        pixels = rng.integers(0, 256, (n, 28, 28, 3), dtype=np.uint8)
        rows = pixels[..., 0].reshape(n, -1) / 255
        return fe.EmbeddingSet(rows, images=[*pixels]) if pictures else rows

    monitor, sets = fe.Monitor(draw(1000)), [draw(64) for _ in range(count + 1)]
    monitor.update(0, sets[0])
    start = time.process_time()
    for step, one in enumerate(sets[1:], start=1):
        monitor.update(step, one)
    return (time.process_time() - start) / count


if __name__ == "__main__":
    whole = training(50)
    rows = []
    for name, pictures in (("embeddings", False), ("embeddings and pictures", True)):
        cost = looks(pictures)
        rows.append(
            {
                "a look of 64": name,
                "CPU s": f"{cost:.3f}",
                "50 steps, CPU s": f"{whole:.1f}",
                "part": f"{cost / whole:.2%}",
            }
        )
    record("monitor_cost", rows, "CPU seconds of a look, and of 50 steps of a small diffusion model.")
