"""Color spaces of still images are noted, compared and warned of, and converted if sRGB is asked for."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image, ImageCms

import finc_eval as fe
from finc_eval.core.errors import UsageError
from finc_eval.core.files import icc
from finc_eval.core.files.icc import GAMUTS, TRANSFERS, in_srgb, mode_of, power, profile_of, space_name
from finc_eval.samples.encoding import Encoding
from finc_eval.samples.opening import open_source
from finc_eval.samples.profile import Profile, unlike_encodings

SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
CURVES = {**TRANSFERS, "2.4": power(2.4), "1.4": power(1.4)}


def pictures(n=8, seed=0, side=24):
    rng = np.random.default_rng(seed)
    smooth = [Image.fromarray(rng.integers(40, 216, (4, 4, 3)).astype(np.uint8)) for _ in range(n)]
    return [one.resize((side, side), Image.Resampling.BILINEAR) for one in smooth]


def space(gamut="sRGB", transfer=""):
    return profile_of(GAMUTS[gamut], CURVES[transfer])


def gray_profile(exponent):
    """A profile for gray pixels with one gamma."""
    tags = {
        b"wtpt": b"XYZ \0\0\0\0" + struct.pack(">3i", *(round(65536 * one) for one in (0.9642, 1, 0.8249))),
        b"kTRC": b"curv\0\0\0\0" + struct.pack(">IH", 1, round(256 * exponent)) + b"\0\0",
    }
    start, index, data = 132 + 12 * len(tags), b"", b""
    for name, value in tags.items():
        index, data = index + name + struct.pack(">II", start + len(data), len(value)), data + value
    head = bytearray(SRGB[:128])
    head[16:20] = b"GRAY"
    body = bytes(head) + struct.pack(">I", len(tags)) + index + data
    return struct.pack(">I", len(body)) + body[4:]


def stored_in(image, profile):
    """The same picture to the eye, with the values of another space."""
    theirs = ImageCms.ImageCmsProfile(io.BytesIO(profile))
    return ImageCms.profileToProfile(image, ImageCms.createProfile("sRGB"), theirs, renderingIntent=1)


def saved(folder, images, suffix=".png", **options):
    folder.mkdir()
    for number, image in enumerate(images):
        image.save(folder / f"{number}{suffix}", **options)
    return folder


def with_chunks(folder, *chunks):
    """Put chunks after the header of each PNG of a folder."""
    for path in folder.iterdir():
        data = path.read_bytes()
        made = b"".join(struct.pack(">I", len(v)) + k + v + struct.pack(">I", zlib.crc32(k + v)) for k, v in chunks)
        path.write_bytes(data[:33] + made + data[33:])
    return folder


def colors(folder, **choices):
    samples = [*fe.open_source(folder, **choices).samples()]
    assert [one.error for one in samples] == [None] * len(samples)
    return {one.encoding.color for one in samples}, np.stack([one.pixels for one in samples]).astype(int)


SPACES = [
    *((gamut, "", gamut) for gamut in GAMUTS if gamut not in ("sRGB", "ProPhoto")),
    *((gamut, "2.2", gamut) for gamut in GAMUTS if gamut not in ("sRGB", "ProPhoto")),
    ("ProPhoto", "1.8", "ProPhoto"),
    ("ProPhoto", "", "ProPhoto/2.2"),
    *((gamut, "linear", f"{gamut}/linear") for gamut in GAMUTS),
    ("sRGB", "1.8", "sRGB/1.8"),
    ("Adobe-RGB", "1.8", "Adobe-RGB/1.8"),
    ("sRGB", "", None),
    ("sRGB", "2.2", None),
]


@pytest.mark.one_of_each
@pytest.mark.parametrize(("gamut", "transfer", "name"), SPACES)
def test_a_profile_is_named_by_what_it_does_and_converted_back(gamut, transfer, name, tmp_path):
    profile, images = space(gamut, transfer), pictures()
    folder = saved(tmp_path / "set", [stored_in(one, profile) for one in images], icc_profile=profile)
    found, stored = colors(folder)
    assert found == {name}
    assert (stored == np.stack([np.asarray(Image.open(folder / f"{n}.png")) for n in range(len(images))])).all()
    truth = np.stack([np.asarray(one) for one in images]).astype(int)
    found, pixels = colors(folder, color="srgb")
    assert found == {None}
    assert np.abs(pixels - truth).mean() < (3 if transfer == "linear" or gamut == "ProPhoto" else 1.5)


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".webp", ".tif", ".avif"])
def test_every_format_with_a_profile_has_its_space(suffix, tmp_path):
    profile, options = space("Display-P3"), {".jpg": {"quality": 95}, ".webp": {"quality": 95}}.get(suffix, {})
    images = [stored_in(one, profile) for one in pictures(2)]
    folder = saved(tmp_path / "set", images, suffix, icc_profile=profile, **options)
    assert colors(folder)[0] == {"Display-P3"}
    truth = np.stack([np.asarray(one) for one in pictures(2)]).astype(int)
    assert np.abs(colors(folder, color="srgb")[1] - truth).mean() < 4


def chroma(gamut):
    return b"cHRM", struct.pack(">8I", *(round(1e5 * one) for one in GAMUTS[gamut]))


def gamma(value):
    return b"gAMA", struct.pack(">I", round(1e5 * value))


def cicp(primaries, transfer):
    return b"cICP", bytes([primaries, transfer, 0, 1])


CHUNKS = {
    "linear light": ([gamma(1.0)], "sRGB/linear"),
    "an old Macintosh": ([gamma(1 / 1.8)], "sRGB/1.8"),
    "the gamma of sRGB": ([gamma(0.45455)], None),
    "sRGB in words": ([gamma(0.45455), chroma("sRGB"), (b"sRGB", b"\0")], None),
    "sRGB beside another gamma": ([gamma(1.0), (b"sRGB", b"\0")], None),
    "wide chromaticities": ([chroma("Display-P3")], "Display-P3"),
    "linear and wide": ([gamma(1.0), chroma("Rec-2020")], "Rec-2020/linear"),
    "CICP of sRGB": ([cicp(1, 13)], None),
    "CICP of BT.709": ([cicp(1, 1)], None),
    "CICP without a statement": ([cicp(2, 2)], None),
    "CICP of Display P3": ([cicp(12, 13)], "Display-P3"),
    "CICP of linear light": ([cicp(1, 8)], "sRGB/linear"),
    "CICP of PQ": ([cicp(9, 16)], "Rec-2020/PQ"),
    "CICP of HLG": ([cicp(9, 18)], "Rec-2020/HLG"),
    "CICP before gamma": ([gamma(1.0), cicp(12, 13)], "Display-P3"),
    "no gamma": ([gamma(0)], "unreadable-profile"),
    "a gamma of 1000": ([gamma(1000)], "unreadable-profile"),
    "chromaticities on a line": ([(b"cHRM", struct.pack(">8I", *[30000] * 8))], "unreadable-profile"),
    "chromaticities of 0": ([(b"cHRM", bytes(32))], "unreadable-profile"),
}


@pytest.mark.parametrize(("chunks", "name"), CHUNKS.values(), ids=CHUNKS)
def test_chunks_of_a_png_state_its_space(chunks, name, tmp_path):
    folder = with_chunks(saved(tmp_path / "set", pictures(2)), *chunks)
    assert colors(folder)[0] == {name}
    if name == "unreadable-profile":
        errors = {one.error for one in fe.open_source(folder, color="srgb").samples()}
        assert all("cannot be converted to sRGB" in one for one in errors)
    else:
        assert colors(folder, color="srgb")[0] == {None}


def exif(color_space=None, index=None):
    made = Image.Exif()
    if color_space is not None:
        made.get_ifd(0x8769)[0xA001] = color_space
    if index is not None:
        made.get_ifd(0x8769)[0xA005] = {1: index}
    return made.tobytes()


CAMERAS = {
    "Adobe RGB by its index": (exif(0xFFFF, "R03"), "Adobe-RGB"),
    "Adobe RGB by its number": (exif(2), "Adobe-RGB"),
    "sRGB": (exif(1, "R98"), None),
    "uncalibrated": (exif(0xFFFF), None),
    "no statement": (exif(), None),
    "a damaged Exif": (exif(2)[:20], None),
}


@pytest.mark.one_of_each("stated", "suffix")
@pytest.mark.parametrize("suffix", [".jpg", ".webp"])
@pytest.mark.parametrize(("stated", "name"), CAMERAS.values(), ids=CAMERAS)
def test_cameras_state_adobe_rgb_without_a_profile(stated, name, suffix, tmp_path):
    folder = saved(
        tmp_path / "set", [stored_in(one, space("Adobe-RGB")) for one in pictures(2)], suffix, exif=stated, quality=95
    )
    assert colors(folder)[0] == {name}
    truth = np.stack([np.asarray(one) for one in pictures(2)]).astype(int)
    assert (np.abs(colors(folder, color="srgb")[1] - truth).mean() < 5) == (name is not None)


def test_a_profile_goes_before_what_a_camera_states(tmp_path):
    profile = space("Display-P3")
    assert colors(saved(tmp_path / "set", pictures(1), ".jpg", exif=exif(2), icc_profile=profile))[0] == {"Display-P3"}
    gray = [one.convert("L") for one in pictures(1)]
    assert colors(saved(tmp_path / "gray", gray, ".jpg", exif=exif(2)))[0] == {None}


@pytest.mark.parametrize(("numbers", "name"), [((12, 13), "Display-P3"), ((9, 16), "Rec-2020/PQ"), ((2, 2), None)])
def test_the_numbers_of_an_avif_state_its_space(numbers, name, tmp_path):
    folder = saved(tmp_path / "set", pictures(2), ".avif")
    for path in folder.iterdir():
        data = path.read_bytes()
        place = data.index(b"colrnclx") + 8
        path.write_bytes(data[:place] + struct.pack(">2H", *numbers) + data[place + 4 :])
    assert colors(folder)[0] == {name}
    assert colors(folder, color="srgb")[0] == {None}


def test_linear_light_by_gamma_becomes_what_it_was(tmp_path):
    linear = [Image.fromarray(np.rint(255 * TRANSFERS[""](np.asarray(one) / 255)).astype("u1")) for one in pictures()]
    folder = with_chunks(saved(tmp_path / "set", linear), gamma(1.0))
    truth = np.stack([np.asarray(one) for one in pictures()]).astype(int)
    assert np.abs(colors(folder)[1] - truth).mean() > 30
    assert np.abs(colors(folder, color="srgb")[1] - truth).mean() < 1.5


def test_white_and_black_of_hdr_stay_white_and_black():
    for end, white in (("PQ", 148), ("HLG", 191)):  # 203 cd/m² by BT.2408: 58 % of PQ, 75 % of HLG
        image = Image.fromarray(np.repeat(np.array([[0, white, 255]], "u1")[..., None], 3, 2))
        black, gray, bright = np.asarray(in_srgb(image, space("Rec-2020", end)))[0].tolist()
        assert black == [0, 0, 0]
        assert min(gray) >= 250
        assert bright == [255, 255, 255]


GRAYS = {"as sRGB": (2.2, None), "an old Macintosh": (1.8, "gray/1.8"), "linear": (1.0, "gray/linear")}


@pytest.mark.parametrize(("exponent", "name"), GRAYS.values(), ids=GRAYS)
@pytest.mark.parametrize("deep", [False, True])
def test_gray_pictures_have_a_space_of_their_own(exponent, name, deep, tmp_path):
    truth = np.tile(np.arange(20, 236, dtype=np.uint8), (8, 1))
    light = TRANSFERS[""](truth / 255) ** (1 / exponent)
    values = np.rint(65535 * light).astype("u2") if deep else np.rint(255 * light).astype("u1")
    folder = saved(tmp_path / "set", [Image.fromarray(values)], icc_profile=gray_profile(exponent))
    assert colors(folder)[0] == {name}
    found = colors(folder, color="srgb")[1][0]
    assert (found[..., 0] == found[..., 1]).all()
    assert np.abs(found[..., 0] - truth).mean() < 2.5


def test_a_gray_picture_may_have_a_profile_for_rgb(tmp_path):
    gray = [one.convert("L") for one in pictures(2)]
    assert colors(saved(tmp_path / "a", gray, icc_profile=SRGB))[0] == {None}
    assert colors(saved(tmp_path / "b", gray, icc_profile=space(transfer="linear")))[0] == {"sRGB/linear"}


def test_a_palette_and_alpha_keep_the_space_of_their_colors(tmp_path):
    profile = space("Display-P3")
    folder = saved(tmp_path / "set", [pictures(1)[0].quantize(), pictures(1)[0].convert("RGBA")], icc_profile=profile)
    assert colors(folder)[0] == {"Display-P3"}
    assert (colors(folder)[1] != colors(folder, color="srgb")[1]).any()


def test_color_of_16_bits_is_converted(tmp_path):
    profile = space("Display-P3")
    (image,) = (np.asarray(stored_in(one, profile)).astype(">u2") * 257 for one in pictures(1))
    raw = b"".join(b"\0" + row.tobytes() for row in image)
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", 24, 24, 16, 2, 0, 0, 0)), (b"iCCP", b"p\0\0" + zlib.compress(profile))]
    chunks += [(b"IDAT", zlib.compress(raw)), (b"IEND", b"")]
    made = b"".join(struct.pack(">I", len(v)) + k + v + struct.pack(">I", zlib.crc32(k + v)) for k, v in chunks)
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "0.png").write_bytes(b"\x89PNG\r\n\x1a\n" + made)
    assert colors(tmp_path / "set")[0] == {"Display-P3"}
    assert np.abs(colors(tmp_path / "set", color="srgb")[1][0] - np.asarray(pictures(1)[0])).mean() < 1.5


def test_cmyk_is_a_space_whether_it_has_a_profile_or_not(tmp_path):
    folder = saved(tmp_path / "set", [one.convert("CMYK") for one in pictures(2)], ".tif")
    assert colors(folder)[0] == {"CMYK"}
    assert colors(folder, color="srgb")[0] == {"CMYK"}


def test_pictures_in_memory_have_their_spaces_too():
    profile = space("Adobe-RGB")
    images = [stored_in(one, profile) for one in pictures(2)]
    for one in images:
        one.info["icc_profile"] = profile
    assert colors(images)[0] == {"Adobe-RGB"}
    truth = np.stack([np.asarray(one) for one in pictures(2)]).astype(int)
    assert np.abs(colors(images, color="srgb")[1] - truth).mean() < 1.5


P3 = space("Display-P3")
BROKEN = {
    "no profile at all": b"profile" * 40,
    "a few bytes": b"abc",
    "cut in half": P3[: len(P3) // 2],
    "tags beyond its end": P3[:128] + struct.pack(">I", 1) + b"rXYZ" + struct.pack(">II", 10**9, 10**9) + bytes(40),
    "too many tags": P3[:128] + struct.pack(">I", 2**32 - 1) + P3[132:],
    "for Lab": P3[:16] + b"Lab " + P3[20:],
    "a link of devices": P3[:12] + b"link" + P3[16:],
    "for gray": gray_profile(1.8),
    "for CMYK": P3[:16] + b"CMYK" + P3[20:],
    "no tags": P3[:128] + bytes(4),
    "multi-process elements": P3[:128]
    + struct.pack(">I", 1)
    + b"D2B0"
    + struct.pack(">II", 144, 40)
    + b"mpet"
    + bytes(36),
    "too large": P3 + bytes(icc.MAX_PROFILE_BYTES),
}


@pytest.mark.parametrize("profile", BROKEN.values(), ids=BROKEN)
def test_a_profile_that_cannot_be_used_is_a_space_of_its_own_and_is_told(profile, tmp_path):
    folder = saved(tmp_path / "set", pictures(1), ".tif", icc_profile=profile)
    assert colors(folder)[0] == {"unreadable-profile"}
    (sample,) = fe.open_source(folder, color="srgb").samples()
    assert "its colors cannot be converted to sRGB" in sample.error
    assert sample.error.endswith("save it in sRGB")
    if b"mpet" in profile:
        assert "multi-process elements, which are not read" in sample.error


def test_a_profile_of_no_name_has_a_name_of_its_own():
    odd = profile_of((0.32, 0.34, 0.60, 0.35, 0.30, 0.55, 0.17, 0.10), power(1.4))
    other = profile_of((0.30, 0.31, 0.70, 0.28, 0.25, 0.70, 0.14, 0.05), power(2.9))
    assert space_name(odd).startswith("RGB-")
    assert space_name(odd) != space_name(other)
    assert mode_of(odd) == "RGB"


@pytest.mark.parametrize("name", [None, "Display-P3", "ProPhoto/linear", "RGB-3f2a", "unreadable-profile"])
def test_a_space_is_kept_with_the_traits(name):
    encoding = Encoding("JPEG2000", "RGB;16/12bit", 65535, 65535, is_gray=False, color=name)
    assert Encoding.decode(encoding.encode()) == encoding


def sets(tmp_path, gamut="ProPhoto", transfer="1.8"):
    profile = space(gamut, transfer)
    saved(tmp_path / "ref", pictures(40))
    saved(tmp_path / "gen", [stored_in(one, profile) for one in pictures(40, 1)], icc_profile=profile)
    saved(tmp_path / "plain", pictures(40, 1))
    return {name: str(tmp_path / name) for name in ("gen", "ref", "plain")}


@pytest.mark.long
def test_sets_of_two_spaces_are_warned_of_and_are_one_law_in_srgb(tmp_path):
    made = sets(tmp_path)

    def kid(gen, **choices):
        return fe.metrics(made[gen], made["ref"], ["kid"], extractor=fe.Extraction("pixels", **choices))["kid_mean"]

    control, stored, converted = kid("plain"), kid("gen"), kid("gen", color="srgb")
    warned = [note for note in stored.notes if "--color srgb" in note]
    assert warned
    assert "100 % (ProPhoto) of gen and 0 % of ref" in warned[0]
    assert not any("sRGB" in note for note in (*control.notes, *converted.notes))
    assert stored.value > 3 * abs(converted.value)
    assert converted.value == pytest.approx(control.value, abs=0.0005)


STATED = {
    "Display-P3": {"icc_profile": space("Display-P3")},
    "CMYK": {"suffix": ".jpg", "mode": "CMYK"},
    "damaged": {"icc_profile": b"no profile at all"},
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("gen", STATED)
@pytest.mark.parametrize("ref", ["sRGB", *STATED])
def test_only_files_with_a_profile_are_advised_to_be_converted(gen, ref, tmp_path):
    profiles = []
    for number, name in enumerate((gen, ref)):
        options = STATED.get(name, {})
        mode = options.get("mode", "RGB")
        images = [one.convert(mode) for one in pictures(20, number)]
        own = {key: value for key, value in options.items() if key != "mode"}
        folder = saved(tmp_path / f"{number}", images, **own)
        profiles.append(Profile.of(sample.encoding for sample in open_source(folder).samples()))
    found = [one for one in unlike_encodings(*profiles) if "sRGB" in one]
    if gen == ref:
        assert not found
        return
    assert ("convert both sets (color='srgb', --color srgb)" in found[0]) == ("Display-P3" in (gen, ref))
    assert ("save in sRGB what has no profile" in found[0]) == bool({gen, ref} & {"CMYK", "damaged"})
    assert ("CMYK" in found[0].partition("differently")[2]) == ("CMYK" in (gen, ref))


@pytest.mark.long
def test_a_comparison_warns_of_spaces_and_says_how_they_were_read(tmp_path):
    made = sets(tmp_path, "Display-P3", "")
    found = fe.compare(made["gen"], made["ref"], extractor="pixels", features=50)
    assert any("not sRGB" in one for one in found.warnings)
    found = fe.compare(made["gen"], made["ref"], extractor=fe.Extraction("pixels", color="srgb"), features=50)
    assert not any("not sRGB" in one for one in found.warnings)


@pytest.mark.long
def test_the_space_is_in_the_key_and_the_caches_can_be_compared(tmp_path):
    made = sets(tmp_path)
    stored = fe.extract(made["gen"], "pixels")
    converted = fe.extract(made["gen"], "pixels", color="srgb")
    assert converted.key != stored.key
    assert converted.reading.color == "srgb"
    assert stored.extractor_digest == converted.extractor_digest
    assert fe.extract(made["gen"], "pixels", color="stored").key == stored.key


def test_another_space_is_refused_by_name():
    with pytest.raises(UsageError, match="color"):
        fe.Extraction("pixels", color="p3")
    with pytest.raises(UsageError, match="image_key, range and color are for images"):
        fe.extract(np.zeros((2, 4, 8, 8, 3), "u1"), "motion", color="srgb")
