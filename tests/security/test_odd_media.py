"""A picture or a clip takes neither endless time nor endless memory, whatever its header states."""

import io
import re
import struct
import time
import zipfile
import zlib
from unittest.mock import Mock

import av
import numpy as np
import pytest
from _bounded import bounded
from _videos import encode, scene
from PIL import Image

from finc_eval.samples import patience, video, video_process
from finc_eval.samples.clips import Clip
from finc_eval.samples.images import MAX_EXIF_BYTES, decode, rgb
from finc_eval.samples.opening import open_source
from finc_eval.samples.video_files import open_clips

CLIP = Clip(frames=4, stride=1, windows=1, short="loop")
TOO_LONG = "took more than 0.3 seconds"
NO_MEMORY = "cannot allocate memory|of memory to decode"
REFUSED = "not a video that can be read"  # the answer of the FFmpeg in PyAV 19 to such counts


@pytest.fixture(autouse=True)
def third_of_a_second(monkeypatch):
    monkeypatch.setattr(patience, "SECONDS", 0.3)
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


def matroska(*extra):
    """An ordinary Matroska file with more elements before its frames."""
    data = film("matroska")
    segment, frames = data.index(b"\x18\x53\x80\x67"), data.index(b"\x1f\x43\xb6\x75")
    return data[:segment] + element("18538067", data[segment + 12 : frames], *extra, data[frames:])


def frame(content, name="a3"):
    return element(name, b"\x81\0\0\x80" + content)


def cluster(*content):
    return element("1f43b675", element("e7", b"\0"), *content)


EMPTY_INDEX = element("1c53bb6b")
MATROSKA = {
    "an index that is large": (matroska, [element("1c53bb6b", bytes(200_000))]),
    "many small elements": (matroska, [element("ec") * 20_000]),
    "many frames": (matroska, [cluster(frame(b"") * 20_000)]),
    "many tracks": (matroska, [element("1654ae6b", element("ae") * 20)]),
    "many attachments": (matroska, [element("1941a469", element("61a7") * 20)]),
    "an index in a frame": (matroska, [cluster(frame(b"ab" + EMPTY_INDEX))]),
    "an index in a frame of a group": (matroska, [cluster(element("a0", frame(EMPTY_INDEX, "a1")))]),
    "an index in the size of a frame": (matroska, [cluster(b"\xa3\x08\x1c\x53\xbb\x6b" + bytes(0x1C53BB))]),
    "an index at the end of a frame": (matroska, [cluster(frame(b"\x1c\x53\xbb"), b"\x6b\x88\x81" + bytes(136))]),
    "frames beside clusters": (matroska, [frame(bytes(200_000))]),
    "frames beside tracks": (matroska, [element("1654ae6b", frame(bytes(200_000)))]),
    "no end": (with_elements, [b""]),
    "no end of a cluster": (matroska, [b"\x1f\x43\xb6\x75\x01" + b"\xff" * 7]),
    "an end beyond the end": (matroska, [element("1f43b675", b"\xa3\x90")]),
    "a name without an end": (matroska, [bytes(20)]),
    "a size without an end": (matroska, [b"\xec\0" + bytes(20)]),
    "a cut": (lambda: matroska()[:-1], []),
    "nothing": (lambda: b"\x1a\x45\xdf\xa3", []),
}


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
    assert not video_process.is_ordinary(io.BytesIO(data))
    (tmp_path / "x.mp4").write_bytes(data)
    found = bounded_by_one_worker(tmp_path / "x.mp4")
    assert re.search(told, found), found


@pytest.mark.one_of_each
@pytest.mark.parametrize(("size", "told"), [(0, "without frames|took more than"), (1, "took more than")])
def test_an_ordinary_clip_has_the_same_time(size, told, tmp_path):
    data = tiny_frames(1_000_000, size)
    assert video_process.is_ordinary(io.BytesIO(data))
    (tmp_path / "x.avi").write_bytes(data)
    found = bounded_by_one_worker(tmp_path / "x.avi")
    assert re.search(told, found), found


