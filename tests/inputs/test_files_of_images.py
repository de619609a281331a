"""Files are known by their bytes, pixels by their depth, and what was left out stands in every result."""

import io
import struct
import zlib

import numpy as np
import pytest
from _cards import small_pixel_card
from _tables import every_value
from PIL import Image, features

import finc_eval as fe
from finc_eval.core.errors import FincEvalError
from finc_eval.samples.opening import open_source

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 3)).astype(np.uint8)


def saved(folder, images, suffix="png", **options):
    folder.mkdir(exist_ok=True)
    for number, image in enumerate(images, len(list(folder.iterdir()))):
        Image.fromarray(image).save(folder / f"{number:03d}{suffix and '.'}{suffix}", **options)
    return folder


FORMS = [
    ("jfif", "JPEG"),
    ("jpe", "JPEG"),
    ("JFIF", "JPEG"),
    ("jpg_large", "JPEG"),
    ("jpg!d", "JPEG"),
    ("", "PNG"),
    ("", "JPEG"),
    ("img", "PNG"),
    ("png_", "PNG"),
    ("", "WEBP"),
    ("bin", "TIFF"),
    ("x", "BMP"),
    ("x", "GIF"),
    ("pnm", "PPM"),
    ("dib", "BMP"),
    ("avif", "AVIF"),
    ("", "AVIF"),
    ("jp2", "JPEG2000"),
    ("j2k", "JPEG2000"),
    ("", "JPEG2000"),
]


@pytest.mark.parametrize("suffix, form", FORMS)
def test_an_image_of_any_suffix_is_a_sample(suffix, form, tmp_path):
    if form == "AVIF" and not features.check("avif"):
        pytest.skip("this Pillow has no AVIF")
    folder = saved(tmp_path / "set", IMAGES[:3], suffix, format=form)
    samples = list(open_source(folder).samples())
    assert [sample.error for sample in samples] == [None] * 3


OTHERS = {"notes.md": b"# notes", "model.onnx": b"\x08\x07", "x.tga": b"\0\0\2" + bytes(60), "log": b"epoch 1"}
VERBS = {
    "metrics": lambda gen, ref: fe.metrics(gen, ref, "kid", extractor="pixels")["kid_mean"].notes,
    "kinds": lambda gen, ref: fe.kinds({"gen": gen, "ref": ref}, extractor="pixels").warnings,
    "compare": lambda gen, ref: fe.compare(gen, ref, extractor="pixels", features=20, modes=2).warnings,
    "leaderboard": lambda gen, ref: fe.leaderboard({"gen": gen}, ref, metrics=["kid"], extractor="pixels").warnings,
    "evaluate": lambda gen, ref: str(fe.evaluate(gen, ref, extractor="pixels", features=50).to_dict()).split("\n"),
}
QUICK = [verb for verb in VERBS if verb != "evaluate"]
"""Verbs that name each kind of note, the quickest first; an evaluation has the notes of its parts."""


@pytest.mark.one_of_each
@pytest.mark.parametrize(
    "verb, side", [*every_value(QUICK, [0, 1]), pytest.param("evaluate", 0, marks=pytest.mark.long)]
)
def test_files_left_out_are_named_in_every_result(verb, side, tmp_path):
    sets = saved(tmp_path / "gen", IMAGES), saved(tmp_path / "ref", IMAGES[::-1])
    VERBS[verb](*sets)  # the embeddings of the same samples are there already
    for name, data in OTHERS.items():
        (sets[side] / name).write_bytes(data)
    said = " ".join(VERBS[verb](*sets))
    assert "were left out" in said and all(suffix in said for suffix in (".md", ".onnx", ".tga", "no suffix"))


@pytest.mark.long
def test_thousands_of_suffixes_are_a_short_sentence(tmp_path):
    sets = saved(tmp_path / "gen", IMAGES), saved(tmp_path / "ref", IMAGES)
    for number in range(300):
        (sets[0] / f"a.x{number}").write_bytes(b"x")
    (said,) = [one for one in VERBS["compare"](*sets) if "left out" in one]
    assert len(said) < 300 and "and 292 others" in said


