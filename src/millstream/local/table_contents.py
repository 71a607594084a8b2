"""The rows that a table has now, counted, and found again by what they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from millstream.catalog import Changes, Table
from millstream.connectors.tables.comparing import arrays_of, net_changes
from millstream.errors import DataError, listed
from millstream.physical.arrays import larger
from millstream.physical.batch import Columns, Ints
from millstream.physical.key_rows import KeyRows
from millstream.physical.keys import KeySpace
from millstream.records import Records

_FEW = 1024


class TableContents:
    """A change costs what it changes, however many rows the table has."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._names = [field.name for field in table.columns]
        self._key = [self._names.index(name) for name in table.key]
        types = [field.type for field in table.columns]
        self._rows = KeySpace(types)  # every row that was there since it was last swept
        self._stored = KeyRows(self._rows)
        self._counts = np.zeros(_FEW, np.int64)  # how often each is there
        self._keys = KeySpace([types[number] for number in self._key])
        self._taken = np.zeros(_FEW, np.int64)  # how many rows have each key
        self._of_key = np.zeros(_FEW, np.int64)  # the last row that came with each key
        self.size = 0

    def __len__(self) -> int:
        return self.size

    def apply(self, columns: Sequence[pa.Array], weight: Ints) -> None:
        """Rows that come and go at one moment. DataError, and nothing is changed, where one goes
        that is not there, or two would have one key."""
        codes = self._encode(columns, len(weight))
        np.add.at(self._counts, codes, weight)
        missing = np.flatnonzero(self._counts[codes] < 0)
        if len(missing):
            np.add.at(self._counts, codes, -weight)
            raise self._error(f"row {self._shown(columns, missing[0])} is not there")
        if self._key:
            self._claim(columns, codes, weight)
        self.size += int(weight.sum())
        self._sweep()

    def _encode(self, columns: Sequence[pa.Array], length: int) -> Ints:
        known = self._rows.count
        codes = self._rows.encode(columns, length)
        count = self._rows.count
        if count > known:
            self._counts = _with_room(self._counts, count)
            self._stored.grow(count)
            fresh = np.flatnonzero(codes >= known)
            self._stored.put(codes[fresh], Columns.of(columns).take(fresh))
        return codes

    def _claim(self, columns: Sequence[pa.Array], codes: Ints, weight: Ints) -> None:
        keys = self._keys.encode([columns[number] for number in self._key], len(weight))
        self._taken = _with_room(self._taken, self._keys.count)
        self._of_key = _with_room(self._of_key, self._keys.count)
        np.add.at(self._taken, keys, weight)
        twice = np.flatnonzero(self._taken[keys] > 1)
        if len(twice):
            np.add.at(self._taken, keys, -weight)
            np.add.at(self._counts, codes, -weight)
            of_key = [columns[number] for number in self._key]
            remedy = "UPDATE or DELETE the row first"
            if self._table.changes is Changes.OWN:
                remedy = f'let "{self._table.time[0]}" be part of it, if rows follow each other'
            raise self._error(
                f"two rows would have the key {self._shown(of_key, twice[0])}",
                f"{listed(self._table.key)} is the PRIMARY KEY: {remedy}",
            )
        came = weight > 0
        self._of_key[keys[came]] = codes[came]

    def _sweep(self) -> None:
        """Forget rows and keys that are gone, each time half as many again have come."""
        if self._rows.is_stale:
            kept = np.flatnonzero(self._counts[: self._rows.count])
            renumbered = self._rows.keep(kept)
            self._of_key = renumbered[np.minimum(self._of_key, len(renumbered) - 1)]
            self._stored.move(kept, len(kept) + _FEW)
            self._stored.vacuum(np.arange(len(kept)))
            self._counts = _with_room(self._counts[kept], len(kept) + _FEW)
        if self._keys.is_stale:
            taken = np.flatnonzero(self._taken[: self._keys.count])
            self._keys.keep(taken)
            self._taken = _with_room(self._taken[taken], len(taken) + _FEW)
            self._of_key = _with_room(self._of_key[taken], len(taken) + _FEW)

    def rows(self) -> tuple[list[pa.Array], Ints]:
        """All rows, each once, and how often each is there."""
        codes = np.flatnonzero(self._counts[: self._rows.count])
        return list(self._stored.rows(codes)), self._counts[codes]

    def counts(self, columns: Sequence[pa.Array], length: int) -> Ints:
        """How often each of these rows is there."""
        codes = self._rows.encode(columns, length, add=False)
        return np.where(codes < 0, 0, self._counts[codes])

    def with_keys(self, keys: Sequence[pa.Array]) -> list[pa.Array]:
        """The rows that have one of these keys, each once."""
        codes = self._keys.encode(keys, len(keys[0]), add=False)
        codes = np.unique(codes[codes >= 0])
        return list(self._stored.rows(self._of_key[codes[self._taken[codes] > 0]]))

    def table(self) -> pa.Table:
        """All rows as a table."""
        columns, counts = self.rows()
        table = pa.table(columns, schema=self._schema)
        return table.take(pa.array(np.repeat(np.arange(len(counts)), counts)))

    @property
    def _schema(self) -> pa.Schema:
        return pa.schema([(field.name, field.type) for field in self._table.columns])

    def _shown(self, columns: Sequence[pa.Array], index: np.int64) -> str:
        return f"({', '.join(str(column[int(index)].as_py()) for column in columns)})"

    def _error(self, message: str, help: str | None = None) -> DataError:
        return DataError(f'table "{self._table.name}": {message}', help=help)


def net_rows(records: Records) -> tuple[list[pa.Array], Ints]:
    """What changes come to: each row once, and how often it came or went all in all."""
    names = [str(number) for number in range(len(records.columns))]
    net = net_changes(pa.table(records.columns, names=names), weights_of(records))
    return arrays_of(net.rows), net.weight


def weights_of(records: Records) -> Ints:
    return np.ones(len(records), np.int64) if records.weight is None else records.weight


def _with_room(counts: Ints, count: int) -> Ints:
    if count <= len(counts):
        return counts
    roomy = np.zeros(larger(len(counts), count), np.int64)
    roomy[: len(counts)] = counts
    return roomy
