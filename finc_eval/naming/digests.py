"""Digest of the code of a function, by which its values are known again: None where not all that it uses is seen."""

from __future__ import annotations

import builtins
import dis
import hashlib
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType

import numpy as np
import PIL

PURE = ("math", "cmath", "colorsys", "functools", "itertools", "operator", "statistics", "string", "numpy", "PIL",
        "scipy", "skimage")  # fmt: skip
"""Packages whose functions always return the same for the same numbers, but for those with a name of `READ`."""

READ = frozenset(
    {"open", "load", "loads", "loadtxt", "genfromtxt", "fromfile", "memmap", "imread", "read", "random", "default_rng",
     "input", "eval", "exec", "compile", "globals", "locals", "vars", "getattr", "setattr", "delattr", "id", "hash",
     "cache", "lru_cache"}
)  # fmt: skip
"""Names that a function reads something by that is not in its code, or chance."""

CHANGES = ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_NAME")  # instructions that change what another call sees


class _Unseen(Exception):
    """A function uses something that its digest cannot hold."""


def digest_of(function: object) -> str | None:
    """Return the digest of all that decides what a function returns: its code, constants, defaults, and functions.

    None for what is not a plain function, and for a function that uses what may change unseen: an object, a list, a
    module that may read a file. Two functions of one digest return the same; of one function, two versions of Python
    may have two digests.

    Example:
        >>> from finc_eval.naming.digests import digest_of
        >>> digest_of(lambda image: image.width) == digest_of(lambda picture: picture.width)
        True
        >>> digest_of(lambda image: image.width) == digest_of(lambda image: image.height)
        False
        >>> digest_of(max) is None
        True
    """
    if not isinstance(function, FunctionType):
        return None
    try:
        parts = [*_of_value(function, [])]
    except _Unseen:
        return None
    return hashlib.sha256(
        "\0".join([sys.version, np.__version__, PIL.__version__, *parts]).encode(errors="surrogatepass")
    ).hexdigest()


def _of_value(value: object, above: list[object]) -> Iterator[str]:
    """Yield texts that tell a constant, a function or a module from any other; `above` are functions that use it."""
    if value is None or value is ... or isinstance(value, bool | int | float | complex | str | bytes):
        yield f"{type(value).__name__} {value!r}"
    elif type(value) in (tuple, frozenset):
        parts = ["\1".join(_of_value(part, above)) for part in value]  # type: ignore[attr-defined]
        yield "\2".join([type(value).__name__, *(parts if isinstance(value, tuple) else sorted(parts))])
    elif isinstance(value, FunctionType):
        yield from _of_function(value, above)
    elif isinstance(value, CodeType):
        yield from _of_code(value, above)
    else:
        yield _name_of(value)


def _of_function(function: FunctionType, above: list[object]) -> Iterator[str]:
    if any(other is function for other in above):  # it calls itself
        yield f"again {[other is function for other in above].index(True)}"
        return
    package = (function.__module__ or "").partition(".")[0]
    if package in PURE:
        yield _name_of(function)
        return
    if vars(function):
        raise _Unseen  # an attribute may be what a cache keeps
    above = [*above, function]
    yield from _of_code(function.__code__, above)
    yield from _of_value(function.__defaults__, above)
    yield from _of_value(tuple(sorted((function.__kwdefaults__ or {}).items())), above)
    for cell in function.__closure__ or ():
        try:
            yield from _of_value(cell.cell_contents, above)
        except ValueError:  # it is empty yet
            raise _Unseen from None
    for name in sorted({*_globals_of(function.__code__)}):
        yield name
        if name in function.__globals__:
            yield from _of_value(function.__globals__[name], above)
        elif name not in vars(builtins):
            raise _Unseen


def _of_code(code: CodeType, above: list[object]) -> Iterator[str]:
    """Yield the instructions of a code object, its names and its constants; names of its own variables say nothing."""
    if READ & {*code.co_names}:
        raise _Unseen
    for instruction in dis.get_instructions(code):
        is_cell = instruction.opname == "STORE_DEREF" and instruction.argval in code.co_freevars
        if instruction.opname in CHANGES or is_cell:
            raise _Unseen
        if instruction.opname == "IMPORT_NAME" and str(instruction.argval).partition(".")[0] not in PURE:
            raise _Unseen
    yield code.co_code.hex()
    yield f"{code.co_argcount} {code.co_kwonlyargcount} {code.co_posonlyargcount} {code.co_flags} {code.co_names}"
    yield code.co_exceptiontable.hex()
    for constant in code.co_consts:
        yield from _of_value(constant, above)


def _globals_of(code: CodeType) -> Iterator[str]:
    """Yield the names that a code object, and those inside it, look up in their module."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals_of(constant)


def _name_of(value: object) -> str:
    """Return the name and version of something of a package of `PURE`, or of a built-in function or type."""
    if isinstance(value, ModuleType):
        home, name = value.__name__, value.__name__
    else:
        home, name = getattr(value, "__module__", None) or "", getattr(value, "__qualname__", "")
        if not isinstance(value, type) and not callable(value):
            raise _Unseen
        if not name and type(value).__name__ == "ufunc":
            home, name = "numpy", str(getattr(value, "__name__", ""))
    package = home.partition(".")[0]
    is_built_in = home == "builtins" and getattr(builtins, name, None) is value
    if not name or name.rpartition(".")[2] in READ or "random" in home or not (package in PURE or is_built_in):
        raise _Unseen
    return f"{home} {name} {getattr(sys.modules.get(package), '__version__', '')}"
