"""A color profile of another person makes an image unreadable at most, whatever its tags, counts and places say."""

import io
import struct

import numpy as np
import pytest
from _bounded import bounded
from PIL import Image, ImageCms

from finc_eval.core.files import icc
from finc_eval.samples.images import UNREADABLE, decode
from finc_eval.samples.reading import Reading

SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
RNG = np.random.default_rng(0)


def profile(tags, space=b"RGB ", kind=b"mntr", pcs=b"XYZ ", version=0x02400000, count=None, places=None):
    """A profile of tags; `count` is how many it states, and `places` are places and sizes that it states."""
    start, index, data = 132 + 12 * len(tags), b"", b""
    for name, value in tags:
        place = (places or {}).get(name, (start + len(data), len(value)))
        index += name + struct.pack(">II", *place)
        data += value + bytes(-len(value) % 4)
    head = bytes(8) + struct.pack(">I", version) + kind + space + pcs + bytes(12) + b"acsp" + bytes(28)
    head += struct.pack(">3i", 63190, 65536, 54061)
    body = head.ljust(128, b"\0") + struct.pack(">I", len(tags) if count is None else count) + index + data
    return struct.pack(">I", len(body)) + body[4:]


def xyz(*values):
    return b"XYZ \0\0\0\0" + struct.pack(">3i", *(round(65536 * one) for one in values))


def curve(values, stated=None):
    return (
        b"curv\0\0\0\0"
        + struct.pack(">I", len(values) if stated is None else stated)
        + np.asarray(values, ">u2").tobytes()
    )


def formula(kind, *numbers):
    return b"para\0\0\0\0" + struct.pack(f">HH{len(numbers)}i", kind, 0, *numbers)


WHITE = [(b"wtpt", xyz(0.9642, 1, 0.8249))]
MATRIX = [
    *WHITE,
    (b"rXYZ", xyz(0.436, 0.222, 0.014)),
    (b"gXYZ", xyz(0.385, 0.717, 0.097)),
    (b"bXYZ", xyz(0.143, 0.06, 0.71)),
]


def rgb(one, more=(), **stated):
    return profile([*MATRIX, *((name, one) for name in (b"rTRC", b"gTRC", b"bTRC")), *more], **stated)


def table(inputs, outputs, side, content=None, entries=256):
    """A tag of a table of so many inputs, outputs and points a side."""
    steps = np.linspace(0, 65535, max(entries, 1)).astype(">u2")[:entries].tobytes()
    points = bytes(2 * outputs * side**inputs) if content is None else content
    head = b"mft2\0\0\0\0" + bytes([inputs, outputs, side, 0]) + struct.pack(">9i", *np.eye(3, dtype=int).ravel() << 16)
    return head + struct.pack(">HH", entries, entries) + steps * inputs + points + steps * outputs


def parts(places, inputs=4, grid=b"\2\2\2\2"):
    """A tag of curves, a matrix and a table at places of its own."""
    head = b"mAB \0\0\0\0" + bytes([inputs, 3, 0, 0]) + struct.pack(">5I", *places)
    return head + formula(0, 65536) * 20 + grid.ljust(16, b"\0") + b"\2\0\0\0" + bytes(2000)


def printer(tag, **stated):
    return profile([*WHITE, (b"A2B0", tag)], b"CMYK", b"prtr", b"Lab ", **stated)


def texts(count):
    return b"mluc\0\0\0\0" + struct.pack(">II", count, 12) + (b"enUS" + struct.pack(">II", 1000, 16)) * min(count, 9000)


