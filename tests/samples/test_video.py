"""One video file: its windows have the frames that PyAV reads one by one, and damage does not pass for content."""

import io
import struct

import av
import numpy as np
import pytest
from _videos import CODECS, encode, every_frame, gif, scene
from av.stream import Disposition
from av.video.reformatter import ColorRange, Colorspace
from PIL import Image

from finc_eval.samples import video
from finc_eval.samples.clips import Clip, window_indices
from finc_eval.samples.video import read_windows

FRAMES = scene()
ALL = Clip(len(FRAMES), 1, 1, "refuse")


def windows(data, clip, wanted=None):
    stream = io.BytesIO(data)
    return list(read_windows(stream, clip, range(clip.windows) if wanted is None else wanted))


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


@pytest.mark.parametrize("suffix", [*CODECS, "gif"])
@pytest.mark.parametrize("clip", [Clip(8, 1, 1, "refuse"), Clip(5, 3, 4, "refuse"), Clip(40, 1, 2, "loop")])
def test_windows_have_the_frames_that_pyav_reads_one_by_one(files, suffix, clip):
    frames = every_frame(files[suffix])
    assert len(frames) == len(FRAMES)
    np.testing.assert_array_equal(pixels(files[suffix], clip), frames[window_indices(len(FRAMES), 25, clip)])


def test_the_frames_are_those_of_the_scene_in_their_order(files):
    for suffix, data in files.items():
        (window,) = pixels(data, ALL)
        # Lossy codecs shift colors a little; the next frame of the scene is 20 away on average.
        distances = np.abs(window[:, None].astype(int) - FRAMES[None]).mean(axis=(2, 3, 4))
        assert (distances.argmin(axis=1) == np.arange(len(FRAMES))).all(), suffix


@pytest.mark.parametrize(
    ("suffix", "codec", "mode"),
    [("mp4", "h264", "yuv420p"), ("avi", "mpeg4", "yuv420p"), ("mkv", "hevc", "yuv420p10le"), ("gif", "gif", "bgra")],
)
def test_traits_say_how_a_video_is_encoded(files, suffix, codec, mode):
    ((_, traits),) = windows(files[suffix], ALL)
    assert (traits.format, traits.mode, traits.width, traits.height, traits.fps) == (codec, mode, 64, 48, 25.0)
    assert not traits.is_gray


def test_a_gray_video_is_known_as_such():
    gray = FRAMES[..., :1].repeat(3, axis=3)
    ((_, traits),) = windows(encode("mp4", gray), ALL)
    assert traits.is_gray


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
    ((window, traits),) = windows(bytes(turned), ALL)
    np.testing.assert_array_equal(window, upright(every_frame(files["mp4"])))
    assert (traits.width, traits.height) == window.shape[2:0:-1]


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


# --- packets that are not frames --------------------------------------------------------------------------------------


def test_windows_are_right_where_packets_are_no_frames(assets):
    data = (assets / "clips" / "TrumanShow_wave_f_nm_np1_fr_med_26.avi").read_bytes()
    with av.open(io.BytesIO(data)) as container:
        packets = sum(packet.size > 0 for packet in container.demux(video=0))
    frames = every_frame(data)
    assert (packets, len(frames)) == (49, 48)
    clip = Clip(16, 1, 3, "refuse")
    np.testing.assert_array_equal(pixels(data, clip), frames[window_indices(48, None, clip)])


@pytest.mark.parametrize("name", ["TrumanShow_wave_f_nm_np1_fr_med_26.avi", "carphone_distorted.mp4"])
def test_windows_too_large_to_hold_at_once_are_the_same(assets, monkeypatch, name):
    data, clip = (assets / "clips" / name).read_bytes(), Clip(16, 2, 4, "loop")
    together = pixels(data, clip)
    monkeypatch.setattr(video, "MAX_BYTES_AT_ONCE", 0)
    np.testing.assert_array_equal(pixels(data, clip), together)


# --- damage -----------------------------------------------------------------------------------------------------------


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
