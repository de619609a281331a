"""Decoding of one image to RGB, by one rule for all, with a closed list of Pillow's readers: some start programs.

- The bytes of a file decide its format, not its suffix; only those in `FORMATS` are tried.
- Pixels are turned upright by EXIF or XMP.
- Alpha, or the transparent color of a palette, is dropped without a background, as `Image.convert("RGB")` does. So do
  clean-fid, torch-fidelity and torchvision, and the numbers agree with theirs.
- Gray and black-and-white are repeated in three channels. 16-bit gray keeps its upper byte (Pillow's own conversion
  clips it at 255, which turns it white), as Pillow itself does with 16-bit color. A lower depth that the file states
  (sBIT, BitsPerSample) is its range, and white is the highest value unless the file says zero is.
- CMYK, YCbCr, HSV and CIELAB are converted as in Pillow, which inverts Adobe's CMYK in JPEG.
- Values are taken as they are stored, as FID tools take them, and the color space that a file states is noted as a
  property. If sRGB is asked for, they are converted by the profile, the gamma or the numbers of CICP that the file has;
  an image whose profile cannot be applied is then unreadable, since a set of mixed spaces was not asked for.
- Signed values, 32-bit integers and floats are refused if their range is not stated; with a range, images of more
  than 8 bits are scaled from it. Animations and files of many pages are refused. Only the second pictures that
  phones put into a JPEG (MPO) are ignored.
- An image that claims more pixels than `core.memory` allows is refused before anything is decoded. Where Pillow's own
  limit is lower, it is raised while an image is read.
"""

from __future__ import annotations

import io
import re
import sys
from contextlib import ContextDecorator
from functools import partial
from threading import Lock
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from PIL import GifImagePlugin, Image, ImageFile, PngImagePlugin, TiffImagePlugin

from finc_eval.core.doors import at_most
from finc_eval.core.errors import DataError
from finc_eval.core.files.icc import SRGB, in_srgb, marks, mode_of, space_name, stated_profile
from finc_eval.core.files.stated import STATED
from finc_eval.core.memory import DECODED, VARIABLE, max_decoded, max_pixels
from finc_eval.samples.encoding import CMYK, UNREADABLE, Encoding, is_gray, jpeg_quality, mark
from finc_eval.samples.reading import EVERYTHING, STORED, Reading
from finc_eval.samples.source import NOT_OF_THE_SAMPLE, Pixels, Sample, content_digest, reason

ANIMATION = "an animation: choose an extractor for clips, such as motion"  # reason why an image is not read
IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".gif"}) | {
    *(".jfif", ".jpe", ".avif", ".jp2", ".j2k", ".jpf", ".jpx", ".pnm", ".dib")
}

SIGNATURES = re.compile(
    rb"\xff\xd8\xff|\x89PNG\r\n|GIF8[79]a|RIFF....WEBP|BM.{12}[\x0c\x28\x6c\x7c]\0|II\*\0|MM\0\*|P[56]\s|"
    rb"\0\0\0\x0cjP  |\xff\x4f\xff\x51|....ftypavi[fs]",
    re.DOTALL,
)
"""First bytes of files in `FORMATS`."""

SIGNATURE_BYTES = 16  # bytes that tell the format of a file

# A closed list: other readers of Pillow are not needed, some start programs (EPS), and all slow down the search.
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "PPM", "GIF", "AVIF", "JPEG2000")


FIXED: tuple[tuple[Any, str, object], ...] = (
    (ImageFile, "LOAD_TRUNCATED_IMAGES", False),
    (GifImagePlugin, "LOADING_STRATEGY", GifImagePlugin.LoadingStrategy.RGB_AFTER_FIRST),
    (TiffImagePlugin, "READ_LIBTIFF", False),
    (PngImagePlugin, "MAX_TEXT_CHUNK", ImageFile.SAFEBLOCK),
    (PngImagePlugin, "MAX_TEXT_MEMORY", 64 * ImageFile.SAFEBLOCK),
)
"""Module, name and value of each setting of Pillow that decides what is read, as a fresh process has them."""

MAX_PIXELS = (1 << 30) // 12
"""Pillow's own limit of pixels: beyond twice that it refuses an image before the decoder of a WebP is made. Our limit
comes later, and its message says how large the image is."""

_lock = Lock()
_before: list[tuple[Any, str, object]] = []
_users = 0