def with_sbit(data, bits):
    """Return a PNG with the chunk sBIT of one channel after its header."""
    body = b"sBIT" + bytes([bits])
    return data[:33] + struct.pack(">I", 1) + body + struct.pack(">I", zlib.crc32(body)) + data[33:]


GRAY = IMAGES[..., 0]


def bright(folder):
    return np.stack([sample.pixels[..., 0] for sample in open_source(folder).samples()]).astype(int)


@pytest.mark.parametrize("bits", [9, 10, 12, 14])
def test_a_depth_that_the_file_states_is_its_range(bits, tmp_path):
    for number, one in enumerate(GRAY):
        data = io.BytesIO()
        Image.fromarray((one.astype("u2") << (bits - 8)) | 1).save(data, "PNG")
        (tmp_path / f"{number:03d}.png").write_bytes(with_sbit(data.getvalue(), bits))
    assert np.array_equal(bright(tmp_path), GRAY)


@pytest.mark.parametrize("bits", [10, 12])
def test_values_scaled_as_sbit_asks_for_are_of_16_bits(bits, tmp_path):
    for number, one in enumerate(GRAY):
        data = io.BytesIO()
        Image.fromarray(one.astype("u2") << 8).save(data, "PNG")
        (tmp_path / f"{number:03d}.png").write_bytes(with_sbit(data.getvalue(), bits))
    assert np.array_equal(bright(tmp_path), GRAY)


@pytest.mark.one_of_each
@pytest.mark.parametrize("bits, suffix, verb", every_value([10, 12, 14], ["png", "tif"], QUICK))
def test_a_lower_depth_in_files_of_16_bits_is_noticed(bits, suffix, verb, tmp_path):
    gen = saved(tmp_path / "gen", GRAY.astype("u2") << (bits - 8), suffix)
    said = " ".join(VERBS[verb](gen, saved(tmp_path / "ref", GRAY)))
    assert f"look like {bits} bits in files of 16 bits" in said


@pytest.mark.long
@pytest.mark.one_of_each
@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_whole_16_bits_and_single_dark_images_are_not_noticed(suffix, tmp_path):
    deep = GRAY.astype("u2") * 257
    deep[:4] >>= 5
    gen = saved(tmp_path / "gen", deep, suffix)
    assert np.array_equal(bright(gen)[4:], GRAY[4:])
    assert "look like" not in " ".join(VERBS["compare"](gen, saved(tmp_path / "ref", GRAY)))


@pytest.mark.parametrize("photometric, bits", [(0, 16), (1, 16)])
def test_white_is_zero_in_16_bits_is_not_inverted(photometric, bits, tmp_path):
    stored = GRAY[0].astype("u2") * 257
    stored = 65535 - stored if photometric == 0 else stored
    Image.fromarray(stored).save(tmp_path / "a.tif", tiffinfo={262: photometric})
    with Image.open(tmp_path / "a.tif") as image:
        kept = image.tag_v2[262]
    if kept == photometric:
        assert np.abs(bright(tmp_path)[0] - GRAY[0]).max() <= 1


BLACK = {"0 and 1": (IMAGES > 127).astype("u1"), "0 to 15": IMAGES >> 4, "gray 0 and 1": (GRAY > 127).astype("u1")}


