"""DuckDB as the judge of tables that change: it has the contents after every change.

The judge shares no code with the system. It lets DuckDB decide which rows a statement takes away
and which it brings, and keeps an insertion number of its own for each row, so that DuckDB can be
asked for an explicit order where ours is that of arrival:

- rows that come are numbered in the order of VALUES, of the rows that they are made from, or of the
  rows that they replace; clauses of a MERGE one after the other;
- a row that is among those that go and those that come stays as it is; of equal rows, the last that
  came goes first;
- a statement that names no time takes effect with the last that named one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb

Row = tuple[Any, ...]
INFINITY = 2**63 - 1
PLACE = "_place"  # the insertion number, as a column


@dataclass
class Stay:
    """A row, its insertion number, and from when to when it is there."""

    row: Row
    number: int
    start: int
    end: int = INFINITY


@dataclass
class JudgedTable:
    name: str
    columns: dict[str, str]  # name → type
    stays: list[Stay] = field(default_factory=list)
    count: int = 0  # rows that ever came
    latest: int = -1  # when the last change took effect; -1: always
    floor: int = -1  # when a row was last taken away

    def at(self, instant: int) -> list[Stay]:
        return [stay for stay in self.stays if stay.start <= instant < stay.end]

    def change(self, gone: Sequence[Row], come: Sequence[Row], at: int | None = None) -> None:
        """Rows for others, in the order in which they come."""
        both = Counter(gone) & Counter(come)
        going, coming = Counter(gone) - both, []
        for row in come:
            if both[row]:
                both[row] -= 1
            else:
                coming.append(row)
        if not coming and not +going:
            return
        at = self.latest if at is None else at
        self.latest = max(self.latest, at)
        if going:
            self.floor = self.latest
        for stay in reversed(self.at(INFINITY - 1)):
            if going[stay.row]:
                going[stay.row] -= 1
                stay.end = at
        assert not +going
        for row in coming:
            self.stays.append(Stay(row, self.count, at))
            self.count += 1


class Judge:
    """DuckDB with the tables as they are at an instant; at the end of time, all changes applied."""

    def __init__(self, *tables: JudgedTable) -> None:
        self.tables = {table.name: table for table in tables}
        self.connection = duckdb.connect()
        self.connection.execute("SET threads = 1")
        self.connection.execute("PRAGMA disable_optimizer")
        self._loaded: dict[str, list[Stay]] = {}  # what DuckDB has
        for table in tables:
            columns = ", ".join(f"{name} {type}" for name, type in table.columns.items())
            self.connection.execute(f"CREATE TABLE {table.name} ({columns}, {PLACE} BIGINT)")

    def ask(self, text: str, instant: int = INFINITY - 1) -> list[Row]:
        for table in self.tables.values():
            present = table.at(instant)
            if self._loaded.get(table.name) != present:
                self._load(table, present)
        return self.connection.execute(text).fetchall()

    def _load(self, table: JudgedTable, present: list[Stay]) -> None:
        self._loaded[table.name] = present
        self.connection.execute(f"DELETE FROM {table.name}")
        rows = [f"({', '.join(map(literal, [*stay.row, stay.number]))})" for stay in present]
        if rows:
            self.connection.execute(f"INSERT INTO {table.name} VALUES {', '.join(rows)}")

    # --- statements ------------------------------------------------------------------------------

    def insert(self, name: str, rows: Sequence[Row], at: int | None = None) -> None:
        self.tables[name].change([], rows, at)

    def insert_from(self, name: str, items: str, where: str, at: int | None = None) -> None:
        """INSERT INTO … SELECT items FROM the table itself."""
        come = self.ask(f"SELECT {items} FROM {name} WHERE {where} ORDER BY {PLACE}")
        self.tables[name].change([], come, at)

    def delete(self, name: str, where: str, at: int | None = None) -> None:
        gone = self.ask(f"SELECT * EXCLUDE {PLACE} FROM {name} WHERE {where}")
        self.tables[name].change(gone, [], at)

    def update(
        self, name: str, settings: dict[str, str], where: str, at: int | None = None
    ) -> None:
        gone, come = self._replaced(name, f"{name} WHERE {where}", settings)
        self.tables[name].change(gone, come, at)

    def _replaced(
        self, name: str, rows: str, settings: dict[str, str]
    ) -> tuple[list[Row], list[Row]]:
        """Rows of a table, and what becomes of each, in their order."""
        table = self.tables[name]
        old = ", ".join(f"{name}.{column}" for column in table.columns)
        new = ", ".join(
            f"CAST({settings.get(column, f'{name}.{column}')} AS {type})"
            for column, type in table.columns.items()
        )
        asked = self.ask(f"SELECT {old}, {new} FROM {rows} ORDER BY {name}.{PLACE}")
        width = len(table.columns)
        return [row[:width] for row in asked], [row[width:] for row in asked]

    def merge(self, name: str, merge: Merge, at: int | None = None) -> None:
        width = len(self.tables[name].columns)
        values = ", ".join(
            f"({', '.join(map(literal, row))}, {n})" for n, row in enumerate(merge.source)
        )
        source = f"(VALUES {values}) s({', '.join(self.tables[name].columns)}, number)"
        gone: list[Row] = []
        come: list[Row] = []
        taken: dict[str, list[str]] = {}
        for kind, condition, action in merge.clauses:
            before = taken.setdefault(kind, [])
            holds = " AND ".join(
                [f"NOT COALESCE({earlier}, FALSE)" for earlier in before] + [f"({condition})"]
            )
            before.append(condition)
            on = f"{name}.id = s.id"
            if kind == "MATCHED":
                rows = f"{name} JOIN {source} ON {on} WHERE {holds}"
            elif kind == "NOT MATCHED BY SOURCE":
                alone = f"NOT EXISTS (SELECT 1 FROM {source} WHERE {on})"
                rows = f"{name} WHERE {alone} AND {holds}"
            else:
                alone = f"NOT EXISTS (SELECT 1 FROM {name} WHERE {on})"
                asked = self.ask(
                    f"SELECT s.* FROM {source} WHERE {alone} AND {holds} ORDER BY s.number"
                )
                come += [row[:width] for row in asked]
                continue
            old, new = self._replaced(name, rows, action or {})
            gone += old
            come += new if action is not None else []
        self.tables[name].change(gone, come, at)


@dataclass(frozen=True)
class Merge:
    """`source` are rows of the table; a clause is its kind, its condition, and what it sets, or
    None for DELETE."""

    source: Sequence[Row]
    clauses: Sequence[tuple[str, str, dict[str, str] | None]]

    def text(self, name: str, columns: Sequence[str]) -> str:
        values = ", ".join(f"({', '.join(map(literal, row))})" for row in self.source)
        parts = [
            f"MERGE INTO {name} USING (VALUES {values}) AS s({', '.join(columns)})",
            f"ON {name}.id = s.id",
        ]
        for kind, condition, action in self.clauses:
            then = "DELETE"
            if kind == "NOT MATCHED":
                then = f"INSERT VALUES ({', '.join(f's.{column}' for column in columns)})"
            elif action is not None:
                then = "UPDATE SET " + ", ".join(f"{c} = {value}" for c, value in action.items())
            parts.append(f"WHEN {kind} AND ({condition}) THEN {then}")
        return " ".join(parts)


def literal(value: Any) -> str:
    """As both systems read it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return f"CAST({value!r} AS DOUBLE)"
    return f"'{value}'" if isinstance(value, str) else str(value)