def test_each_frame_in_another_process_has_its_time_and_memory():
    limits = []
    watch = video_process._Alarm(Mock(set=lambda *given: limits.append(given)), 3, 1 << 30)
    for pixels in (0, 1920 * 1080, 80_000_000):
        watch.begin(pixels)
    assert [most for _, most in limits] == [1 << 30] * 3
    assert [seconds for seconds, _ in limits] == pytest.approx([3, 3.1, 7], abs=0.01)


def test_a_clip_in_a_zip_is_limited_as_one_in_a_folder(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.mp4", edits(30_000, 300))
        archive.writestr("b.mp4", film("mp4"))
        archive.writestr("c.mkv", film("matroska"))
    assert re.fullmatch(r"[^;]+; None; None", bounded(use, tmp_path / "x.zip", CLIP))


@pytest.mark.parametrize("kind", ["mp4", "avi", "matroska", "mpegts"])
def test_an_odd_clip_is_decoded_as_any_other(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(video_process, "is_ordinary", lambda _: False)
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
                assert one.traits == other.traits


def test_ordinary_clips_need_no_other_process(assets, tmp_path, monkeypatch):
    monkeypatch.setattr(video_process._pool, "worker", None)
    clips = sorted((assets / "clips").iterdir())
    assert len(clips) > 9 and all(video_process.is_ordinary(io.BytesIO(one.read_bytes())) for one in clips)
    (tmp_path / "x.mp4").write_bytes(film("mp4"))
    (tmp_path / "x.webp").write_bytes(webp(20))
    (tmp_path / "y.mp4").write_bytes(fragmented())
    assert {use(tmp_path / name, CLIP) for name in ("x.mp4", "x.webp", "y.mp4")} == {"None"}


@pytest.mark.parametrize(("make", "parts"), MATROSKA.values(), ids=MATROSKA)
def test_a_matroska_file_with_more_than_frames_is_odd(make, parts):
    assert not video_process.is_ordinary(io.BytesIO(make(*parts)))


def fragmented(hidden=b"", more=b""):
    data = film("mp4", options={"movflags": "frag_keyframe+empty_moov"})
    first = data.index(b"moof") - 4
    return data[:first] + (box(b"mdat", hidden) if hidden else b"") + more + data[first:]


@pytest.mark.parametrize(
    "data",
    [
        lambda: fragmented(b"ab" + box(b"moof")),
        lambda: fragmented(box(b"traf", box(b"trun", bytes(8)))),
        lambda: fragmented(more=box(b"sidx", bytes(40))),
        lambda: fragmented(more=box(b"moof", box(b"traf", box(b"trun", bytes(8)) * 200))),
        lambda: fragmented(more=box(b"moof", box(b"traf", box(b"trun", struct.pack(">II", 0, 200_000))))),
    ],
    ids=["a fragment in a frame", "a run in a frame", "places of fragments", "runs", "a run of many samples"],
)
def test_an_mp4_with_more_than_few_fragments_is_odd(data):
    assert video_process.is_ordinary(io.BytesIO(fragmented(b"ab")))
    assert not video_process.is_ordinary(io.BytesIO(data()))


@pytest.mark.parametrize("kind", ["mkv", "webm"])
def test_a_matroska_file_of_frames_is_ordinary(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(video_process._pool, "worker", None)
    data = encode(kind, scene(24))
    assert video_process.is_ordinary(io.BytesIO(data)) and video_process.is_ordinary(io.BytesIO(matroska()))
    (tmp_path / f"x.{kind}").write_bytes(data)
    assert use(tmp_path / f"x.{kind}", CLIP) == "None"


def jpeg(n, kind=b"\xff\xe1", head=b"Exif\0\0", size=MAX_EXIF_BYTES):
    """A JPEG with n segments more."""
    made = io.BytesIO()
    Image.new("RGB", (8, 8)).save(made, "JPEG")
    data = made.getvalue()
    return data[:2] + (kind + struct.pack(">H", size + 2) + head + bytes(size - len(head))) * n + data[20:]


def shared_tags(n, size):
    """EXIF of n tags that all have the same bytes."""
    rows = b"".join(struct.pack("<HHII", 1000 + number, 7, size - 8, 8) for number in range(n))
    return (b"II*\0" + struct.pack("<IH", 8, n) + rows).ljust(size, b"\0")


def jpeg_of_shared_tags():
    whole = shared_tags(40_000, 10 * (MAX_EXIF_BYTES - 6))
    parts = (whole[place : place + MAX_EXIF_BYTES - 6] for place in range(0, len(whole), MAX_EXIF_BYTES - 6))
    one = jpeg(0)
    return one[:2] + b"".join(b"\xff\xe1\xff\xffExif\0\0" + part for part in parts) + one[2:]


def png(*chunks, times=1):
    made = io.BytesIO()
    Image.new("RGB", (8, 8)).save(made, "PNG")
    data = made.getvalue()
    parts = [struct.pack(">I", len(c) - 4) + c + struct.pack(">I", zlib.crc32(c)) for c in chunks]
    return data[:33] + b"".join(parts) * times + data[33:]


def tiff_of_shared_tags():
    rows = [(256, 3, 1, 8), (257, 3, 1, 8), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (273, 4, 1, 0)]
    rows += [(277, 3, 1, 1), (278, 3, 1, 8), (279, 4, 1, 64), *((300 + number, 7, 10**6, 8) for number in range(5000))]
    head = b"II*\0" + struct.pack("<IH", 8, len(rows)) + b"".join(struct.pack("<HHII", *row) for row in rows)
    return head.ljust(1_000_100, b"\0")


def gif_comments(n):
    made = io.BytesIO()
    Image.new("P", (8, 8)).save(made, "GIF")
    data = made.getvalue()
    place = data.index(b"\x2c")
    return data[:place] + (b"\x21\xfe\xff" + b"a" * 255 + b"\0") * n + data[place:]


def bmp_of_runs(side, runs):
    """A BMP whose runs have one pixel each."""
    sizes = struct.pack("<IiiHHIIiiII", 40, side, side, 1, 8, 1, 2 * runs, 0, 0, 256, 0)
    return b"BM" + struct.pack("<IHHI", 1078 + 2 * runs, 0, 0, 1078) + sizes + bytes(1024) + b"\1\7" * runs


PICTURES = {
    "EXIF": (lambda: jpeg(600), TOO_LONG),
    "short EXIF": (lambda: jpeg(20_000, size=2000), TOO_LONG),
    "some EXIF": (lambda: jpeg(100), "None"),
    "color profiles": (lambda: jpeg(900, b"\xff\xe2", b"ICC_PROFILE\0\1\1"), "None"),
    "pictures of phones": (lambda: jpeg(900, b"\xff\xe2", b"MPF\0"), "None"),
    "segments": (lambda: jpeg(400_000, b"\xff\xe5", b"", 10), f"None|{TOO_LONG}"),
    "EXIF of shared tags": (jpeg_of_shared_tags, "None"),
    "chunks": (lambda: png(b"prVt", times=400_000), TOO_LONG),
    "texts": (lambda: png(b"tEXta\0b", times=300_000), TOO_LONG),
    "a chunk of shared tags": (lambda: png(b"eXIf" + shared_tags(60_000, 10**6)), "None"),
    "shared tags": (tiff_of_shared_tags, "None|its header names the same bytes"),
    "comments": (lambda: gif_comments(100_000), f"None|{TOO_LONG}"),
    "runs": (lambda: bmp_of_runs(2000, 1_900_000), "took more than 0.5 seconds"),
}


@pytest.mark.one_of_each
@pytest.mark.parametrize(("make", "told"), PICTURES.values(), ids=PICTURES)
def test_an_odd_picture_ends_in_time_and_memory(make, told, tmp_path):
    (tmp_path / "x.png").write_bytes(make())
    found = bounded(use, tmp_path)
    assert re.fullmatch(f"({told}).*", found), found


def test_the_bytes_of_a_picture_are_read_a_few_times_before_its_pixels_and_then_freely():
    """Pillow 11 reads the bytes of a tag as often as tags name them; later versions stop by themselves."""
    size = 10_000_000

    def reread(times, stream):
        for _ in range(times):
            stream.seek(0)
            assert len(stream.read()) == size

    stream = patience.watched(bytes(size))
    reread(4, stream)
    with pytest.raises(ValueError, match="its header names the same bytes many times: save it again"):
        reread(1, stream)
    stream.begin(100)
    reread(10, stream)


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
        expected, traits = rgb(image)
    pixels, found = decode(io.BytesIO(data))
    assert np.array_equal(pixels, expected) and found == traits
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
