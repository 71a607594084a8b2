"""Identifies a user function across restarts by its code and everything the code uses.

A digest is the same in every process and for every hash seed as long as the function does the same:
sets and mappings are sorted, and no address or `repr` of an object is included. It covers the
bytecode with its nested code, defaults, closures, the globals that it names, the function and
arguments of a `functools.partial`, and the class and state of a callable object. Functions of
libraries are identified by their qualified name and the library's version: their code may differ
from machine to machine.

>>> import functools
>>> fingerprint(functools.partial(pow, 2)) == fingerprint(functools.partial(pow, 2))
True
>>> fingerprint(lambda x, least=1: x > least) == fingerprint(lambda x, least=2: x > least)
False
"""

from __future__ import annotations

import dis
import functools
import hashlib
import importlib.metadata
import re
import sys
import sysconfig
from collections import ChainMap, deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any

import pyarrow as pa

_LIBRARIES = tuple(
    {str(Path(sysconfig.get_path(name)).resolve()) for name in ("stdlib", "purelib", "platlib")}
)

# Attributes under which objects of libraries keep the function that they wrap: functools.lru_cache,
# cached_property and partialmethod, numpy.vectorize, functions compiled by Numba.
_WRAPPED = ("__wrapped__", "func", "pyfunc", "py_func")


def fingerprint(value: object) -> str:
    return _digest(_Parts().of(value))


def _digest(parts: Iterable[str]) -> str:
    told = hashlib.sha256()
    for part in parts:
        told.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return told.hexdigest()[:16]


class _Parts:
    """Describes a value as strings. A value that is already being described is named by its number,
    so that mutually recursive functions terminate."""

    def __init__(self, seen: dict[int, int] | None = None) -> None:
        self._seen = dict(seen or {})
        self._kept: list[object] = []  # keeps ids unique

    def of(self, value: Any) -> Iterator[str]:
        if value is None or isinstance(value, bool | int | float | complex | str | bytes):
            yield f"{type(value).__name__} {value!r}"
            return
        if isinstance(value, CodeType):
            yield from self._code(value)
            return
        if id(value) in self._seen:
            yield f"seen {self._seen[id(value)]}"
            return
        self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        yield from self._object(value)

    def _object(self, value: Any) -> Iterator[str]:
        is_container = isinstance(value, tuple | list | set | frozenset | dict | deque)
        if is_container and not _of_library(type(value)):
            yield from self._instance(value)
        match value:
            case FunctionType() if not _of_library(value):
                yield from self._function(value)
            case functools.partial():
                yield "partial"
                yield from self._all((value.func, value.args, value.keywords))
            case MethodType():
                yield "method"
                yield from self._all((value.__func__, value.__self__))
            case type() if not _of_library(value):
                yield from self._class(value)
            case BuiltinFunctionType() | MethodWrapperType():
                yield _qualified(value)
                if not isinstance(value.__self__, ModuleType):  # a method, such as "".join
                    yield from self.of(value.__self__)
            case FunctionType() | type() | ModuleType():
                yield _qualified(value)
            case tuple() | list() | deque():
                yield f"{type(value).__name__} {len(value)}"
                yield from self._all(value)
            case set() | frozenset():
                yield f"{type(value).__name__} {len(value)}"
                yield from sorted(map(self._apart, value))
            case dict() | MappingProxyType() | ChainMap():
                yield f"dict {len(value)}"
                for key, item in sorted(value.items(), key=lambda pair: self._apart(pair[0])):
                    yield from self._all((key, item))
            case SimpleNamespace():
                yield "namespace"
                yield from self.of(vars(value))
            case re.Pattern():
                yield "pattern"
                yield from self._all((value.pattern, value.flags))
            case _:
                yield from self._instance(value)

    def _all(self, values: Iterable[Any]) -> Iterator[str]:
        for value in values:
            yield from self.of(value)

    def _apart(self, value: Any) -> str:
        """The digest of an item of an unordered collection, which may contain the collection."""
        return _digest(_Parts(self._seen).of(value))

    def _function(self, function: FunctionType) -> Iterator[str]:
        yield "function"
        yield from self._code(function.__code__, function.__doc__)
        yield from self._all((function.__defaults__, function.__kwdefaults__))
        for cell in function.__closure__ or ():
            yield from self._cell(cell)
        known = function.__globals__
        for name in sorted(_global_names(function.__code__)):
            if name in known and not name.startswith("__"):
                yield name
                yield from self._global(known[name], function.__code__)
        if vars(function):
            yield from self.of(vars(function))

    def _global(self, value: Any, code: CodeType) -> Iterator[str]:
        """For a user's module, the parts of it that the code names."""
        if not isinstance(value, ModuleType) or _of_library(value):
            yield from self.of(value)
            return
        for name in sorted(_names(code)):
            if hasattr(value, name):
                yield name
                yield from self.of(getattr(value, name))

    def _cell(self, cell: Any) -> Iterator[str]:
        try:
            yield from self.of(cell.cell_contents)
        except ValueError:  # not filled yet
            yield "empty"

    def _code(self, code: CodeType, doc: str | None = None) -> Iterator[str]:
        """Ignores the location of the code, its docstring and the names of variables."""
        yield code.co_code.hex()
        yield code.co_exceptiontable.hex()
        yield f"{code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount}"
        yield " ".join(code.co_names)
        documented = doc is not None and code.co_consts[:1] == (doc,)
        yield from self._all(code.co_consts[documented:])

    def _class(self, kind: type) -> Iterator[str]:
        yield f"class {len(kind.__mro__)}"
        yield from self._all(base for base in kind.__bases__)
        for name, member in sorted(vars(kind).items()):
            if isinstance(member, staticmethod | classmethod):
                member = member.__func__
            if isinstance(member, property):
                member = (member.fget, member.fset)
            if not name.startswith("__") or isinstance(member, FunctionType):
                yield name
                yield from self.of(member)

    def _instance(self, value: Any) -> Iterator[str]:
        """Its class, and its state where that is known; otherwise only its class, as for locks,
        connections and library models."""
        yield "instance"
        yield from self.of(type(value))
        if not _of_library(type(value)):
            yield from self.of(_state(value))
        elif hasattr(value, "dtype") and hasattr(value, "tobytes"):  # NumPy arrays
            yield f"{value.dtype} {getattr(value, 'shape', '')}"
            if value.dtype.hasobject:
                yield from self.of(value.tolist())
            else:
                yield hashlib.sha256(value.tobytes()).hexdigest()
        elif hasattr(value, "__arrow_c_stream__") or isinstance(value, pa.Array | pa.RecordBatch):
            yield from self._columns(value)
        elif any(callable(getattr(value, name, None)) for name in _WRAPPED):
            yield from self._all(getattr(value, name, None) for name in _WRAPPED)
        elif _prints_its_value(value):
            yield repr(value)

    def _columns(self, value: Any) -> Iterator[str]:
        """Data frames and Arrow data: `repr` leaves out most of their rows."""
        if isinstance(value, pa.Array):
            value = pa.chunked_array([value])
        try:
            table = pa.table(value)
        except (pa.ArrowException, TypeError, ValueError):  # not rows of named columns
            table = pa.table({"": pa.chunked_array(value)})
        table = table.replace_schema_metadata().combine_chunks()
        buffer = pa.BufferOutputStream()
        with pa.ipc.new_stream(buffer, table.schema) as stream:
            stream.write_table(table)
        yield hashlib.sha256(buffer.getvalue()).hexdigest()


