"""Sizes that files and servers claim are not believed: what is larger than is allowed is one sentence, in time."""

import io
import json
import os
import re
import struct
import tarfile
import threading
import warnings
import zipfile
import zlib
from dataclasses import replace

import numpy as np
import pyarrow as arrow
import pytest
import torch
from _bounded import bounded
from _web import Quiet, serving
from PIL import Image
from pyarrow import parquet

from finc_eval.core.errors import FincEvalError
from finc_eval.core.files import parquet as parquet_file
from finc_eval.core.files.on_disk import on_disk
from finc_eval.core.remote import store
from finc_eval.embeddings.array_files import StoredArrays
from finc_eval.embeddings.columns import metadata_table
from finc_eval.extractors import card
from finc_eval.extractors.catalog import load_card
from finc_eval.extractors.fetch import fetch_weights
from finc_eval.samples.clips import Clip
from finc_eval.samples.opening import open_clips, open_source

TOO_LARGE = r"takes .* when decoded, above the .* of FINC_EVAL_MAX_DECODED"
ZEROS = 1_500_000_000
"""Bytes that a bomb unpacks to."""


@pytest.fixture(autouse=True)
def hundred_megabytes(monkeypatch):
    monkeypatch.setenv("FINC_EVAL_MAX_DECODED", "100MB")


def deflated(size=ZEROS):
    """Zeros, packed as in a zip."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return piece * (size >> 20) + packer.flush()


def lying_zip(path, name, claimed, packed, method=zipfile.ZIP_DEFLATED, times=1):
    """A zip whose members have these packed bytes, and whatever size the headers claim."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for number in range(times):
            archive.writestr(name.format(number), packed)
            info = archive.infolist()[-1]
            info.file_size, info.compress_type = claimed, method
    return path


def use(path):
    """Open a set of any kind, and read all of it."""
    if path.suffix in (".pt", ".npy", ".safetensors", ".parquet", ".npz"):
        return f"{StoredArrays(path).n} rows"
    source = open_source(path)
    return "; ".join(str(sample.error) for sample in source.samples())


def zip_of_100_bytes(folder):
    return lying_zip(folder / "a.zip", "a.png", 100, deflated())


def zip_of_its_size(folder):
    return lying_zip(folder / "a.zip", "a.png", ZEROS, deflated())


def zip_of_40_megabytes_that_are_not_there(folder):
    return lying_zip(folder / "a.zip", "a.png", 40_000_000, deflated(1 << 20))


def zip_by_another_method(method, pack):
    def make(folder):
        data = pack(bytes(50 << 20))
        return lying_zip(folder / "a.zip", "a.png", 100, data, method)

    return make


def metadata_in_a_zip(folder):
    path = folder / "a.zip"
    lying_zip(path, "metadata.csv", 100, deflated())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("a.png", b"")
    return path


def npz_member(name, head, packed, claimed=None):
    def make(folder):
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        data = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH) + packed()
        with zipfile.ZipFile(folder / "a.npz", "w") as archive:
            archive.writestr(f"{name}.npy", data)
            info = archive.infolist()[-1]
            info.file_size, info.compress_type = claimed or len(head) + ZEROS, zipfile.ZIP_DEFLATED
        return folder / "a.npz"

    return make


def header(shape, dtype="<f4"):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
    return stream.getvalue()


