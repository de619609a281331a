"""One video file: its windows have the frames that PyAV reads one by one, and damage does not pass for content."""

import io
import itertools
import struct
from fractions import Fraction

import av
import numpy as np
import pytest
from _videos import CODECS, encode, every_frame, gif, scene
from av.stream import Disposition
from av.video.reformatter import ColorRange, Colorspace
from PIL import Image

from finc_eval.core.files.endings import MAX_BOXES, find_missing_end
from finc_eval.samples import video
from finc_eval.samples.clips import Clip, plan_windows
from finc_eval.samples.opening import open_source
from finc_eval.samples.video import read_windows

FRAMES = scene()
ALL = Clip(len(FRAMES), 1, 1, "refuse")


def windows(data, clip, wanted=None):
    stream = io.BytesIO(data)
    wanted = range(clip.windows) if wanted is None else wanted
    return [(one.pixels, one.encoding) for one in read_windows(stream, clip, wanted)]


def pixels(data, clip):
    return [window for window, _ in windows(data, clip)]


def error(data, clip=ALL):
    with pytest.raises(ValueError) as caught:
        windows(data, clip)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 120
    return str(caught.value)


@pytest.fixture(scope="module")
def files():
    return {suffix: encode(suffix, FRAMES) for suffix in CODECS} | {"gif": gif(FRAMES)}


@pytest.mark.one_of_each("suffix", "clip")
@pytest.mark.parametrize("suffix", [*CODECS, "gif"])
@pytest.mark.parametrize("clip", [Clip(8, 1, 1, "refuse"), Clip(5, 3, 4, "refuse"), Clip(40, 1, 2, "loop")])
def test_windows_have_the_frames_that_pyav_reads_one_by_one(files, suffix, clip):
    frames = every_frame(files[suffix])
    assert len(frames) == len(FRAMES)
    np.testing.assert_array_equal(pixels(files[suffix], clip), frames[plan_windows(len(FRAMES), 25, clip).indices])


def test_the_frames_are_those_of_the_scene_in_their_order(files):
    for suffix, data in files.items():
        (window,) = pixels(data, ALL)
        # Lossy codecs shift colors a little; the next frame of the scene is 20 away on average.
        distances = np.abs(window[:, None].astype(int) - FRAMES[None]).mean(axis=(2, 3, 4))
        assert (distances.argmin(axis=1) == np.arange(len(FRAMES))).all(), suffix


@pytest.mark.parametrize(
    ("suffix", "codec", "mode"),
    [("mp4", "h264", "yuv420p"), ("avi", "mpeg4", "yuv420p"), ("mkv", "hevc", "yuv420p10le"), ("gif", "gif", "bgr0")],
)
def test_the_encoding_says_how_a_video_is_encoded(files, suffix, codec, mode):
    ((_, encoding),) = windows(files[suffix], ALL)
    assert (encoding.format, encoding.mode, encoding.width, encoding.height, encoding.fps) == (
        codec,
        mode,
        64,
        48,
        25.0,
    )
    assert not encoding.is_gray


def test_a_gray_video_is_known_as_such():
    gray = FRAMES[..., :1].repeat(3, axis=3)
    ((_, encoding),) = windows(encode("mp4", gray), ALL)
    assert encoding.is_gray


def test_some_windows_are_those_of_all(files):
    clip = Clip(4, 1, 5, "refuse")
    every = pixels(files["mp4"], clip)
    for wanted in ([0], [3], [1, 4]):
        some = [window for window, _ in windows(files["mp4"], clip, wanted)]
        np.testing.assert_array_equal(some, [every[number] for number in wanted])


@pytest.mark.parametrize(
    ("colorspace", "color_range"),
    [(Colorspace.ITU709, ColorRange.MPEG), (Colorspace.ITU709, ColorRange.JPEG), (Colorspace.ITU601, ColorRange.JPEG)],
)
def test_colors_follow_what_the_file_says_of_them(colorspace, color_range):
    def mark(stream, frame):
        for target in (stream.codec_context, frame):
            target.colorspace, target.color_range = colorspace, color_range

    data = encode("mp4", FRAMES, mark=mark)
    (window,) = pixels(data, ALL)
    np.testing.assert_array_equal(window, every_frame(data))
    (unmarked,) = pixels(encode("mp4", FRAMES), ALL)
    assert np.abs(window.astype(int) - unmarked).mean() > 2


def test_a_gif_is_decoded_as_pillow_does():
    data = gif(FRAMES)
    with Image.open(io.BytesIO(data)) as image:
        expected = []
        for number in range(image.n_frames):
            image.seek(number)
            expected.append(np.asarray(image.convert("RGB")))
    np.testing.assert_array_equal(pixels(data, ALL), [expected])


