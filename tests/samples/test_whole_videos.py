"""Small frames of whole videos, in whatever form they are stored, and whatever window of them is a sample."""

import numpy as np
import pytest
from _videos import encode, gif, scene
from PIL import Image

from finc_eval.samples.clips import Clip
from finc_eval.samples.opening import open_clips
from finc_eval.samples.whole import course as course_module

WINDOW = Clip(8, 1, 1, "hold")
FRAMES = scene(40, seed=3)


def folder_of_frames(path):
    (path / "clip").mkdir()
    for number, frame in enumerate(FRAMES):
        Image.fromarray(frame).save(path / "clip" / f"{number:03}.png")
    return path


def file_of(suffix, rate=25, frames=FRAMES):
    def write(path):
        (path / f"clip.{suffix}").write_bytes(gif(frames) if suffix == "gif" else encode(suffix, frames, rate=rate))
        return path

    return write


def webp(path):
    first, *rest = [Image.fromarray(frame) for frame in FRAMES]
    first.save(path / "clip.webp", save_all=True, append_images=rest, duration=40, lossless=True)
    return path


FORMS = {
    "mp4": (file_of("mp4"), 25),
    "mp4 of 10 a second": (file_of("mp4", 10), 10),
    "avi": (file_of("avi"), 25),
    "gif": (file_of("gif"), 25),
    "webp": (webp, 25),
    "frames": (folder_of_frames, 25),
    "array": (lambda path: FRAMES[None], 25),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_course_has_all_frames_of_a_video_at_their_times(form, tmp_path):
    write, rate = FORMS[form]
    source = open_clips(write(tmp_path), WINDOW)
    (plain,), (sample,) = list(source.samples()), list(source.with_courses().samples())
    assert plain.course is None
    assert np.array_equal(plain.pixels, sample.pixels)
    assert sample.course.frames.shape == (40, 32, 32, 3)
    assert sample.course.times == pytest.approx(np.arange(40) / rate, abs=1e-3)
    brightness = FRAMES.mean((1, 2, 3))
    assert sample.course.frames.mean((1, 2, 3)) == pytest.approx(brightness, abs=12)


def test_all_windows_of_a_video_have_its_course(tmp_path):
    source = open_clips(file_of("mp4")(tmp_path), Clip(8, 1, 3, "hold")).with_courses()
    assert [len(sample.course.frames) for sample in source.samples()] == [40] * 3


def test_a_damaged_frame_outside_the_window_leaves_the_window_and_takes_the_course(tmp_path):
    (folder_of_frames(tmp_path) / "clip" / "039.png").write_bytes(b"no picture")
    (sample,) = open_clips(tmp_path, WINDOW).with_courses().samples()
    assert sample.error is None and sample.pixels.shape[0] == WINDOW.frames
    assert sample.course is None


def test_equal_frames_that_an_animation_merges_are_told_apart(tmp_path):
    held = FRAMES[np.minimum(np.arange(40), 20)]
    first, *rest = [Image.fromarray(frame) for frame in held]
    first.save(tmp_path / "clip.gif", save_all=True, append_images=rest, duration=40, loop=0)
    (sample,) = open_clips(tmp_path, WINDOW).with_courses().samples()
    assert len(sample.course.frames) == 40
    assert (sample.course.frames[20:] == sample.course.frames[20]).all()


def test_the_course_of_a_long_video_ends_before_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(course_module, "MAX_COURSE", 10)
    assert len(course_module.shrink_all(FRAMES).frames) == 10
