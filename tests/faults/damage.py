"""Damage to files: of bytes, of text, of archives, and of finc-eval's own files with checksums that are right again."""

import io
import json
import tarfile
import tempfile
import zipfile
import zlib
from pathlib import Path

import numpy as np
from _files import content

from finc_eval.core.files.writing import fill_file

NASTY = (
    "null", "true", "-1", "0", "1", "3.7", "1e308", "1e999", "-1e999", "NaN", "Infinity", '""', '"x"', '"é\\ud800"',
    "[]", "{}", "[[]]", '{"a": 1}', "[1, 2, 3]", "9" * 30, "9" * 5000, "[" * 20_000, '{"a":' * 20_000,
    '"' + "x" * 5000 + '"', "../../etc/passwd", "\\u0000", "'", "2020-01-01", "1_000", "0x10", "inf", "nan", "\n",
    "\x00", "\x1b[31m",
)  # fmt: skip
"""Texts that take the place of words and numbers."""

VALUES = (
    None, True, False, -1, 0, 1, 3.7, 1e308, -1e308, 10**30, 2**63, 2**31, "", "x", "\ud800", "/etc/passwd", [], {},
    [[]], [None], ["x"], [1, 2, 3], {"a": 1}, [1e308] * 3, "x" * 5000, 10**9,
)  # fmt: skip
"""Values that take the place of those in a header."""


def of_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    """Flip bits, cut, lengthen, or zero, repeat, swap or replace a stretch of bytes."""
    if not data:
        return rng.bytes(int(rng.integers(1, 5000)))
    out, n = bytearray(data), len(data)
    where = lambda most=n: int(rng.integers(0, max(most, 1)))  # noqa: E731
    start = where()
    length = min(int(2 ** rng.uniform(0, 13)), n - start)
    match rng.integers(0, 9):
        case 0 | 1:
            for _ in range(int(rng.integers(1, 9))):
                out[where()] ^= 1 << int(rng.integers(0, 8))
        case 2:
            del out[where() :]
        case 3:
            out += rng.bytes(int(rng.integers(1, 5000)))
        case 4:
            out[start : start + length] = bytes(length)
        case 5:
            out[start : start + length] = rng.bytes(length)
        case 6:
            other = where(n - length)
            one, two = out[start : start + length], out[other : other + length]
            out[start : start + length], out[other : other + length] = two, one
        case 7:
            del out[start : start + length]
        case 8:
            out[start:start] = out[start : start + length]
    return bytes(out)


def of_text(data: bytes, rng: np.random.Generator) -> bytes:
    """Replace a word, a number or a line of a text by something nasty, or damage its bytes."""
    if rng.random() < 0.35:
        return of_bytes(data, rng)
    text = data.decode("utf-8", "surrogateescape")
    marks = [place for place, letter in enumerate(text) if letter in ' ,:[]{}="\n']
    for _ in range(int(rng.integers(1, 3))):
        start = int(rng.choice(marks)) if marks else 0
        stop = start + 1 + int(rng.integers(0, 12))
        later = [mark for mark in marks if mark > start]
        stop = later[0] if later and rng.random() < 0.8 else stop
        text = text[: start + 1] + str(rng.choice(np.array(NASTY, object))) + text[stop:]
        marks = [mark for mark in marks if mark <= start]
    return text.encode("utf-8", "surrogateescape")


