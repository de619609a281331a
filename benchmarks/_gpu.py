"""The device, the sizes, the time and the rows of a run of `gpu.py`."""

import json
import sys
import time
import warnings

import numpy as np
import torch

import finc_eval as fe
from finc_eval.core.device import send

BUDGET = 430  # seconds of all parts; with the loading of libraries and the table a run takes less than eight minutes
LOOK = 5  # seconds after which a measurement is not repeated
FULL = {
    "sizes": (50_000, 250_000),
    "dim": 768,
    "features": 2000,
    "agree": 5000,
    "baselines": (1000, 5000),
    "neighbors": (50_000, 2048),
    "distances": ((50_000, 768), (10_000, 2048)),
    "network": "dinov2-vitl14",
    "images": 20_000,
    "pixels": 256,
    "networks": ("dinov2-vitl14", "inception-fid", "i3d-rgb-k400"),
    "batches": (64, 256),
    "rounds": 3,
}
TINY = {
    "sizes": (100, 120),
    "dim": 8,
    "features": 20,
    "agree": 150,
    "baselines": (100,),
    "neighbors": (200, 8),
    "distances": ((200, 8),),
    "network": "pixels",
    "images": 30,
    "pixels": 16,
    "networks": ("pixels",),
    "batches": (4,),
    "rounds": 1,
}
"""Sizes that a CPU measures in seconds, so that this script is tested."""


class OutOfTime(Exception):
    """The time of the run is spent."""


class Bench:
    """The sizes, the device, the time left and the rows of a run."""

    def __init__(self, device, sizes, out=None, seconds=BUDGET):
        self.device, self.sizes, self.out, self.rows = torch.device(device), sizes, out, []
        self.end = time.perf_counter() + seconds

    @property
    def run(self):
        return fe.Run(device=self.device)

    @property
    def left(self):
        """Seconds that are left."""
        return self.end - time.perf_counter()

    def fits(self, what, seconds):
        """Say what a measurement will take; where less time is left, keep a row that says so."""
        print(f"{what}: about {seconds:.0f} s, and {max(self.left, 0):.0f} s are left", file=sys.stderr, flush=True)
        if seconds <= self.left:
            return True
        self.row(what, "", note=f"left out: it takes about {seconds:.0f} s, and {max(self.left, 0):.0f} s were left")
        return False

    def row(self, what, size, *, seconds=None, figure="", note=""):
        """Keep a row, print it, and write all so far."""
        peak = torch.cuda.max_memory_allocated() / 1e9 if self.device.type == "cuda" else None
        self.rows.append(
            {
                "measurement": what,
                "size": size,
                "seconds": "" if seconds is None else f"{seconds:.3g}",
                "figure": figure,
                "peak, GB": "" if peak is None else f"{peak:.2f}",
                "note": note,
            }
        )
        print(json.dumps(self.rows[-1]), file=sys.stderr, flush=True)
        if self.out is not None:
            self.out.write_text(json.dumps(self.rows, indent=1) + "\n")

    def seconds(self, function):
        """Return the shortest time of a function, which the device has finished, and its last result.

        The first call loads libraries. Long ones are repeated once.
        """
        best, found, started = float("inf"), None, time.perf_counter()
        for turn in range(self.sizes["rounds"] + 1):
            if turn > 1 and time.perf_counter() - started > LOOK:
                break
            if self.device.type == "cuda":
                torch.cuda.reset_peak_memory_stats()
            self.wait()
            start = time.perf_counter()
            found = function()
            self.wait()
            best = min(best, time.perf_counter() - start)
        return best, found

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def mixture(self, n, clusters, seed, dim=None):
        """Return clusters of spread 0.5 around 20 centers of norm about √dim, or the first of them."""
        dim, rng = dim or self.sizes["dim"], np.random.default_rng(seed)
        centers = np.random.default_rng(0).standard_normal((20, dim), np.float32)
        rows = centers[rng.integers(0, clusters, n)]
        rows += rng.standard_normal((n, dim), np.float32) / 2
        return rows

    def pair(self, n, dim=None):
        return self.mixture(n, 20, 1, dim), self.mixture(n, 15, 2, dim)

    def on_device(self, *sets):
        return [send(torch.from_numpy(rows), self.device) for rows in sets]

    def waits(self, function):
        """Return how often the host waited for the device in a call, as text."""
        if self.device.type != "cuda":
            function()
            return "waits not counted"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            try:
                function()
            finally:
                torch.cuda.set_sync_debug_mode("default")
        return f"{sum('called a synchronizing' in str(one.message) for one in caught)} waits of the host"

    def busy(self, function):
        """Return the share of a call in which the device computes, by torch's profiler, as text."""
        if self.device.type != "cuda":
            return "device not profiled"
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
            start = time.perf_counter()
            function()
            self.wait()
            seconds = time.perf_counter() - start
        spent = sum(event.self_device_time_total for event in seen.key_averages()) / 1e6
        return f"device busy {spent / seconds:.0%}"
