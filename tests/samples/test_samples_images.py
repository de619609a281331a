"""Every kind of image becomes RGB by one rule, or is refused with a reason."""

import io
import struct
import tracemalloc
import warnings
import zipfile
import zlib

import numpy as np
import PIL
import pytest
from av.video.format import VideoFormat, names
from PIL import Image, ImageDraw, PngImagePlugin

from finc_eval.samples.encoding import Encoding, has_alpha, opaque
from finc_eval.samples.images import decode
from finc_eval.samples.opening import open_source

PIXELS = np.random.default_rng(0).integers(0, 256, (12, 10, 3), dtype=np.uint8)
PHOTO = Image.fromarray(PIXELS).resize((80, 96), Image.Resampling.BICUBIC)


def encoded(image, kind, **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    buffer.seek(0)
    return buffer


def refusal(stream):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        with pytest.raises(ValueError) as caught:
            decode(stream)
    return str(caught.value)


BROKEN_IN_PILLOW_11 = pytest.mark.skipif(
    int(PIL.__version__.split(".")[0]) < 12, reason="Pillow 11 cannot read it back"
)


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("1", "PNG"),
        ("L", "PNG"),
        ("LA", "PNG"),
        ("P", "PNG"),
        ("RGB", "PNG"),
        ("RGBA", "PNG"),
        ("PA", "TIFF"),
        ("CMYK", "TIFF"),
        ("CMYK", "JPEG"),
        pytest.param("YCbCr", "TIFF", marks=BROKEN_IN_PILLOW_11),
        ("L", "JPEG"),
        ("RGB", "JPEG"),
        ("RGBA", "WEBP"),
        ("RGB", "BMP"),
        ("RGB", "PPM"),
        ("P", "GIF"),
    ],
)
def test_every_mode_becomes_what_pillow_makes_of_it_and_nothing_is_warned_of(mode, kind):
    image = PHOTO.convert("RGBA").convert("P").convert(mode) if mode == "PA" else PHOTO.convert(mode)
    file = encoded(image, kind)
    wanted = np.asarray(Image.open(file).convert("RGB"))
    file.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pixels, encoding = decode(file)
    np.testing.assert_array_equal(pixels, wanted)
    assert (encoding.width, encoding.height) == (80, 96)
    assert encoding.format == kind
    assert encoding.is_gray == (mode in ("1", "L", "LA"))


def test_a_lab_picture_comes_out_in_color():
    red = Image.new("LAB", (4, 4), (136, 208, 195))  # L* 53, a* 80, b* 67
    pixels, encoding = decode(encoded(red, "TIFF"))
    assert encoding.mode == "LAB"
    np.testing.assert_allclose(pixels[0, 0], [255, 0, 0], atol=12)


@pytest.mark.parametrize("mode", ["HSV", "LAB", "RGBa", "La", "RGBX", "PA", "YCbCr"])
def test_modes_that_no_file_has_become_rgb_all_the_same(mode):
    from finc_eval.samples.images import rgb

    pixels, encoding = rgb(Image.new(mode, (3, 2)))
    assert (pixels.shape, pixels.dtype, encoding.mode, encoding.format) == ((2, 3, 3), np.uint8, mode, "array")
    assert has_alpha(mode) == (mode in ("RGBa", "La", "PA"))


def test_formats_with_alpha_are_those_of_ffmpeg():
    known = {name: VideoFormat(name) for name in names}
    alpha = {name for name, one in known.items() if any(part.is_alpha for part in one.components)}
    assert {name for name in names if has_alpha(name)} == {name for name in names if opaque(name) != name} == alpha
    assert not any(map(has_alpha, map(opaque, names)))
    assert [opaque(name) for name in ("yuva420p", "bgra", "rgba64le", "ya8")] == ["yuv420p", "bgr0", "rgb48le", "gray8"]


def test_alpha_is_dropped_and_what_it_hides_shows():
    pixels = np.dstack([PIXELS, np.zeros(PIXELS.shape[:2], np.uint8)])
    np.testing.assert_array_equal(decode(encoded(Image.fromarray(pixels), "PNG"))[0], PIXELS)


