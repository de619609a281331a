"""A simulated GPU: tensors that compute on the CPU, say that they live on "sim:0", and count what crosses.

    with simulated() as device:
        fe.compare(gen, ref, run=fe.Run(device="sim"))
    device.waits, device.uploads, device.by_place()

A tensor of this device refuses to be mixed with one of the CPU, as one of a GPU does. Its `is_cuda` is true, so that
code takes the branches that it takes on a GPU. What a GPU does silently and slowly is counted, with the line of the
package that asked for it:

    item          a number read by the host: float(t), bool(t), t.item(), t.tolist()
    to host       a tensor copied to the host
    data shape    a result whose size depends on values: nonzero, unique, bincount, a mask as index
    solver check  linalg.svd, eigh and others look at the solver's status
    plain copy    a tensor copied to the device in another way than from pinned memory with non_blocking
    to device     a tensor copied to the device in that way, of which the host does not wait for the end
    host index    an index or a mask of the CPU on a tensor of the device: a hidden copy

The first five make the host wait for the device.
"""

import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

import finc_eval
from finc_eval.core.device import send
from finc_eval.samples import source as reading

NAME = "sim"
WAITS = ("item", "to host", "data shape", "solver check", "plain copy")
PACKAGE = str(Path(finc_eval.__file__).parent)
HERE = str(Path(__file__))
REASON = (
    f"torch {torch.__version__} has no backend in Python for a simulated device "
    "(torch.utils.backend_registration._setup_privateuseone_for_python_backend)"
)

DATA_SHAPES = {
    "aten::nonzero",
    "aten::masked_select",
    "aten::bincount",
    "aten::_unique2",
    "aten::unique_dim",
    "aten::unique_consecutive",
    "aten::unique_dim_consecutive",
    "aten::repeat_interleave",
    "aten::equal",
}
CHECKED = {"aten::_linalg_eigh", "aten::_linalg_svd", "aten::linalg_eig", "aten::_linalg_check_errors"}
MAKERS = (torch.tensor, torch.as_tensor, torch.asarray)
INDEXED = ("aten::index.", "aten::index_put", "aten::_index_put", "aten::_unsafe_index")


class Device:
    """Counts of waits and copies between the host and one simulated device."""

    def __init__(self):
        self.counts, self._places, self._lock = Counter(), Counter(), Lock()

    def count(self, kind):
        with self._lock:
            self.counts[kind] += 1
            self._places[kind, caller()] += 1

    @property
    def waits(self):
        """Number of times that the host waited for the device."""
        return sum(self.counts[kind] for kind in WAITS)

    @property
    def uploads(self):
        """Number of tensors copied to the device."""
        return self.counts["to device"] + self.counts["plain copy"]

    @property
    def host_indices(self):
        """Number of tensors of the device that were indexed by a tensor of the CPU."""
        return self.counts["host index"]

    def by_place(self, kind=None):
        """Return lines of the package with the number of crossings of each, most first, for a person to read."""
        chosen = [(n, what, place) for (what, place), n in self._places.items() if kind in (None, what)]
        return "\n".join(f"{n:6} {what:12} {place}" for n, what, place in sorted(chosen, reverse=True))


def caller():
    """Return the line of the package, or else of the test, that is running."""
    frame, test = sys._getframe(2), None
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(PACKAGE) and frame.f_code is not send.__code__:
            return f"{name.removeprefix(PACKAGE)[1:]}:{frame.f_lineno} {frame.f_code.co_name}"
        if test is None and name != HERE and "torch" not in name:
            test = f"{Path(name).name}:{frame.f_lineno}"
        frame = frame.f_back
    return test or "?"


class Stack:
    """The devices that are watching; those of nested blocks count together."""

    watching: list = []  # noqa: RUF012

    @classmethod
    def count(cls, kind):
        for one in cls.watching:
            one.count(kind)


class SimTensor(torch.Tensor):
    """A tensor of the simulated device. Its shape is asked of the tensor that it holds, which operators may change."""

    @staticmethod
    def __new__(cls, held):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=torch.device(NAME, 0),
            requires_grad=held.requires_grad,
            dispatch_sizes_strides_policy="sizes",
        )

    def __init__(self, held):
        self.held = held

    @property
    def is_cuda(self):
        return True

    def tolist(self):
        Stack.count("item")
        return self.held.tolist()

    def numpy(self, *, force=False):
        if force:
            return self.cpu().numpy()
        raise TypeError(
            f"can't convert {NAME}:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory "
            "first."
        )

    def __array__(self, *arguments, **named):
        return self.numpy()

    def data_ptr(self):
        raise RuntimeError(f"the address of a tensor of {NAME}:0 means nothing to the host")

    def pin_memory(self, *arguments):
        raise RuntimeError(f"only tensors of the CPU can be pinned, not one of {NAME}:0")

    def __repr__(self, *, tensor_contents=None):
        return f"SimTensor({self.held!r})"

    def __reduce_ex__(self, protocol):
        raise RuntimeError(f"a tensor of {NAME}:0 was pickled: move it to the CPU first")

    def __deepcopy__(self, memo):
        return self.clone()

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return run(func, args, kwargs or {})


class Pinned(torch.Tensor):
    """A tensor in pinned memory of the host."""

    __torch_function__ = torch._C._disabled_torch_function_impl


