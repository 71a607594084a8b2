"""Maps keys of any type to dense codes, exactly.

A key is some columns of a row. Each column is converted to int64 words such that two values are
equal in SQL exactly if their words are: numbers and times are their own words (-0.0 is 0.0, all
NaNs are the same), strings are codes of a pool, arrays and structs are decomposed. A hash table
assigns each distinct sequence of words a code. Codes are dense, so operators store the data of keys
in arrays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from millstream.model import long_texts
from millstream.model.arrays import int64, is_plain, larger, of_view, validity, view
from millstream.model.long_texts import ordinary_type
from millstream.physical.batch import Ints, Mask, State, zeros
from millstream.physical.kernels.interning import (
    fill_word_table,
    intern_words,
    keep_words,
    unify_doubles,
)
from millstream.physical.state.pool import StringPool, power_of_two


class Words:
    """Converts the values of one type to words."""

    def __init__(self, type: pa.DataType) -> None:
        self.type = type = ordinary_type(type)
        self.pool: StringPool | None = None
        self.parts: list[Words] = []
        if pa.types.is_struct(type):
            self.parts = [Words(field.type) for field in type]
        elif pa.types.is_list(type):
            self.parts = [Words(type.value_type)]
            self.pool = StringPool()
        elif pa.types.is_string(type) or pa.types.is_binary(type):
            self.pool = StringPool()
        number = is_plain(type) and not pa.types.is_floating(type)
        self.is_number: bool = number or pa.types.is_boolean(type)  # or a boolean
        self.width = self._width()

    def _width(self) -> int:
        """Without the NULL word."""
        if pa.types.is_null(self.type):
            return 0
        if pa.types.is_struct(self.type):
            return sum(part.width + 1 for part in self.parts)
        return 2 if pa.types.is_decimal(self.type) else 1

    @property
    def nbytes(self) -> int:
        own = self.pool.nbytes if self.pool is not None else 0
        return own + sum(part.nbytes for part in self.parts)

    def of(self, array: pa.Array) -> list[Ints]:
        """`width` words per value; 0 where NULL."""
        type = self.type
        if self.is_number:
            return [int64(array)]
        if pa.types.is_floating(type):
            return [float_words(array)]
        if pa.types.is_null(type):
            return []
        if pa.types.is_decimal(type):
            return [*decimal_words(array)]
        if pa.types.is_struct(type):
            both = zip(self.parts, fields_of(array), strict=True)
            return [word for part, field in both for word in part.nullable(field)]
        if pa.types.is_list(type):
            return [self._list_words(array)]
        assert self.pool is not None, type
        return [np.maximum(self.pool.encode(array), 0)]

    def nullable(self, array: pa.Array) -> list[Ints]:
        """The words, and the NULL word."""
        return [*self.of(array), _nulls(array).astype(np.int64)]

    def _list_words(self, array: pa.Array) -> Ints:
        """A list becomes the byte string of its elements' words."""
        assert self.pool is not None
        (part,) = self.parts
        lengths = np.asarray(array.value_lengths().fill_null(0)).astype(np.int64)
        words = np.array(part.nullable(array.flatten()))
        data = np.ascontiguousarray(words.T).view(np.uint8).ravel()
        offsets = np.zeros(len(array) + 1, np.int64)
        np.cumsum(lengths * (8 * len(words)), out=offsets[1:])
        return self.pool.encode_bytes(offsets, data, np.zeros(len(array), np.int64))

    def keep(self, rows: Ints) -> None:
        """Drop all strings but those of these words, which are renumbered in place."""
        if self.pool is not None and self.pool.count:
            codes, places = np.unique(rows[0], return_inverse=True)
            lists = pa.types.is_list(self.type)
            rows[0] = self._kept_lists(codes)[places] if lists else self.pool.keep(codes)[rows[0]]
        elif pa.types.is_struct(self.type):
            place = 0
            for part in self.parts:
                part.keep(rows[place : place + part.width])
                place += part.width + 1

    def _kept_lists(self, codes: Ints) -> Ints:
        """The new codes of some lists, after all others and unused strings are dropped."""
        assert self.pool is not None
        (part,) = self.parts
        ends, data = self.pool.strings(codes)
        words = data.view(np.int64).reshape(-1, part.width + 1).T.copy()
        part.keep(words)
        told = np.ascontiguousarray(words.T).view(np.uint8).ravel()
        self.pool = StringPool()
        return self.pool.encode_bytes(ends, told, np.zeros(len(codes), np.int64))

    def pools(self) -> Iterator[StringPool]:
        if self.pool is not None:
            yield self.pool
        for part in self.parts:
            yield from part.pools()


