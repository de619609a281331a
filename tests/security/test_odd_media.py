"""A clip takes neither endless time nor endless memory, whatever its index states: it has a process of its own."""

import io
import re
import struct
import time
import zipfile

import av
import numpy as np
import pytest
from _bounded import bounded
from PIL import Image

from finc_eval.samples import video, video_process
from finc_eval.samples.clips import Clip
from finc_eval.samples.images import decode, rgb
from finc_eval.samples.opening import open_clips, open_source

CLIP = Clip(frames=4, stride=1, windows=1, short="loop")
TOO_LONG = "took more than 0.3 seconds"
NO_MEMORY = "cannot allocate memory|of memory to decode"
REFUSED = "not a video that can be read"  # the answer of the FFmpeg in PyAV 19 to such counts


@pytest.fixture(autouse=True)
def third_of_a_second(monkeypatch):
    monkeypatch.setattr(video_process, "SECONDS", 0.3)


def film(kind, n=20, **options):
    """A video of n frames of 16 x 16 pixels."""
    made = io.BytesIO()
    with av.open(made, "w", format=kind, **options) as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 16, 16, "yuv420p"
        for number in range(n):
            frame = np.full((16, 16, 3), 10 * number % 255, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
    return made.getvalue()


def box(name, *parts):
    content = b"".join(parts)
    return struct.pack(">I4s", 8 + len(content), name) + content


def changed(data, path, change):
    """An MP4 whose box at this path has other content, by a function of its content."""
    if not path:
        return change(data)
    place = 0
    while data[place + 4 : place + 8] != path[0]:
        place += int.from_bytes(data[place : place + 4], "big")
    end = place + int.from_bytes(data[place : place + 4], "big")
    return data[:place] + box(path[0], changed(data[place + 8 : end], path[1:], change)) + data[end:]


TABLES = (b"moov", b"trak", b"mdia", b"minf", b"stbl")


def table(name, head, row=b"", rows=0):
    """An MP4 with another table of its samples."""
    return changed(film("mp4"), (*TABLES, name), lambda _: struct.pack(f">{len(head)}I", *head) + row * rows)


def edits(entries, frames):
    row = struct.pack(">IiI", 100_000, 0, 65536)
    path = (b"moov", b"trak", b"edts", b"elst")
    return changed(film("mp4", frames), path, lambda _: struct.pack(">II", 0, entries) + row * entries)


def hidden_edits():
    """Edit lists between two boxes of media data, of which the first states that it reaches to the end."""
    data = edits(30_000, 300)
    place = data.index(b"moov") - 4
    return data[:place] + struct.pack(">I4sQ", 1, b"mdat", 16) + data[place:]


def shared_samples():
    """Frames that are all the same bytes: an offset for each ten thousand of them."""
    data = table(b"stsz", (0, 100, 1_000_000))
    for name, head, row, rows in (
        (b"stsc", (0, 1, 1, 10, 1), b"", 0),
        (b"stts", (0, 1, 1_000_000, 1024), b"", 0),
        (b"stco", (0, 100_000), struct.pack(">I", data.index(b"mdat") + 4), 100_000),
    ):
        content = struct.pack(f">{len(head)}I", *head) + row * rows
        data = changed(data, (*TABLES, name), lambda _, content=content: content)
    return data


def fragments(samples, times):
    """An MP4 of fragments, each with a number of samples that takes no bytes."""
    data = film("mp4", options={"movflags": "frag_keyframe+empty_moov"})
    first = data.index(b"moof") - 4
    head = box(b"tfhd", struct.pack(">5I", 0x18, 1, 1, 1, 0)[:16]), box(b"trun", struct.pack(">II", 0, samples))
    return data[:first] + box(b"moof", box(b"mfhd", bytes(8)), box(b"traf", *head)) * times + data[first:]


def element(name, *parts):
    content = b"".join(parts)
    return bytes.fromhex(name) + struct.pack(">Q", len(content) | 1 << 56) + content


def with_elements(extra):
    """A Matroska file with more elements before its frames."""
    data = film("matroska")
    segment, frames = data.index(b"\x18\x53\x80\x67"), data.index(b"\x1f\x43\xb6\x75")
    return data[: segment + 4] + b"\x01" + b"\xff" * 7 + data[segment + 12 : frames] + extra + data[frames:]


def cues(n):
    """An index whose entries are in the worst order."""
    one = (struct.pack(">Q", number) for number in range(n, 0, -1))
    return with_elements(
        element(
            "1c53bb6b",
            *(element("bb", element("b3", at), element("b7", b"\xf7\x81\1", element("f1", at))) for at in one),
        )
    )


def tags(n):
    names = (element("67c8", element("45a3", b"%d" % number), element("4487", b"x")) for number in range(n))
    return with_elements(element("1254c367", element("7373", *names)))


def avi_index(n):
    data = film("avi")
    rows = (struct.pack("<4sIII", b"00dc", 16, 8 * (n - number), 8) for number in range(n))
    return data[: data.index(b"idx1")] + struct.pack("<4sI", b"idx1", 16 * n) + b"".join(rows)


def many_streams(n):
    data = film("mp4")
    place = data.index(b"trak") - 4
    track = data[place : place + int.from_bytes(data[place : place + 4], "big")]
    return changed(data, (b"moov",), lambda content: content + track * n)


def tiny_frames(n, size):
    """An ordinary AVI of frames that have a byte, or none."""
    data = film("avi")
    place = data.index(b"movi") - 8
    index = data[data.index(b"idx1") :]
    frame = struct.pack("<4sI", b"00dc", size) + bytes(2 * size)
    return data[:place] + b"LIST" + struct.pack("<I", 4 + len(frame) * n) + b"movi" + frame * n + index


def webp(frames, extra=b""):
    """An animated WebP of frames that are all the same, with more chunks before them."""
    made = io.BytesIO()
    pictures = [Image.fromarray(np.full((8, 8, 3), 200 * number, np.uint8)) for number in range(2)]
    pictures[0].save(made, "WEBP", save_all=True, append_images=pictures[1:], duration=40, lossless=True)
    data = made.getvalue()
    first = data.index(b"ANMF")
    size = 8 + int.from_bytes(data[first + 4 : first + 8], "little")
    body = data[8:first] + extra + data[first : first + size] * frames
    return b"RIFF" + struct.pack("<I", len(body)) + body


CLIPS = {
    "frames of WebP": (lambda: webp(20_000), f"None|{TOO_LONG}"),
    "200,000 frames of WebP": (lambda: webp(200_000), "200,000 frames, above the 30,000 of an animation"),
    "chunks of WebP": (lambda: webp(2, b"ZZZZ\0\0\0\0" * 500_000), f"None|{TOO_LONG}"),
    "edit lists": (lambda: edits(30_000, 300), f"{TOO_LONG}|{NO_MEMORY}|share their bytes"),
    "fewer edit lists": (lambda: edits(3_000, 20), "share their bytes"),
    "hidden edit lists": (hidden_edits, f"{TOO_LONG}|{NO_MEMORY}|share their bytes"),
    "200,000,000 samples": (lambda: table(b"stsz", (0, 1, 200_000_000)), f"cut short|{NO_MEMORY}"),
    "two billion times": (lambda: table(b"stts", (0, 1, 2**31 - 1, 1)), f"cut short|{NO_MEMORY}"),
    "a chunk of two billion": (lambda: table(b"stsc", (0, 1, 1, 2**31 - 1, 1)), "None"),
    "runs of times": (lambda: table(b"stts", (0, 1000), struct.pack(">II", 2**20, 1), 1000), "cut short"),
    "samples that share bytes": (shared_samples, f"share their bytes|damaged|{TOO_LONG}"),
    "600,000 boxes": (lambda: film("mp4") + box(b"free") * 600_000, f"None|{TOO_LONG}"),
    "a fragment of many samples": (lambda: fragments(60_000_000, 1), f"{NO_MEMORY}|{REFUSED}"),
    "fragments of many samples": (lambda: fragments(1_000_000, 1000), f"{NO_MEMORY}|{TOO_LONG}|{REFUSED}"),
    "fragments": (lambda: fragments(1, 100_000), TOO_LONG),
    "streams": (lambda: many_streams(100), "None"),
    "cues": (lambda: cues(100_000), TOO_LONG),
    "tags": (lambda: tags(60_000), TOO_LONG),
    "an index in the worst order": (lambda: avi_index(300_000), f"damaged|{TOO_LONG}"),
}


def use(path, clip=None):
    """Read all samples of a set, and return why they cannot be read."""
    source = open_source(path) if clip is None else open_clips(path, clip)
    return "; ".join(str(sample.error) for sample in source.samples())


def bounded_by_one_worker(path):
    """Read a clip as `bounded` does, by a worker that has its imports from the case before.

    The clip in a zip below has a worker of its own.
    """
    with video_process._pool.worker() as line:

        def use_it():
            video_process._pool._idle = [line]
            return use(path, CLIP)

        return bounded(use_it)


@pytest.mark.one_of_each
@pytest.mark.parametrize(("make", "told"), CLIPS.values(), ids=CLIPS)
def test_an_odd_clip_ends_in_time_and_memory(make, told, tmp_path):
    data = make()
    (tmp_path / "x.mp4").write_bytes(data)
    found = bounded_by_one_worker(tmp_path / "x.mp4")
    assert re.search(told, found), found


@pytest.mark.one_of_each
@pytest.mark.parametrize(("size", "told"), [(0, "without frames|took more than"), (1, "took more than")])
def test_an_ordinary_clip_has_the_same_time(size, told, tmp_path):
    (tmp_path / "x.avi").write_bytes(tiny_frames(1_000_000, size))
    found = bounded_by_one_worker(tmp_path / "x.avi")
    assert re.search(told, found), found


def test_a_clip_in_a_zip_is_limited_as_one_in_a_folder(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.mp4", edits(30_000, 300))
        archive.writestr("b.mp4", film("mp4"))
        archive.writestr("c.mkv", film("matroska"))
    assert re.fullmatch(r"[^;]+; None; None", bounded(use, tmp_path / "x.zip", CLIP))


@pytest.mark.parametrize("kind", ["mp4", "avi", "matroska", "mpegts"])
def test_a_clip_in_another_process_is_decoded_as_in_this_one(kind, tmp_path):
    data = film(kind, 30)
    (tmp_path / "x").write_bytes(data)
    clip = Clip(frames=4, stride=2, windows=3, short="loop", fps=5.0)
    (expected,) = ([*video.read_windows(io.BytesIO(data), clip, [0, 2])],)
    with (tmp_path / "x").open("rb") as file:
        for stream in (io.BytesIO(data), file):
            found = [*video_process.read_windows(stream, clip, [0, 2])]
            assert len(found) == len(expected) == 2
            for one, other in zip(found, expected, strict=True):
                assert np.array_equal(one.pixels, other.pixels) and np.array_equal(one.times, other.times)
                assert one.encoding == other.encoding


def test_each_clip_is_decoded_in_another_process(tmp_path, monkeypatch):
    (tmp_path / "x.mp4").write_bytes(film("mp4"))
    monkeypatch.setattr(video, "read_windows", None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(video_process._pool, "worker", None)
        assert "not callable" in use(tmp_path / "x.mp4", CLIP)
    assert use(tmp_path / "x.mp4", CLIP) == "None"


def netpbm(kind, values, white, size):
    return b"%b\n# a comment\n%d %d\n%d\n" % (kind, *size, white) + values.tobytes()


@pytest.mark.parametrize("white", [1, 7, 100, 254, 255, 256, 1000, 4095, 65534, 65535])
@pytest.mark.parametrize(("kind", "bands"), [(b"P5", 1), (b"P6", 3)])
def test_any_white_of_netpbm_gives_the_pixels_of_pillow(kind, bands, white):
    depth = np.dtype("u1" if white < 256 else ">u2")
    highest = min(white + white // 10 + 2, 256**depth.itemsize)  # some are beyond white
    values = np.random.default_rng(0).integers(0, highest, (9, 13, bands)).astype(depth)
    data = netpbm(kind, values, white, (13, 9))
    with Image.open(io.BytesIO(data)) as image:
        expected, encoding = rgb(image)
    pixels, found = decode(io.BytesIO(data))
    assert np.array_equal(pixels, expected) and found == encoding
    with pytest.raises((ValueError, OSError)):
        decode(io.BytesIO(data[:-1]))


def test_a_netpbm_of_any_white_is_decoded_about_as_fast_as_of_the_usual_one():
    def seconds(white):
        data = netpbm(b"P6", np.zeros((1000, 1000, 3), np.uint8), white, (1000, 1000))
        took = []
        for _ in range(3):
            start = time.thread_time()
            decode(io.BytesIO(data))
            took.append(time.thread_time() - start)
        return min(took)

    assert seconds(254) < 50 * seconds(255)  # Pillow alone takes far longer