MATRICES = {
    "none": ((1, 0, 0, 1), lambda x: x),
    "a quarter clockwise": ((0, 1, -1, 0), lambda x: np.rot90(x, -1, (1, 2))),
    "half": ((-1, 0, 0, -1), lambda x: x[:, ::-1, ::-1]),
    "a quarter anticlockwise": ((0, -1, 1, 0), lambda x: np.rot90(x, 1, (1, 2))),
    "mirrored": ((-1, 0, 0, 1), lambda x: x[:, :, ::-1]),
    "upside down": ((1, 0, 0, -1), lambda x: x[:, ::-1]),
    "mirrored along the diagonal": ((0, 1, 1, 0), lambda x: x.swapaxes(1, 2)),
    "an eighth, which is left as it is": ((0.75, 0.75, -0.75, 0.75), lambda x: x),
}


@pytest.mark.parametrize("turn", MATRICES)
def test_a_video_is_turned_upright(files, turn):
    (a, b, c, d), upright = MATRICES[turn]
    turned = bytearray(files["mp4"])
    # ISO 14496-12: the matrix of a track header (version 0) follows 40 bytes of other fields.
    place = turned.index(b"tkhd") + 4 + 40
    entries = [int(65536 * value) for value in (a, b, 0, c, d, 0, 0, 0, 16384)]
    turned[place : place + 36] = struct.pack(">9i", *entries)
    ((window, encoding),) = windows(bytes(turned), ALL)
    np.testing.assert_array_equal(window, upright(every_frame(files["mp4"])))
    assert (encoding.width, encoding.height) == window.shape[2:0:-1]


def shown_at(times, end, fps):
    """Numbers of the frames that a player shows at 0, 1 / fps, … before `end`, by arithmetic."""
    instants = itertools.takewhile(lambda time: time < end - 1e-9, (k / fps for k in itertools.count()))
    return [max(i for i, time in enumerate(times) if time <= instant + 1e-9) for instant in instants]