PALE = {
    "0 to 1 as -1 to 1": (IMAGES / 255, (-1, 1)),
    "the same in 8 bits": ((IMAGES / 255 * 127.5 + 127.5).astype("u1"), None),
    "gray": ((GRAY / 255)[..., None].repeat(3, 3).astype("f4"), (-1, 1)),
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("pale, verb", every_value([*PALE], QUICK))
def test_numbers_of_another_range_than_stated_are_noticed(pale, verb, tmp_path):
    images, limits = PALE[pale]
    gen = saved(tmp_path / "gen", np.stack([one.pixels for one in open_source(images, range=limits).samples()]))
    assert "the images are pale" in " ".join(VERBS[verb](gen, saved(tmp_path / "ref", IMAGES)))


def test_some_pale_images_and_whole_ranges_are_not_noticed(tmp_path):
    images = IMAGES.copy()
    images[:30] |= 128
    for given, limits in ((images, None), (IMAGES / 127.5 - 1, (-1, 1)), (IMAGES / 255, (0, 1))):
        said = " ".join(VERBS["metrics"](fe.extract(given, "pixels", range=limits), fe.extract(IMAGES, "pixels")))
        assert "pale" not in said


@pytest.mark.one_of_each
@pytest.mark.parametrize("black, form, verb", every_value([*BLACK], ["npz", "folder"], QUICK))
def test_a_set_that_is_black_is_noticed(black, form, verb, tmp_path):
    gen = tmp_path / "gen.npz"
    np.savez(gen, BLACK[black])
    if form == "folder":
        gen = saved(tmp_path / "gen", BLACK[black])
    assert "nearly black" in " ".join(VERBS[verb](gen, saved(tmp_path / "ref", IMAGES)))


NEAR = {
    "Unicode form": ("é{}.png", "e\u0301{}.png"),
    "upper and lower case": ("a{}.png", "a{}.PNG"),
    "backslashes": ("b\\a{}.png", "b/a{}.png"),
    "their folder": ("/data/set/a{}.png", "a{}.png"),
    "their suffix": ("a{}", "a{}.png"),
    "": ("other{}.png", "a{}.png"),
}


@pytest.mark.parametrize("table", ["csv", "jsonl"])
@pytest.mark.parametrize("how", NEAR)
def test_metadata_of_no_sample_is_an_error_that_names_the_nearest(how, table, tmp_path):
    named, stored = NEAR[how]
    for number in range(5):
        path = tmp_path / stored.format(number)
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(IMAGES[number]).save(path, "PNG")
    names = [named.format(number) for number in range(5)]
    if table == "csv":
        text = "file_name,label\n" + "".join(f"{name},a\n" for name in names)
    else:
        text = "".join(f'{{"file_name": "{name}", "label": "a"}}\n'.replace("\\", "\\\\") for name in names)
    (tmp_path / f"metadata.{table}").write_text(text, encoding="utf-8")
    with pytest.raises(FincEvalError, match=f"metadata.{table} has labels.*no sample is called so.*{how}"):
        open_source(tmp_path)


@pytest.mark.one_of_each("head", "between")
@pytest.mark.parametrize("head", ["file_name", "filename", "file", "path", "image", "name"])
@pytest.mark.parametrize("between", [",", "\t"])
def test_usual_headers_and_tabs_are_read(head, between, tmp_path):
    saved(tmp_path / "set", IMAGES[:3])
    rows = [f"{head}{between}label", *(f"{number:03d}.png{between}{number % 2}" for number in range(3))]
    (tmp_path / "set" / "metadata.csv").write_text("\n".join(rows))
    cache = fe.extract(tmp_path / "set", "pixels")
    assert (cache.labels, cache.ignored) == (["0", "1", "0"], {})


RNG = np.random.default_rng(1)


@pytest.mark.parametrize("offset", [1e5, 1e6, 1e7, -1e6])
@pytest.mark.parametrize("columns", [1, 16])
def test_float64_that_float32_would_lose_is_refused_with_the_reason(offset, columns):
    rows = RNG.normal(size=(200, 16)) * 0.1
    rows[:, :columns] += offset
    with pytest.raises(FincEvalError, match="which float32 loses: subtract one vector"):
        fe.metrics(rows, rows + 0.1, "fd")
    assert fe.metrics(rows - rows.mean(0), rows - rows.mean(0) + 0.1, "fd")["fd"].value > 0


@pytest.mark.parametrize(
    "rows",
    [RNG.normal(size=(99, 8)), RNG.normal(size=(99, 8)) * 1e-8, RNG.normal(size=(99, 8)) + 100, np.full((99, 8), 0.1)],
    ids=["plain", "small", "near", "constant"],
)
def test_float64_that_float32_holds_is_taken(rows):
    assert fe.metrics(rows, rows, "fd")["fd"].value == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("verb", ["metrics", "kinds"])
def test_unreadable_files_are_named_in_every_result_once(verb, tmp_path):
    sets = saved(tmp_path / "gen", IMAGES), saved(tmp_path / "ref", IMAGES[::-1])
    (sets[0] / "cut.png").write_bytes((sets[0] / "000.png").read_bytes()[:200])
    said = [one for one in VERBS[verb](*sets) if "could not be read" in one]
    assert len(said) == 1 and "cut.png" in said[0]


@pytest.mark.long
@pytest.mark.usefixtures("quick_audits")
def test_an_audit_names_what_was_left_out(tmp_path):
    noise = np.random.default_rng(3).integers(0, 256, (3, 100, 4, 4, 3)).astype(np.uint8)
    sets = [saved(tmp_path / name, images) for name, images in zip(("gen", "train", "holdout"), noise, strict=True)]
    (sets[1] / "a.tga").write_bytes(b"\0" * 60)
    small = small_pixel_card(tmp_path / "small.toml", 4)
    assert "files of train were left out" in " ".join(fe.audit(*sets, extractor=small).warnings)


TABLES = {
    "rows too many": ([*range(44)], "4 x rows of {} without a sample"),
    "rows too few": ([*range(37)], "3 x samples without a row in {}"),
    "both": ([*range(5, 42)], "5 x samples without a row in {0}, 2 x rows of {0} without a sample"),
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("how, verb", every_value([*TABLES], QUICK))
def test_metadata_that_fit_in_part_are_named_in_every_result(how, verb, tmp_path):
    sets = saved(tmp_path / "gen", IMAGES), saved(tmp_path / "ref", IMAGES[::-1])
    rows, said = TABLES[how]
    lines = "".join(f"{row:03d}.png,{row}\n" for row in rows)
    (sets[0] / "metadata.csv").write_text(f"file_name,score\n{lines}")
    assert sum(said.format("metadata.csv") in one for one in VERBS[verb](*sets)) == 1


@pytest.mark.one_of_each
@pytest.mark.parametrize("head", ["file_name", "id", "file", "filename", "path", "image"])
@pytest.mark.parametrize("embedded", [False, True])
def test_a_table_beside_a_set_may_name_samples_under_any_usual_header(head, embedded, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = saved(tmp_path / "gen", IMAGES)
    (tmp_path / "t.csv").write_text(f"{head},label\n" + "".join(f"{row:03d}.png,{row % 3}\n" for row in range(1, 42)))
    if embedded:
        fe.extract(folder, "pixels", out="x.h5")
    with pytest.warns(UserWarning, match=r"2 x rows of t.csv without a sample, 1 x samples without a row|1 x samples"):
        cache = fe.extract(folder, "pixels", out="x.h5", metadata="t.csv")
    assert cache.labels == ["", *(str(row % 3) for row in range(1, 40))]
    with fe.EmbeddingCache("x.h5") as again:
        said = fe.kinds({"a": again, "b": saved(tmp_path / "ref", IMAGES[::-1])}, extractor="pixels").warnings
        assert any("2 x rows of t.csv" in one and "1 x samples without" in one for one in said)


def test_a_gate_names_what_was_left_out(tmp_path):
    sets = [
        saved(tmp_path / name, images) for name, images in (("a", IMAGES), ("b", IMAGES[::-1]), ("c", 255 - IMAGES))
    ]
    for number, folder in enumerate(sets):
        (folder / f"left.x{number}").write_bytes(b"x")
    verdict = fe.gate(*sets, {"kinds": {"new": 0.5}}, extractor="pixels")
    page = verdict.to_html(tmp_path / "page.html").read_text()
    for number, label in enumerate(("gen", "baseline", "ref")):
        assert f"files of {label} were left out, as they are not samples: 1 x .x{number}" in " ".join(verdict.warnings)
        assert f"1 x .x{number}" in page