ORIENTATION, BITS_PER_SAMPLE, PHOTOMETRIC, SAMPLE_FORMAT = 0x0112, 0x0102, 0x0106, 0x0153
"""Tags of TIFF 6.0, the first also of EXIF."""

GRAY_MODES = ("1", "L", "LA", "La", "I", "F")

SIGNED = 2  # format of samples of a TIFF that are signed integers
DEPTHS = (8, 10, 12, 14)  # usual depths of cameras, which write them into files of 16 bits

TURNS: dict[object, Image.Transpose] = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class FixedSettings(ContextDecorator):
    """Run a block with Pillow's own settings; the caller's return when the last thread has left such a block."""

    def __enter__(self) -> None:
        global _users
        with _lock:
            if not _users:
                for module, name, value in (*FIXED, (Image, "MAX_IMAGE_PIXELS", max(MAX_PIXELS, max_pixels()))):
                    if (before := getattr(module, name)) != value:
                        _before.append((module, name, before))
                        setattr(module, name, value)
            _users += 1

    def __exit__(self, *_: object) -> None:
        global _users
        with _lock:
            _users -= 1
            while _before and not _users:
                setattr(*_before.pop())


@FixedSettings()
def decode(stream: IO[bytes], reading: Reading = EVERYTHING) -> tuple[Pixels, Encoding]:
    """Decode one image file to upright (height, width, 3) uint8 RGB."""
    if not isinstance(stream, io.BytesIO):
        stream = io.BytesIO(at_most(stream, max_decoded()))
    try:
        opened = Image.open(stream, formats=FORMATS)
    except Image.DecompressionBombError as error:  # beyond twice its limit, before the decoder of a WebP is made
        raise ValueError(f"more than {max_pixels():,} pixels, the most that {VARIABLE} allows") from error
    with opened as image:
        take_pixels(image.width, image.height)
        tiles = getattr(image, "tile", ())
        if tiles and tiles[0].codec_name == "ppm":
            return decode(_whole_range(image, tiles[0], stream), reading)
        quality = jpeg_quality(tuple(image.quantization[0])) if hasattr(image, "quantization") else None
        form = "WEBP-lossless" if image.format == "WEBP" and _is_lossless(stream) else image.format
        # How the file has its pixels, in Pillow's words, such as "RGB;16B"; "" where Pillow does not say.
        args = tiles[0].args if tiles and image.format in ("PNG", "TIFF") else ""
        args = args[0] if isinstance(args, tuple) and args else args
        raw = args if isinstance(args, str) else ""
        if image.format == "PNG" and (image.mode != "RGB" or ";16" in raw):
            # The largest depth that the chunk sBIT states for gray or a color; 0 without one. 4096: bytes of the first
            # chunks of a PNG.
            stream.seek(0)
            head = stream.read(4096)
            start = head.find(b"sBIT")
            size = min(int.from_bytes(head[start - 4 : start], "big"), 4) if start > 4 else 0
            depths = head[start + 4 : start + 4 + (size if size % 2 else size - 1)] if size else b""
            image.info["bits"] = max(depths, default=0)
        image.info.update(marks(stream, image))
        if ";16" in raw and not image.mode.startswith("I"):
            image.info["lower"] = partial(_lower_bytes, stream, raw)
        return rgb(image, reading, "JPEG" if form == "MPO" else form, quality)


def decode_image(name: str, data: bytes | str, reading: Reading) -> Sample:
    """Decode the bytes of an image, so that what is decoded is what was hashed, whatever happens to its file.

    Instead of bytes, `data` may be the reason why the image cannot be read.
    """
    content = content_digest(data)
    if isinstance(data, str):
        return Sample(name, None, data, content=content)
    try:
        pixels, encoding = decode(io.BytesIO(data), reading)
    except NOT_OF_THE_SAMPLE:
        raise
    except Exception as error:  # Pillow's readers raise almost anything on damaged bytes
        return Sample(name, None, reason(error), content=content)
    return Sample(name, pixels, None, encoding, content)


def size_of(stream: IO[bytes]) -> tuple[int, int]:
    """Return the width and height that the header of an image states; (0, 0) if it cannot be read."""
    try:
        with FixedSettings(), Image.open(stream, formats=FORMATS) as image:
            return image.size
    except NOT_OF_THE_SAMPLE:
        raise
    except Exception:  # Pillow's readers raise almost anything on damaged bytes
        return 0, 0


