"""Thumbnails: small, of the right picture, and clips that move."""

import base64
import io

import numpy as np
import pytest
from _pages import noise, pixels
from _videos import scene
from PIL import Image

from finc_eval.embeddings.set_info import SetInfo
from finc_eval.gallery.pictured import read_gallery
from finc_eval.gallery.thumbnails import draw_motion, preview, thumbnail
from finc_eval.samples.clips import Clip


def gallery(source, ids, clip=None):
    info = SetInfo("x", None, 100, "d", False, clip=clip, samples=source)
    return read_gallery({"x": info}, {"x": ids}, {})


def test_large_samples_are_brought_down_small_ones_are_never_enlarged():
    ramp = np.linspace(0, 255, 400).astype(np.uint8)
    photo = np.stack(np.broadcast_arrays(ramp[:200, None], ramp[None, :], 128), axis=-1).astype(np.uint8)
    large = thumbnail(photo)
    assert (large.width, large.height) == (96, 48) and not large.is_small
    reduced = np.asarray(Image.fromarray(photo).resize((96, 48), Image.Resampling.LANCZOS), int)
    assert np.abs(pixels(large.uri) - reduced).mean() < 4
    middle = thumbnail(photo[:40, :50])
    assert (middle.width, middle.height) == (50, 40)
    tiny = thumbnail(photo[:5, :9])
    assert (tiny.width, tiny.height) == (9, 5) and tiny.is_small


def test_the_smaller_encoding_is_taken():
    flat = thumbnail(np.full((80, 80, 3), 200, np.uint8))
    assert flat.uri.startswith("data:image/png") or len(flat.uri) < 200
    assert thumbnail(noise(3, 1, 80)[0]).kind in ("webp", "jpeg")


