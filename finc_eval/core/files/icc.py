"""Color profiles (ICC) of images, for the numbers: littleCMS converts pixels, and has no name for a space.

What a PNG or an AVIF states by numbers (gAMA, cHRM, cICP, nclx) becomes a profile here, so that one rule is for all.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from PIL import ExifTags, Image, ImageCms

from finc_eval.core.digest import sha256_of

Curve = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]

MAX_PROFILE_BYTES = 4 << 20
"""Bytes of a profile that is looked at: profiles of printers, the largest that are in use, have 0.5 to 3 million."""

MAX_TAGS = 100  # tags of a profile, as many as littleCMS reads

MODES = {b"RGB ": "RGB", b"GRAY": "L", b"CMYK": "CMYK"}
"""Modes of Pillow of the pixels that a profile is for, by the signature of its space (ICC.1:2022, 7.2.6)."""

CLASSES = (b"scnr", b"mntr", b"prtr", b"spac")  # classes of profiles that an image can have (ICC.1:2022, 7.2.5)

D65 = (0.3127, 0.3290)  # chromaticity of daylight (ISO/CIE 11664-2)

SRGB = "sRGB"
GAMUTS: dict[str, tuple[float, ...]] = {
    SRGB: (*D65, 0.64, 0.33, 0.30, 0.60, 0.15, 0.06),
    "Display-P3": (*D65, 0.680, 0.320, 0.265, 0.690, 0.150, 0.060),
    "Adobe-RGB": (*D65, 0.64, 0.33, 0.21, 0.71, 0.15, 0.06),
    "ProPhoto": (0.3457, 0.3585, 0.7347, 0.2653, 0.1596, 0.8404, 0.0366, 0.0001),
    "Rec-2020": (*D65, 0.708, 0.292, 0.170, 0.797, 0.131, 0.046),
}
"""Chromaticities (x, y) of white, red, green and blue, in the order of cHRM (PNG, 11.3.2.1)."""


def power(exponent: float) -> Curve:
    """Return the transfer function x^exponent."""
    return lambda x: x**exponent


def _srgb(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)


def _pq(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return light relative to white of 203 cd/m² (ITU-R BT.2100, table 4; BT.2408); brighter light is clipped."""
    root = x ** (1 / 78.84375)
    light = 10_000 * (np.maximum(root - 0.8359375, 0) / (18.8515625 - 18.6875 * root)) ** (1 / 0.1593017578125)
    return np.minimum(light / 203, 1)