IRREGULAR = {
    "fast, then slow": [i / 30 for i in range(12)] + [0.4 + i / 5 for i in range(12)],
    "a second without frames": [i / 25 for i in range(12)] + [1.48 + i / 25 for i in range(12)],
    "a dropped frame in ten": [(i + i // 10) / 25 for i in range(24)],
}


@pytest.mark.one_of_each("suffix", "times")
@pytest.mark.parametrize("suffix, fps", [("mp4", 7.5), ("mkv", 10.0), ("mov", 10.0), ("webm", 7.5)])
@pytest.mark.parametrize("times", IRREGULAR)
def test_another_rate_takes_the_frames_that_are_shown_by_their_own_times(suffix, times, fps):
    times = IRREGULAR[times]
    data = encode(suffix, FRAMES, times=[round(1000 * time) for time in times])
    expected = shown_at(times, times[-1] + 0.01, fps)
    window, _ = pixels(data, Clip(len(expected), 1, 2, "loop", fps))  # the first of two starts with the video
    np.testing.assert_array_equal(window, every_frame(data)[expected])


def animation(kind, frames, delays):
    pictures, file = [Image.fromarray(frame) for frame in frames], io.BytesIO()
    if kind == "GIF":
        pictures = [picture.quantize(256) for picture in pictures]
    options = {"lossless": True} if kind == "WEBP" else {}
    pictures[0].save(file, kind, save_all=True, append_images=pictures[1:], duration=delays, loop=0, **options)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_an_animation_whose_equal_frames_were_merged_keeps_its_length(kind):
    still = FRAMES[np.minimum(np.arange(16), 8)]
    data = animation(kind, still, 100)
    # With a rate or without, also where the policy refuses short videos.
    for clip in (Clip(16, 1, 1, "refuse", 10.0), Clip(16, 1, 1, "refuse")):
        ((window, encoding),) = windows(data, clip)
        np.testing.assert_array_equal(window, still)
        assert (encoding.frames, encoding.fps, encoding.seconds) == (16, 10.0, pytest.approx(1.6))


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_delays_of_an_animation_are_followed(kind):
    delays = [40] * 10 + [500] * 4
    data = animation(kind, FRAMES[:14], delays)
    starts = [sum(delays[:i]) / 1000 for i in range(14)]
    expected = shown_at(starts, 2.4, 7.5)
    (window,) = pixels(data, Clip(len(expected), 1, 1, "refuse", 7.5))
    np.testing.assert_array_equal(window, FRAMES[expected])


@pytest.mark.one_of_each("kind", "stated")
@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
@pytest.mark.parametrize(("stated", "rate"), [(0, 10), (10, 100), (20, 50)])
def test_an_animation_without_delays_is_shown_at_ten_a_second(kind, stated, rate):
    ((_, encoding),) = windows(animation(kind, FRAMES, stated), ALL)
    assert encoding.fps == pytest.approx(rate)


@pytest.mark.parametrize("kind", ["WEBP", "PNG"])
def test_an_animation_cut_short_is_a_failure(kind):
    data = animation(kind, FRAMES, 40)
    for share in (0.3, 0.6, 0.9):
        with pytest.raises((ValueError, OSError, SyntaxError, EOFError)):
            windows(data[: int(share * len(data))], ALL)


FURTHER = {
    "mpg": ("mpeg", "mpeg2video"),
    "ts": ("mpegts", "libx264"),
    "wmv": ("asf", "wmv2"),
    "flv": ("flv", "flv"),
    "ogv": ("ogg", "libvpx"),
    "3gp": ("3gp", "mpeg4"),
}


def further(path):
    """Write the scene in one of the further containers, by its suffix."""
    form, codec = FURTHER[path.suffix[1:]]
    with av.open(str(path), "w", format=form) as container:
        stream = container.add_stream(codec, rate=25, options={"b": "4000k"})
        stream.height, stream.width, stream.pix_fmt = *FRAMES.shape[1:3], "yuv420p"
        for frame in FRAMES:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
    return path


@pytest.mark.parametrize("suffix", FURTHER)
def test_further_containers_are_read(suffix, tmp_path):
    path = further(tmp_path / f"a.{suffix}")
    assert open_source(tmp_path, clip=ALL).ids == [path.name]
    np.testing.assert_array_equal(pixels(path.read_bytes(), ALL), [every_frame(path.read_bytes())])


def test_a_video_has_alpha_only_where_a_pixel_is_transparent():
    ((_, opaque),) = windows(animation("GIF", FRAMES, 40), ALL)
    assert opaque.mode == "bgr0"
    alpha = [np.full((*FRAMES.shape[1:3], 1), 255 * (number % 2), np.uint8) for number in range(len(FRAMES))]
    clear = [Image.fromarray(np.dstack(pair)) for pair in zip(FRAMES, alpha, strict=True)]
    file = io.BytesIO()
    clear[0].save(file, "GIF", save_all=True, append_images=clear[1:], duration=40, disposal=2)
    ((_, transparent),) = windows(file.getvalue(), ALL)
    assert transparent.mode == "bgra"


def test_the_encoding_says_how_long_a_video_is_and_how_its_colors_are_marked():
    def mark(stream, frame):
        for target in (stream.codec_context, frame):
            target.colorspace, target.color_trc = 9, 16
        stream.sample_aspect_ratio = Fraction(16, 15)

    ((_, encoding),) = windows(encode("mp4", FRAMES, mark=mark), ALL)
    assert (encoding.frames, encoding.seconds) == (24, pytest.approx(0.96))
    assert (encoding.color, encoding.aspect) == ("9/16", pytest.approx(16 / 15))


def test_frames_of_irregular_times_are_taken_as_they_come():
    times = np.cumsum(np.resize([10, 90, 20], len(FRAMES))).tolist()
    data = encode("mkv", FRAMES, times=times)
    np.testing.assert_array_equal(pixels(data, ALL), [every_frame(data)])


def test_what_the_header_says_of_the_number_of_frames_does_not_count():
    data = encode("avi", FRAMES)
    place = data.index(b"vids") - 8 + 8 + 32  # the length in strh, in frames
    for stated in (3, 1000):
        lying = data[:place] + struct.pack("<I", stated) + data[place + 4 :]
        np.testing.assert_array_equal(pixels(lying, ALL), [every_frame(data)])


NOT_UTF_8 = {"latin-1": "café".encode("latin-1"), "UTF-16": "café".encode("utf-16"), "cut": "café".encode()[:-1]}


@pytest.mark.one_of_each("tag", "suffix")
@pytest.mark.parametrize("tag", NOT_UTF_8.values(), ids=NOT_UTF_8)
@pytest.mark.parametrize("suffix", ["mp4", "avi", "mkv"])
def test_tags_that_are_not_utf_8_change_no_frame(suffix, tag):
    plain = encode(suffix, FRAMES, title="x" * len(tag))
    data = plain.replace(b"x" * len(tag), tag)
    assert data.count(tag) >= 1 and "x" * len(tag) not in str(data)
    np.testing.assert_array_equal(pixels(data, ALL), pixels(plain, ALL))


# --- packets that are not frames --------------------------------------------------------------------------------------


def test_windows_are_right_where_packets_are_no_frames(assets):
    data = (assets / "clips" / "TrumanShow_wave_f_nm_np1_fr_med_26.avi").read_bytes()
    with av.open(io.BytesIO(data)) as container:
        packets = sum(packet.size > 0 for packet in container.demux(video=0))
    frames = every_frame(data)
    assert (packets, len(frames)) == (49, 48)
    clip = Clip(16, 1, 3, "refuse")
    np.testing.assert_array_equal(pixels(data, clip), frames[plan_windows(48, None, clip).indices])


@pytest.mark.parametrize("name", ["TrumanShow_wave_f_nm_np1_fr_med_26.avi", "carphone_distorted.mp4"])
def test_windows_too_large_to_hold_at_once_are_the_same(assets, monkeypatch, name):
    data, clip = (assets / "clips" / name).read_bytes(), Clip(16, 2, 4, "loop")
    together = pixels(data, clip)
    monkeypatch.setattr(video, "MAX_BYTES_AT_ONCE", 0)
    np.testing.assert_array_equal(pixels(data, clip), together)


# --- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.one_of_each("suffix", "share")
@pytest.mark.parametrize("suffix", [*CODECS, "gif"])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.8])
def test_a_file_cut_short_is_no_video(files, suffix, share):
    data = files[suffix][: int(share * len(files[suffix]))]
    # Even where a window lies before the cut.
    error(data, Clip(1, 1, 1, "loop"))


