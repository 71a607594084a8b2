"""Hashes of whole rows. Rows that are equal in SQL have equal hashes, in every process and release.

NULL hashes as 0, and an array only by its length: rows with the same hash may differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from millstream.model.arrays import int64
from millstream.model.long_texts import is_text, offsets_of
from millstream.physical.batch import Ints
from millstream.physical.kernels.hashing import hash_strings, mix_words
from millstream.physical.state.keys import decimal_words, fields_of, float_words

Hashes: TypeAlias = NDArray[np.uint64]


def row_hashes(columns: Sequence[pa.Array], length: int) -> Hashes:
    hashes = np.zeros(length, np.uint64)
    for column in columns:
        for words in _words(column):
            mix_words(hashes, words)
    return hashes


def _words(array: pa.Array) -> Iterator[Ints]:
    """Words that are equal for equal values."""
    type = array.type
    if pa.types.is_floating(type):
        yield float_words(array)
    elif pa.types.is_decimal(type):
        yield from decimal_words(array)
    elif pa.types.is_struct(type):
        for field in fields_of(array):
            yield from _words(field)
    elif pa.types.is_list(type):
        yield np.asarray(array.value_lengths().fill_null(0)).astype(np.int64)
    elif is_text(type):
        yield hash_strings(*_bytes(array))
    elif not pa.types.is_null(type):
        yield int64(array)


def _bytes(array: pa.Array) -> tuple[NDArray[Any], NDArray[np.uint8], NDArray[np.bool_]]:
    places, data = offsets_of(array), array.buffers()[2]
    held = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    return places, held, valid
