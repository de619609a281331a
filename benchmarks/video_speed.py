"""Measure how much video a core reads and describes in a second, for clips of 256 pixels at 25 frames a second.

Real clips are cut to 33 frames, scaled to a short side of 256 pixels, and encoded in H.264; `motion` looks at all
frames. Seconds are of the processor, so that they hardly depend on what else runs. Other rows: decoding alone, and
OpenCV's dense flow, if OpenCV is installed, at 256 pixels and at the 64 pixels of `motion`.

    python benchmarks/video_speed.py
"""

import importlib.util
import sys
import tempfile
import time
import warnings
from pathlib import Path

import av
import numpy as np
import torch
from _real import asset
from _record import record
from PIL import Image

import finc_eval as fe
from finc_eval.extractors.catalog import load_card
from finc_eval.samples.opening import open_source
from finc_eval.samples.video import open_container

CLIPS, FRAMES, SIDE, RATE = 48, 33, 256, 25


def write_clips(folder, videos):
    """Write clips of 33 frames with a short side of 256 pixels, from videos one after the other."""
    made = 0
    while made < CLIPS:
        for path in videos:
            with path.open("rb") as file, open_container(file) as container:
                pictures = [
                    frame.to_image() for frame, _ in zip(container.decode(video=0), range(FRAMES), strict=False)
                ]
            size = [2 * round(side * SIDE / min(pictures[0].size) / 2) for side in pictures[0].size]
            with av.open(str(folder / f"{made:03d}.mp4"), "w") as out:
                stream = out.add_stream("libx264", rate=RATE)
                (stream.width, stream.height), stream.pix_fmt = size, "yuv420p"
                for number in range(FRAMES):
                    picture = pictures[number % len(pictures)].resize(size, Image.Resampling.BICUBIC)
                    out.mux(stream.encode(av.VideoFrame.from_ndarray(np.asarray(picture), format="rgb24")))
                out.mux(stream.encode())
            made += 1


def flow_of_opencv(paths, method, side):
    """Decode files by OpenCV and compute its flow between neighboring frames, with a side of so many pixels."""
    import cv2

    cv2.setNumThreads(1)
    dis = cv2.DISOpticalFlow_create(cv2.DISOPTICAL_FLOW_PRESET_FAST) if method == "DIS" else None
    for path in paths:
        video, before = cv2.VideoCapture(str(path)), None
        while True:
            read, frame = video.read()
            if not read:
                break
            gray = cv2.cvtColor(frame, cv2.COLOR_BGR2GRAY)
            if side != SIDE:
                gray = cv2.resize(gray, (side, side), interpolation=cv2.INTER_AREA)
            if before is not None and dis is not None:
                dis.calc(before, gray, None)
            elif before is not None:
                cv2.calcOpticalFlowFarneback(before, gray, None, 0.5, 3, 15, 3, 5, 1.2, 0)
            before = gray


def main():
    """Measure and record."""
    folder = asset("clips")
    if folder is None:
        return
    torch.set_num_threads(1)
    videos = sorted(path for path in folder.iterdir() if "distorted" not in path.name)
    with tempfile.TemporaryDirectory() as scratch:
        clips = Path(scratch) / "clips"
        clips.mkdir()
        write_clips(clips, videos)
        paths = sorted(clips.iterdir())
        fe.extract(clips, "motion", Path(scratch) / "warm.h5", n=2)
        ways = {
            "finc-eval: decode": lambda: list(open_source(clips, clip=load_card("motion").clip).samples()),
            "finc-eval: decode, and motion": lambda: fe.extract(clips, "motion", Path(scratch) / "all.h5"),
        }
        if importlib.util.find_spec("cv2"):
            for side in (SIDE, 64):
                for method in ("Farneback", "DIS"):
                    name = f"OpenCV: decode, and {method} at {side} pixels"
                    ways[name] = lambda method=method, side=side: flow_of_opencv(paths, method, side)
        rows = []
        for name, run in ways.items():
            start = time.process_time()
            run()
            seconds = (time.process_time() - start) / (CLIPS * FRAMES / RATE)
            rows.append(
                {"way": name, "seconds of a core": f"{seconds:.3f}", "× real time, two cores": f"{2 / seconds:.0f}"}
            )
            print(rows[-1], flush=True)
    record("video_speed", rows, f"For a second of video of {SIDE} pixels, {RATE} frames a second.")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main())
