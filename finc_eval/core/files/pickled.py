"""Pickles that torch.save writes, read as data: nothing is looked up or called, so that nothing of theirs can run.

A pickle is a program for a machine with a stack (pickletools). This machine knows the steps of protocol 2 alone, as
torch.load does with `weights_only`. A call makes a description of a tensor, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pickle import UnpicklingError
from struct import Struct
from typing import Any

STORAGES = {
    "torch.FloatStorage": "float32",
    "torch.DoubleStorage": "float64",
    "torch.HalfStorage": "float16",
    "torch.BFloat16Storage": "bfloat16",
    "torch.LongStorage": "int64",
    "torch.IntStorage": "int32",
    "torch.ShortStorage": "int16",
    "torch.CharStorage": "int8",
    "torch.ByteStorage": "uint8",
    "torch.BoolStorage": "bool",
    "torch.ComplexFloatStorage": "complex64",
    "torch.ComplexDoubleStorage": "complex128",
    "torch.storage.UntypedStorage": "uint8",
}
"""Types of numbers by the names that PyTorch gives to its storages in pickles."""

TENSORS = TENSOR, TYPED_TENSOR = "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor_v3"
"""Functions that make a tensor of a storage, with its own type or another."""

SUBCLASS = "torch._tensor._rebuild_from_type_v2"  # function that makes a tensor with attributes by another function
TABLES = ("collections.OrderedDict", "collections.Counter")  # classes of dictionaries
COPIES = ("torch.Size", "collections.Counter")  # classes that keep the tuple or the dictionary that they are made of

WRAPPERS = (
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
    "torch._utils._rebuild_device_tensor_from_cpu_tensor",
)
"""Functions of PyTorch whose first argument is the tensor that they return."""

OTHER_TENSORS = {
    "torch._utils._rebuild_sparse_tensor": "a sparse tensor, not one of plain numbers: save x.to_dense()",
    "torch._utils._rebuild_nested_tensor": "a nested tensor, not one of plain numbers: save x.to_padded_tensor(0)",
    "torch.nested._internal.nested_tensor._rebuild_njt": (
        "a jagged tensor, not one of plain numbers: save x.to_padded_tensor(0)"
    ),
    "torch._utils._rebuild_qtensor": "a quantized tensor, not one of plain numbers: save x.dequantize()",
    "torch._utils._rebuild_meta_tensor_no_storage": (
        "a tensor of the device meta, which has no numbers: save it from another device"
    ),
    "torch._utils._rebuild_wrapper_subclass": (
        "a tensor of a class of its own, not one of plain numbers: save a plain tensor"
    ),
}
"""Tensors that are not read, each with what to do, by the function of PyTorch that would make it."""

VALUES = {
    "builtins.set",
    "builtins.complex",
    "builtins.bytearray",
    "_codecs.encode",
    "torch.device",
    "torch.serialization._get_layout",
}
"""Functions that make values beside tensors. Nothing needs these values, and they are read as None."""

CLASSES = {"torch.Tensor", "torch.nn.parameter.Parameter", "torch.nn.parameter.Buffer"}

KNOWN = {*STORAGES, *TENSORS, SUBCLASS, *TABLES, *COPIES, *WRAPPERS, *VALUES, *CLASSES}
"""All names of globals that may stand in a pickle, besides constants such as torch.float32."""

KEYS = {str, int, float, bool, type(None)}
"""Types of keys of dictionaries. Tuples would take time that doubles with each tuple inside."""

MAX_STEPS = 4_000_000
"""Steps of a pickle. 100 000 tensors by name take 3.2 million, and each step at most 80 bytes."""

MODULES = {"__builtin__": "builtins"}  # modules of Python 2, whose names protocol 2 has
STOP, WORD = ord("."), Struct("<I")


Step = Callable[["_Machine", int], int]


@dataclass(frozen=True, slots=True, eq=False)
class Storage:
    """Numbers in a file: the name of their member, their type, and how many they are."""

    key: str
    dtype: str
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class StoredTensor:
    """A tensor in a file: its storage, its type, the first of its numbers, and its shape and strides."""

    storage: Storage
    dtype: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    is_negative: bool


@dataclass(frozen=True, slots=True, eq=False)
class PickledName:
    """A global that a pickle names."""

    text: str


class OtherContentError(Exception):
    """Content that is known, and not read; the text says what it is, and what to do."""


def read_pickle(data: bytes) -> object:
    """Return the content of a pickle: dictionaries, lists, tuples, texts, numbers, None and `StoredTensor`.

    Raises:
        OtherContentError: the pickle holds another kind of tensor, or too many values.
        UnpicklingError: it holds anything else.
        Exception: any other, for a damaged pickle.
    """
    machine, at = _Machine(data), 0
    for _ in range(MAX_STEPS):
        if data[at] == STOP:
            return machine.stack.pop()
        step = STEPS.get(data[at])
        if step is None:
            raise UnpicklingError(f"the step {data[at]}")
        at = step(machine, at + 1)
    raise OtherContentError("more than a million values by themselves: save them as one tensor")


class _Machine:
    """Stack, marks and memo of a pickle. Each step takes the place of what follows it, and returns that of the next."""

    __slots__ = ("data", "marked", "memo", "stack")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.stack: list[Any] = []
        self.marked: list[list[Any]] = []
        self.memo: dict[int, Any] = {}

    def protocol(self, at: int) -> int:
        if self.data[at] not in (2, 3):
            raise ValueError(f"a pickle of protocol {self.data[at]}, where torch.save writes 2")
        return at + 1

    def mark(self, at: int) -> int:
        self.marked.append(self.stack)
        self.stack = []
        return at

    def since_mark(self) -> list[Any]:
        found, self.stack = self.stack, self.marked.pop()
        return found

    def tuple_since_mark(self, at: int) -> int:
        found = tuple(self.since_mark())
        self.stack.append(found)
        return at

    def text(self, at: int) -> int:
        (size,) = WORD.unpack_from(self.data, at)
        self.stack.append(str(self.bytes_at(at + 4, size), "utf-8", "surrogatepass"))
        return int(at + 4 + size)

    def short_text(self, at: int) -> int:
        size = self.data[at]
        self.stack.append(str(self.bytes_at(at + 1, size), "utf-8", "surrogatepass"))
        return at + 1 + size

    def long(self, at: int) -> int:
        size = self.data[at]
        self.stack.append(int.from_bytes(self.bytes_at(at + 1, size), "little", signed=True))
        return at + 1 + size

    def bytes_at(self, at: int, size: int) -> bytes:
        found = self.data[at : at + size]
        if len(found) != size:
            raise EOFError("cut short")
        return found

    def put(self, at: int) -> int:
        self.memo[self.data[at]] = self.stack[-1]
        return at + 1

    def put_far(self, at: int) -> int:
        self.memo[WORD.unpack_from(self.data, at)[0]] = self.stack[-1]
        return at + 4

    def get(self, at: int) -> int:
        self.stack.append(self.memo[self.data[at]])
        return at + 1

    def get_far(self, at: int) -> int:
        self.stack.append(self.memo[WORD.unpack_from(self.data, at)[0]])
        return at + 4

    def append(self, at: int) -> int:
        value = self.stack.pop()
        self._list().append(value)
        return at

    def extend(self, at: int) -> int:
        values = self.since_mark()
        self._list().extend(values)
        return at

    def _list(self) -> list[Any]:
        if type(found := self.stack[-1]) is not list:
            raise UnpicklingError("values that are put into something else than a list")
        return found

    def set_item(self, at: int) -> int:
        value, key = self.stack.pop(), self.stack.pop()
        self._fill([key, value])
        return at

    def set_items(self, at: int) -> int:
        self._fill(self.since_mark())
        return at

    def _fill(self, items: list[Any]) -> None:
        table = self.stack[-1]
        if type(table) is not dict or not KEYS.issuperset(map(type, items[::2])):
            raise UnpicklingError("keys that are neither texts nor numbers")
        table.update(zip(items[::2], items[1::2], strict=True))

    def name(self, at: int) -> int:
        middle = self.data.index(b"\n", at)
        end = self.data.index(b"\n", middle + 1)
        module, name = str(self.data[at:middle], "utf-8"), str(self.data[middle + 1 : end], "utf-8")
        text = f"{MODULES.get(module, module)}.{name}"
        if text in OTHER_TENSORS:
            raise OtherContentError(OTHER_TENSORS[text])
        if text not in KNOWN and not (module == "torch" and name.isidentifier() and name.islower()):
            raise UnpicklingError(text[:100])
        self.stack.append(PickledName(text))
        return end + 1

    def storage(self, at: int) -> int:
        match self.stack.pop():
            case ("storage", PickledName(text=text), str(key), str(), int(count)) if text in STORAGES:
                self.stack.append(Storage(key, STORAGES[text], count))
            case _:
                raise UnpicklingError("something else than a tensor")
        return at

    def call(self, at: int) -> int:
        arguments, function = self.stack.pop(), self.stack.pop()
        self.stack.append(_made(function, arguments))
        return at

    def build(self, at: int) -> int:
        self.stack.pop()  # a dictionary keeps the versions of the layers of a network beside it
        if type(self.stack[-1]) is not dict:
            raise UnpicklingError("an object with a state")
        return at


def _made(function: Any, arguments: object) -> object:
    """Return what a call makes: a description of a tensor, a dictionary, the numbers of a shape, or None."""
    if type(function) is not PickledName or type(arguments) is not tuple:
        raise UnpicklingError("a call of something else")
    match arguments:
        case (Storage() as storage, int(offset), tuple(shape), tuple(strides), _, _, *more) if function.text == TENSOR:
            return StoredTensor(storage, storage.dtype, offset, shape, strides, _is_negative(more))
        case (Storage() as storage, int(offset), tuple(shape), tuple(strides), _, _, PickledName(text=text), *more) if (
            function.text == TYPED_TENSOR
        ):
            return StoredTensor(storage, text.removeprefix("torch."), offset, shape, strides, _is_negative(more))
        case (PickledName(text=text) as inner, PickledName(), tuple(inside), _) if (
            function.text == SUBCLASS and text in TENSORS
        ):
            return _made(inner, inside)
        case (StoredTensor() as tensor, *_) if function.text in WRAPPERS:
            return tensor
        case () if function.text in TABLES:
            return {}
        case ((dict() | tuple()) as found,) if function.text in COPIES:
            return found
        case _ if function.text in VALUES:
            return None
    raise UnpicklingError(f"a call of {function.text}")


def _is_negative(more: list[Any]) -> bool:
    """Return whether the last argument says that the numbers are stored with the other sign, as of x.conj().imag."""
    return bool(more and type(more[0]) is dict and more[0].get("neg"))


def _constant(value: object) -> Step:
    def push(machine: _Machine, at: int) -> int:
        machine.stack.append(value)
        return at

    return push


def _empty(make: Callable[[], object]) -> Step:
    def push(machine: _Machine, at: int) -> int:
        machine.stack.append(make())
        return at

    return push


def _number(form: Struct) -> Step:
    size, read = form.size, form.unpack_from

    def push(machine: _Machine, at: int) -> int:
        machine.stack.append(read(machine.data, at)[0])
        return at + size

    return push


def _last(count: int) -> Step:
    def push(machine: _Machine, at: int) -> int:
        stack = machine.stack
        if len(stack) < count:
            raise IndexError("too few values")
        stack[-count:] = [tuple(stack[-count:])]
        return at

    return push


STEPS: dict[int, Step] = {
    ord(code): step
    for code, step in {
        "\x80": _Machine.protocol,
        "N": _constant(None),
        "\x88": _constant(True),
        "\x89": _constant(False),
        ")": _constant(()),
        "]": _empty(list),
        "}": _empty(dict),
        "J": _number(Struct("<i")),
        "K": _number(Struct("<B")),
        "M": _number(Struct("<H")),
        "G": _number(Struct(">d")),
        "\x8a": _Machine.long,
        "X": _Machine.text,
        "U": _Machine.short_text,
        "(": _Machine.mark,
        "t": _Machine.tuple_since_mark,
        "\x85": _last(1),
        "\x86": _last(2),
        "\x87": _last(3),
        "a": _Machine.append,
        "e": _Machine.extend,
        "s": _Machine.set_item,
        "u": _Machine.set_items,
        "q": _Machine.put,
        "r": _Machine.put_far,
        "h": _Machine.get,
        "j": _Machine.get_far,
        "c": _Machine.name,
        "Q": _Machine.storage,
        "R": _Machine.call,
        "b": _Machine.build,
    }.items()
}
"""Steps of protocol 2, by their codes in pickletools."""
