"""Small videos made on the spot, and PyAV's own reading of them, to compare with."""

import io
from fractions import Fraction

import av
import numpy as np
from PIL import Image

from finc_eval.samples.video import open_container

CODECS = {
    "mp4": ("libx264", "yuv420p"),
    "mov": ("mpeg4", "yuv420p"),
    "m4v": ("libx264", "yuv420p"),
    "avi": ("mpeg4", "yuv420p"),
    "mkv": ("libx265", "yuv420p10le"),
    "webm": ("libvpx-vp9", "yuv420p"),
}
FORMATS = {"mkv": "matroska", "m4v": "mp4"}


def scene(n=24, height=48, width=64, seed=0):
    """Blocks of random colors that move to the right, each frame unlike the others: (n, height, width, 3)."""
    colors = np.random.default_rng(seed).integers(0, 256, (height // 8, width // 8, 3), dtype=np.uint8)
    picture = colors.repeat(8, axis=0).repeat(8, axis=1)
    return np.stack([np.roll(picture, 2 * number, axis=1) for number in range(n)])


def encode(suffix, frames, rate=25, options=None, times=None, mark=None, title=None):
    """Encode frames as a file of this suffix; `times` in milliseconds, `mark` sets color properties of a frame.

    `title` is a tag of the file and of its stream.
    """
    codec, pixel_format = CODECS[suffix]
    file = io.BytesIO()
    with av.open(file, "w", format=FORMATS.get(suffix, suffix)) as container:
        stream = container.add_stream(codec, rate=rate, options=options or {})
        if title is not None:
            container.metadata["title"] = stream.metadata["title"] = title
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = pixel_format
        if times is not None:
            stream.codec_context.time_base = Fraction(1, 1000)
        if codec == "libx265":
            stream.options = {"x265-params": "log-level=none"}
        for number, pixels in enumerate(frames):
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24").reformat(format=pixel_format)
            frame.pts = number
            if times is not None:
                frame.pts, frame.time_base = times[number], Fraction(1, 1000)
            if mark is not None:
                mark(stream, frame)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return file.getvalue()


def gif(frames):
    """Encode frames as an animated GIF of at most 256 colors, exactly."""
    pictures = [Image.fromarray(frame).quantize(256) for frame in frames]
    file = io.BytesIO()
    pictures[0].save(file, "GIF", save_all=True, append_images=pictures[1:], duration=40, loop=0)
    return file.getvalue()


def every_frame(data):
    """Frame by frame as PyAV reads them: (n, height, width, 3)."""
    with open_container(io.BytesIO(data)) as container:
        container.streams.video[0].codec_context.thread_count = 1
        return np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)])
