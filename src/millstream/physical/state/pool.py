"""A pool of the strings that state refers to, each stored once.

A pool assigns every distinct string (or byte string) a dense code and returns the strings of codes
as an Arrow array. `keep` drops strings that are no longer used.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.model import long_texts
from millstream.model.arrays import larger, validity
from millstream.model.long_texts import offsets_of
from millstream.physical.batch import Ints, State
from millstream.physical.kernels.interning import copy_strings, fill_byte_table, intern_bytes


class StringPool:
    """Memory: the bytes of the strings, and 16 to 24 bytes per string for its offset and the
    table."""

    def __init__(self) -> None:
        self.count = 0
        self.longest = 0  # bytes of the longest string so far
        self._ends = np.zeros(64, np.int64)
        self._arena = np.empty(256, np.uint8)
        self._table = np.zeros(64, np.int32)

    @property
    def nbytes(self) -> int:
        return self._ends.nbytes + self._arena.nbytes + self._table.nbytes

    def encode(self, array: pa.Array) -> Ints:
        """The codes of strings, -1 for NULL; adds unknown strings."""
        codes = np.zeros(len(array), np.int64)
        valid = validity(array)
        if valid is not None:
            codes[~valid] = -1
        data = np.frombuffer(array.buffers()[2] or b"", np.uint8)
        return self.encode_bytes(offsets_of(array).astype(np.int64), data, codes)

    def encode_bytes(self, offsets: Ints, data: np.ndarray, codes: Ints) -> Ints:
        """As `encode`, for the bytes between offsets; codes that are -1 stay so."""
        if len(codes):
            self.longest = max(self.longest, int(np.diff(offsets).max()))
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
        """The strings of codes, NULL for -1; large_string if they are too long for one array."""
        offsets, data = self.strings(codes)
        bitmap = None
        if len(codes) and codes.min() < 0:
            bitmap = pa.py_buffer(np.packbits(codes >= 0, bitorder="little"))
        if len(data) > long_texts.MOST_BYTES:
            type = long_texts.wide_type(type)
        else:
            offsets = offsets.astype(np.int32)
        buffers = [bitmap, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(type, len(codes), buffers)

    def long_sizes(self, codes: Ints) -> Ints | None:
        """The lengths in bytes of the strings of codes, if they may be too long for one array."""
        if len(codes) * self.longest <= long_texts.MOST_BYTES:
            return None
        return self._sizes(codes)

    def _sizes(self, codes: Ints) -> Ints:
        return self._ends[codes + 1] - self._ends[np.maximum(codes, 0)]  # 0 for -1

    def strings(self, codes: Ints) -> tuple[Ints, np.ndarray]:
        """The concatenated strings of codes, and their offsets."""
        offsets = np.zeros(len(codes) + 1, np.int64)
        np.cumsum(self._sizes(codes), out=offsets[1:])
        data = np.empty(int(offsets[-1]), np.uint8)
        copy_strings(codes, self._ends, self._arena, offsets, data)
        return offsets, data

    def keep(self, codes: Ints) -> Ints:
        """Drop all strings but these (ascending, each once). Returns the new code by the old
        one."""
        offsets, data = self.strings(codes)
        renumbered = np.full(self.count + 1, -1, np.int64)  # the last entry is for -1
        self.__init__()  # type: ignore[misc]
        renumbered[codes] = self.encode_bytes(offsets, data, np.zeros(len(codes), np.int64))
        return renumbered

    def save(self) -> State:
        """Without the table, which is fast to rebuild."""
        used = int(self._ends[self.count])
        return {"ends": self._ends[: self.count + 1].copy(), "arena": self._arena[:used].copy()}

    def restore(self, state: State) -> None:
        self._ends, self._arena = state["ends"], state["arena"]
        self.count = len(self._ends) - 1
        self.longest = int(np.diff(self._ends).max(initial=0))
        self._table = np.zeros(power_of_two(2 * self.count), np.int32)
        fill_byte_table(self._ends, self._arena, self.count, self._table)


def power_of_two(least: int) -> int:
    """The smallest power of two that is at least `least`, and at least 64."""
    return 1 << max(least - 1, 63).bit_length()


def grown(array: np.ndarray, least: int) -> np.ndarray:
    bigger = np.empty(larger(len(array), least), array.dtype)
    bigger[: len(array)] = array
    return bigger