def _hlg(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return light relative to the signal 0.75, which is white (ITU-R BT.2100, table 5; BT.2408)."""
    light = np.where(x <= 0.5, x * x / 3, (np.exp((x - 0.55991073) / 0.17883277) + 0.28466892) / 12)
    return np.minimum(light / 0.26496256, 1) ** 1.2


TRANSFERS: dict[str, Curve] = {
    "": _srgb,
    "2.2": power(2.2),
    "1.8": power(1.8),
    "linear": power(1),
    "PQ": _pq,
    "HLG": _hlg,
}
"""Transfer functions from stored values to light, by the end of a space's name."""

USUAL = {"ProPhoto": ("1.8",)}  # ends of names of transfer functions that go without saying, where gamma 2.2 does not

CICP_GAMUTS = {1: SRGB, 9: "Rec-2020", 12: "Display-P3"}
CICP_TRANSFERS = {8: "linear", 16: "PQ", 18: "HLG", 4: "2.2"}
"""Primaries and transfer functions by their numbers in ISO 23091-2. All others count as sRGB: BT.709 is read so."""

CURVE_POINTS = 4096  # points of a transfer function that a profile tabulates; PQ changes fastest, by 0.001 a point

PATCH_LEVELS = (32, 80, 128, 176, 224)  # levels of each channel of the patches that tell spaces apart

MAX_DISTANCE = 2.5
"""Mean difference of patches, in levels of 255, up to which two spaces count as one. It is 1.2 to 2.0 between gamma 2.2
and the curve of sRGB in each gamut, and at least 3.8 between two spaces that have other names."""


@lru_cache(maxsize=16)
def profile_of(gamut: tuple[float, ...], curve: Curve) -> bytes:
    """Return the profile, a matrix and a curve, of a space by its chromaticities and its transfer function.

    Raises:
        ValueError: the chromaticities are not those of a space.
    """
    if len(gamut) != 8 or not all(0 <= x <= 1 and 0 < y <= 1 for x, y in zip(gamut[::2], gamut[1::2], strict=True)):
        raise ValueError(f"chromaticities {gamut} are not those of colors")
    white, *primaries = (np.array([x / y, 1, (1 - x - y) / y]) for x, y in zip(gamut[::2], gamut[1::2], strict=True))
    cones = np.array([[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]])  # Bradford
    d50 = np.array([0.9642, 1, 0.8249])  # white of profiles (ICC.1:2022, 7.2.16)
    try:
        adapted = np.linalg.inv(cones) @ np.diag((cones @ d50) / (cones @ white)) @ cones
        matrix = adapted @ (np.array(primaries).T * np.linalg.solve(np.array(primaries).T, white))
    except np.linalg.LinAlgError as error:
        raise ValueError(f"chromaticities {gamut} are on a line") from error
    if not np.isfinite(matrix).all() or np.abs(matrix).max() > 100:
        raise ValueError(f"chromaticities {gamut} are nearly on a line")
    points = np.rint(65535 * curve(np.linspace(0, 1, CURVE_POINTS)).clip(0, 1)).astype(">u2")
    table = b"curv\0\0\0\0" + struct.pack(">I", CURVE_POINTS) + points.tobytes()
    tags = {b"wtpt": _xyz(d50), b"rTRC": table, b"gTRC": table, b"bTRC": table}
    tags |= {name: _xyz(column) for name, column in zip((b"rXYZ", b"gXYZ", b"bXYZ"), matrix.T, strict=True)}
    head = b"\0" * 8 + bytes([2, 64, 0, 0]) + b"mntrRGB XYZ " + b"\0" * 12 + b"acsp" + b"\0" * 28 + _xyz(d50)[8:]
    start, index, data = 132 + 12 * len(tags), b"", b""
    for name, value in tags.items():
        index += name + struct.pack(">II", start + len(data), len(value))
        data += value
    body = head.ljust(128, b"\0") + struct.pack(">I", len(tags)) + index + data
    return struct.pack(">I", len(body)) + body[4:]


def _xyz(values: npt.NDArray[np.float64]) -> bytes:
    return b"XYZ \0\0\0\0" + struct.pack(">3i", *(round(65536 * value) for value in values.tolist()))


def cicp_profile(primaries: int, transfer: int) -> bytes | None:
    """Return the profile of a space by its primaries and transfer function in ISO 23091-2; None for sRGB."""
    gamut, end = CICP_GAMUTS.get(primaries, SRGB), CICP_TRANSFERS.get(transfer, "")
    return None if (gamut, end) == (SRGB, "") else profile_of(GAMUTS[gamut], TRANSFERS[end])


def gamma_profile(gamma: float | None, chromaticities: Sequence[float] | None) -> bytes:
    """Return the profile of a space by the chunks gAMA and cHRM of a PNG; None is for a chunk that it lacks.

    Raises:
        ValueError: the numbers are not those of a space.
    """
    gamut = tuple(map(float, chromaticities or GAMUTS[SRGB]))
    # An image with the gamma of sRGB has its curve (PNG, 11.3.2.5).
    if gamma is None or abs(gamma - 0.45455) < 0.001:
        return profile_of(gamut, _srgb)
    if not 0.1 <= gamma <= 10:
        raise ValueError(f"the gamma {gamma:g} is not that of an image")
    return profile_of(gamut, power(round(1 / gamma, 4)))


def stated_profile(info: Mapping[Any, Any]) -> bytes | None:
    """Return the profile of the space that an image states, by Pillow's `info`; None without a statement.

    CICP goes before an embedded profile, and a profile before gAMA and cHRM (PNG, 4.3).

    Raises:
        ValueError: the numbers are not those of a space.
    """
    if cicp := info.get("cicp"):
        return cicp_profile(*cicp)
    if isinstance(profile := info.get("icc_profile"), bytes) and profile:
        return profile
    if "srgb" in info or not ("gamma" in info or "chromaticity" in info):
        return None
    return gamma_profile(info.get("gamma"), info.get("chromaticity"))


def marks(stream: IO[bytes], image: Image.Image) -> dict[str, Any]:
    """Return what the file of an image states of its colors and Pillow leaves out, in the form of Pillow's `info`."""
    if image.format == "PNG":
        stream.seek(8)
        while len(head := stream.read(8)) == 8 and head[4:] not in (b"IDAT", b"IEND"):
            size = int.from_bytes(head[:4], "big")
            if head[4:] == b"cICP" and size == 4:
                return {"cicp": tuple(stream.read(4)[:2])}
            stream.seek(size + 4, io.SEEK_CUR)
    elif image.format in ("AVIF", "JPEG2000") and "icc_profile" not in image.info:
        stream.seek(0)
        data = stream.read(MAX_PROFILE_BYTES)
        start = data.find(b"colrnclx" if image.format == "AVIF" else b"colr\x02")
        if start >= 4 and image.format == "AVIF":
            return {"cicp": struct.unpack(">2H", data[start + 8 : start + 12].ljust(4, b"\0"))}
        if start >= 4:
            return {"icc_profile": data[start + 7 : start - 4 + int.from_bytes(data[start - 4 : start], "big")]}
    elif image.mode == "RGB" and "exif" in image.info and "icc_profile" not in image.info and _is_adobe(image):
        return {"icc_profile": profile_of(GAMUTS["Adobe-RGB"], TRANSFERS["2.2"])}
    return {}


def _is_adobe(image: Image.Image) -> bool:
    """Return whether the Exif of a camera states Adobe RGB, for which most cameras embed no profile.

    By DCF 2.0 the interoperability index is then R03; some cameras write the color space 2.
    """
    try:
        exif = image.getexif()
        space = exif.get_ifd(ExifTags.IFD.Exif).get(ExifTags.Base.ColorSpace)
        index = exif.get_ifd(ExifTags.IFD.Interop).get(ExifTags.Interop.InteropIndex)
        return space == 2 or str(index).startswith("R03")
    except Exception:  # Pillow's readers raise almost anything on damaged bytes, which state nothing
        return False


def mode_of(profile: bytes) -> str:
    """Return the mode of the pixels that a profile is for: "RGB", "L" or "CMYK".

    Raises:
        ValueError: the bytes are not a profile of an image, or are one that may take long to read.
    """
    if len(profile) > MAX_PROFILE_BYTES:
        raise ValueError(f"{len(profile):,} bytes are more than the {MAX_PROFILE_BYTES:,} of a color profile")
    if len(profile) < 132 or profile[36:40] != b"acsp":
        raise ValueError("it does not begin as a color profile does")
    mode = MODES.get(profile[16:20])
    if mode is None or profile[12:16] not in CLASSES:
        raise ValueError("it is not for gray, RGB or CMYK pixels")
    tags = int.from_bytes(profile[128:132], "big")
    if tags > MAX_TAGS:
        raise ValueError(f"it has {tags:,} tags, more than {MAX_TAGS}")
    for number in range(tags):
        start = int.from_bytes(profile[136 + 12 * number : 140 + 12 * number], "big")
        # Its elements can be many, and name the same bytes many times.
        if profile[start : start + 4] == b"mpet":
            raise ValueError("it is made of multi-process elements, which are not read")
    return mode


@lru_cache(maxsize=16)
def _transform(profile: bytes) -> ImageCms.ImageCmsTransform:
    """Return the transform from a profile to sRGB: relative colorimetric, with the black points on each other."""
    mode = mode_of(profile)
    try:
        return ImageCms.buildTransform(
            ImageCms.ImageCmsProfile(io.BytesIO(profile)),
            ImageCms.createProfile("sRGB"),
            mode,
            "RGB",
            ImageCms.Intent.RELATIVE_COLORIMETRIC,
            ImageCms.Flags.BLACKPOINTCOMPENSATION,
        )
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError) as error:
        raise ValueError(f"littleCMS cannot read it: {error}") from error


