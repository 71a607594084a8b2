"""DuckDB as a judge: the answer of a query at one instant, found without our binder or reference.

The promise is that at every instant t the answer is that of the plain SQL over the snapshots of
the inputs at t. So the judge takes the parsed text, replaces each reference to a stream in FROM by
the rows that are in its window at t, and lets DuckDB answer. Only the parser is shared.

    no window, NOW        the rows of the instant t
    RANGE w               t - w < time <= t
    RANGE w SLIDE a       E - w <= time < E  with  E = ⌊(t + 1) / a⌋ · a              (K 17.1)
    ROWS n SLIDE m        the last n of the first ⌊N / m⌋ · m arrivals, N those up to t (K 17.2)
    PARTITION BY c ROWS n the same for each value of c
    GRANULARITY(g)        the reference at ⌊t / g⌋ · g
    VALID FROM a TO b     a <= t < b
    ISTREAM, DSTREAM      what is there at t and not at t - 1, and the reverse (EXCEPT ALL)
    a window over a query the sum of the query's answers at the instants (granules) of the window

Derived streams and WITH are put in as subqueries. A query is rewritten once, with names of tables
left open (leaves); an instant fills them in, and equal texts are run once.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import duckdb
from sqlglot import exp

from millstream.sql.parser import parse
from millstream.sql.statements import CreateDerivedStream, Select
from oracle.duckdb_dialect import MACROS, rewrite_scalars
from oracle.judged_streams import EPOCH, MICROSECOND, JudgedStream
from oracle.judged_windows import ARRIVAL, Template
from oracle.rewriter import Rewriter

Row = tuple[Any, ...]


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One database for all judges."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for macro in MACROS:
        connection.execute(macro)
    return connection


class Judge:
    """The streams in DuckDB, and what has been found out about them."""

    def __init__(self, streams: Iterable[JudgedStream], derived: Iterable[str] = ()) -> None:
        self.connection = _database().cursor()  # tables are temporary, so each judge has its own
        self.connection.execute("SET order_by_non_integer_literal = true")
        # A judge should not be clever: statistics once told it that NULL LIKE 'a%' was true.
        self.connection.execute("PRAGMA disable_optimizer")
        self.streams = {stream.name.lower(): stream for stream in streams}
        self.derived: dict[str, exp.Expression] = {}
        self._tables: dict[str, str] = {}
        self._answers: dict[str, list[Row]] = {}
        self._columns: dict[str, list[tuple[str, str]]] = {}
        for stream in self.streams.values():
            self._load(stream)
        for text in derived:
            (statement,) = parse(text)
            assert isinstance(statement, CreateDerivedStream)
            tree = rewrite_scalars(statement.query.tree.copy())
            self.derived[statement.name.text.lower()] = tree

    def _load(self, stream: JudgedStream) -> None:
        """The stream as a table in its order, with a hidden column for the place of each row."""
        self.connection.register("incoming", stream.in_order)
        self.connection.execute(
            f'CREATE TEMP TABLE "{stream.name}" AS SELECT *, '
            f"CAST(ROW_NUMBER() OVER () AS BIGINT) AS {ARRIVAL} FROM incoming"
        )
        self.connection.unregister("incoming")

    def judged(self, text: str) -> JudgedQuery:
        (statement,) = parse(text)
        assert isinstance(statement, Select)
        return JudgedQuery(self, statement.query.tree)

    # --- DuckDB ----------------------------------------------------------------------------------

    def rows(self, sql: str) -> list[Row]:
        if sql not in self._answers:
            found = self.connection.execute(sql).fetchall()
            self._answers[sql] = [tuple(map(plain, row)) for row in found]
        return self._answers[sql]

    def table(self, sql: str) -> str:
        """The name of a table that holds the rows of a query."""
        if sql not in self._tables:
            name = f"held_{len(self._tables)}"
            self.connection.execute(f"CREATE TEMP TABLE {name} AS {sql}")
            self._tables[sql] = name
        return self._tables[sql]

    def columns(self, sql: str) -> list[tuple[str, str]]:
        """The names and types of the columns of a query."""
        if sql not in self._columns:
            found = self.connection.execute(f"DESCRIBE {sql}").fetchall()
            self._columns[sql] = [(row[0], row[1]) for row in found]
        return self._columns[sql]


def plain(value: Any) -> Any:
    """A value of DuckDB or Arrow as the plain value that answers are compared by: dates and
    times as integers, arrays as tuples."""
    match value:
        case datetime.datetime():
            return (value.replace(tzinfo=None) - EPOCH) // MICROSECOND
        case datetime.date():
            return (value - EPOCH.date()).days
        case datetime.timedelta():
            return value // MICROSECOND
        case list():
            return tuple(map(plain, value))
    return value


@dataclass
class JudgedQuery:
    """A query, ready to be answered at any instant."""

    judge: Judge
    tree: exp.Expression
    sources: dict[str, JudgedStream] = field(default_factory=dict)
    template: Template = field(init=False)

    def __post_init__(self) -> None:
        self.template = Rewriter(self).template(
            rewrite_scalars(self.tree.copy()), {}, arrival=False
        )

    @property
    def beginning(self) -> int:
        """Time begins with the first row of any stream that the query reads."""
        starts = [start for stream in self.sources.values() for start in stream.starts]
        return min(starts, default=2**62)

    def occupied(self) -> list[int]:
        """The instants at which rows begin, which are all where nothing but NOW is used."""
        return sorted({start for s in self.sources.values() for start in s.starts})

    def answer(self, t: int) -> list[Row]:
        """The rows of the answer at t, each as often as it is there."""
        return self.judge.rows(self.template.sql(t)) if t >= self.beginning else []
