"""Rows of plain values that events refer to, each stored once under a code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.model.elements import Row
from millstream.model.types import BINARY, INT, STRING
from millstream.model.values import to_arrow, to_plain
from millstream.physical.accumulators.words import ABSENT, Layout
from millstream.physical.batch import Ints, Mask, State

CODES = Layout(INT, optional=True)  # of codes in the words of an event
_FEW = 1024  # too few rows to search for unused ones


class RowPool:
    """Equal rows share a code, which is valid until `retain` drops it."""

    def __init__(self, types: Sequence[pa.DataType], key: Callable[[Row], Any]) -> None:
        self._types = list(types)
        self._key = key
        self._codes: dict[Row, int] = {}
        self._free: list[int] = []
        self._expected = _FEW  # rows after the last search, at least _FEW
        self.rows: list[Row | None] = []  # by code; None is free
        self.keys: list[Any] = []  # by code: the sort key

    def encode(self, columns: Sequence[pa.Array], gone: Mask | None, length: int) -> Ints:
        """The codes of the rows of a batch, ABSENT where `gone`."""
        if len(columns) == 1 and self._types[0] in (STRING, BINARY):
            codes = self._encode_strings(columns[0])
        else:
            plain = [to_plain(c, t) for c, t in zip(columns, self._types, strict=True)]
            rows: Iterable[Row] = zip(*plain, strict=True) if plain else [()] * length
            codes = np.fromiter(map(self._code, rows), np.int64, length)
        if gone is not None:
            codes[gone] = ABSENT
        return codes

    def _encode_strings(self, column: pa.Array) -> Ints:
        """One lookup per distinct string of a batch."""
        encoded = column.dictionary_encode()
        different = to_plain(encoded.dictionary, self._types[0])
        codes = np.array([self._code((value,)) for value in [*different, None]], np.int64)
        places = encoded.indices.fill_null(len(different)).to_numpy(zero_copy_only=False)
        result: Ints = codes[places]
        return result

    def _code(self, row: Row) -> int:
        code = self._codes.get(row)
        if code is not None:
            return code
        if self._free:
            code = self._free.pop()
            self.rows[code], self.keys[code] = row, self._key(row)
        else:
            code = len(self.rows)
            self.rows.append(row)
            self.keys.append(self._key(row))
        self._codes[row] = code
        return code

    @property
    def crowded(self) -> bool:
        return len(self._codes) > 2 * self._expected

    def retain(self, pieces: Iterable[Ints]) -> None:
        """Drop the rows whose codes are in none of the pieces."""
        used = np.zeros(len(self.rows), np.bool_)
        for codes in pieces:
            used[codes[codes != ABSENT]] = True
        for code in np.flatnonzero(~used).tolist():
            row = self.rows[code]
            if row is not None:
                del self._codes[row]
                self.rows[code] = self.keys[code] = None
                self._free.append(code)
        self._expected = max(_FEW, len(self._codes))

    @property
    def nbytes(self) -> int:
        """An estimate: assumes that all rows are as large as the last one."""
        last = next(iter(reversed(self._codes)), ())
        size = sys.getsizeof(last) + sum(map(sys.getsizeof, last)) + 150
        return len(self._codes) * size

    def save(self) -> State:
        rows, codes = list(self._codes), np.array(list(self._codes.values()), np.int64)
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(self._types)
        arrays = [to_arrow(column, t) for column, t in zip(columns, self._types, strict=True)]
        return {"codes": codes, "columns": arrays}

    def restore(self, state: State) -> None:
        codes: list[int] = state["codes"].tolist()
        plain = [to_plain(c, t) for c, t in zip(state["columns"], self._types, strict=True)]
        rows: list[Row] = list(zip(*plain, strict=True)) if plain else [()] * len(codes)
        size = max(codes, default=-1) + 1
        self.rows, self.keys = [None] * size, [None] * size
        for code, row in zip(codes, rows, strict=True):
            self.rows[code], self.keys[code] = row, self._key(row)
        self._codes = dict(zip(rows, codes, strict=True))
        self._free = [code for code, row in enumerate(self.rows) if row is None]
        self._expected = max(_FEW, len(codes))
