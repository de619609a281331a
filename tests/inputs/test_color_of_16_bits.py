"""Color of 16 bits, signed values, orientation, transparency and junk files: pixels are what the file says, or said."""

import io
import os
import shutil
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from finc_eval.core.errors import FincEvalError
from finc_eval.samples.opening import open_source
from finc_eval.samples.profile import Profile, shallow

RNG = np.random.default_rng(0)
RGB = RNG.integers(0, 256, (8, 8, 3)).astype(np.uint8)
RGB[0, 0] = 255
GRAY = RGB[..., 0]
ALPHA = np.dstack([RGB, RNG.integers(0, 256, (8, 8, 1)).astype(np.uint8)])


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(values, bits=None):
    """Return a PNG of 16 bits with the values (height, width, channels), and the chunk sBIT of each channel."""
    height, width, channels = values.shape
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, kind, 0, 0, 0))
    stated = chunk(b"sBIT", bytes(bits)) if bits else b""
    return b"\x89PNG\r\n\x1a\n" + head + stated + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def tiff(values, kind=1, order="<", photometric=None):
    """Return an uncompressed TIFF of the values, of the kind 1 (unsigned), 2 (signed) or 3 (float)."""
    values = np.atleast_3d(values)
    height, width, channels = values.shape
    depth, data = 8 * values.dtype.itemsize, values.astype(values.dtype.newbyteorder(order)).tobytes()
    photometric = (2 if channels > 1 else 1) if photometric is None else photometric
    tags = {256: width, 257: height, 258: depth, 259: 1, 262: photometric, 273: 8, 277: channels, 278: height}
    tags |= {279: len(data), 339: kind}
    extra = struct.pack(f"{order}3H", *[depth] * 3) + struct.pack(f"{order}3H", *[kind] * 3)
    at = 8 + len(data)
    entries = b""
    for tag, value in sorted(tags.items()):
        if channels > 1 and tag in (258, 339):
            entries += struct.pack(f"{order}HHII", tag, 3, 3, at + 6 * (tag == 339))
        else:
            entries += struct.pack(f"{order}HHII", tag, 4, 1, value)
    mark = b"II*\0" if order == "<" else b"MM\0*"
    head = mark + struct.pack(f"{order}I", at + len(extra)) + data + extra
    return head + struct.pack(f"{order}H", len(tags)) + entries + struct.pack(f"{order}I", 0)


def one(path, data, suffix="png", **how):
    (path / f"a.{suffix}").write_bytes(data)
    (sample,) = open_source(path, **how).samples()
    return sample


