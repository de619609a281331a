"""Files of torch.save: every content that was read stays readable, with the PyTorch that is installed."""

import io
import json
import re
import sys
import warnings
import zipfile
from collections import Counter, OrderedDict

import numpy as np
import pytest
import torch

from finc_eval.core.errors import DataError
from finc_eval.core.files.tensors import tensors_in
from finc_eval.samples.source import readable

X = torch.arange(12, dtype=torch.float32).reshape(4, 3)


def saved(path, content, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.save(content, path / "a.pt", **options)
    return path / "a.pt"


def read(path):
    with readable(path):
        return tensors_in(path)


def tagged():
    tensor = X.clone()
    tensor.tag = {"made": "by hand"}
    return tensor


DTYPES = "float16 bfloat16 float32 float64 uint8 uint16 uint32 uint64 int8 int16 int32 int64 bool float8_e4m3fn"

TENSORS = {
    "a matrix": X,
    "a transposed matrix": X.T,
    "a part of a matrix": X[1:, 1:],
    "every second row": X[::2],
    "a repeated row of as many numbers": X[0],
    "a single number": torch.tensor(3.5),
    "no rows": X[:0],
    "a parameter": torch.nn.Parameter(X),
    "a buffer": torch.nn.Buffer(X),
    "a tensor with gradients": X.clone().requires_grad_(),
    "a tensor with attributes": tagged(),
    "a negative view": torch.complex(X, X).conj().imag,
    "an inference tensor": torch.inference_mode()(lambda: X * 2)(),
    **{name: X.to(getattr(torch, name)) for name in [*DTYPES.split(), "float8_e5m2", "complex64"]},
}


@pytest.mark.parametrize("case", TENSORS)
@pytest.mark.parametrize("protocol", [2, 3])
def test_each_tensor_is_read_as_torch_reads_it(case, protocol, tmp_path):
    path = saved(tmp_path, {"embeddings": TENSORS[case]}, pickle_protocol=protocol)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = torch.load(path, weights_only=True)["embeddings"].detach()
    found = read(path)["embeddings"]
    assert (found.shape, found.dtype, found.requires_grad) == (want.shape, want.dtype, False)
    assert found.tolist() == want.tolist()


STRIPED = {"x": X, "n": 3, "rate": 0.5, "done": True}

CONTENTS = {
    "a tensor alone": (X, {"embeddings"}),
    "a table of tensors and numbers": (STRIPED, {"x", "n", "rate", "done"}),
    "an ordered table": (OrderedDict(STRIPED), {"x", "n", "rate", "done"}),
    "tables in tables": ({"real": {"mu": X, "more": {"n": 2}}}, {"real.mu", "real.more.n"}),
    "a tuple": ((X, X[0], 7), {"0", "1", "2"}),
    "a list in a table": ({"a": [X, {"b": X}]}, {"a.0", "a.1.b"}),
    "one tensor under two names": ({"a": X, "b": X}, {"a", "b"}),
    "a table under two names": ({"a": STRIPED, "b": STRIPED}, {"a.x", "a.n", "a.rate", "a.done"}),
    "names that are numbers": ({0: X, 1.5: X, None: X, True: X}, {"0", "1.5", "None", "True"}),
    "layers of a network": (
        torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).state_dict(),
        {"0.weight", "0.bias", *(f"1.{name}" for name in torch.nn.BatchNorm1d(2).state_dict())},
    ),
    "a tuple as a name": ({(1, 2): X, "y": X}, {"(1, 2)", "y"}),
    "a shape": ({"x": X, "shape": X.shape}, {"x", "shape.0", "shape.1"}),
    "counts": ({"x": X, "counts": Counter(a=2, b=3)}, {"x", "counts.a", "counts.b"}),
    "names of files and labels": (
        {"x": X, "paths": [f"{number}.png" for number in range(5000)], "labels": list(range(5000))},
        {"x"},
    ),
    "values beside tensors": (
        {
            "x": X,
            "none": None,
            "bytes": b"abc",
            "complex": 1j,
            "set": {1, 2},
            "array": bytearray(b"abc"),
            "dtype": torch.float32,
            "device": torch.device("cpu"),
            "layout": torch.strided,
            "storage": torch.zeros(3).untyped_storage(),
            "large": 2**62,
            "empty": {},
        },
        {"x", "large"},
    ),
}


@pytest.mark.parametrize("case", CONTENTS)
def test_each_content_of_a_file_has_its_names(case, tmp_path):
    content, names = CONTENTS[case]
    path = saved(tmp_path, content)
    torch.load(path, weights_only=True)
    assert set(read(path)) == names