def float_words(array: pa.Array) -> Ints:
    narrow = array.type.bit_width == 32
    values = view(array).view(np.float32).astype(np.float64) if narrow else view(array).copy()
    words: Ints = values.view(np.int64)
    unify_doubles(words)
    valid = validity(array)
    if valid is not None:
        words[~valid] = 0
    return words


def decimal_words(array: pa.Array) -> tuple[Ints, Ints]:
    buffer = array.buffers()[1]
    halves = np.frombuffer(buffer, np.int64, 2 * len(array), array.offset * 16).reshape(-1, 2)
    low, high = halves[:, 0].copy(), halves[:, 1].copy()
    valid = validity(array)
    if valid is not None:
        low[~valid] = high[~valid] = 0
    return low, high


def _or_null(codes: Ints, valid: Mask) -> Ints:
    return np.where(valid, codes, -1)


def fields_of(array: pa.Array) -> list[pa.Array]:
    fields: list[pa.Array] = array.flatten()  # includes the NULLs of the struct itself
    return fields


def _nulls(array: pa.Array) -> Mask:
    valid = validity(array)
    return np.zeros(len(array), np.bool_) if valid is None else ~valid


class KeySpace:
    """The codes of the keys that an operator knows.

    NULL is a value like others, as in GROUP BY; but a key with a NULL in a column of `unknown` has
    no code (-1), as in a join.
    """

    def __init__(self, types: Sequence[pa.DataType], unknown: Collection[int] = ()) -> None:
        self.types = tuple(map(ordinary_type, types))
        self._unknown = frozenset(unknown)
        self.count = 0
        self._words = [Words(type) for type in self.types]
        self._has_pools = any(True for words in self._words for _ in words.pools())
        self._tells_null = [False] * len(types)
        self._keys = np.zeros((sum(w.width for w in self._words), 64), np.int64)
        self._table = np.zeros(128, np.int32)
        self._kept = 0

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes + self._table.nbytes + sum(w.nbytes for w in self._words)

    @property
    def room(self) -> int:
        """The number of keys there is room for."""
        return self._keys.shape[1]

    def encode(self, columns: Sequence[pa.Array], length: int, add: bool = True) -> Ints:
        """The code of each row's key; unknown ones get a new code, or -1 without `add`."""
        codes = np.empty(length, np.int64)
        if not length:
            return codes
        if not self.types:  # one key for all
            self._make_room(1)
            self.count = max(self.count, int(add))
            return zeros(length) if self.count else np.full(length, -1)
        words, absent = self._row_words(columns, length)
        if add:
            self._make_room(length)
        self.count = intern_words(words, self._keys, self._table, self.count, add, codes)
        if absent is not None:
            codes[absent] = -1
        return codes

    def _row_words(self, columns: Sequence[pa.Array], length: int) -> tuple[Ints, Mask | None]:
        rows: list[Ints] = []
        absent: Mask | None = None
        for number, (words, column) in enumerate(zip(self._words, columns, strict=True)):
            rows += words.of(column)
            if column.null_count and number in self._unknown:
                absent = _nulls(column) if absent is None else absent | _nulls(column)
            elif column.null_count or self._tells_null[number]:
                self._tell_null(number)
                rows.append(_nulls(column).astype(np.int64))
        if not rows:  # all columns are NULL
            return np.zeros((0, length), np.int64), absent
        return (rows[0].reshape(1, -1) if len(rows) == 1 else np.array(rows)), absent

    def _tell_null(self, number: int) -> None:
        """From the first NULL on, an extra word says whether the column is NULL."""
        if self._tells_null[number]:
            return
        before = sum(w.width + t for w, t in zip(self._words, self._tells_null, strict=True))
        place = sum(
            w.width + t
            for w, t in zip(self._words[:number], self._tells_null[:number], strict=True)
        )
        place += self._words[number].width
        assert before == len(self._keys)
        self._keys = np.insert(self._keys, place, 0, axis=0)
        self._tells_null[number] = True
        self._rebuild(len(self._table))

    def _make_room(self, rows: int) -> None:
        wanted = self.count + rows
        if self._keys.shape[1] < wanted:
            keys = np.empty((len(self._keys), larger(self.count, wanted)), np.int64)
            keys[:, : self.count] = self._keys[:, : self.count]
            self._keys = keys
        if len(self._table) < self._entries * wanted:
            self._rebuild(power_of_two(self._entries * wanted))

    @property
    def _entries(self) -> int:
        """Table entries per key. Consecutive numbers fill whole cache lines, and a collision in a
        line makes all of its keys probe further. Small keys, which often are such numbers, get more
        room."""
        return 3 if len(self._keys) == 1 else 2

    def _rebuild(self, size: int) -> None:
        if size == len(self._table):
            self._table[:] = 0
        else:
            self._table = np.zeros(size, np.int32)
        fill_word_table(self._keys, self.count, self._table)

    # --- the values of keys ----------------------------------------------------------------------

    def tells(self, number: int) -> bool:
        """Whether the words of a column determine its values: not for decomposed values."""
        type = self.types[number]
        text = pa.types.is_string(type) or pa.types.is_binary(type)
        return is_plain(type) or pa.types.is_boolean(type) or text or pa.types.is_decimal(type)

    def column(self, number: int, codes: Ints) -> pa.Array:
        """The values of keys in a column for which `tells` holds; -0.0 becomes 0.0."""
        type, words = self.types[number], self._words[number]
        before = zip(self._words[:number], self._tells_null[:number], strict=True)
        place = sum(w.width + t for w, t in before)
        found = self._keys[place : place + words.width, codes]
        valid = None
        if self._tells_null[number]:
            valid = self._keys[place + words.width, codes] == 0
        if words.pool is not None:
            return words.pool.decode(found[0] if valid is None else _or_null(found[0], valid), type)
        if pa.types.is_boolean(type):
            return pa.array(found[0] != 0, mask=None if valid is None else ~valid)
        if pa.types.is_decimal(type):
            return of_view(found.T, type, valid)
        values: NDArray[Any] = found[0]
        if type.bit_width == 32:
            floating = pa.types.is_floating(type)
            values = values.view(np.float64).astype(np.float32) if floating else values.astype("i4")
        return of_view(values, type, valid)

    def long_sizes(self, number: int, codes: Ints) -> Ints | None:
        """The lengths in bytes of a text column, if they may be too long for one array."""
        pool = self._words[number].pool
        if pool is None or len(codes) * pool.longest <= long_texts.MOST_BYTES:
            return None
        before = zip(self._words[:number], self._tells_null[:number], strict=True)
        return pool.long_sizes(self._keys[sum(w.width + t for w, t in before), codes])

    # --- forgetting ------------------------------------------------------------------------------

    @property
    def is_stale(self) -> bool:
        """Whether the keys, or the strings looked up, have grown by half since the last `keep`."""
        return self._known() > self._kept + self._kept // 2 + 1024

    def _known(self) -> int:
        if not self._has_pools:
            return self.count
        pools = (pool.count for words in self._words for pool in words.pools())
        return max([self.count, *pools])

    def keep(self, codes: Ints) -> Ints:
        """Forget all keys but these (ascending, each once); the new code of codes[i] is i. Returns
        the new code by the old one, -1 for forgotten keys and for -1."""
        renumbered = np.full(self.count + 1, -1, np.int64)
        keep_words(self._keys, codes, renumbered)
        self.count = len(codes)
        if self._keys.shape[1] > 4 * (self.count + 1024):  # after a burst
            self._keys = self._keys[:, : self.count + 1024].copy()
        self._keep_strings()
        self._kept = self._known()
        self._make_room(1024)
        size = power_of_two(4 * (self.count + 1024))
        self._rebuild(min(size, len(self._table)))
        return renumbered

    def _keep_strings(self) -> None:
        """Drop the strings of forgotten keys."""
        place = 0
        for words, tells_null in zip(self._words, self._tells_null, strict=True):
            words.keep(self._keys[place : place + words.width, : self.count])
            place += words.width + tells_null

    def save(self) -> State:
        return {
            "keys": self._keys[:, : self.count].copy(),
            "tells_null": list(self._tells_null),
            "pools": [pool.save() for words in self._words for pool in words.pools()],
        }

    def restore(self, state: State) -> None:
        self._keys, self._tells_null = state["keys"], list(state["tells_null"])
        self.count = self._keys.shape[1]
        pools = (pool for words in self._words for pool in words.pools())
        for pool, saved in zip(pools, state["pools"], strict=True):
            pool.restore(saved)
        self._kept = self._known()
        self._rebuild(power_of_two(self._entries * self.count))


def differs(column: pa.Array, those: Ints | slice, before: Ints | slice) -> Mask:
    """Where the values of these rows differ from those of the rows before.

    NULL equals NULL, and values are compared bitwise: values that are equal in SQL but differ in
    bits (0.0 and -0.0) may count as different.
    """
    words: Sequence[NDArray[Any]]
    if not is_plain(column.type):
        words = Words(column.type).nullable(column)
    elif column.null_count:
        nulls = _nulls(column)
        words = [np.where(nulls, 0, view(column)), nulls]
    else:
        words = [view(column)]
    different: Mask = words[0][those] != words[0][before]
    for word in words[1:]:
        different |= word[those] != word[before]
    return different