class Made(TorchFunctionMode):
    """Lets `torch.tensor` and its like put values of the host on the device, which no dispatch sees."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        given = kwargs or {}
        if func is torch.Tensor.pin_memory and not isinstance(args[0], SimTensor):
            return args[0].detach().clone().as_subclass(Pinned)
        here = func is torch.Tensor.new_tensor and isinstance(args[0], SimTensor) and "device" not in given
        if here or (func in MAKERS and is_sim(given.get("device"))):
            own = {key: value for key, value in given.items() if key != "device"}
            if func is torch.Tensor.new_tensor:
                own.setdefault("dtype", args[0].dtype)
            return torch.as_tensor(*args[1:] if here else args, **own).to(torch.device(NAME, 0))
        return func(*args, **given)


class Simulated(TorchDispatchMode):
    """Lets functions that make tensors, such as `torch.zeros`, make those of the simulated device."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return run(func, args, kwargs or {})


def held(value):
    """Return the tensor that a tensor of the device holds; anything else as it is."""
    return value.held if isinstance(value, SimTensor) else value


def is_sim(device):
    return device is not None and torch.device(device).type == NAME


def run(func, args, kwargs):
    """Carry out one operator on what its tensors hold, or refuse it."""
    name, given = func._schema.name, tree_flatten((args, kwargs))[0]
    sims = [one for one in given if isinstance(one, SimTensor)]
    if name in ("aten::_to_copy", "aten::to"):
        return moved(func, args, kwargs)
    if name == "aten::copy_":
        return copied(func, args, kwargs)
    made_here = is_sim(kwargs.get("device"))
    if not sims and not made_here:
        return func(*args, **kwargs)
    check_mixing(name, str(func), args, given, sims)
    if name == "aten::_local_scalar_dense":
        Stack.count("item")
    elif name in DATA_SHAPES or masked(name, str(func), args):
        Stack.count("data shape")
    elif name in CHECKED:
        Stack.count("solver check")
    own = {key: value for key, value in kwargs.items() if key not in ("device", "pin_memory")} if made_here else kwargs
    result = func(*tree_map(held, args), **tree_map(held, own))
    known = {id(one.held): one for one in sims}  # of an operator in place, the tensor that it changed

    def wrapped(one):
        if not isinstance(one, torch.Tensor):
            return one
        return known[id(one)] if id(one) in known else SimTensor(one)

    return tree_map(wrapped, result)


def moved(func, args, kwargs):
    here = isinstance(args[0], SimTensor)
    # In inference mode `to` itself arrives, with a device or another tensor in its place.
    devices = [kwargs.get("device"), *(one for one in args[1:] if isinstance(one, torch.device))]
    devices += [one.device for one in args[1:] if isinstance(one, torch.Tensor)]
    device = next((one for one in devices if one is not None), None)
    there = here if device is None else is_sim(device)
    if here != there:
        direct = isinstance(args[0], Pinned) and kwargs.get("non_blocking")
        Stack.count(("to device" if direct else "plain copy") if there else "to host")
    own = {key: value for key, value in kwargs.items() if key not in ("device", "pin_memory")}
    rest = [torch.device("cpu") if isinstance(one, torch.device) else held(one) for one in args[1:]]
    result = func(held(args[0]), *rest, **own)
    return SimTensor(result) if there else result


def copied(func, args, kwargs):
    into, source = (isinstance(one, SimTensor) for one in args[:2])
    if into != source:
        Stack.count("plain copy" if into else "to host")
    func(*map(held, args), **kwargs)
    return args[0]


def check_mixing(name, overload, args, given, sims):
    """Refuse tensors of the CPU among those of the device, save numbers; an index is counted, as it works on a GPU."""
    strangers = [one for one in given if isinstance(one, torch.Tensor) and not isinstance(one, SimTensor)]
    strangers = [one for one in strangers if one.dim() > 0]
    if not sims or not strangers:
        return
    if f"{overload.replace('aten.', 'aten::')}.".startswith(INDEXED) and isinstance(args[0], SimTensor):
        indices = [one for one in args[1] if one is not None]
        if all(any(one is index for index in indices) for one in strangers):
            Stack.count("host index")
            return
    raise RuntimeError(
        f"{name}: Expected all tensors to be on the same device, but found at least two, {NAME}:0 and cpu"
    )


def masked(name, overload, args):
    """Return whether an operator indexes by a mask of the device, of which the device must count the true ones."""
    if not f"{overload.replace('aten.', 'aten::')}.".startswith(INDEXED):
        return False
    return any(isinstance(one, SimTensor) and one.dtype in (torch.bool, torch.uint8) for one in args[1])


@contextmanager
def simulated():
    """Simulate a device, and count what crosses within the block."""
    register()
    device = Device()
    Stack.watching.append(device)
    try:
        with watched(), patch.object(reading, "ThreadPoolExecutor", Readers):
            yield device
    finally:
        Stack.watching.remove(device)


@contextmanager
def watched():
    """Carry out what this thread does on the simulated device; a mode of torch is of one thread."""
    with Made(), Simulated():
        yield


class Readers(ThreadPoolExecutor):
    """Threads that read ahead, which know the device as all threads know a GPU."""

    def submit(self, function, /, *arguments, **named):
        return super().submit(watched()(function), *arguments, **named)


def available():
    """Return whether this version of torch can simulate a device."""
    return hasattr(backend_registration, "_setup_privateuseone_for_python_backend")


def register():
    """Give torch's backend of private use its name; torch allows it once in a process."""
    if torch._C._get_privateuse1_backend_name() != NAME:
        backend_registration._setup_privateuseone_for_python_backend(NAME)


def on_device(rows):
    """Return rows as a tensor of the device, without counting the copy."""
    return SimTensor(torch.as_tensor(rows).clone())