def npz_of_arrays(folder):
    with zipfile.ZipFile(folder / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("embeddings.npy", header((5_000_000, 1)) + bytes(20_000_000))
        for number in range(7):
            archive.writestr(f"a{number}.npy", header((5_000_000,)) + bytes(20_000_000))
    return folder / "a.npz"


def npz_of_no_columns(folder):
    with zipfile.ZipFile(folder / "a.npz", "w") as archive:
        archive.writestr("embeddings.npy", header((10**12, 0)))
    return folder / "a.npz"


def npy(head, size=0):
    def make(folder):
        with (folder / "a.npy").open("wb") as file:
            file.write(head)
            file.truncate(len(head) + size)
        return folder / "a.npy"

    return make


ANOTHER = {"100,000 frames of 16 pixels"}
"""Cases whose kind has a quicker instance, which is among the quick tests."""


def quick_and_long(cases):
    return [pytest.param(one, marks=[pytest.mark.long] * (one in ANOTHER)) for one in cases]


ARCHIVES = {
    "a member of 1.5 GB that claims 100 bytes": (zip_of_100_bytes, "Bad CRC-32"),
    "a member of 1.5 GB": (zip_of_its_size, "a file of 1.5 GB, which takes"),
    "a member that claims 40 MB": (zip_of_40_megabytes_that_are_not_there, "of 40,000,000 bytes are there|CRC"),
    "a member packed by bz2": (zip_by_another_method(zipfile.ZIP_BZIP2, __import__("bz2").compress), "than deflate"),
    "a member packed by lzma": (
        zip_by_another_method(zipfile.ZIP_LZMA, lambda data: b"\x09\x04\x05\0]\0\0\x80\0" + data[:99]),
        "than deflate",
    ),
    "metadata of 1.5 GB that claim 100 bytes": (metadata_in_a_zip, "Bad CRC-32"),
    "a header of an array of 1.5 GB": (
        npz_member("embeddings", b"\x93NUMPY\2\0" + struct.pack("<I", ZEROS), deflated),
        "has a header of 1,500,000,000 bytes, above 65,536",
    ),
    "an array of 1.5 GB": (npz_member("embeddings", header((ZEROS // 4, 1)), deflated), TOO_LARGE),
    "a billion samples": (npz_of_no_columns, "list of 1,000,000,000,000 rows"),
    "arrays of 160 MB together": (npz_of_arrays, "with those before it, takes 120 MB when decoded"),
    "a header of 3 GB in .npy": (npy(b"\x93NUMPY\2\0" + struct.pack("<I", 3 << 30), 3 << 30), "has a header of 3,2"),
    "a trillion rows of nothing in .npy": (npy(header((10**12, 0))), "cannot be read|list of 1,000,000,000,000 rows"),
    "values without bytes in .npy": (npy(header((10**12, 4), "|V0")), "not an array of numpy"),
    "a shape beyond the file in .npy": (npy(header((10**9, 10**9))), "cannot be read"),
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("case", ARCHIVES)
def test_archives(case, tmp_path):
    make, told = ARCHIVES[case]
    found = bounded(use, make(tmp_path))
    assert re.search(told, found), found


def block(name, size, kind=b"0", at=0):
    """A header of a tar file."""
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


def negative(data):
    """A header whose size is negative, in base 256."""
    changed = bytearray(data)
    changed[124:136] = b"\xff" * 10 + b"\xfe\0"  # −512
    changed[148:156] = b" " * 8
    changed[148:156] = b"%06o\0 " % sum(changed)
    return bytes(changed)


def pax(text):
    data = text + bytes(-len(text) % 512)
    return block("p", len(text), b"x") + data


TARS = {
    "a name of 6 GB": (block("l", 6 << 30, b"L"), 6 << 30, "cannot be read"),
    "a member that leads back": (negative(block("a.png", 0)) + bytes(1024), 0, "cannot be read"),
    "a second member that leads back": (
        block("a.png", 0) + negative(block("b.png", 0)) + bytes(1024),
        0,
        "cannot be read|leads back",
    ),
    "a pax size that leads back": (
        pax(b"15 size=-1024\n") + block("a.png", 512) + bytes(1024),
        0,
        "cannot be read|leads back|cut short",
    ),
    "an image of 8 EB": (block("a.png", (1 << 63) - 512), 0, "which takes|cannot be read"),
    "an image of 400 MB that is not there": (block("a.png", 400 << 20), 0, "cut short"),
    "a text of 8 EB": (block("a.png", 0) + block("a.txt", (1 << 62)), 0, TOO_LARGE),
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("case", TARS)
def test_tars(case, tmp_path):
    start, size, told = TARS[case]
    with (tmp_path / "a.tar").open("wb") as file:
        file.write(start)
        file.truncate(len(start) + size)
    found = bounded(use, tmp_path / "a.tar")
    assert re.search(told, found), found


def write(table, **options):
    def make(folder):
        parquet.write_table(table(), folder / "a.parquet", **options)
        return folder / "a.parquet"

    return make


def lists(count, length):
    ends = np.arange(0, count * length + 1, length, dtype="i4")
    return lambda: arrow.table({"e": arrow.ListArray.from_arrays(ends, np.zeros(count * length, "f4"))})


def repeated(text, count, rows):
    """A table of one text, so many times in so many rows, and a list in each row where there are more."""

    def make():
        texts = arrow.DictionaryArray.from_arrays(np.zeros(count, "i4"), arrow.array([text]))
        ends = np.arange(0, count + 1, count // rows, dtype="i4")
        return arrow.table({"a": texts if rows == count else arrow.ListArray.from_arrays(ends, texts)})

    return make


PARQUETS = {
    "40 rows of 1 million zeros": (write(lists(40, 1_000_000), compression="zstd"), TOO_LARGE),
    "a number in 30 million rows": (write(lambda: arrow.table({"a": np.zeros(30_000_000, "f4")})), TOO_LARGE),
    "a text of 10 MB in each row": (write(repeated("x" * 10_000_000, 20, 20), use_dictionary=False), TOO_LARGE),
    "texts of 1 MB in a list": (write(repeated("x" * 1_000_000, 300, 1), store_schema=False), TOO_LARGE),
    "nothing": (lambda folder: sparse(folder / "a.parquet", b"", 0, b""), "cannot be read"),
}


def sparse(path, start, size, end):
    with path.open("wb") as file:
        file.write(start)
        file.truncate(len(start) + size)
        file.seek(0, 2)
        file.write(end)
    return path


@pytest.mark.one_of_each
@pytest.mark.parametrize("case", quick_and_long(PARQUETS))
def test_parquets(case, tmp_path):
    make, told = PARQUETS[case]
    path = make(tmp_path)
    for read in (use, lambda path: metadata_table(path, ["0"])):
        found = bounded(read, path)
        assert re.search(told, found), found


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
def test_a_parquet_of_every_encoding_of_texts_is_read(encoding, tmp_path):
    texts = [f"text {number}" for number in range(1000)]
    table = arrow.table({"id": texts, "tags": [[text] for text in texts]})
    encodings = {"id": encoding, "tags.list.element": encoding}
    parquet.write_table(table, tmp_path / "a.parquet", use_dictionary=False, column_encoding=encodings)
    columns, _ = metadata_table(tmp_path / "a.parquet", texts)
    assert columns == {"tags": [str([text]) for text in texts]}


@pytest.mark.parametrize(
    ("columns", "options", "sizes"),
    [
        ({"a": np.zeros(500, "f4"), "b": np.zeros(500, "f8")}, {}, [500]),
        ({"id": ["a", "b"] * 250, "e": [np.zeros(8, "f4")] * 500}, {}, [500]),
        ({"e": [np.zeros(1000, "f4")] * 100}, {}, [16] * 6 + [4]),
    ],
    ids=["numbers", "short texts", "wide rows"],
)
def test_as_many_rows_of_a_parquet_are_decoded_at_once_as_are_small(columns, options, sizes, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_file, "BYTES_AT_ONCE", 1 << 16)
    parquet.write_table(arrow.table(columns), tmp_path / "a.parquet", **options)
    assert [len(piece) for piece in parquet_file.parquet_pieces(tmp_path / "a.parquet")] == sizes


def test_a_parquet_of_every_kind_of_column_is_read(tmp_path):
    table = arrow.table(
        {
            "id": ["0", "1"],
            "text": ["a", None],
            "bytes": [b"a", b"b"],
            "tags": [["a", "b"], []],
            "inside": [{"a": "x"}, {"a": "y"}],
            "kind": arrow.array(["a", "b"]).dictionary_encode(),
            "number": [1, 2],
            "pairs": arrow.array([[("a", 1)], []], arrow.map_(arrow.string(), arrow.int64())),
            "view": arrow.array(["a", "b"], arrow.string_view()),
        }
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    columns, _ = metadata_table(tmp_path / "a.parquet", ["0", "1"])
    assert columns == {
        "text": ["a", ""],
        "bytes": ["b'a'", "b'b'"],
        "tags": ["['a', 'b']", "[]"],
        "inside": ["{'a': 'x'}", "{'a': 'y'}"],
        "kind": ["a", "b"],
        "number": ["1", "2"],
        "pairs": ["[('a', 1)]", "[]"],
        "view": ["a", "b"],
    }


def nested():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])


TENSORS = {
    "meta": lambda: torch.zeros(10**9, 10**3, device="meta"),
    "nested": nested,
    "sparse": lambda: torch.sparse_coo_tensor([[0], [0]], [1.0], (10**6, 10**6)),
    "sparse rows": lambda: torch.zeros(4, 4).to_sparse_csr(),
    "quantized": lambda: torch.quantize_per_tensor(torch.zeros(4, 4), 1.0, 0, torch.qint8),
    "complex": lambda: torch.zeros(4, 4, dtype=torch.complex64),
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("case", TENSORS)
def test_tensors_that_are_not_plain_numbers(case, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.save({"embeddings": TENSORS[case]()}, tmp_path / "a.pt")
    assert re.search("not one of plain numbers: save|which has no numbers", bounded(use, tmp_path / "a.pt"))


CLAIMS = {
    "4 bits": ("F4", [60, 4], 120, "is not one of plain numbers"),
    "complex": ("C64", [60, 4], 1920, "is not one of plain numbers"),
    "a shape beyond all numbers": ("F64", [10**18, 10**18], 0, "cannot be read"),
    "a shape beyond the file": ("F32", [10**9, 10**3], 16, "cannot be read"),
    "a trillion rows of nothing": ("F32", [10**12, 0], 0, "list of 1,000,000,000,000 rows takes 16 TB"),
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("case", CLAIMS)
def test_headers_of_safetensors(case, tmp_path):
    kind, shape, size, told = CLAIMS[case]
    head = json.dumps({"embeddings": {"dtype": kind, "shape": shape, "data_offsets": [0, size]}}).encode()
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + bytes(size))
    assert told in bounded(use, tmp_path / "a.safetensors")


@pytest.mark.parametrize("rows", [10**6, 10, 15_000_000])
def test_tensors_that_repeat_their_numbers(rows, tmp_path):
    torch.save({"embeddings": torch.zeros(1, 1).expand(rows, 16)}, tmp_path / "a.pt")
    assert re.search(rf"the tensor embeddings shows 1 number.* as {16 * rows:,}", bounded(use, tmp_path / "a.pt"))


def test_a_tensor_whose_archive_is_packed(tmp_path):
    torch.save(torch.zeros(4, 4), tmp_path / "b.pt")
    with (
        zipfile.ZipFile(tmp_path / "b.pt") as old,
        zipfile.ZipFile(tmp_path / "a.pt", "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for info in old.infolist():
            new.writestr(info.filename, old.read(info) + bytes(10_000_000) * info.filename.endswith("pkl"))
    assert "it is packed, which PyTorch does not do" in bounded(use, tmp_path / "a.pt")


def pickled(program, storage=bytes(256)):
    """A file of PyTorch with this pickle and one storage."""

    def make(folder):
        with zipfile.ZipFile(folder / "a.pt", "w") as archive:
            archive.writestr("a/data.pkl", b"\x80\x02" + program() + b".")
            archive.writestr("a/version", b"3\n")
            archive.writestr("a/data/0", storage)
        return folder / "a.pt"

    return make


def whole(number):
    """The step that puts a whole number on the stack."""
    data = number.to_bytes(9, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


def tensor(shape, strides, offset=0, count=64, key=b"0"):
    """The steps that make a tensor of 64 floats."""
    form, steps = (b"(" + b"".join(map(whole, numbers)) + b"t" for numbers in (shape, strides))
    storage = b"(U\x07storagectorch\nFloatStorage\nU" + bytes([len(key)]) + key + b"U\x03cpu" + whole(count) + b"tQ"
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + whole(offset) + form + steps + b"\x89}tR"


def called(module, name, *arguments):
    return f"c{module}\n{name}\n(".encode() + b"".join(arguments) + b"tR"


PICKLES = {
    "bytes by their class": (lambda: b"c__builtin__\nbytes\n(" + whole(9) + b"tR", "holds more than tensors"),
    "a storage that is called": (lambda: called("torch", "FloatStorage", whole(9)), "more than tensors|cannot be read"),
    "bytes that are not there": (lambda: b"X\xff\xff\xff\x7fabc", "cannot be read|holds more than tensors"),
    "lists in lists": (lambda: b"]" * 200 + b"a" * 199, "holds tables nested deeper than 50"),
    "300,000 tensors": (
        lambda: tensor([8, 8], [8, 1]) + b"q\1](" + b"h\1" * 300_000 + b"e",
        "holds more than 100,000 tensors",
    ),
    "a tensor of 4 EB": (lambda: tensor([2**30, 2**30], [0, 0]), "shows 64 numbers as 1,152,9"),
    "a tensor beyond its storage": (lambda: tensor([8, 8], [9, 1]), "cannot be read"),
    "a tensor that begins before its storage": (lambda: tensor([8, 8], [8, 1], -1), "cannot be read"),
    "a tensor of negative sizes": (lambda: tensor([-2, -2], [1, 1]), "cannot be read"),
    "a storage beyond its member": (lambda: tensor([8, 8], [8, 1], 0, 65), "which no member of the archive|cannot be"),
    "a storage of 4 EB": (lambda: tensor([8, 8], [8, 1], 0, 2**62), "cannot be read|which no member"),
    "a storage that is missing": (lambda: tensor([8, 8], [8, 1], key=b"1"), "cannot be read"),
    "a storage outside of the archive": (lambda: tensor([8, 8], [8, 1], key=b"../../x"), "cannot be read"),
    "a trillion rows of nothing": (lambda: tensor([10**12, 0], [1, 1]), "list of 1,000,000,000,000 rows"),
    "nothing": (lambda: b"", "cannot be read|holds more than tensors"),
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("case", PICKLES)
def test_pickles_of_torch(case, tmp_path):
    program, told = PICKLES[case]
    found = bounded(use, pickled(program)(tmp_path))
    assert re.search(told, found), found


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, more=b"", pixels=None):
    packed = zlib.compress(bytes(height * (width + 1))) if pixels is None else pixels
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + more + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def tiff(entries, more=b"", count=1):
    """A TIFF of directories with these entries, one after the other."""
    step = 6 + 12 * len(entries)
    directory = struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHII", *one) for one in entries)
    ends = [8 + step * (number + 1) for number in range(count - 1)] + [0]
    return b"II*\0" + struct.pack("<I", 8) + b"".join(directory + struct.pack("<I", end) for end in ends) + more


BASIC = [
    (256, 3, 1, 4),
    (257, 3, 1, 4),
    (258, 3, 1, 8),
    (259, 3, 1, 1),
    (262, 3, 1, 1),
    (273, 4, 1, 8),
    (279, 4, 1, 16),
]


def gif(width, height, frames):
    frame = b"\x21\xf9\4\0\0\0\0\0\x2c" + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\2\2\x84\x51\0"
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff" + frame * frames + b";"


def webp():
    pixels = b"\x2f" + struct.pack("<I", 16382 | 16382 << 14) + bytes(19)
    body = b"WEBPVP8L" + struct.pack("<I", len(pixels)) + pixels
    return b"RIFF" + struct.pack("<I", len(body)) + body


def packed():
    return b"\x78\x9c" + deflated(300 << 20)


PIXELS = "pixels are more than the 8,333,333 that|more than 8,333,333 pixels"

PICTURES = {
    "a PNG of 10 billion pixels": (lambda: png(100_000, 100_000, b"", b""), PIXELS),
    "a PNG of 12 million pixels": (lambda: png(4_000, 3_000), "4000x3000 pixels are more than the 8,333,333 that"),
    "a PNG with a text of 300 MB": (lambda: png(8, 8, chunk(b"zTXt", b"a\0\0" + packed())), "too large"),
    "a PNG with a profile of 300 MB": (lambda: png(8, 8, chunk(b"iCCP", b"a\0\0" + packed())), "too large"),
    "a PNG with 300 MB of pixels for 64": (lambda: png(8, 8, b"", packed()), "None"),
    "a GIF of 4 billion pixels": (lambda: gif(65_535, 65_535, 1), PIXELS),
    "a TIFF with tiles of 4 billion pixels": (
        lambda: tiff(sorted([*BASIC[:5], (322, 4, 1, 65_520), (323, 4, 1, 65_520), (324, 4, 1, 8), (325, 4, 1, 9)])),
        ".",
    ),
    "a WebP of 268 million pixels": (webp, PIXELS),
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("case", PICTURES)
def test_pictures(case, tmp_path):
    make, told = PICTURES[case]
    (tmp_path / "a.png").write_bytes(make())
    found = bounded(lambda: str(next(iter(open_source(tmp_path).samples())).error))
    assert re.search(told, found) and "TRACEBACK" not in found, found


VIDEOS = {
    "100,000 frames of a million pixels": (
        (1000, 1000, 100_000),
        "a small file claims 100,000 frames of 300 GB: cut the video",
    ),
    "a frame of 4 billion pixels": ((65_535, 65_535, 5), "damaged or cut short|pixels"),
    "100,000 frames of 16 pixels": ((4, 4, 100_000), "None"),
}


@pytest.mark.one_of_each
@pytest.mark.parametrize("case", quick_and_long(VIDEOS))
def test_videos(case, tmp_path):
    shape, told = VIDEOS[case]
    (tmp_path / "a.gif").write_bytes(gif(*shape))
    found = bounded(lambda: str(next(iter(open_clips(tmp_path, Clip(2, 1, 1, "loop")).samples())).error))
    assert re.search(told, found), found


def saved(folder, **options):
    """A dataset of Hugging Face, with its values written in this way."""
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"image": datasets.Image(), "text": datasets.Value("string")})
    images = [Image.new("L", (8, 8), number) for number in range(4)]
    data = datasets.Dataset.from_dict({"image": images, "text": ["x" * 1000] * 4}, features=features)
    data.save_to_disk(folder)
    (path,) = folder.glob("*.arrow")
    with arrow.OSFile(str(path)) as source:
        table = arrow.ipc.open_stream(source).read_all()
    with arrow.OSFile(str(path), "wb") as sink:
        kind = arrow.ipc.IpcWriteOptions(**options)
        with arrow.ipc.new_stream(sink, table.schema, options=kind) as writer:
            writer.write_table(table)
    return path


@pytest.mark.parametrize("method", ["zstd", "lz4"])
def test_streams_of_arrow_that_are_compressed_are_read(method, tmp_path):
    saved(tmp_path, compression=method)
    assert bounded(lambda: len(open_source(tmp_path).ids)) == "4"


def test_streams_of_arrow_whose_values_lie_elsewhere(tmp_path):
    path = saved(tmp_path)
    assert bounded(lambda: len(open_source(tmp_path).ids)) == "4"
    data = path.read_bytes()
    ends = struct.pack("<5i", 0, 1000, 2000, 3000, 4000)
    assert data.count(ends) == 1
    path.write_bytes(data.replace(ends, struct.pack("<5i", 0, 1000, 2000, 2**30, 2**31 - 1)))
    assert re.search("has damaged values|cannot be read", bounded(lambda: len(open_source(tmp_path).ids)))


class Web(Quiet):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def answer(self, body):
        kind, _, size = self.path.strip("/").partition("-")
        self.send_response(200)
        self.send_header("Connection", "close")
        if kind == "chunked" or (kind == "other" and body):
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", size.partition(".")[0])
        self.end_headers()
        try:
            if body and kind in ("chunked", "other"):
                for _ in range(1000):
                    self.wfile.write(b"10000\r\n" + bytes(1 << 16) + b"\r\n")
            elif body and kind == "slow":
                for _ in range(600):
                    self.wfile.write(b"a")
                    self.server.stopped.wait(0.1)
            elif kind == "silent" and body:
                self.server.stopped.wait(30)
        except OSError:
            pass


@pytest.fixture
def web(no_copies, monkeypatch):
    pytest.importorskip("aiohttp")
    monkeypatch.setenv("FINC_EVAL_MAX_REMOTE", "1MB")
    monkeypatch.setattr(store, "SILENCE_SECONDS", 1)
    with serving(Web) as server:
        server.stopped = threading.Event()
        yield server.address
        server.stopped.set()


ANSWERS = {
    "chunked": "does not state its size: download it",
    "length-999999999999999": "above the 1 MB of all copies",
    "other-0.npz": "has more than the 0 bytes that its server states",
    "other-1000.npz": "has more than the 1,000 bytes that its server states",
    "silent-1000.npz": "sent nothing for 1 seconds: try again later",
    "slow-500000.npz": "arrives too slowly",
}


@pytest.mark.parametrize("path", ANSWERS)
def test_web_servers(path, web, tmp_path):
    with pytest.raises(FincEvalError, match=ANSWERS[path]):
        on_disk(f"{web}/{path}")
    assert [one for one in (tmp_path / "remote").rglob("*") if one.is_file()] == []


class Weights(Quiet):
    """A server of weights that states no length, a wrong one, or one that is too large."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        kind = self.path.strip("/").partition(".")[0]
        self.send_response(200)
        self.send_header("Connection", "close")
        length = {"large": "999999999999999", "endless": "9" * 5000, "negative": "-1", "words": "many"}.get(kind)
        if kind == "chunked":
            self.send_header("Transfer-Encoding", "chunked")
        if length:
            self.send_header("Content-Length", length)
        self.end_headers()
        piece = bytes(1 << 16)
        try:
            for _ in range(0 if kind == "slow" else 10_000):
                self.wfile.write(b"10000\r\n" + piece + b"\r\n" if kind == "chunked" else piece)
                self.server.sent += len(piece)
            for _ in range(600 if kind == "slow" else 0):
                self.wfile.write(b"a")
                self.server.stopped.wait(0.1)
        except OSError:
            pass


WEIGHTS = {
    "unstated": "has more than the 1 MB of FINC_EVAL_MAX_REMOTE",
    "chunked": "has more than the 1 MB of FINC_EVAL_MAX_REMOTE",
    "large": "above the 1 MB of FINC_EVAL_MAX_REMOTE: set it to more",
    "endless": "has more than the 1 MB of FINC_EVAL_MAX_REMOTE",
    "negative": "has more than the 1 MB of FINC_EVAL_MAX_REMOTE",
    "words": "has more than the 1 MB of FINC_EVAL_MAX_REMOTE",
    "slow": "arrives too slowly, .* bytes so far",
}


@pytest.fixture
def weights(tmp_path, monkeypatch):
    monkeypatch.setenv("FINC_EVAL_WEIGHTS", str(tmp_path / "weights"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FINC_EVAL_MAX_REMOTE", "1MB")
    for name in ("FINC_EVAL_MIRROR", "FINC_EVAL_OFFLINE", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(store, "SILENCE_SECONDS", 1)
    with serving(Weights) as server:
        server.stopped, server.sent = threading.Event(), 0
        yield server
        server.stopped.set()


def card_of(*urls):
    return replace(load_card("pixels"), name="net", weights=card.Weights("net.pt", "MIT", None, urls))


@pytest.mark.parametrize("path", WEIGHTS)
def test_weights_take_no_more_room_than_they_may_whatever_their_server_states(path, weights, tmp_path):
    with pytest.raises(FincEvalError, match=WEIGHTS[path]):
        fetch_weights(card_of(f"{weights.address}/{path}.pt"))
    assert [one.name for one in (tmp_path / "weights").iterdir() if one.suffix != ".json"] == []
    assert weights.sent < 50_000_000


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/stdin", "{pipe}"])
def test_weights_of_an_address_on_the_disk_are_a_file(path, weights, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FincEvalError, match=r"could not be fetched: .* is a (device|pipe|folder), not a file"):
        fetch_weights(card_of(f"file://{path.format(pipe=tmp_path / 'pipe')}"))
