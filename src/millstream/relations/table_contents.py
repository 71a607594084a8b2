"""The current rows of a table, counted, numbered and indexed by value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from millstream.logical.catalog import ChangeMode, Table
from millstream.model.arrays import with_room
from millstream.model.errors import DataError, listed
from millstream.model.records import Records
from millstream.physical.batch import Ints
from millstream.physical.state.counted_rows import CountedRows, counted_codes, kept_codes
from millstream.relations.row_numbers import RowNumbers


@dataclass(frozen=True)
class RowChanges:
    """Changed rows, by position among the given ones: first those removed (-1), then those added
    (1), and their codes. A row occurs once per copy."""

    index: Ints
    sign: Ints
    codes: Ints


class TableContents:
    """The cost of a change does not depend on the size of the table."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._names = [field.name for field in table.columns]
        self._key = [self._names.index(name) for name in table.key]
        types = [field.type for field in table.columns]
        self._rows = CountedRows(types)
        self._numbers = RowNumbers()
        self._keys = CountedRows([types[number] for number in self._key])
        self._of_key = np.zeros(0, np.int64)  # the code of the last row with each key
        self.size = 0

    def __len__(self) -> int:
        return self.size

    def difference(self, columns: Sequence[pa.Array], weight: Ints) -> RowChanges:
        """The net changes of rows added (above 0) and removed (below 0) at one moment: a row that
        is both stays. DataError if a removed row does not exist."""
        codes = self._rows.encode(columns, len(weight))
        counted = counted_codes(codes, weight)
        first, net = counted.first, counted.weight
        missing = np.flatnonzero(self._rows.count_of(codes[first]) + net < 0)
        if len(missing):
            row = first[missing].min()
            raise self._error(f"row {self._shown(columns, row)} does not exist")
        goes = np.repeat(first, np.maximum(-net, 0))
        comes = np.repeat(np.arange(len(weight)), np.maximum(weight, 0))
        comes = comes[_last_of_each(counted.group[comes], net)]
        index = np.concatenate([np.sort(goes), comes])
        sign = np.repeat(np.array([-1, 1], np.int64), [len(goes), len(comes)])
        return RowChanges(index, sign, codes[index])

    def apply(self, columns: Sequence[pa.Array], change: RowChanges) -> Ints:
        """Apply a difference; returns the numbers of its rows. Of equal rows, the last added is
        removed first. DataError, without any change, if two rows would have one key."""
        if self._key:
            self._claim(columns, change)
        self._rows.add(change.codes, change.sign)
        self.size += int(change.sign.sum())
        goes = change.sign < 0
        numbers = [self._numbers.go(change.codes[goes]), self._numbers.come(change.codes[~goes])]
        self._sweep()
        return np.concatenate(numbers)

    def _claim(self, columns: Sequence[pa.Array], change: RowChanges) -> None:
        of_key = [columns[number] for number in self._key]
        keys = self._keys.encode(of_key, len(change.sign))
        self._of_key = with_room(self._of_key, len(self._keys))
        self._keys.add(keys, change.sign)
        twice = np.flatnonzero(self._keys.count_of(keys) > 1)
        if len(twice):
            self._keys.add(keys, -change.sign)
            remedy = "UPDATE or DELETE the row first"
            if self._table.changes is ChangeMode.OWN:
                remedy = f'let "{self._table.time[0]}" be part of it, if rows follow each other'
            raise self._error(
                f"two rows would have the key {self._shown(of_key, twice[0])}",
                f"{listed(self._table.key)} is the PRIMARY KEY: {remedy}",
            )
        came = change.sign > 0
        self._of_key[keys[came]] = change.codes[came]

    def _sweep(self) -> None:
        """Forget removed rows and keys, each time their number has grown by half."""
        renumbered = self._rows.forget()
        if renumbered is not None:
            self._of_key = renumbered[np.minimum(self._of_key, len(renumbered) - 1)]
            self._numbers.renumber(renumbered)
        of_keys = self._keys.forget()
        if of_keys is not None:
            self._of_key = self._of_key[kept_codes(of_keys)]

    def rows(self) -> tuple[list[pa.Array], Ints]:
        """All rows in order of arrival, and their numbers."""
        codes, numbers = self._numbers.all()
        return list(self._rows.rows(codes)), numbers

    def numbers(self, columns: Sequence[pa.Array], length: int) -> Ints:
        """The numbers of present rows that would be removed."""
        return self._numbers.numbers(self._rows.find(columns, length))

    def counts(self, columns: Sequence[pa.Array], length: int) -> Ints:
        """The multiplicity of each of these rows."""
        return self._rows.count_of(self._rows.find(columns, length))

    def with_keys(self, keys: Sequence[pa.Array]) -> list[pa.Array]:
        """The distinct rows with one of these keys."""
        codes = self._keys.find(keys, len(keys[0]))
        codes = np.unique(codes[self._keys.count_of(codes) > 0])
        return list(self._rows.rows(self._of_key[codes]))

    def table(self) -> pa.Table:
        """All rows as a table."""
        columns, _ = self.rows()
        return pa.table(columns, schema=self._schema)

    @property
    def _schema(self) -> pa.Schema:
        return pa.schema([(field.name, field.type) for field in self._table.columns])

    def _shown(self, columns: Sequence[pa.Array], index: np.int64) -> str:
        return f"({', '.join(str(column[int(index)].as_py()) for column in columns)})"

    def _error(self, message: str, help: str | None = None) -> DataError:
        return DataError(f'table "{self._table.name}": {message}', help=help)


def net_rows(records: Records) -> Records:
    """The net rows of numbered changes: those added but not removed, or removed but not added."""
    assert records.number is not None
    first, weight = counted_codes(records.number, weights_of(records)).nonzero()
    return replace(records.take(first), weight=weight)


def _last_of_each(groups: Ints, wanted: Ints) -> Ints:
    """The positions of the last `wanted` of each group."""
    order = np.argsort(groups, kind="stable")
    size = np.bincount(groups, minlength=len(wanted))
    place = np.arange(len(groups)) - np.repeat(np.cumsum(size) - size, size)
    return np.sort(order[place >= (size - wanted)[groups[order]]])


def weights_of(records: Records) -> Ints:
    return np.ones(len(records), np.int64) if records.weight is None else records.weight