def _whole_range(image: Image.Image, tile: Any, stream: IO[bytes]) -> IO[bytes]:
    """Return a PPM or PGM whose white is the highest value, from another image that Pillow reads value by value."""
    white, bands = tile.args[1], len(image.getbands())
    kind, highest = (">u2", 65535) if image.mode == "I" else ("u1", 255)
    stored = np.dtype("u1" if white < 256 else ">u2")
    scale = np.rint(np.arange(256**stored.itemsize) / white * highest).clip(max=highest).astype(kind)
    size = image.width * image.height * bands * stored.itemsize
    stream.seek(tile.offset)
    data = stream.read(size)
    if len(data) < size:
        raise ValueError("not enough image data")
    head = f"P{6 if bands == 3 else 5} {image.width} {image.height} {highest}\n"
    return io.BytesIO(head.encode() + scale[np.frombuffer(data, stored)].tobytes())


def take_pixels(width: int, height: int) -> None:
    """Raise ValueError for an image that is too large to be decoded; otherwise wait until there is room for it."""
    if width * height > max_pixels():
        raise ValueError(f"{width}x{height} pixels are more than the {max_pixels():,} that {VARIABLE} allows")
    DECODED.take(STATED["picture"]((width, height)))


@FixedSettings()
def rgb(
    image: Image.Image, reading: Reading = EVERYTHING, form: str | None = None, quality: int | None = None
) -> tuple[Pixels, Encoding]:
    """Turn a Pillow image into upright (height, width, 3) uint8 RGB; its file has this encoding and quality."""
    mode = image.mode
    lower = image.info.get("lower")
    tags = getattr(image, "tag_v2", {})
    is_signed = mode == "L" and image.format == "TIFF" and tags.get(SAMPLE_FORMAT, (1,))[0] == SIGNED
    is_wide = mode in ("I", "F") or mode.startswith("I;16") or lower is not None or is_signed
    stated = reading.range is not None and is_wide
    _check_range(image, is_signed=is_signed, is_stated=stated)
    image.load()
    turn = _turn_of(image)
    upright = image if turn is None else image.transpose(turn)
    values: npt.NDArray[Any] = np.asarray(upright) if is_wide or mode == "RGB" else np.zeros(0)
    values = values.view(np.int8) if is_signed else values
    if lower is not None and (stated or 8 < image.info.get("bits", 0) < 16):
        low = lower() if turn is None else lower().transpose(turn)
        values = (values.astype(np.uint16) << 8 | np.asarray(low))[..., :3]
    depth = 0
    if stated:
        try:
            pixels = as_rgb(reading.scaled(values, "the image"))
        except DataError as error:  # of this sample, not of its set
            raise ValueError(str(error)) from error
    elif mode == "I" or values.dtype.itemsize == 2:
        # Older versions of Pillow read 16-bit PNG and PGM as "I".
        pixels, depth = _eight_bits(values, image, tags)
    elif mode == "RGB":
        pixels = values
    else:
        # A transparent color does not change the pixels of RGB, but Pillow warns about it.
        upright.info.pop("transparency", None)
        pixels = np.asarray((upright.convert("LA") if mode == "La" else upright).convert("RGB"))
    if lower is not None and not stated:
        depth = depth or _depth(int(pixels.max(initial=0)) << 8)
        mode = f"{mode};16" if depth == 16 else f"{mode[:3]};16"
    pixels, color = _colored(upright, pixels, reading)
    mode = f"{mode}/{depth}bit" if depth and depth < 16 else mode
    height, width, _ = pixels.shape
    mode = mode if "/" in mode else mark(mode, pixels)  # a mode that has its depth already has no further mark
    format_name = form or image.format or "array"
    return pixels, Encoding(format_name, mode, width, height, is_gray(pixels), quality, color=color)


def _colored(image: Image.Image, pixels: Pixels, reading: Reading) -> tuple[Pixels, str | None]:
    """Return the pixels of an image in the space that is asked for, and the name of the space; None for sRGB."""
    color = CMYK if image.mode == "CMYK" else None
    try:
        profile = stated_profile(image.info)
        if profile is None:
            return pixels, color
        is_gray_file = mode_of(profile) == "L" and image.mode.partition(";")[0] in GRAY_MODES
        if reading.color == STORED:
            if mode_of(profile) != ("L" if is_gray_file else color or "RGB"):
                return pixels, UNREADABLE
            name = space_name(profile)
            return pixels, None if name == SRGB else name
        stored = image if color else Image.fromarray(pixels[..., 0] if is_gray_file else pixels)
        return as_rgb(np.asarray(in_srgb(stored, profile))), None
    except ValueError as error:
        if reading.color == STORED:
            return pixels, UNREADABLE
        raise ValueError(f"its colors cannot be converted to sRGB ({error}): save it in sRGB") from error


