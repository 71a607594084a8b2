"""Records: plain values and arrays as bytes, in the files of a checkpoint and in messages.

A record contains None, bool, int, float, str, bytes, Decimal, dates and times, lists, tuples,
dicts, NumPy arrays of numbers, and Arrow arrays, nested in any way, and nothing else: reading one
cannot run code. It consists of a header, a skeleton in JSON, and blocks of bytes that the skeleton
refers to by position and length:

    "MSR1"  length of the skeleton (8 bytes)  [skeleton, Arrow blocks]  blocks

In the skeleton a dict with string keys is an object, and a list begins with its kind:

    ["l", …] a list    ["t", …] a tuple    ["d", [key, value], …] any other dict
    ["b", place, length] bytes             ["n", dtype, shape, place, length] a NumPy array
    ["a", block, column] an Arrow array    ["m" | "D" | "T" | "h", text] Decimal, date, datetime,
    ["i", days, seconds, microseconds] timedelta                         and time

Arrow arrays of the same length are the columns of one Arrow stream, in order of occurrence.
"""

from __future__ import annotations

import datetime
import json
import struct
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.model.values import NAN

VERSION = 1

_MAGIC = b"MSR%d" % VERSION
_HEADER = struct.Struct("<4sQ")
_ALIGNMENT = 8
_NUMBERS = "biuf"  # kinds of NumPy


class RecordError(ValueError):
    """Bytes that are not a record, or a record of another version."""


def packed(value: object, exact: bool = False) -> bytes:
    """The record of a value; TypeError for other types than the above. NumPy scalars become plain
    numbers, unless the value must be restored `exact`ly."""
    writing = _Writing(exact)
    skeleton = writing.told(value)
    text = json.dumps([skeleton, writing.arrow_blocks()], separators=(",", ":")).encode()
    padding = b" " * (-(_HEADER.size + len(text)) % _ALIGNMENT)
    head = _HEADER.pack(_MAGIC, len(text) + len(padding))
    return b"".join([head, text, padding, *writing.blocks])


def is_packable(value: object) -> bool:
    try:
        packed(value)
    except TypeError:
        return False
    return True


def unpacked(data: bytes | memoryview | pa.Buffer) -> Any:
    """The value; its arrays are copies and writable. RecordError if it cannot be read."""
    view = memoryview(data)
    try:
        magic, length = _HEADER.unpack_from(view)
    except struct.error:
        raise RecordError("it is too short") from None
    if magic != _MAGIC:
        raise RecordError(f"it does not begin with {_MAGIC.decode()}")
    first = _HEADER.size + length
    try:
        skeleton, blocks = json.loads(
            bytes(view[_HEADER.size : first]), parse_constant=_CONSTANTS.__getitem__
        )
        return _Reading(view[first:], blocks).value(skeleton)
    except _UNREADABLE as error:
        raise RecordError(f"it cannot be read: {error}") from error


# The exceptions that damaged bytes raise.
_UNREADABLE = (
    ValueError, TypeError, LookupError, OverflowError, InvalidOperation, RecursionError,
    MemoryError, OSError, pa.ArrowException,
)  # fmt: skip
_CONSTANTS = {"NaN": NAN, "Infinity": float("inf"), "-Infinity": float("-inf")}


class _Writing:
    def __init__(self, exact: bool) -> None:
        self._exact = exact
        self.blocks: list[bytes | memoryview] = []
        self._length = 0
        self._arrow: dict[int, tuple[int, list[pa.Array]]] = {}  # by length: number and columns

    def told(self, value: Any) -> Any:
        tell = _TELL.get(type(value))
        if tell is not None:
            return tell(self, value)
        if isinstance(value, pa.Array):
            return self._told_arrow(value)
        if isinstance(value, np.generic) and value.dtype.kind in _NUMBERS and not self._exact:
            return value.item()
        raise TypeError(f"a record cannot contain a value of type {type(value).__name__}")

    def block(self, data: bytes | memoryview) -> tuple[int, int]:
        """The position and the length of a block."""
        place, length = self._length, len(data)
        self.blocks.append(data)
        padding = -length % _ALIGNMENT
        if padding:
            self.blocks.append(b"\0" * padding)
        self._length += length + padding
        return place, length

    def arrow_blocks(self) -> list[tuple[int, int]]:
        return [self.block(_stream(arrays)) for _, arrays in self._arrow.values()]

    def _told_arrow(self, array: pa.Array) -> list[Any]:
        number, arrays = self._arrow.setdefault(len(array), (len(self._arrow), []))
        arrays.append(array)
        return ["a", number, len(arrays) - 1]

    def told_numbers(self, array: np.ndarray) -> list[Any]:
        if array.dtype.kind not in _NUMBERS:
            raise TypeError(f"a record cannot contain an array of {array.dtype}")
        whole = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
        place = self.block(whole.reshape(-1).view(np.uint8).data)
        return ["n", whole.dtype.str, list(array.shape), *place]

    def told_dict(self, value: dict[Any, Any]) -> Any:
        if all(type(key) is str for key in value):
            return {key: self.told(item) for key, item in value.items()}
        return ["d", *([self.told(key), self.told(item)] for key, item in value.items())]