def test_a_table_that_holds_itself_is_read_once(tmp_path):
    table = {"x": X}
    table["again"] = [table]
    assert set(read(saved(tmp_path, table))) == {"x"}


def test_a_file_of_another_byte_order_is_read(tmp_path):
    path = saved(tmp_path, {"x": X, "y": X[1:]})
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "b.pt", "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("/byteorder"):
                data = {"little": b"big", "big": b"little"}[sys.byteorder]
            if "/data/" in name:
                data = np.frombuffer(data, np.uint32).byteswap().tobytes()
            new.writestr(name, data)
    found = read(tmp_path / "b.pt")
    assert torch.equal(found["x"], X)
    assert torch.equal(found["y"], X[1:])


def test_numbers_stay_in_the_file_and_changes_do_not_reach_it(tmp_path):
    path = saved(tmp_path, X)
    before = path.read_bytes()
    read(path)["embeddings"].zero_()
    assert path.read_bytes() == before


def flipped(path, name):
    """The file with one changed byte in a member, which its checksum does not know."""
    with zipfile.ZipFile(path) as archive:
        info = next(one for one in archive.infolist() if one.filename.endswith(name))
        data = archive.read(info)
    whole = path.read_bytes()
    assert whole.count(data) == 1
    place = whole.index(data) + len(data) // 2
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    return path


@pytest.mark.parametrize("name", ["data/0", "data.pkl", "byteorder"])
def test_one_changed_byte_is_seen(name, tmp_path):
    assert re.search("CRC|cannot be read|is damaged", refused(flipped(saved(tmp_path, X), name)))


def with_storage(path, numbers):
    """The file with a storage that states more numbers than its member has."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(path.with_name("b.pt"), "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, data.replace(b"K\x0ctq", b"K" + bytes([numbers]) + b"tq") if "pkl" in name else data)
    return path.with_name("b.pt")


@pytest.mark.parametrize("numbers", [13, 40, 255])
def test_a_storage_is_its_member(numbers, tmp_path):
    text = refused(with_storage(saved(tmp_path, {"x": X}), numbers))
    assert "which no member of the archive has" in text or "cannot be read" in text


def refused(path):
    with pytest.raises(DataError) as caught:
        read(path)
    return str(caught.value)


def nested(**options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.nested.nested_tensor([X, X[:2]], **options)


OTHERS = {
    "nested": (nested, r"holds a nested tensor, .*: save x.to_padded_tensor\(0\)"),
    "jagged": (lambda: nested(layout=torch.jagged), r"holds a nested tensor, .*: save x.to_padded_tensor\(0\)"),
    "sparse": (X.to_sparse, r"holds a sparse tensor, .*: save x.to_dense\(\)"),
    "sparse rows": (X.to_sparse_csr, r"holds a sparse tensor, .*: save x.to_dense\(\)"),
    "quantized": (
        lambda: torch.quantize_per_tensor(X, 1.0, 0, torch.qint8),
        r"holds a quantized tensor, .*: save x.dequantize\(\)",
    ),
    "meta": (lambda: X.to("meta"), "holds a tensor of the device meta, .*: save it from another device"),
    "masked": (lambda: torch.masked.masked_tensor(X, X > 2), "holds more than tensors|holds a tensor of a class"),
    "an array": (X.numpy, "holds more than tensors, such as numpy arrays, .*: save tensors alone"),
    "a module": (lambda: torch.nn.Linear(2, 2), "holds more than tensors"),
    "a function": (lambda: json.loads, "holds more than tensors"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_what_is_no_plain_tensor_is_one_sentence(case, tmp_path):
    make, told = OTHERS[case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        content = make()
    path = saved(tmp_path, {"x": X, "embeddings": content})
    assert re.search(told, text := refused(path)), text


def test_a_program_of_torchscript_is_refused(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(torch.nn.Linear(2, 2)).save(tmp_path / "a.pt")
    assert "cannot be read" in refused(tmp_path / "a.pt")


@pytest.mark.parametrize("protocol", [0, 1, 4, 5])
def test_other_protocols_are_refused_or_read_rightly(protocol, tmp_path):
    path = saved(tmp_path, {"x": X, "y": [1, 2]}, pickle_protocol=protocol)
    try:
        assert torch.equal(read(path)["x"], X)
    except DataError as error:
        assert re.search("holds more than tensors|cannot be read", str(error))


def test_the_form_before_archives_is_refused(tmp_path):
    assert "cannot be read" in refused(saved(tmp_path, X, _use_new_zipfile_serialization=False))


def test_an_archive_of_something_else_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
        archive.writestr("a/b", io.BytesIO().getvalue())
    assert "it has no member data.pkl, which torch.save writes" in refused(tmp_path / "a.pt")