def _check_range(image: Image.Image, *, is_signed: bool, is_stated: bool) -> None:
    """Raise ValueError for an image whose values have a range that neither it nor the user states, or for several."""
    mode = image.mode
    if is_signed and not is_stated:
        raise ValueError("signed values of 8 bits: state their range (range=, --range), or save unsigned values")
    if not is_stated and (mode == "F" or (mode == "I" and image.format not in ("PNG", "PPM"))):
        raise ValueError(f"mode {mode} has no 8-bit range: state it (range=, --range), or save it with 8 or 16 bits")
    # Pillow takes long to count the frames.
    if getattr(image, "is_animated", False) and image.format != "MPO":
        raise ValueError(ANIMATION)


def _turn_of(image: Image.Image) -> Image.Transpose | None:
    """Return the turn that makes an image upright; None if it is upright or does not say."""
    try:
        return TURNS.get(image.getexif().get(ORIENTATION))
    except Exception:  # Pillow's readers raise almost anything on damaged bytes, which should not spoil the image
        return None


def _eight_bits(values: npt.NDArray[Any], image: Image.Image, tags: Any) -> tuple[Pixels, int]:
    """Return values of 16 bits in 8 bits, by the depth that the file states, and how deep they are if it states none.

    Without a statement the range is 16 bits: a dark image must not become brighter than others of its set.
    """
    values = values.astype(np.int32, copy=False)
    stated = image.info.get("bits") or (tags.get(BITS_PER_SAMPLE, (16,)) or (16,))[0]
    bits = stated if 8 < stated < 16 else 16
    highest = int(values.max())
    if highest >= 1 << bits:
        bits = 16
    if image.format == "PNG" and bits < 16 and highest and not (values & ((1 << (16 - bits)) - 1)).any():
        bits = 16  # scaled to the whole range, as sBIT asks for
    if tags.get(PHOTOMETRIC) == 0 and image.format == "TIFF":
        values = (1 << bits) - 1 - values
    return as_rgb((values >> (bits - 8)).clip(0, 255).astype(np.uint8)), 16 if bits < 16 else _depth(int(values.max()))


def _depth(highest: int) -> int:
    """Return the least of the usual depths that has this value; 16 for 0, and where it takes more."""
    return next((depth for depth in DEPTHS if 0 < highest < 1 << depth), 16)


def _lower_bytes(stream: IO[bytes], raw: str) -> Image.Image:
    """Decode the lower bytes of 16-bit color. Pillow keeps the upper bytes: this exchanges the two first."""
    other = {"B": "L", "L": "B", "N": "B" if sys.byteorder == "little" else "L"}.get(raw[-1], "")
    stream.seek(0)
    with Image.open(stream, formats=FORMATS) as image:
        if raw[:-1] not in ("RGB;16", "RGBA;16") or len(image.tile) != 1:
            raise ValueError(f"Pillow reads 8 of the 16 bits of {raw}: save it as RGB, or leave its range out")
        (tile,) = image.tile
        args = (raw[:-1] + other, *tile[3][1:]) if isinstance(tile[3], tuple) else raw[:-1] + other
        image.tile = [tile._replace(args=args)]
        image.load()
        return image.copy()


def as_rgb(row: Pixels) -> Pixels:
    """Turn (height, width), (height, width, 1) or (height, width, 3) into (height, width, 3)."""
    if row.ndim == 2:
        row = row[..., None]
    return np.repeat(row, 3, axis=2) if row.shape[2] == 1 else row


def _is_lossless(stream: IO[bytes]) -> bool:
    """Return whether a WebP file holds a lossless image: its chunk is VP8L, not VP8 (RFC 9649)."""
    stream.seek(12)
    while len(header := stream.read(8)) == 8:
        name, size = header[:4], int.from_bytes(header[4:], "little")
        if name in (b"VP8 ", b"VP8L"):
            return name == b"VP8L"
        stream.seek(size + size % 2, 1)
    return False