def test_a_transparent_color_of_a_palette_is_dropped_without_a_warning():
    image = PHOTO.convert("P")
    wanted = np.asarray(image.convert("RGB"))
    for transparency in (3, bytes(range(256))):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pixels, _ = decode(encoded(image, "PNG", transparency=transparency))
        np.testing.assert_array_equal(pixels, wanted)


@pytest.mark.parametrize(("kind", "order"), [("PNG", "<"), ("TIFF", "<"), ("TIFF", ">"), ("PPM", "<")])
def test_sixteen_bit_gray_keeps_its_upper_byte(kind, order):
    values = np.array([[0, 255, 256, 32768, 65535]], np.uint16)
    image = Image.fromarray(values)
    if order == ">":
        image = Image.frombytes("I;16B", (5, 1), values.astype(">u2").tobytes())
    pixels, encoding = decode(encoded(image, kind))
    assert pixels[0, :, 0].tolist() == [0, 0, 1, 128, 255]
    assert encoding.is_gray


def test_numbers_without_a_stated_range_are_refused():
    for mode in ("I", "F"):
        assert f"mode {mode} has no 8-bit range" in refusal(encoded(Image.new(mode, (2, 2)), "TIFF"))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
def test_all_eight_orientations_of_exif_are_turned_upright(orientation, kind):
    corner = Image.new("RGB", (32, 16), "white")
    ImageDraw.Draw(corner).rectangle((0, 0, 15, 7), "black")
    exif = Image.Exif()
    exif[0x0112] = orientation
    pixels, encoding = decode(encoded(corner, kind, exif=exif))
    turned = {
        1: lambda x: x,
        2: np.fliplr,
        3: lambda x: np.rot90(x, 2),
        4: np.flipud,
        5: lambda x: np.transpose(x, (1, 0, 2)),
        6: lambda x: np.rot90(x, -1),
        7: lambda x: np.transpose(np.rot90(x, 2), (1, 0, 2)),
        8: np.rot90,
    }[orientation](np.asarray(corner))
    assert pixels.shape == turned.shape == (encoding.height, encoding.width, 3)
    assert (pixels[..., 0] > 127).tolist() == (turned[..., 0] > 127).tolist()


def test_damaged_exif_spoils_no_picture():
    text = PngImagePlugin.PngInfo()
    text.add_text("Raw profile type exif", "\nexif\n  8\nzzzz")
    pixels, _ = decode(encoded(Image.fromarray(PIXELS), "PNG", pnginfo=text))
    np.testing.assert_array_equal(pixels, PIXELS)


def test_the_content_decides_what_a_file_is(tmp_path):
    PHOTO.save(tmp_path / "a.jpg", "PNG")
    (sample,) = open_source(tmp_path).samples()
    assert (sample.error, sample.encoding.format) == (None, "PNG")


def test_a_single_pixel_is_an_image():
    assert decode(encoded(Image.new("RGB", (1, 1), (1, 2, 3)), "PNG"))[0].tolist() == [[[1, 2, 3]]]


def test_thirty_thousand_squared_is_refused_at_once_and_without_memory():
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    def png(side):
        header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
        return io.BytesIO(
            b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
        )

    tracemalloc.start()
    for side in (30_000, 10_000):  # Pillow itself refuses the first and only warns of the second
        assert "that FINC_EVAL_MAX_DECODED allows" in refusal(png(side))
    assert tracemalloc.get_traced_memory()[1] < 1e6
    tracemalloc.stop()


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_an_animation_is_no_image(kind):
    frames = [PHOTO, PHOTO.rotate(90), PHOTO.rotate(180)]
    file = encoded(frames[0], kind, save_all=True, append_images=frames[1:])
    assert refusal(file) == "an animation: choose an extractor for clips, such as motion"
    assert decode(encoded(PHOTO, kind))[1].format.startswith(kind)


def test_of_the_pictures_that_a_phone_puts_into_one_jpeg_the_first_counts():
    file = encoded(PHOTO, "MPO", save_all=True, append_images=[PHOTO.rotate(180)], quality=80)
    pixels, encoding = decode(file)
    np.testing.assert_array_equal(pixels, decode(encoded(PHOTO, "JPEG", quality=80))[0])
    assert (encoding.format, encoding.quality) == ("JPEG", 80)