FORMS = {
    "png": lambda values: ("png", png(values)),
    "png with alpha": lambda values: ("png", png(np.dstack([values, values[..., :1] * 0 + 65535]))),
    "tif": lambda values: ("tif", tiff(values)),
    "tif of the other order": lambda values: ("tif", tiff(values, order=">")),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("most", [255 * 4, 255 * 16, 255 * 64, 65535])
def test_color_of_16_bits_has_the_stated_range(most, form, tmp_path):
    suffix, data = FORMS[form]((RGB.astype(np.uint32) * most // 255).astype(np.uint16))
    sample = one(tmp_path, data, suffix, range=(0, most))
    assert sample.error is None and np.abs(sample.pixels.astype(int) - RGB).max() <= (1 if most % 255 else 0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bits", [10, 12, 14, 16])
def test_a_lower_depth_of_color_is_noticed(bits, form, tmp_path):
    suffix, data = FORMS[form]((RGB.astype(np.uint16) << (bits - 8)) + (RGB >> (16 - bits)))
    sample = one(tmp_path, data, suffix)
    said = shallow(Profile.of([sample.encoding]))
    assert (said is None) is (bits == 16) and (bits == 16 or f"look like {bits} bits in files of 16 bits" in said)
    assert bits < 16 or np.array_equal(sample.pixels, RGB)


@pytest.mark.parametrize("bits", [10, 12, 14])
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("scaled", [False, True])
def test_sbit_of_each_channel_is_the_depth(bits, channels, scaled, tmp_path):
    values = {1: GRAY[..., None], 3: RGB, 4: ALPHA}[channels].astype(np.uint16)
    values = values * 257 >> (16 - bits) << (16 - bits) if scaled else (values << (bits - 8)) | 1
    sample = one(tmp_path, png(values, [bits] * channels))
    assert np.array_equal(sample.pixels, RGB if channels > 1 else GRAY[..., None].repeat(3, 2))


def test_color_of_16_bits_that_is_turned_is_turned_whole(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    values = np.rot90(RGB.astype(np.uint16) * 16 + 1, 1)
    data = png(values, (12, 12, 12))
    data = data[:33] + chunk(b"eXIf", exif.tobytes().removeprefix(b"Exif\0\0")) + data[33:]
    assert np.array_equal(one(tmp_path, data).pixels, RGB)


def test_a_range_that_color_of_16_bits_cannot_have_is_refused(tmp_path):
    two = png(np.dstack([GRAY, GRAY]).astype(np.uint16))
    assert "save it as RGB" in one(tmp_path, two, range=(0, 255)).error
    assert "outside of the range" in one(tmp_path, png(RGB.astype(np.uint16) * 16), range=(0, 255)).error


SIGNED = {"8 bits": (GRAY.astype(int) - 128).astype(np.int8), "16 bits": (GRAY.astype(int) - 128).astype(np.int16)}


@pytest.mark.parametrize("kind", SIGNED)
def test_signed_values_need_a_range(kind, tmp_path):
    data = tiff(SIGNED[kind], kind=2)
    assert "range" in one(tmp_path, data, "tif").error
    assert np.array_equal(one(tmp_path, data, "tif", range=(-128, 127)).pixels[..., 0], GRAY)


@pytest.mark.parametrize("bits", [10, 12])
def test_a_lower_depth_is_noticed_where_white_is_zero(bits, tmp_path):
    data = tiff(65535 - (GRAY.astype(np.uint16) << (bits - 8)), photometric=0)
    assert f"look like {bits} bits" in shallow(Profile.of([one(tmp_path, data, "tif").encoding]))


def turned(number):
    """Return what a file must hold to show RGB by this orientation of EXIF."""
    return {
        1: RGB,
        2: RGB[:, ::-1],
        3: RGB[::-1, ::-1],
        4: RGB[::-1],
        5: RGB.transpose(1, 0, 2),
        6: np.rot90(RGB, 1),
        7: RGB[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(RGB, -1),
        9: RGB,
    }[number]


@pytest.mark.parametrize("form", ["PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("number", range(1, 10))
def test_an_image_is_upright(number, form, tmp_path):
    exif = Image.Exif()
    exif[0x0112] = number
    data = io.BytesIO()
    options = {"lossless": True, "exact": True} if form == "WEBP" else {}
    Image.fromarray(np.ascontiguousarray(turned(number))).save(data, form, exif=exif, **options)
    assert np.array_equal(one(tmp_path, data.getvalue(), form.lower()).pixels, RGB)


JUNK = {
    "a thumbnail of a server": "@eaDir/a.png",
    "a file that was lost": "lost+found/a.png",
    "a fork of a Mac": "__MACOSX/a.png",
    "a hidden file": ".a.png",
    "a hidden folder": ".ipynb_checkpoints/a.png",
}


@pytest.mark.parametrize("what", JUNK)
@pytest.mark.parametrize("form", ["folder", "zip"])
def test_what_systems_add_is_not_a_sample(what, form, tmp_path):
    place = tmp_path / "set"
    (place / JUNK[what]).parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(RGB).save(place / "b.png")
    Image.fromarray(RGB).save(place / JUNK[what])
    if form == "zip":
        place = shutil.make_archive(str(tmp_path / "packed"), "zip", place)
    assert open_source(place).ids == ["b.png"]


COPIES = ("b.png~", "b.png.bak", "b.png.orig", "b.png.old", "b.png.swp", "b.png_original", "b.png#", "b.jpg.part")


@pytest.mark.parametrize("form", ["folder", "zip", "tar"])
@pytest.mark.parametrize("copy", COPIES)
def test_what_editors_and_programs_keep_of_an_image_is_left_out_and_counted(copy, form, tmp_path):
    place = tmp_path / "set"
    place.mkdir()
    for name in ("b.png", copy):
        Image.fromarray(RGB).save(place / name, "PNG")
    if form != "folder":
        place = shutil.make_archive(str(tmp_path / "packed"), form, place)
    source = open_source(place)
    assert len(source.ids) == 1 and sum(source.ignored.values()) == 1


BAD = {
    "nothing": b"",
    "a page": b"<html>404</html>",
    "a drawing": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
    "a pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    "a photograph of a phone": b"\0\0\0\x18ftypheic" + bytes(100),
}


@pytest.mark.parametrize("what", BAD)
def test_a_file_with_the_suffix_of_an_image_that_is_none_is_a_failure(what, tmp_path):
    Image.fromarray(RGB).save(tmp_path / "b.PNG")
    (tmp_path / "a.jpg").write_bytes(BAD[what])
    (tmp_path / "c.png").mkdir()
    found = {sample.id: sample.error for sample in open_source(tmp_path).samples()}
    assert found.keys() == {"a.jpg", "b.PNG"} and found["a.jpg"] and found["b.PNG"] is None


def test_a_file_that_waits_for_another_program_is_not_opened(tmp_path):
    Image.fromarray(RGB).save(tmp_path / "b.png")
    os.mkfifo(tmp_path / "a.png")
    assert any(sample.id == "b.png" and sample.error is None for sample in open_source(tmp_path).samples())


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_masked_pixels_are_refused_and_an_empty_mask_is_not(kind):
    images = RNG.integers(0, 255, (4, 8, 8, 3)).astype(kind)
    how = {} if kind is np.uint8 else {"range": (0, 255)}
    with pytest.raises(FincEvalError, match="masked entries"):
        open_source(np.ma.masked_array(images, images > 250), **how)
    (first, *_) = open_source(np.ma.masked_array(images), **how).samples()
    assert np.array_equal(first.pixels, images[0])