def test_a_streamable_mp4_cut_short_is_no_video(tmp_path):
    # Its index comes first, so that it opens.
    with av.open(str(tmp_path / "a.mp4"), "w", options={"movflags": "faststart"}) as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height = 64, 48
        for frame in FRAMES:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
    data = (tmp_path / "a.mp4").read_bytes()
    assert len(windows(data, ALL)) == 1
    for share in np.linspace(0.5, 0.85, 30):
        assert "cut short" in error(data[: int(share * len(data))])


@pytest.mark.one_of_each("suffix", "share")
@pytest.mark.one_of_each("suffix", "share")
@pytest.mark.parametrize("suffix", [*CODECS, "gif", "wmv", "flv", "ogv", "3gp"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 0.95, 0.99, 0.999])
def test_a_container_that_states_its_end_is_held_to_it(files, suffix, share, tmp_path):
    """Only MPEG, and live recordings, do not say where they end: their reader takes what is there."""
    data = files[suffix] if suffix in files else further(tmp_path / f"a.{suffix}").read_bytes()
    error(data[: int(share * len(data))], Clip(1, 1, 1, "loop"))


def test_a_file_cut_short_is_not_called_a_short_video(files):
    assert "cut short" in error(files["avi"][: len(files["avi"]) * 4 // 5])


@pytest.mark.parametrize("suffix", ["mp4", "avi"])
def test_a_damaged_frame_is_not_guessed(files, suffix):
    """FFmpeg shows something in place of a damaged frame, and marks it."""
    random, guessed = np.random.default_rng(0), 0
    for _ in range(30):
        data = bytearray(files[suffix])
        data[random.integers(len(data) // 4, len(data) * 3 // 4)] ^= 1 << random.integers(8)
        try:
            with av.open(io.BytesIO(bytes(data))) as container:
                marked = any(frame.is_corrupt for frame in container.decode(video=0))
        except (av.FFmpegError, IndexError):  # it hit the headers
            continue
        if marked:
            guessed += 1
            assert error(bytes(data)).startswith("damaged or cut short at frame")
    assert guessed >= 2


DAMAGED = {"mjpeg": ("avi", "yuvj420p"), "libvpx-vp9": ("webm", "yuv420p"), "libvpx": ("webm", "yuv420p")}


@pytest.mark.parametrize(
    "codec", [pytest.param(codec, marks=[pytest.mark.long] * (codec == "libvpx")) for codec in DAMAGED]
)
def test_damage_that_the_codec_can_tell_is_a_failure(codec):
    """One, 16 or 200 bytes are overwritten; FFmpeg's own decoders of VP8 and VP9 accept most of these files."""
    noise = np.random.default_rng(7).integers(0, 60, (60, 96, 128, 3), dtype=np.uint8)
    frames = np.stack([np.roll(noise[0], 3 * number, axis=1) + number for number in range(40)])
    (form, pixel_format), file = DAMAGED[codec], io.BytesIO()
    with av.open(file, "w", format=form) as container:
        stream = container.add_stream(codec, rate=25, options={"b": "600k"})
        stream.height, stream.width, stream.pix_fmt = 96, 128, pixel_format
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
    data, clip, accepted = file.getvalue(), Clip(40, 1, 1, "hold"), 0
    (whole,) = pixels(data, clip)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        start, length = int(rng.uniform(0.2, 0.85) * len(data)), int(rng.choice([1, 16, 200]))
        broken = data[:start] + rng.bytes(length) + data[start + length :]
        try:
            (window,) = pixels(broken, clip)
        except ValueError:
            continue
        accepted += bool((np.abs(window.astype(int) - whole).mean((1, 2, 3)) > 8).any())
    assert accepted <= 1


def test_a_file_that_is_all_boxes_is_not_walked_to_its_end():
    class Counted(io.BytesIO):
        count = 0

        def read(self, *size):
            self.count += 1
            return super().read(*size)

    box = (8).to_bytes(4, "big") + b"free"
    cut = (99).to_bytes(4, "big") + b"mdat"
    assert find_missing_end("mov,mp4", io.BytesIO(9 * box + cut)) == "91 bytes are missing"
    stream = Counted(2 * MAX_BOXES * box + cut)
    assert find_missing_end("mov,mp4", stream) is None and stream.count <= MAX_BOXES + 2


@pytest.mark.parametrize("share", [0.3, 0.5, 0.9])
def test_an_avi_that_ends_between_two_frames_is_cut_short(files, share):
    data = files["avi"]
    assert "bytes are missing" in error(data[: data.index(b"00dc", int(share * data.index(b"idx1")))])


def test_what_is_no_video_is_said_to_be_none(files):
    assert error(b"").startswith("not a video that can be read")
    assert error(b"no video\n" * 100).startswith("not a video that can be read")
    picture = io.BytesIO()
    Image.fromarray(FRAMES[0]).save(picture, "PNG")
    assert error(picture.getvalue()).startswith("not a video that can be read")


def test_sound_alone_is_no_video():
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("aac", rate=44100)
        frame = av.AudioFrame.from_ndarray(np.zeros((2, 1024), np.float32), format="fltp", layout="stereo")
        frame.sample_rate = 44100
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    assert error(file.getvalue()) == "it holds no video"


def test_a_song_with_its_cover_is_no_video():
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        sound, cover = container.add_stream("aac", rate=44100), container.add_stream("mjpeg", rate=1)
        cover.height, cover.width = FRAMES.shape[1:3]
        cover.pix_fmt, cover.disposition = "yuvj420p", Disposition.attached_pic
        container.mux(cover.encode(av.VideoFrame.from_ndarray(FRAMES[0], format="rgb24")))
        container.mux(cover.encode())
        frame = av.AudioFrame.from_ndarray(np.zeros((2, 1024), np.float32), format="fltp", layout="stereo")
        frame.sample_rate = 44100
        container.mux(sound.encode(frame))
        container.mux(sound.encode())
    assert error(file.getvalue(), Clip(1, 1, 1, "loop")) == "it holds no video"


def test_a_playlist_is_not_followed(tmp_path, files):
    (tmp_path / "secret.mp4").write_bytes(files["mp4"])
    playlist = f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{tmp_path}/secret.mp4\n#EXT-X-ENDLIST\n"
    assert error(playlist.encode()).startswith("not a video that can be read")
    concatenation = f"ffconcat version 1.0\nfile {tmp_path}/secret.mp4\n"
    assert error(concatenation.encode()).startswith("not a video that can be read")


def test_frames_of_too_many_pixels_are_refused(files, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_MAX_DECODED", str(12 * (64 * 48 - 1)))
    assert error(files["mp4"]) == "64x48 pixels are more than the 3,071 that FINC_EVAL_MAX_DECODED allows"
    monkeypatch.setenv("FINC_EVAL_MAX_DECODED", "500 kB")
    assert error(files["mp4"], Clip(20, 1, 1, "loop")) == (
        "a window of 737 kB when decoded, above the 500 kB of FINC_EVAL_MAX_DECODED"
    )


def test_a_short_video_is_refused_where_the_policy_says_so(files):
    assert error(files["webm"], Clip(25, 1, 1, "refuse")) == "too short: 24 frames, and a window spans 25"
    assert error(files["webm"], Clip(11, 1, 1, "refuse", 10.0)) == (
        "too short: 10 frames at 10 frames a second, and a window spans 11"
    )