def test_damaged_and_foreign_files_are_failures_in_a_word(tmp_path):
    jpeg = encoded(PHOTO, "JPEG").getvalue()
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "half.jpg").write_bytes(jpeg[: len(jpeg) // 2])
    (tmp_path / "half.png").write_bytes(encoded(PHOTO, "PNG").getvalue()[:2000])
    (tmp_path / "page.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n")
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "lost.png").symlink_to("nowhere.png")
    PHOTO.save(tmp_path / "whole.png")
    errors = {sample.id: sample.error for sample in open_source(tmp_path).samples()}
    assert errors.pop("whole.png") is None
    assert set(errors) == {"empty.png", "half.jpg", "half.png", "page.png", "lost.png"}
    assert errors["empty.png"] == errors["page.png"] == "no image that can be recognized"
    assert all(errors.values())


@pytest.mark.parametrize("quality", [1, 30, 49, 50, 75, 92, 95, 100])
def test_the_quality_of_a_jpeg_is_read_from_its_table(quality):
    assert decode(encoded(PHOTO, "JPEG", quality=quality))[1].quality == quality


def test_a_table_unlike_any_quality_has_none():
    assert decode(encoded(PHOTO, "JPEG", qtables=[[16] * 64, [16] * 64]))[1].quality is None
    assert decode(encoded(PHOTO, "PNG"))[1].quality is None


def test_lossless_webp_is_told_from_lossy():
    assert decode(encoded(PHOTO, "WEBP", lossless=True))[1].format == "WEBP-lossless"
    assert decode(encoded(PHOTO, "WEBP"))[1].format == "WEBP"
    with_profile = encoded(PHOTO, "WEBP", lossless=True, icc_profile=bytes(129))
    assert decode(with_profile)[1].format == "WEBP-lossless"


def test_a_single_colored_pixel_on_the_grid_makes_an_image_colored():
    pixels = np.full((200, 300, 3), 7, np.uint8)
    assert decode(encoded(Image.fromarray(pixels), "PNG"))[1].is_gray
    pixels[0, 0, 2] = 8
    assert not decode(encoded(Image.fromarray(pixels), "PNG"))[1].is_gray


@pytest.mark.parametrize(
    "encoding",
    [
        Encoding("JPEG", "RGB", 640, 480, False, 75),
        Encoding("PNG", "I;16", 1, 89478485, True),
        Encoding("WEBP-lossless", "RGBA", 10_000, 8_000, False),
        Encoding("h264", "yuv420p", 1920, 1080, False, None, 29.97),
        Encoding("hevc", "yuv420p10le", 720, 576, False, None, 25.0, 50, 2.0, "9/16", 1.0667),
        Encoding("gif", "bgr0", 64, 48, False, None, 10.0, 16, None, None),
    ],
)
def test_encodings_come_back_from_their_bytes(encoding):
    assert Encoding.decode(encoding.encode()) == encoding


def test_traits_never_need_more_than_96_bytes():
    name = "a codec with a very long name, and a longer one"
    longest = Encoding(
        name, "yuva444p10le", 10_000, 100_000, False, None, 1234567.891, 1_000_000, 1e6 / 3, "10/18", 1.0667
    )
    assert len(longest.encode()) == 96
    assert Encoding.decode(longest.encode()).width == 10_000


def test_traits_of_older_files_are_read():
    assert Encoding.decode(b"h264 yuv420p 64x48 c - 29.97") == Encoding("h264", "yuv420p", 64, 48, False, fps=29.97)


def test_real_photographs_are_read_as_pillow_reads_them(assets):
    path = assets / "photos" / "imagenet_500.zip"
    source = open_source(path)
    with zipfile.ZipFile(path) as archive:
        for number in range(0, len(source.ids), 25):
            sample = source.sample(number)
            wanted = Image.open(archive.open(sample.id)).convert("RGB")
            np.testing.assert_array_equal(sample.pixels, np.asarray(wanted))
            assert (sample.encoding.format, sample.encoding.quality) == ("JPEG", 92)
