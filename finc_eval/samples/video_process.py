"""Decoding of each video in a process of its own, since FFmpeg trusts what an index states: no crash ends a run.

FFmpeg goes over all that the index of a file states before it returns, in time and memory that the file chooses. The
process ends at a limit of both.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import IO

import numpy as np

from finc_eval.core import isolation
from finc_eval.core.isolation import Line, Pool, ProcessLimits, TooLongError, check_ended
from finc_eval.core.memory import DECODED, VARIABLE, max_decoded, readable
from finc_eval.samples import video
from finc_eval.samples.clips import Clip, DecodedWindow
from finc_eval.samples.encoding import Encoding
from finc_eval.samples.source import reason
from finc_eval.samples.whole.course import COURSE_SIDE, ClipCourse

SECONDS = 3
"""Seconds of computing that opening a file, or decoding a frame of few pixels, may take. The slowest of
`assets/clips` opens in 0.02 s."""

SECONDS_PER_UNIT = 5e-8
"""Further seconds for each pixel of a frame, or byte of a file that is opened."""

_pool = Pool("finc_eval.samples.video_process.serve", "av")


def read_windows(
    stream: IO[bytes], clip: Clip, windows: Sequence[int], *, with_course: bool = False
) -> Iterator[DecodedWindow]:
    """Decode windows of a video, as `video.read_windows` does, in another process if the system has limits for them."""
    if not isolation.is_possible():
        yield from video.read_windows(stream, clip, windows, with_course=with_course)
        return
    asked = {"clip": asdict(clip), "windows": [*map(int, windows)], "most": max_decoded(), "seconds": SECONDS}
    error: ValueError | None = None
    course: ClipCourse | None = None
    with _pool.worker() as line:
        asked["course"] = with_course
        if isinstance(stream, io.BytesIO):
            line.tell(asked, stream.getbuffer())
        else:
            line.tell(asked, file=stream.fileno())
        while True:
            facts, data, _ = line.hear()
            try:
                check_ended(facts)
            except TooLongError:
                facts = {"error": f"took more than {SECONDS:g} seconds to open, or to decode a frame: encode it again"}
            except ValueError as crash:
                facts = {"error": str(crash)}
            if "shape" in facts:
                pixels = np.frombuffer(data, np.uint8).reshape(facts["shape"])
                yield DecodedWindow(pixels, np.array(facts["times"], np.float64), Encoding(**facts["encoding"]), course)
            elif "course" in facts:
                frames = np.frombuffer(data, np.uint8).reshape(-1, COURSE_SIDE, COURSE_SIDE, 3)
                course = ClipCourse(frames, np.array(facts["course"], np.float64))
            elif "take" in facts:
                DECODED.take(facts["take"])
            else:
                error = ValueError(facts["error"]) if "error" in facts else None
                break
            line.tell({})
    if error is not None:
        raise error


def serve(line: Line) -> None:
    """Answer one call: in a worker."""
    asked, data, files = line.hear()
    os.environ[VARIABLE] = str(asked["most"])
    # 512 << 20: bytes beyond FINC_EVAL_MAX_DECODED that a decoder may take, for the frames on which others build.
    limits, most = ProcessLimits(), asked["most"] + (512 << 20)

    def take(size: int) -> None:
        line.tell({"take": size})
        line.hear()

    def begin(pixels: int) -> None:
        limits.set(asked["seconds"] + SECONDS_PER_UNIT * pixels, most)

    DECODED.owner = take
    try:
        with os.fdopen(files[0], "rb") if files else io.BytesIO(data) as stream:
            size = stream.seek(0, os.SEEK_END)
            # 256 << 20: bytes that the index of a video may take in memory.
            limits.set(asked["seconds"] + SECONDS_PER_UNIT * size, 256 << 20)
            clip, with_course = Clip(**asked["clip"]), asked["course"]
            for window in video.read_windows(stream, clip, asked["windows"], begin, with_course=with_course):
                pixels, times, encoding, course = window
                if with_course and course is not None:  # the same for all windows
                    line.tell({"course": course.times.tolist()}, np.ascontiguousarray(course.frames).reshape(-1).data)
                    line.hear()
                    with_course = False
                facts = {"shape": pixels.shape, "times": times.tolist(), "encoding": asdict(encoding)}
                line.tell(facts, np.ascontiguousarray(pixels).reshape(-1).data)
                line.hear()
        answer: dict[str, str] = {}
    except MemoryError:
        answer = {"error": f"took more than {readable(limits.size)} of memory to decode: encode it again"}
    except (EOFError, ConnectionError):
        raise
    except Exception as error:  # decoders raise almost anything on damaged bytes
        answer = {"error": reason(error)}
    limits.lift()
    line.tell(answer)
