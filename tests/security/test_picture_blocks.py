"""Tags, profiles, texts and comments of pictures cost no more than their file, whatever they claim."""

import io
import re
import struct
import zlib

import numpy as np
import pytest
from _bounded import bounded
from PIL import Image, ImageCms

from finc_eval.samples.images import decode

PIXELS = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)


def saved(form, **options):
    stream = io.BytesIO()
    Image.fromarray(PIXELS).save(stream, form, **options)
    return stream.getvalue()


def png(*chunks):
    whole = saved("PNG")
    made = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return whole[:33] + b"".join(made) + whole[33:]


def zeros(size):
    """A megabyte from a kilobyte."""
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)) + packer.flush()


def directory(tags, more=b""):
    """A TIFF of tags (number, type, count, value or place)."""
    entries = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + more


def sharing(tags, count, kind=1, size=0):
    """A gray TIFF with further tags, all of the same bytes."""
    own = [(256, 64), (257, 64), (258, 8), (259, 1), (262, 1), (273, 200_000), (277, 1), (278, 64), (279, 4096)]
    found = directory(
        [(number, 4, 1, value) for number, value in own] + [(40_000 + i, kind, count, 8) for i in range(tags)]
    )
    return found.ljust(max(204_096, size), b"\1")


def itself(tag):
    return b"Exif\0\0" + directory([(tag, 4, 1, 8)], bytes(100))


def gif(*blocks):
    whole = saved("GIF")
    colors = 13 + 3 * 2 ** ((whole[10] & 7) + 1)
    return whole[:colors] + b"".join(blocks) + whole[colors:]


def comment(size):
    return b"\x21\xfe" + (b"\xff" + bytes(255)) * (size // 255) + b"\0"


def webp(*chunks):
    whole = saved("WEBP")
    made = b"".join(kind + struct.pack("<I", len(data)) + data + bytes(len(data) % 2) for kind, data in chunks)
    body = b"WEBPVP8X" + struct.pack("<IB3x", 10, 0x2C) + struct.pack("<I", 63)[:3] * 2 + made + whole[12:]
    return b"RIFF" + struct.pack("<I", len(body)) + body


SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
GIANT = directory([(40_000 + i, 1, 20_000_000, 8) for i in range(900)], bytes(20_000_000))

READ = {
    "a profile": lambda: saved("PNG", icc_profile=SRGB),
    "a broken profile": lambda: saved("PNG", icc_profile=b"\xff\xff\xff\xff" + SRGB[4:]),
    "a profile of nothing in JPEG": lambda: saved("JPEG", icc_profile=b"\0"),
    "a broken profile in TIFF": lambda: saved("TIFF", icc_profile=b"broken"),
    "a profile of 50 MB in WebP": lambda: webp((b"ICCP", bytes(50_000_000))),
    "1,000 tags of the same 1 MB": lambda: sharing(1000, 990_000, size=1_000_000),
    "5,000 tags of the same 100 kB": lambda: sharing(5000, 100_000),
    "2,000 tags of the same rationals": lambda: sharing(2000, 20_000, 5),
    "EXIF in itself": lambda: saved("JPEG", exif=itself(34665)),
    "a place in itself": lambda: saved("JPEG", exif=itself(34853)),
    "EXIF of 18 GB in PNG": lambda: png((b"eXIf", GIANT)),
    "EXIF of 18 GB in WebP": lambda: webp((b"EXIF", GIANT)),
    "comments of GIF": lambda: gif(*[comment(2550)] * 100),
}
"""Pictures that are read, in time and within memory."""

REFUSED = {
    "a profile of 300 MB": (lambda: png((b"iCCP", b"x\0\0" + zeros(300 << 20))), "too large|Too much"),
    "2,000 profiles": (lambda: png(*[(b"iCCP", b"x\0\0" + zeros(1 << 20))] * 2000), "read|seconds to decode"),
    "a text of 300 MB": (lambda: png((b"zTXt", b"k\0\0" + zeros(300 << 20))), "too large"),
    "300 texts of 1 MB": (
        lambda: png(*[(b"zTXt", b"k\0\0" + zeros(1 << 20)[:1030])] * 300),
        "Too much|incomplete|too large",
    ),
    "a million texts": (lambda: png(*[(b"tEXt", b"k\0v")] * 1_000_000), "read|seconds to decode"),
    "a comment of 20 MB": (lambda: gif(comment(20_000_000)), "read|seconds to decode"),
    "20,000 comments": (lambda: gif(*[comment(255)] * 20_000), "read|seconds to decode"),
    "a million empty blocks": (lambda: gif(*[b"\x21\xf9\0"] * 1_000_000), "read|cannot identify|seconds"),
    "SVG": (lambda: b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>', "cannot identify"),
    "SVG with an entity": (
        lambda: b'<!DOCTYPE svg [<!ENTITY a SYSTEM "file:///etc/passwd">]><svg>&a;</svg>',
        "identify",
    ),
}
"""Pictures that are refused, and words of the sentence."""


LONG = ("a million texts", "2,000 profiles", "a profile of 300 MB", "a text of 300 MB")
"""Cases whose kind has a quicker instance here or in test_sizes.py."""


@pytest.mark.one_of_each
@pytest.mark.parametrize(
    "what", [pytest.param(one, marks=[pytest.mark.long] * (one in LONG)) for one in [*READ, *REFUSED]]
)
def test_blocks_of_pictures_cost_no_more_than_their_file(what):
    """Versions of Pillow differ in what they pass over; none is slow, and none takes more memory than is allowed."""
    make, words = REFUSED.get(what) or (READ[what], "")

    def told():
        try:
            return f"read: {decode(io.BytesIO(make()))[0].shape}"
        except (ValueError, OSError) as error:
            return str(error)

    found = bounded(told)
    assert re.search(words, found) and not found.startswith("TRACEBACK"), found
