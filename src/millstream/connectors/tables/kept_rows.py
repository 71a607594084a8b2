"""The rows of a followed table; changes refer to rows by identity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.connectors.tables.columns import SourceTable
from millstream.connectors.tables.comparing import UniqueKeys, arrays_of, net_changes
from millstream.connectors.tables.decoding import UNCHANGED, Unchanged, Value, Values
from millstream.connectors.tables.postgres_columns import typed
from millstream.connectors.tables.table_source import TableChanges
from millstream.physical.batch import Ints
from millstream.physical.state.counted_rows import CountedRows, kept_codes
from millstream.physical.state.store import RowStore


@dataclass(frozen=True)
class KeptValue:
    """Stands for a value of the known row with this identity."""

    identity: Values


@dataclass
class Footprint:
    """The net effect of a transaction: per identity, how many rows were added or removed, and the
    values of the last added row, which may be those of an existing row."""

    count: dict[Values, int] = field(default_factory=dict)
    latest: dict[Values, tuple[Value | KeptValue, ...]] = field(default_factory=dict)

    def delete(self, identity: Values) -> None:
        self.count[identity] = self.count.get(identity, 0) - 1

    def insert(self, identity: Values, values: Values, of: Values) -> None:
        """Add a row. Its unchanged values are those of the row `of`."""
        self.count[identity] = self.count.get(identity, 0) + 1
        self.latest[identity] = (
            self._filled(values, of) if UNCHANGED in values else values  # rare
        )

    def _filled(self, values: Values, of: Values) -> tuple[Value | KeptValue, ...]:
        known = self.latest.get(of, (KeptValue(of),) * len(values))
        both = zip(values, known, strict=True)
        return tuple(old if isinstance(value, Unchanged) else value for value, old in both)


class KeptRows:
    """The rows of a table, each with its identity: some of its values as text. If the identity is
    all columns, a row may occur several times."""

    def __init__(self, origin: SourceTable, rows: pa.Table, identities: Sequence[pa.Array]) -> None:
        self._origin = origin
        self._schema = rows.schema
        self._unique = UniqueKeys(origin.table)
        self._identities = CountedRows([pa.binary()] * len(identities))
        self._rows = RowStore(rows.schema.types)  # by the codes of their identities
        self._check(rows, np.ones(rows.num_rows, np.int64))
        codes = self._codes(identities, rows.num_rows)
        self._rows.put(codes, arrays_of(rows))
        self._identities.add(codes, np.ones(len(codes), np.int64))

    def table(self) -> pa.Table:
        codes = np.arange(len(self._identities))
        return self._at(np.repeat(codes, self._identities.count_of(codes)))

    def change(self, footprint: Footprint) -> TableChanges:
        """Apply a transaction completely, or not at all if a value or a key is invalid."""
        codes = self._codes_of(list(footprint.count))
        before = self._identities.count_of(codes)
        delta = np.fromiter(footprint.count.values(), np.int64)
        after = before + delta
        assert not len(after) or after.min() >= 0, "a missing row was deleted"
        fresh = np.array([identity in footprint.latest for identity in footprint.count], np.bool_)
        latest = [footprint.latest[i] for i in footprint.count if i in footprint.latest]
        new = self._typed(latest)
        old_weight = np.where(fresh, -before, delta)
        gone = np.flatnonzero(old_weight)
        changes = net_changes(
            pa.concat_tables([self._at(codes[gone]), new]),
            np.concatenate([old_weight[gone], after[fresh]]),
        )
        self._check(changes.rows, changes.weight)
        self._rows.put(codes[fresh], arrays_of(new))
        self._identities.add(codes, delta)
        self._forget()
        return changes

    def _check(self, rows: pa.Table, weight: Ints) -> None:
        self._origin.check(rows)
        self._unique.add(rows, weight)

    def _typed(self, latest: list[tuple[Value | KeptValue, ...]]) -> pa.Table:
        if not latest:
            return self._schema.empty_table()
        columns = list(zip(*latest, strict=True))
        found = arrays_of(typed(self._origin, [_texts(column) for column in columns]))
        for number, column in enumerate(columns):
            if KeptValue in set(map(type, column)):
                found[number] = self._filled(number, column, found[number])
        return pa.table(found, schema=self._schema)

    def _filled(
        self, number: int, column: Sequence[Value | KeptValue], found: pa.Array
    ) -> pa.Array:
        """A column with its `Kept` values filled in."""
        kept = [value.identity for value in column if isinstance(value, KeptValue)]
        values = self._rows.columns[number].take(self._codes_of(kept))
        return pc.replace_with_mask(
            found, pa.array([isinstance(value, KeptValue) for value in column]), values
        )

    def _at(self, codes: Ints) -> pa.Table:
        return pa.table(list(self._rows.rows(codes)), schema=self._schema)

    def _codes_of(self, identities: list[Values]) -> Ints:
        columns = zip(*identities, strict=True)
        return self._codes([pa.array(column, pa.binary()) for column in columns], len(identities))

    def _codes(self, identities: Sequence[pa.Array], length: int) -> Ints:
        codes = self._identities.encode(identities, length)
        self._rows.grow(len(self._identities))
        return codes

    def _forget(self) -> None:
        """Forget the identities of deleted rows."""
        renumbered = self._identities.forget()
        if renumbered is not None:
            there = kept_codes(renumbered)
            self._rows.move(there, len(there))
            self._rows.vacuum(np.arange(len(there)))


def _texts(column: Sequence[Value | KeptValue]) -> pa.Array:
    """NULL stands for `Kept` values."""
    if KeptValue in set(map(type, column)):
        column = [None if isinstance(value, KeptValue) else value for value in column]
    return pa.array(column, pa.binary())
