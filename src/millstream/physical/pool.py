"""Strings that state refers to, each kept once.

A pool gives every different string (or byte string) a dense code and gives the strings of codes
back as an Arrow array. What is not referred to any more is dropped by `keep`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.physical.arrays import larger, validity
from millstream.physical.batch import Ints, State
from millstream.physical.kernels.interning import copy_strings, fill_byte_table, intern_bytes


class StringPool:
    """Memory: the bytes of the strings, and 16 to 24 bytes each for the place and the table."""

    def __init__(self) -> None:
        self.count = 0
        self._ends = np.zeros(64, np.int64)
        self._arena = np.empty(256, np.uint8)
        self._table = np.zeros(64, np.int32)

    @property
    def nbytes(self) -> int:
        return self._ends.nbytes + self._arena.nbytes + self._table.nbytes

    def encode(self, array: pa.Array) -> Ints:
        """The codes of strings, -1 for NULL; unknown ones are taken in."""
        codes = np.zeros(len(array), np.int64)
        valid = validity(array)
        if valid is not None:
            codes[~valid] = -1
        _, offset_buffer, data_buffer = array.buffers()
        offsets = np.frombuffer(offset_buffer, np.int32, len(array) + 1, array.offset * 4)
        data = np.frombuffer(data_buffer or b"", np.uint8)
        return self.encode_bytes(offsets.astype(np.int64), data, codes)

    def encode_bytes(self, offsets: Ints, data: np.ndarray, codes: Ints) -> Ints:
        """As `encode`, for the bytes between offsets; codes that are -1 stay so."""
        if len(codes):
            self._make_room(len(codes), int(offsets[-1] - offsets[0]))
            self.count = intern_bytes(
                offsets, data, self._ends, self._arena, self._table, self.count, codes
            )
        return codes

    def _make_room(self, strings: int, size: int) -> None:
        wanted = self.count + strings
        if len(self._ends) < wanted + 1:
            self._ends = grown(self._ends, wanted + 1)
        used = int(self._ends[self.count])
        if len(self._arena) < used + size:
            self._arena = grown(self._arena, used + size)
        if len(self._table) < 2 * wanted:
            self._table = np.zeros(power_of_two(2 * wanted), np.int32)
            fill_byte_table(self._ends, self._arena, self.count, self._table)

    def decode(self, codes: Ints, type: pa.DataType) -> pa.Array:
        sizes = self._ends[codes + 1] - self._ends[np.maximum(codes, 0)]  # 0 for -1
        offsets = np.zeros(len(codes) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        data = np.empty(int(offsets[-1]), np.uint8)
        copy_strings(codes, self._ends, self._arena, offsets, data)
        bitmap = None
        if len(codes) and codes.min() < 0:
            bitmap = pa.py_buffer(np.packbits(codes >= 0, bitorder="little"))
        buffers = [bitmap, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
        return pa.Array.from_buffers(type, len(codes), buffers)

    def keep(self, codes: Ints) -> Ints:
        """Drop all strings but these (in ascending order, each once). Gives, for each old code,
        the new one."""
        kept = self.decode(codes, pa.binary())
        renumbered = np.full(self.count + 1, -1, np.int64)  # the last entry serves -1
        self.__init__()  # type: ignore[misc]
        renumbered[codes] = self.encode(kept)
        return renumbered

    def save(self) -> State:
        """Without the table, which is filled again in no time."""
        used = int(self._ends[self.count])
        return {"ends": self._ends[: self.count + 1].copy(), "arena": self._arena[:used].copy()}

    def restore(self, state: State) -> None:
        self._ends, self._arena = state["ends"], state["arena"]
        self.count = len(self._ends) - 1
        self._table = np.zeros(power_of_two(2 * self.count), np.int32)
        fill_byte_table(self._ends, self._arena, self.count, self._table)


def power_of_two(least: int) -> int:
    """The smallest power of two that is no less, and at least 64."""
    return 1 << max(least - 1, 63).bit_length()


def grown(array: np.ndarray, least: int) -> np.ndarray:
    bigger = np.empty(larger(len(array), least), array.dtype)
    bigger[: len(array)] = array
    return bigger
