"""Pictures that files bring: one reader for boards, monitors and results, which leaves out what is not as stated."""

import base64
import io
import struct
import zlib
from functools import cache

import numpy as np
import pytest
from _bounded import bounded
from _files import forge
from PIL import Image

import finc_eval as fe
from finc_eval.core.errors import DataError
from finc_eval.gallery.thumbnails import kept_thumbnails, preview, read_thumbnail, thumbnail
from finc_eval.leaderboards.pictures import KeptPicture
from finc_eval.monitoring.monitor import Monitor


def encoded(kind, side=64, frames=1, **options):
    pictures = [Image.fromarray(np.full((side, side, 3), 20 * number % 255, np.uint8)) for number in range(frames)]
    stream = io.BytesIO()
    more = {"save_all": True, "append_images": pictures[1:], "duration": 50} if frames > 1 else {}
    pictures[0].save(stream, kind, **more, **options)
    return stream.getvalue()


@cache
def bomb(side=3000, frames=120):
    """A WebP of a few kB whose frames are large, and all the same bytes: together 4 GB of pixels."""
    data = encoded("WEBP", side, 2, lossless=True)
    place, parts = 12, []
    while place < len(data):
        size = struct.unpack("<I", data[place + 4 : place + 8])[0]
        parts.append(data[place : place + 8 + size + size % 2])
        place += len(parts[-1])
    moving = [one for one in parts if one.startswith(b"ANMF")]
    body = b"WEBP" + b"".join(one for one in parts if one not in moving) + moving[0] + moving[1] * (frames - 1)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def png(width, height, pixels=b""):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")


OTHERS = {
    "frames of 9 million pixels": (bomb, "webp", 64, 64, "it is WEBP of 3000x3000 pixels"),
    "a picture of 10 billion pixels": (lambda: png(100_000, 100_000), "png", 64, 64, "is damaged|100000x100000"),
    "a picture that is larger than it states": (lambda: encoded("JPEG", 80), "jpeg", 64, 64, "JPEG of 80x80"),
    "a large picture that says so": (lambda: encoded("PNG", 97), "png", 97, 97, "97x97 pixels, above 96x96"),
    "nine frames": (lambda: encoded("WEBP", 64, 9), "webp", 64, 64, "it has 9 frames, above 8"),
    "a PNG of nine frames": (lambda: encoded("PNG", 64, 9), "png", 64, 64, "it has 9 frames, above 8"),
    "another format": (lambda: encoded("PNG"), "jpeg", 64, 64, "it is PNG of 64x64"),
    "a format that is not shown": (lambda: encoded("GIF"), "gif", 64, 64, "it is damaged"),
    "a drawing": (lambda: b"<svg xmlns='http://www.w3.org/2000/svg'/>", "svg+xml", 64, 64, "it is damaged"),
    "a kind that is not a text": (lambda: encoded("PNG"), ["png"], 64, 64, "not what is stated"),
    "a size that is not a number": (lambda: encoded("PNG"), "png", None, "64", "not what is stated"),
    "no bytes": (lambda: b"", "png", 64, 64, "it is damaged"),
    "a damaged frame": (lambda: encoded("WEBP", 64, 4)[:-30], "webp", 64, 64, "it is damaged"),
    "a cut picture": (lambda: png(64, 64, bytes(99)), "png", 64, 64, "it is damaged"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_a_picture_that_is_not_as_it_is_stated_is_left_out(case):
    make, kind, width, height, told = OTHERS[case]
    data = make()
    with pytest.raises(DataError, match=told):
        read_thumbnail(data, kind, width, height)
    found, note = kept_thumbnails([("a", data, kind, width, height), ("b", encoded("PNG"), "png", 64, 64)])
    assert [*found] == ["b"] and note.startswith("1 kept picture cannot be shown, such as that of 'a', it ")


def test_a_picture_of_ours_is_read_as_it_was_made():
    rng = np.random.default_rng(0)
    made = [thumbnail(rng.integers(0, 256, (side, side, 3), np.uint8)) for side in (8, 64, 300)]
    made.append(preview(rng.integers(0, 256, (20, 60, 60, 3), np.uint8), 10))
    for one in made:
        assert read_thumbnail(*one) == one


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    rng = np.random.default_rng(0)
    sets = [rng.integers(0, 256, (40, 8, 8, 3), np.uint8) for _ in range(2)]
    gen, ref = (fe.EmbeddingSet(one.reshape(40, -1)[:, :6].astype("f4"), images=[*one]) for one in sets)
    board = fe.Board(tmp_path_factory.mktemp("board") / "b")
    board.add({"gen": gen}, ref, metrics=("kid",))
    return board


def test_a_board_with_a_bomb_is_drawn_without_it(board, tmp_path, monkeypatch):
    monkeypatch.setattr("finc_eval.core.kept.sealed.read_sealed", _with_a_bomb)
    found = board.leaderboard()
    assert any("gen: 1 kept picture cannot be shown" in one for one in found.warnings)
    assert bounded(lambda: len(found.to_html(tmp_path / "x.html").read_text()) > 1000) == "True"


def _with_a_bomb(path, *given):
    from finc_eval.core.marks import read_sealed

    data = read_sealed(path, *given)
    if "pictures" in data:  # of a model, and not the index
        data["pictures"][0] |= {"kind": "webp", "data": base64.b64encode(bomb()).decode()}
    return data


@pytest.mark.parametrize("change", [{"data": "no base64!"}, {"width": 97}, {"height": 0}])
def test_a_kept_picture_that_is_none_is_left_out(change):
    one = KeptPicture.of("a", thumbnail(np.zeros((9, 9, 3), np.uint8)))
    wrong = KeptPicture(**{"id": one.id, "kind": one.kind, "width": 9, "height": 9, "data": one.data} | change)
    assert [*kept_thumbnails([one.stated])[0]] == ["a"] and kept_thumbnails([wrong.stated])[0] == {}


def test_a_monitor_with_a_bomb_is_drawn_without_it(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60, 8, 8, 3), np.uint8)
    one = fe.EmbeddingSet(images.reshape(60, -1)[:, :6].astype("f4"), images=[*images])
    monitor = fe.Monitor(one)
    later = rng.integers(0, 256, (60, 8, 8, 3), np.uint8)
    monitor.update(1, fe.EmbeddingSet(later.reshape(60, -1)[:, :6].astype("f4"), images=[*later]))
    monitor.save(tmp_path / "m.h5")
    data = bomb()

    def change(header, arrays):
        step, name, *_ = header["strips"][0]
        header["strips"] = [[step, name, "webp", 64, 64, len(data)]]
        arrays["strips"] = np.frombuffer(data, np.uint8)

    forge(tmp_path / "m.h5", change)
    loaded = Monitor.load(tmp_path / "m.h5")
    assert "step 1: 1 kept picture cannot be shown" in loaded.warnings[-1]
    assert bounded(lambda: loaded.to_html(tmp_path / "m.html").exists()) == "True"