_Tell = Callable[[_Writing, Any], Any]


def _itself(_: _Writing, value: Any) -> Any:
    return value


_TELL: dict[type, _Tell] = {
    type(None): _itself,
    bool: _itself,
    int: _itself,
    float: _itself,
    str: _itself,
    list: lambda writing, value: ["l", *map(writing.told, value)],
    tuple: lambda writing, value: ["t", *map(writing.told, value)],
    dict: _Writing.told_dict,
    bytes: lambda writing, value: ["b", *writing.block(value)],
    pa.Buffer: lambda writing, value: ["b", *writing.block(memoryview(value))],
    np.ndarray: _Writing.told_numbers,
    Decimal: lambda _, value: ["m", str(value)],
    datetime.date: lambda _, value: ["D", value.isoformat()],
    datetime.datetime: lambda _, value: ["T", value.isoformat()],
    datetime.time: lambda _, value: ["h", value.isoformat()],
    datetime.timedelta: lambda _, value: ["i", value.days, value.seconds, value.microseconds],
}


def _stream(arrays: list[pa.Array]) -> memoryview:
    names = [str(number) for number in range(len(arrays))]
    batch = pa.RecordBatch.from_arrays(arrays, names)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return memoryview(sink.getvalue())


class _Reading:
    def __init__(self, data: memoryview, blocks: list[list[int]]) -> None:
        self._data = data
        self._arrow = [self._columns(place, length) for place, length in blocks]

    def value(self, told: Any) -> Any:
        if isinstance(told, dict):
            return {key: self.value(item) for key, item in told.items()}
        if not isinstance(told, list):
            return told
        sign, *parts = told
        if sign == "l":
            return [self.value(part) for part in parts]
        if sign == "t":
            return tuple([self.value(part) for part in parts])
        if sign == "d":
            return {self.value(key): self.value(item) for key, item in parts}
        return _READ[sign](self, *parts)

    def block(self, place: int, length: int) -> memoryview:
        if not 0 <= place <= place + length <= len(self._data):
            raise ValueError("a block is cut off")
        return self._data[place : place + length]

    def numbers(self, dtype: str, shape: list[int], place: int, length: int) -> np.ndarray:
        kind = np.dtype(dtype)
        if kind.kind not in _NUMBERS:
            raise ValueError(f"arrays of {dtype} are not supported")
        found = np.frombuffer(self.block(place, length), kind).reshape(shape)
        return found.astype(kind.newbyteorder("="))  # a copy: others may write to it

    def arrow(self, block: int, column: int) -> pa.Array:
        return self._arrow[block][column]

    def _columns(self, place: int, length: int) -> list[pa.Array]:
        """A copy, so that a retained column does not keep the whole record in memory."""
        with pa.ipc.open_stream(pa.py_buffer(bytes(self.block(place, length)))) as stream:
            columns: list[pa.Array] = stream.read_next_batch().columns
        return columns


_READ: dict[str, Callable[..., Any]] = {
    "b": lambda reading, place, length: bytes(reading.block(place, length)),
    "n": _Reading.numbers,
    "a": _Reading.arrow,
    "m": lambda _, text: Decimal(text),
    "D": lambda _, text: datetime.date.fromisoformat(text),
    "T": lambda _, text: datetime.datetime.fromisoformat(text),
    "h": lambda _, text: datetime.time.fromisoformat(text),
    "i": lambda _, *parts: datetime.timedelta(*parts),
}