def moving(frames, height, width):
    """A bright square that crosses a dim gradient."""
    clip = np.empty((frames, height, width, 3), np.uint8)
    clip[:] = np.linspace(0, 90, width)[:, None]
    for number, frame in enumerate(clip):
        left = number * (width - 8) // max(1, frames - 1)
        frame[height // 3 : height // 3 + 8, left : left + 8] = 250
    return clip


def played(uri):
    """Frames of an animated WebP, their durations in ms, and how often it plays (0: for ever)."""
    assert uri.startswith("data:image/webp;base64,")
    with Image.open(io.BytesIO(base64.b64decode(uri.split(",", 1)[1], validate=True))) as image:
        frames, durations = [], []
        for number in range(image.n_frames):
            image.seek(number)
            frames.append(np.asarray(image.convert("RGB"), int))
            durations.append(image.info["duration"])
        return np.stack(frames), durations, image.info["loop"]


def played_still(picture):
    """The frame of a preview that a page shows first."""
    return pixels(picture.still.uri).astype(int)


def test_a_clip_becomes_a_preview_that_plays_for_ever():
    clip = moving(40, 120, 160)
    picture = preview(clip, fps=8.0)
    frames, durations, loop = played(picture.uri)
    assert (picture.width, picture.height) == (80, 60) and frames.shape == (8, 60, 80, 3) and loop == 0
    # Forty frames at 8 a second last five seconds.
    assert abs(sum(durations) - 5000) <= 8
    shown = clip[np.linspace(0, 39, 8).round().astype(int)]
    expected = [np.asarray(Image.fromarray(f).resize((80, 60), Image.Resampling.LANCZOS), int) for f in shown]
    assert np.median(np.abs(frames - expected)) < 4 and np.abs(frames[-1] - expected[-1]).mean() < 4
    assert np.abs(played_still(picture) - expected[-1]).mean() < 4
    assert picture.is_moving and not picture.still.is_moving


@pytest.mark.parametrize(("speed", "axis"), [(2, 1), (-2, 1), (2, 0), (0, 1)])
def test_lines_show_how_the_parts_of_a_clip_move(speed, axis):
    picture = scene(1, 128, 256)[0]
    frames = np.stack([np.roll(picture, speed * place, axis) for place in range(9)])
    shown = np.array([0, 4, 8])
    pictures = [Image.fromarray(frame) for frame in frames[shown]]
    draw_motion(pictures, frames, shown)
    drawn = [(np.asarray(one) != frames[place]).any(2) for one, place in zip(pictures, shown, strict=True)]
    assert not drawn[2].any()  # nothing follows the last frame
    if not speed:
        assert not drawn[0].any()
        return
    lengths = [drawn[0].any(1 - side).sum() for side in (0, 1)]  # rows and columns with some of a line
    assert lengths[axis] > 1.5 * lengths[1 - axis] > 0
    ends = drawn[0] & (np.asarray(pictures[0]) == 255).all(2)
    behind, before = (np.roll(drawn[0], way * np.sign(speed), axis)[ends].mean() for way in (1, -1))
    assert behind > 0.7 > 0.3 > before  # a line ends where the part has moved to


def test_a_small_clip_stays_as_it_is_and_a_fast_one_is_slowed_down():
    clip = noise(5, 4, 28)
    frames, durations, _ = played(preview(clip, fps=60.0).uri)
    np.testing.assert_array_equal(frames, clip)
    assert durations == [250] * 4


@pytest.mark.long
def test_previews_of_real_clips_are_small(assets):
    clips = assets / "clips"
    found = gallery(clips, [path.name for path in clips.iterdir()], Clip(16, 4, 1, "loop"))
    sizes = [len(picture.uri) for picture in found.pictures["x"].values()]
    assert found.notes == () and len(sizes) == 12
    assert np.mean(sizes) < 20_000 and max(sizes) < 40_000


def test_a_report_shows_clips_by_the_policy_they_were_embedded_with(tmp_path):
    clips = np.stack([moving(20, 28, width) for width in [28] * 20])
    clips[:, :, 0, 0, 0] = np.arange(20)[:, None]
    np.savez(tmp_path / "gen.npz", clips)
    read = gallery(tmp_path / "gen.npz", ["3#1", "19#0"], Clip(8, 2, 2, "refuse"))
    found = read.pictures["x"]
    assert read.notes == () and list(found) == ["3#1", "19#0"]
    frames, durations, _ = played(found["3#1"].uri)
    np.testing.assert_array_equal(frames, clips[3, 5::2])
    # Eight frames, every second of 25 a second, would last 0.64 s.
    assert durations == [125] * 8
    image = found["19#0"]
    assert (image.width, image.height, image.is_small) == (28, 28, True)


def test_frames_with_a_step_between_them_are_shown_as_slowly_as_they_follow(tmp_path):
    np.savez(tmp_path / "gen.npz", np.stack([moving(60, 28, 28)] * 20))
    found = gallery(tmp_path / "gen.npz", ["3"], Clip(4, 15, 1, "refuse")).pictures["x"]
    assert played(found["3"].uri)[1] == [600] * 4  # every fifteenth of 25 a second


def test_a_clip_has_a_strip_of_its_frames_and_an_image_has_none():
    frames = np.stack([np.full((60, 80, 3), level, np.uint8) for level in (0, 60, 120, 180, 240)])
    strip = preview(frames, 10).strip
    assert (strip.width, strip.height, strip.is_small) == (4 * 48, 36, False)
    shown = np.asarray(Image.open(io.BytesIO(strip.data)).convert("L")).astype(int)
    assert [int(shown[18, 24 + 48 * place]) for place in range(4)] == pytest.approx([0, 60, 180, 240], abs=6)
    assert thumbnail(frames[1]).strip is None
    tiny = preview(frames[:, :10, :12], 10).strip
    assert (tiny.width, tiny.height) == (4 * 12, 10)
    np.testing.assert_array_equal(
        np.asarray(Image.open(io.BytesIO(tiny.data)).convert("L"))[0, ::12], [0, 60, 180, 240]
    )
