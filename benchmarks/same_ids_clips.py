"""Measure how often two runs of clips with the same ids are called broken or worse, and which clips are listed.

    python benchmarks/same_ids_clips.py [--regime "JPEG 50" … --runs … --jobs …]

The baseline are 60 pieces of 12 real clips: 12 frames of 64 × 64 pixels, at places and times of their own. A run is
what an engine makes of their frames. *equals*: nothing is broken. *other*, *frozen*, *backwards*, *black*: three of the
new clips are other ones, stand still, run backwards, or are black. A piece that hardly moves cannot show it.
"""

from functools import cache

import av
import numpy as np
from _real import asset
from _record import record
from _runs import run
from same_ids import coded, noisy, row_of

import finc_eval as fe

ENGINES = {
    "noise of 1/255": lambda one, rng: noisy(one, rng, 1),
    "noise of 3/255": lambda one, rng: noisy(one, rng, 3),
    "JPEG 85": lambda one, rng: np.stack([coded(frame, rng, 85) for frame in one]),
    "JPEG 50": lambda one, rng: np.stack([coded(frame, rng, 50) for frame in one]),
    "20 % darker": lambda one, _: np.rint(one * 0.8).astype(np.uint8),
}
FAULTS = {
    "other": lambda one, other: other,
    "frozen": lambda one, _: np.repeat(one[len(one) // 2][None], len(one), 0),
    "backwards": lambda one, _: one[::-1],
    "black": lambda one, _: one * 0,
}
RUNS = 40
PAIRS, PLANTED, FRAMES, SIDE = 60, 3, 12, 64


@cache
def videos():
    """Return the frames of the real clips, with a short side of 96 pixels."""
    found = []
    for path in sorted(asset("clips").iterdir()):
        with av.open(str(path), metadata_errors="ignore") as container:
            frames = [frame.to_image() for frame, _ in zip(container.decode(video=0), range(120), strict=False)]
        scale = 96 / min(frames[0].size)
        size = tuple(round(side * scale) for side in frames[0].size)
        found.append(np.stack([np.asarray(frame.convert("RGB").resize(size)) for frame in frames]))
    return found


def piece(video, rng):
    start, top, left = (
        rng.integers(size - part + 1) for size, part in zip(video.shape[:3], (FRAMES, SIDE, SIDE), strict=True)
    )
    return video[start : start + FRAMES, top : top + SIDE, left : left + SIDE]


def a_set(clips):
    rows = np.stack([one[len(one) // 2, ::8, ::8].ravel().astype(np.float32) / 255 for one in clips])
    return fe.EmbeddingSet(rows, [f"{number:03d}.mp4" for number in range(len(rows))], {}, clips)


def one(engine, seed):
    """Return what a run of equals says, and what is listed where one of the faults is planted."""
    rng = np.random.default_rng(seed)
    old = [piece(videos()[number % len(videos())], rng) for number in range(PAIRS)]
    new = [ENGINES[engine](one, rng) for one in old]
    equals = fe.compare(a_set(new), a_set(old), pairs="id", features=100).by_id
    fault, rows = [*FAULTS][seed % len(FAULTS)], rng.choice(PAIRS, PLANTED, replace=False)
    for row in rows:
        new[row] = FAULTS[fault](new[row], new[rng.integers(PAIRS)])
    broken = set(fe.compare(a_set(new), a_set(old), pairs="id", features=100).by_id.broken)
    planted = {f"{row:03d}.mp4" for row in rows}
    return {
        "listed": bool(equals.broken),
        "worse": [one.name for one in equals.worse],
        "fault": fault,
        "found": len(planted & broken),
        "of": len(planted),
        "false": len(broken - planted),
    }


def report(regimes):
    rows = [row_of(engine, runs, FAULTS) for engine, runs in regimes.items()]
    record("same_ids_clips", rows, "Runs, and broken clips found of those planted, with 95 % intervals.")


if __name__ == "__main__":
    run("same_ids_clips", tuple(ENGINES), one, report, RUNS)