def _state(value: Any) -> dict[str, Any]:
    held: dict[str, Any] = {}
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        names = [slots] if isinstance(slots, str) else slots
        for name in names:
            if name.startswith("__") and not name.endswith("__"):
                name = f"_{kind.__name__.lstrip('_')}{name}"
            if hasattr(value, name):
                held[name] = getattr(value, name)
    return held | getattr(value, "__dict__", {})


def _names(code: CodeType) -> set[str]:
    nested = (part for part in code.co_consts if isinstance(part, CodeType))
    return {*code.co_names}.union(*map(_names, nested))


def _global_names(code: CodeType) -> set[str]:
    """The globals that code reads, also in the functions and comprehensions inside it."""
    names = {
        str(step.argval)
        for step in dis.get_instructions(code)
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _global_names(constant)
    return names


def _of_library(value: Any) -> bool:
    """Whether a function or class comes with Python or an installed package."""
    is_module = isinstance(value, ModuleType)
    name = str(value.__name__ if is_module else getattr(value, "__module__", None) or "")
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if module is None or name == "__main__":
        return False
    if file is None:
        return name.split(".")[0] in sys.builtin_module_names
    return str(Path(file).resolve()).startswith(_LIBRARIES)


def _qualified(value: Any) -> str:
    """The qualified name and the library's version; the standard library has Python's version."""
    is_module = isinstance(value, ModuleType)
    module = str(value.__name__ if is_module else getattr(value, "__module__", None) or "")
    name = "" if is_module else getattr(value, "__qualname__", None) or value.__name__
    package = module.split(".")[0]
    try:
        version = importlib.metadata.version(package)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        version = ".".join(map(str, sys.version_info[:2]))
    return f"library {module}.{name} {version}"


def _prints_its_value(value: Any) -> bool:
    """Whether `repr` shows the value, as for dates, decimals and Arrow types, and no address."""
    return " at 0x" not in repr(value)