def in_srgb(image: Image.Image, profile: bytes) -> Image.Image:
    """Return an image of a profile's mode in sRGB.

    Raises:
        ValueError: the profile cannot be read, or is for pixels of another mode.
    """
    mode = mode_of(profile)
    if image.mode != mode:
        raise ValueError(f"it is for pixels of the mode {mode}, not {image.mode}")
    converted = ImageCms.applyTransform(image, _transform(profile))
    if converted is None:
        raise ValueError("littleCMS returns no image")
    return converted


@lru_cache(maxsize=64)
def space_name(profile: bytes) -> str:
    """Return the name of the space that a profile states, by what becomes of a few colors.

    "sRGB" and others of `GAMUTS`, "Display-P3/linear" with another transfer function, or "RGB-3f2a" with a digest for
    a space without a name. Profiles of one space by different makers have one name.

    Raises:
        ValueError: the profile cannot be read.
    """
    mode, patches_of_file = mode_of(profile), _patches(profile)
    distance, name = min((float(np.abs(patches_of_file - patches).mean()), name) for name, patches in _known(mode))
    if distance <= MAX_DISTANCE:
        return name
    # 8: profiles of one device differ by less when it is measured again.
    return f"{mode}-{sha256_of(repr(np.rint(patches_of_file / 8).astype(int).tolist()))[:4]}"


def _patches(profile: bytes) -> npt.NDArray[np.float64]:
    """Return what becomes in sRGB of each combination of the levels of the channels, (n, 3)."""
    mode = mode_of(profile)
    grid = np.meshgrid(*[np.array(PATCH_LEVELS, np.uint8)] * len(mode), indexing="ij")
    colors = np.stack([axis.ravel() for axis in grid], -1)[None]
    image = Image.fromarray(colors[..., 0] if mode == "L" else colors, mode)
    return np.asarray(in_srgb(image, profile), np.float64).reshape(-1, 3)


@lru_cache(maxsize=3)
def _known(mode: str) -> list[tuple[str, npt.NDArray[np.float64]]]:
    """Return the patches of the spaces that have a name, for pixels of a mode."""
    spaces = [("CMYK", np.full((1, 3), np.inf))]
    for gamut in () if mode == "CMYK" else GAMUTS if mode == "RGB" else (SRGB,):
        for end, curve in TRANSFERS.items():
            patches = _patches(profile_of(GAMUTS[gamut], curve))
            levels = len(PATCH_LEVELS)
            gray = patches[:: levels**2 + levels + 1]
            usual = end in USUAL.get(gamut, ("", "2.2"))
            name = ("gray" if mode == "L" and not usual else gamut) + ("" if usual else f"/{end or 2.2}")
            spaces.append((name, gray if mode == "L" else patches))
    return spaces