def of_zip(data: bytes, rng: np.random.Generator) -> bytes:
    """Damage a member of an archive whose checksums are made again, or damage the archive's bytes."""
    if rng.random() < 0.4:
        return of_bytes(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as old:
        members = [(name, old.read(name)) for name in old.namelist()]
    place = int(rng.integers(0, len(members)))
    name, inside = members[place]
    match rng.integers(0, 6):
        case 0:
            members.pop(place)
        case 1:
            names = [
                "",
                "../x.png",
                "/etc/passwd",
                "a" * 3000,
                "x\x00y",
                ".",
                "arr_0.npy",
                "sigma.npy",
                name + "/",
                "é.png",
            ]
            members[place] = (str(rng.choice(names)), inside)
        case 2:
            members.append((name, of_bytes(inside, rng)))
        case _ if name.endswith(".npy"):
            members[place] = (name, of_npy(inside, rng))
        case _:
            members[place] = (name, (of_text if name.endswith(("json", "jsonl", "csv")) else of_bytes)(inside, rng))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for name, inside in members:
            try:
                new.writestr(name, inside)
            except (ValueError, IndexError):
                new.writestr("other", inside)
    return file.getvalue()


def of_png(data: bytes, rng: np.random.Generator) -> bytes:
    """Damage, repeat, move or lengthen chunks of a PNG file, and make their checksums again."""
    chunks, place = [], 8
    while place < len(data):
        size = int.from_bytes(data[place : place + 4])
        chunks.append((data[place + 4 : place + 8], data[place + 8 : place + 8 + size]))
        place += 12 + size
    for _ in range(int(rng.integers(1, 4))):
        one = int(rng.integers(0, len(chunks)))
        name, inside = chunks[one]
        match rng.integers(0, 5):
            case 0 if inside:
                chunks[one] = name, of_bytes(inside, rng)
            case 1:
                chunks.insert(int(rng.integers(0, len(chunks))), (name, inside))
            case 2:
                chunks.insert(0, chunks.pop(one))
            case 3:
                names = (b"PLTE", b"tRNS", b"zTXt", b"iCCP", b"acTL", b"fcTL", b"fdAT", b"eXIf", b"IHDR")
                chunks.insert(one, (names[rng.integers(0, len(names))], rng.bytes(int(rng.integers(0, 40)))))
            case _ if inside:
                few = rng.choice((0, 1, 2, 4, 8, 16, 255, 0x7F), 4).astype(np.uint8).tobytes()
                start = int(rng.integers(0, len(inside)))
                chunks[one] = name, inside[:start] + few + inside[start + 4 :]
    parts = (len(inside).to_bytes(4) + name + inside + zlib.crc32(name + inside).to_bytes(4) for name, inside in chunks)
    return data[:8] + b"".join(parts)


HOSTILE = (
    "../out.png",
    "/tmp/out.png",
    "a/../../out.png",
    "",
    ".",
    "..",
    "a" * 3000,
    "x\ny.png",
    "é\udcff.png",
    "a//b.png",
)
"""Names of members that leave the folder, or that no file can have."""


def of_tar(data: bytes, rng: np.random.Generator) -> bytes:
    """Make members of an archive links, devices or giants, give them hostile names, or damage the archive's bytes."""
    if rng.random() < 0.4:
        return of_bytes(data, rng)
    kinds = (
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.CHRTYPE,
        tarfile.FIFOTYPE,
        tarfile.DIRTYPE,
        tarfile.GNUTYPE_SPARSE,
    )
    with tarfile.open(fileobj=io.BytesIO(data)) as old:
        members = [(info, old.extractfile(info).read()) for info in old]
    for _ in range(int(rng.integers(1, 4))):
        info, inside = members[rng.integers(0, len(members))]
        match rng.integers(0, 5):
            case 0:
                info.type, info.linkname = kinds[rng.integers(0, len(kinds))], "/etc/passwd"
            case 1:
                info.name = str(rng.choice(np.array(HOSTILE, object)))
            case 2:
                info.size = int(rng.choice((0, 1, 10**6, 2**33, 2**40)))
            case 3:
                members.append((info, of_bytes(inside, rng)))
            case 4:
                info.pax_headers = {"path": "../x.png", "size": "99999999999", "GNU.sparse.map": "0,1,x"}
    out = io.BytesIO()
    for info, inside in members:
        out.write(info.tobuf(tarfile.PAX_FORMAT, errors="surrogateescape"))
        out.write(inside + bytes(-len(inside) % tarfile.BLOCKSIZE))
    return out.getvalue() + bytes(2 * tarfile.BLOCKSIZE)


def of_npy(data: bytes, rng: np.random.Generator) -> bytes:
    """Change the shape, the type or the numbers of an array, or damage its bytes."""
    if rng.random() < 0.2 or not data.startswith(b"\x93NUMPY"):
        return of_bytes(data, rng)
    values = np.load(io.BytesIO(data))
    head = {"descr": values.dtype.str, "fortran_order": False, "shape": values.shape}
    match rng.integers(0, 4):
        case 0:
            shapes = [
                (),
                (0,),
                (10**12,),
                (10**6, 10**6),
                (2**62, 4),
                (-1,),
                (3,) * 9,
                values.shape[::-1],
                values.shape[:1],
            ]
            head["shape"] = shapes[rng.integers(0, len(shapes))]
        case 1:
            types = [
                "<f8",
                "|O",
                "<U1000000",
                "|S3",
                "<c16",
                "|b1",
                "<i8",
                ">f4",
                "<M8[s]",
                "|V7",
                "x",
                "<f2",
                "|u1",
                "<f4",
            ]
            head["descr"] = types[rng.integers(0, len(types))]
        case 2:
            head["fortran_order"] = True
        case 3 if values.dtype.kind == "f" and values.size:
            values.ravel()[rng.integers(0, values.size)] = [np.nan, np.inf, -np.inf, 1e300][rng.integers(0, 4)]
    text = repr(head).encode()
    text = text.ljust(-(-(len(text) + 11) // 64) * 64 - 11 + 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + values.tobytes()


def of_own(data: bytes, rng: np.random.Generator) -> bytes:
    """Damage a file of finc-eval's own, or forge another content."""
    return of_bytes(data, rng) if rng.random() < 0.5 else forged(data, rng)


def is_forged(data: bytes, seed: np.random.SeedSequence) -> bool:
    """Whether `of_own` forges with this seed."""
    return np.random.default_rng(seed).random() >= 0.5


def forged(data: bytes, rng: np.random.Generator) -> bytes:
    """Change values of the header or arrays of a file, and make its checksums again."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.h5"
        path.write_bytes(data)
        stated, header, arrays = content(path)
        arrays = {name: values.copy() for name, values in arrays.items()}
        for _ in range(int(rng.integers(1, 3))):
            if rng.random() < 0.65:
                change_value(header, rng)
            else:
                _change_array(arrays, rng)
        with fill_file(path, *stated) as file:
            file.header |= header
            for name, values in arrays.items():
                file.array(name, values)
        return path.read_bytes()


def change_value(tree: dict, rng: np.random.Generator) -> None:
    """Replace or remove a value of a tree of JSON."""
    node = tree
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = keys[rng.integers(0, len(keys))]
        inner = node[key]
        if isinstance(inner, dict | list) and inner and rng.random() < 0.85:
            node = inner
            continue
        if rng.random() < 0.15:
            del node[key]
        elif isinstance(inner, int | float) and not isinstance(inner, bool) and rng.random() < 0.4:
            changed = inner * [2, -1, 0.5, 1e6, 0][rng.integers(0, 5)]
            node[key] = changed if np.isfinite(float(changed)) else 0
        else:
            node[key] = json.loads(json.dumps(VALUES[rng.integers(0, len(VALUES))]))
        return


def _change_array(arrays: dict[str, np.ndarray], rng: np.random.Generator) -> None:
    if not arrays:
        return
    name = list(arrays)[rng.integers(0, len(arrays))]
    values = arrays[name]
    match rng.integers(0, 6):
        case 0:
            del arrays[name]
        case 1:
            arrays[name] = values[: len(values) // 2] if values.ndim else values
        case 2:
            arrays[name] = values[None]
        case 3:
            types = ["|S1", "|S40"] if values.dtype.kind == "S" else ["<f4", "<f8", "<i8", "<u8", "|u1", "<i4"]
            arrays[name] = values.astype(types[rng.integers(0, len(types))])
        case 4:
            arrays[name] = np.zeros((0, *values.shape[1:]), values.dtype)
        case 5 if values.size:
            extremes = {"f": (np.nan, np.inf, 1e38, -1e38), "S": (b"", b"\xff")}
            extreme = extremes.get(values.dtype.kind, (0, 127))
            values.ravel()[rng.integers(0, values.size)] = extreme[rng.integers(0, len(extreme))]
