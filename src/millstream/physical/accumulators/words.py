"""Converts values to order-preserving int64 words and back.

NULLs and rows excluded by a FILTER are ABSENT. Types whose values need all 64 bits carry a second
word for that, unless every row counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numba import njit

from millstream.logical.expressions import AggregateCall, nullable
from millstream.model import types
from millstream.model.arrays import int64, of_view, validity, view
from millstream.model.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, INTERVAL, REAL, TIMESTAMP
from millstream.physical.batch import Ints, Mask, zeros

ABSENT = -(2**63)
WORD_DIGITS = 18  # decimals of up to this many digits fit a word

_ALL_BITS = (BIGINT, TIMESTAMP, INTERVAL)
_FEWER_BITS = (BOOLEAN, INT, DATE, REAL, DOUBLE)
_MAGNITUDE = 2**63 - 1
_NAN = 0x7FF8000000000000  # greater than the word of any number


def has_word(type: pa.DataType) -> bool:
    """Whether a value fits one word."""
    if types.is_decimal(type):
        return bool(type.precision <= WORD_DIGITS)
    return type in _ALL_BITS or type in _FEWER_BITS


def may_be_absent(call: AggregateCall) -> bool:
    """Whether there can be rows that the aggregate ignores."""
    return call.filter is not None or any(map(nullable, call.arguments))


def missing(arrays: Sequence[pa.Array], included: Mask | None) -> Mask | None:
    """Where a value is NULL or the row is excluded; None if nowhere."""
    result = None if included is None else ~included
    for array in arrays:
        valid = validity(array)
        if valid is not None:
            result = ~valid if result is None else result | ~valid
    return result


@dataclass(frozen=True)
class Layout:
    """How the values of a type are stored in the words of an event."""

    type: pa.DataType
    optional: bool  # some rows may be absent

    @property
    def width(self) -> int:
        return 2 if self.flagged else 1

    @cached_property
    def flagged(self) -> bool:
        return self.optional and self.type in _ALL_BITS

    def encode(self, array: pa.Array, gone: Mask | None) -> list[Ints]:
        values = to_words(array)
        assert self.optional or gone is None or not gone.any(), "unexpected NULL"
        if not self.flagged:
            if gone is not None:
                values[gone] = ABSENT
            return [values]
        flags = zeros(len(values)) if gone is None else np.where(gone, ABSENT, 0)
        return [values, flags]

    def flags(self, words: Sequence[Ints]) -> tuple[Ints, bool]:
        """The words that mark ABSENT rows, and whether they need to be checked."""
        return (words[1], True) if self.flagged else (words[0], self.optional)


def to_words(array: pa.Array) -> Ints:
    """The values as order-preserving words; undefined where NULL. Read-only: values that are words
    already are not copied."""
    if types.is_decimal(array.type):
        return decimal_limbs(array)[0].copy()
    if types.is_floating(array.type):
        doubles = array if array.type == DOUBLE else array.cast(DOUBLE)
        words: Ints = view(doubles).copy()
        _order_bits(words)
        return words
    if array.type in _ALL_BITS and not array.null_count:
        return view(array)
    return int64(array)


def from_words(words: Ints, type: pa.DataType, valid: Mask) -> pa.Array:
    """The values of words of a type; NULL where not valid."""
    if types.is_decimal(type):
        return decimals(words, words >> 63, type, valid)
    if types.is_floating(type):
        return of_view(double_bits(words), DOUBLE, valid).cast(type)
    if type in _ALL_BITS:
        return of_view(words, type, valid)
    if type == BOOLEAN:
        return pa.array(words != 0, mask=~valid)
    return of_view(np.where(valid, words, 0).astype(np.int32), type, valid)


def decimal_limbs(array: pa.Array) -> tuple[Ints, Ints]:
    """The lower and the upper 64 bits of each unscaled value."""
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(len(array), np.int64), np.zeros(len(array), np.int64)
    limbs = np.frombuffer(buffer, np.int64, 2 * len(array), 16 * array.offset)
    return limbs[0::2], limbs[1::2]


def decimals(low: Ints, high: Ints, type: pa.DataType, valid: Mask) -> pa.Array:
    """Decimals from the lower and upper 64 bits of their unscaled values."""
    limbs = np.empty((len(low), 2), np.int64)
    limbs[:, 0], limbs[:, 1] = low, high
    bitmap = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(type, len(low), [bitmap, pa.py_buffer(limbs)])


def double_bits(words: Ints) -> Ints:
    """The bits of the doubles with these words."""
    return np.where(words >= 0, words, words ^ _MAGNITUDE)


@njit(cache=True)
def _order_bits(words: Ints) -> None:
    """Converts the bits of doubles to words: one NaN, above all numbers, and no negative zero."""
    for i in range(len(words)):
        word = words[i]
        if word & _MAGNITUDE > 0x7FF0000000000000:
            words[i] = _NAN
        elif word < 0:
            words[i] = 0 if word == ABSENT else word ^ _MAGNITUDE
