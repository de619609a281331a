"""Which reader decodes videos fastest? Windows of 16 frames of the clips of the test assets, one thread.

`finc-eval` is `read_windows`, with all that makes windows right: the true number of frames, damage, traits. `PyAV,
twice` is the shortest way by hand: one pass counts, another converts the wanted frames. `PyAV, all` converts all.
`torchcodec`, if it can be imported and finds FFmpeg, is asked for the same frames by number, and seeks. A video counts
as right, and is timed, if the reader returns the same frames as decoding everything does.
"""

import itertools
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import av
import numpy as np
import torch
from _real import asset
from _record import record

from finc_eval.samples.clips import Clip, window_indices
from finc_eval.samples.video import read_windows

REPEATS = 5
WINDOWS = (1, 4)


def ours(path, clip):
    with path.open("rb") as stream:
        return [pixels for pixels, _ in read_windows(stream, clip, range(clip.windows))]


def frames_of(path):
    container = av.open(str(path), metadata_errors="ignore")
    container.streams.video[0].codec_context.thread_count = 1
    return container.decode(video=0)


def pyav(path, clip):
    plan = window_indices(sum(1 for _ in frames_of(path)), None, clip)
    wanted = set(plan.ravel().tolist())
    kept = {n: frame.to_ndarray(format="rgb24") for n, frame in enumerate(frames_of(path)) if n in wanted}
    return [np.stack([kept[int(number)] for number in row]) for row in plan]


def pyav_all(path, clip):
    frames = np.stack([frame.to_ndarray(format="rgb24") for frame in frames_of(path)])
    return list(frames[window_indices(len(frames), None, clip)])


def torchcodec(path, clip):
    from torchcodec.decoders import VideoDecoder

    decoder = VideoDecoder(str(path), dimension_order="NHWC", num_ffmpeg_threads=1)
    plan = window_indices(decoder.metadata.num_frames, None, clip)
    return list(decoder.get_frames_at(plan.ravel().tolist()).data.numpy().reshape(*plan.shape, *decoder[0].shape[-3:]))


READERS = {"finc-eval": ours, "PyAV, twice": pyav, "PyAV, all": pyav_all, "torchcodec": torchcodec}


def main():
    folder = asset("clips")
    if folder is None:
        return
    torch.set_num_threads(1)
    readers = READERS if find_spec("torchcodec") else {k: v for k, v in READERS.items() if k != "torchcodec"}
    rows = []
    for suffix, windows in itertools.product((".mp4", ".avi"), WINDOWS):
        clip, paths = Clip(16, 1, windows, "refuse"), sorted(Path(folder).glob(f"*{suffix}"))
        expected = {path: pyav_all(path, clip) for path in paths}
        for name, read in readers.items():
            right = [path for path in paths if is_right(partial(read, path, clip), expected[path])]
            best = [min(seconds(partial(read, path, clip)) for _ in range(REPEATS)) for path in right]
            rows.append(
                {
                    "videos": f"{len(paths)} x {suffix}",
                    "windows": windows,
                    "reader": name,
                    "right": len(right),
                    "ms a video": round(1e3 * float(np.mean(best)), 1) if best else "",
                }
            )
            print(rows[-1], flush=True)
    record("video_decoding", rows, notes=f"best of {REPEATS}, one thread")


def is_right(call, expected):
    try:
        return np.array_equal(call(), expected)
    except RuntimeError as error:  # raised by torchcodec if a frame cannot be read
        print(str(error).splitlines()[0])
        return False


def seconds(call):
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