MANY = np.linspace(0, 65535, 1_900_000)
PLAIN = curve([])
PROFILES = {
    "a curve of many points": rgb(curve(MANY[:400_000])),
    "a curve of noise": rgb(curve(RNG.integers(0, 65536, 65531))),
    "a curve of four billion points": rgb(curve([1, 2], 2**32 - 1)),
    "a curve of two billion points": rgb(curve([1, 2], 2**31)),
    "a curve that falls": rgb(curve(MANY[::-400])),
    "a gamma of 0": rgb(curve([0])),
    "a gamma of 256": rgb(curve([65535])),
    **{
        f"formula {kind} of {n}": rgb(formula(kind, *[n] * 7)) for kind in range(6) for n in (2**31 - 1, -(2**31), 0, 1)
    },
    "a formula that is cut": rgb(formula(4, 65536)),
    "primaries of nothing": profile([(name, xyz(0, 0, 0)) for name, _ in MATRIX] + [(b"rTRC", PLAIN)]),
    "primaries beyond all": profile([(name, xyz(32767, -32768, 32767)) for name, _ in MATRIX] + [(b"rTRC", PLAIN)]),
    "100 tags of which 93 are of nobody": rgb(PLAIN, [(b"t%03d" % number, PLAIN) for number in range(93)]),
    "100 tags that are not there": rgb(PLAIN, count=100),
    "tags in two places": rgb(PLAIN, MATRIX),
    "a tag that holds itself": rgb(PLAIN, places={b"rTRC": (132, 1000)}),
    "a tag that is the head": rgb(PLAIN, places={b"rTRC": (0, 128)}),
    "a tag beyond the end": rgb(PLAIN, places={b"rTRC": (2**32 - 1, 2**32 - 1)}),
    "a tag around the end of all numbers": rgb(PLAIN, places={b"rTRC": (2**32 - 16, 64)}),
    "a tag of two gigabytes": rgb(PLAIN, places={b"gTRC": (200, 2**31)}),
    "a tag of nothing": rgb(PLAIN, places={b"gTRC": (228, 0)}),
    "tags that overlap": rgb(curve(MANY[:5000]), places={b"gTRC": (230, 9000), b"bTRC": (234, 9000)}),
    "a megabyte of garbage": RNG.integers(0, 256, 1 << 20, dtype=np.uint8).tobytes(),
    "garbage behind a head": SRGB[:132] + RNG.integers(0, 256, 9000, dtype=np.uint8).tobytes(),
    "no tags": profile([]),
    "half a profile": SRGB[:300],
    "a head alone": SRGB[:128],
    "a byte": b"a",
    "a size of four gigabytes": b"\xff" * 4 + SRGB[4:],
    "a size of a few bytes": struct.pack(">I", 140) + SRGB[4:],
    "a link of devices": rgb(PLAIN, kind=b"link"),
    "named colors": profile([*MATRIX, (b"ncl2", b"ncl2\0\0\0\0" + struct.pack(">III", 0, 2**31, 3))], kind=b"nmcl"),
    "six inks": rgb(PLAIN, space=b"6CLR"),
    "a space of gray for colors": rgb(PLAIN, space=b"GRAY"),
    "a version of the future": rgb(PLAIN, version=0x99990000),
    "a table of noise": printer(table(4, 3, 9, RNG.integers(0, 256, 6 * 9**4, dtype=np.uint8).tobytes())),
    "a table of 255 points a side": printer(table(4, 3, 255, bytes(1000))),
    "a table of no points": printer(table(4, 3, 0, b"")),
    "a table of 15 inks": printer(table(15, 3, 2)),
    "a table of 255 outputs": printer(table(4, 255, 2)),
    "a table without entries": printer(table(4, 3, 5, entries=0)),
    "parts in one place": printer(parts((32,) * 5), version=0x04200000),
    "parts within each other": printer(parts((1,) * 5), version=0x04200000),
    "parts beyond the end": printer(parts((2**32 - 1,) * 5), version=0x04200000),
    "parts of nothing": printer(parts((0,) * 5), version=0x04200000),
    "a grid of 255 a side": printer(parts((32, 96, 144, 352, 32), grid=b"\xff" * 4), version=0x04200000),
    "texts": rgb(PLAIN, [(b"desc", texts(9000))], version=0x04200000),
    "four billion texts": rgb(PLAIN, [(b"desc", texts(2**32 - 1))], version=0x04200000),
    "four billion steps": rgb(PLAIN, [(b"pseq", b"pseq\0\0\0\0" + b"\xff" * 4)]),
    "a matrix of nothing": rgb(PLAIN, [(b"chad", b"sf32" + bytes(40))], version=0x04200000),
}


def picture(one, form):
    mode, channels = {b"GRAY": ("L", ()), b"CMYK": ("CMYK", (4,))}.get(one[16:20], ("RGB", (3,)))
    stream = io.BytesIO()
    Image.fromarray(RNG.integers(0, 256, (16, 16, *channels), dtype=np.uint8), mode).save(stream, form, icc_profile=one)
    return stream.getvalue()


def spaces(profiles):
    """Decode a picture with each profile as it is stored and as sRGB, and return what became of it."""
    found = []
    for one in profiles:
        data = picture(one, "TIFF")
        found.append(str(decode(io.BytesIO(data))[1].color))
        try:
            decode(io.BytesIO(data), Reading(color="srgb"))
        except ValueError as error:
            assert "its colors cannot be converted to sRGB" in str(error)
    return " ".join(found)


@pytest.mark.long
def test_a_hostile_profile_ends_in_time_and_memory():
    found = bounded(spaces, [*PROFILES.values()]).split()
    assert len(found) == len(PROFILES), found
    assert found.count(UNREADABLE) > 20


@pytest.mark.long
@pytest.mark.one_of_each
@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_profile_ends_in_time_and_memory(seed):
    rng, whole = np.random.default_rng(seed), [SRGB, rgb(PLAIN), printer(table(4, 3, 5))]
    damaged = []
    for number in range(40):
        one = bytearray(whole[number % 3])
        for place in rng.integers(0, min(len(one), 400), 4):
            one[place] = rng.choice([0, 1, 127, 128, 255])
        damaged.append(bytes(one))
    assert len(bounded(spaces, damaged).split()) == len(damaged)


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (SRGB + bytes(5 << 20), "more than the 4,194,304 of a color profile"),
        (rgb(PLAIN, [(b"t%03d" % number, PLAIN) for number in range(94)]), "it has 101 tags, more than 100"),
        (rgb(PLAIN, count=2**32 - 1), "it has 4,294,967,295 tags"),
        (rgb(PLAIN, [(b"D2B0", b"mpet" + bytes(40))]), "multi-process elements"),
        (rgb(PLAIN, [(b"zzzz", b"mpet" + bytes(40))]), "multi-process elements"),
    ],
)
def test_a_profile_that_may_take_long_is_not_given_to_little_cms(one, told):
    with pytest.raises(ValueError, match=told):
        icc.mode_of(one)
