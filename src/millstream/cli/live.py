"""The current answer, maintained from EMIT CHANGES and drawn in place."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.cli.mailbox import Mailbox
from millstream.logical.catalog import DerivedStream, Stream, Table
from millstream.logical.expressions import Column
from millstream.logical.plan import Plan, TopN
from millstream.model.display import is_number, rows_of, text_of
from millstream.model.modes import QueryState

if TYPE_CHECKING:
    from rich.table import Table as DrawnTable

    from millstream.api.pulls import PullQuery
    from millstream.api.query import Query
    from millstream.api.session import Session

_SHOWN_ROWS = 20
_ASKED_EVERY = 0.2  # seconds between readings of views
_READ_EVERY = 2.0  # … of external tables, which are read as a whole


class CurrentTable:
    """The rows that are valid at the frontier, with duplicates.

    >>> current = CurrentTable(pa.schema([("item", pa.string())]))
    >>> current.apply(pa.table({"item": ["a", "b", "a"], "at": [1, 2, 3], "change": [2, 1, -1]}))
    >>> current.rows()
    [('a',), ('b',)]
    """

    def __init__(self, schema: pa.Schema, order: Sequence[tuple[int, bool]] = ()) -> None:
        self.schema = schema
        self._order = order
        self._counts: dict[tuple[Any, ...], int] = {}

    @staticmethod
    def of(query: Query | PullQuery) -> CurrentTable:
        return CurrentTable(query.schema, _order(query.plan))

    def apply(self, changes: pa.Table) -> None:
        for *row, _, change in rows_of(changes):
            key = tuple(map(_hashable, row))
            count = self._counts.get(key, 0) + change
            if count:
                self._counts[key] = count
            else:
                del self._counts[key]

    def rows(self) -> list[tuple[Any, ...]]:
        """In the order of the query; without one, by their columns from left to right."""
        ordered = sorted(self._counts, key=lambda row: [*map(_sort_key, row)])
        for index, descending in reversed(self._order):
            ordered.sort(key=lambda row: _sort_key(row[index]), reverse=descending)
        return [row for row in ordered for _ in range(self._counts[row])]


def _order(plan: Plan) -> list[tuple[int, bool]]:
    """The positions of the columns that ORDER BY names, each with whether it is descending."""
    if not isinstance(plan, TopN):
        return []
    places = {(field.qualifier, field.name): n for n, field in enumerate(plan.schema)}
    return [
        (places[key.expression.key], key.descending)
        for key in plan.order
        if isinstance(key.expression, Column)
    ]


def _sort_key(value: Any) -> Any:
    """NULLs first; numbers by value, everything else as text."""
    is_number = isinstance(value, int | float | Decimal)
    return (value is not None, value if is_number else text_of(value))


def _hashable(value: Any) -> Any:
    return text_of(value) if isinstance(value, list | dict) else value


def drawn(schema: pa.Schema, rows: Sequence[Sequence[Any]], most: int = _SHOWN_ROWS) -> DrawnTable:
    """The first rows, and how many more there are."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as DrawnTable
    from rich.text import Text

    more = f"… and {len(rows) - most:,} more" if len(rows) > most else None
    table = DrawnTable(caption=more, caption_justify="left", box=SIMPLE_HEAD)
    for field in schema:
        table.add_column(Text(field.name), justify="right" if is_number(field.type) else "left")
    for row in rows[:most]:
        table.add_row(*(Text(cell_text(value)) for value in row))
    return table


def cell_text(value: Any) -> str:
    """A value for display: doubles with two decimal places."""
    return f"{value:,.2f}" if isinstance(value, float) else text_of(value)


def watch(query: Query | PullQuery) -> None:
    """Show the answer of an EMIT CHANGES query as it changes, until it ends or Ctrl-C."""
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    current, mailbox = CurrentTable.of(query), Mailbox()
    running = query.start(mailbox.sink(query.name), trigger="200 milliseconds")
    drawing = Live(console=Console(), auto_refresh=False)
    try:
        with suppress(KeyboardInterrupt), drawing as live:
            for _, table in mailbox.until_ended([running]):
                current.apply(table)
                head = Text(f"{running.frontier} (Ctrl-C stops it)")
                live.update(Group(head, drawn(query.schema, current.rows())), refresh=True)
    finally:
        mailbox.close()
        running.stop()


def watch_kept(session: Session, query: PullQuery) -> None:
    """Show a query over views and tables, run again while they can change, or until Ctrl-C."""
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    names = {read.name for read in query.pull.reads.values()}
    views = [view for view in session._state.kept.all if view.name in names]
    elsewhere = any(_is_elsewhere(read.entry) for read in query.pull.reads.values())
    with suppress(KeyboardInterrupt), Live(console=Console(), auto_refresh=False) as live:
        goes_on = True
        while goes_on:
            goes_on = elsewhere or any(view.state is QueryState.RUNNING for view in views)
            table = query.run()
            places = ", ".join(f"{view.name} at {view.frontier}" for view in views)
            head = Text(f"{places} (Ctrl-C stops it)".lstrip())
            live.update(Group(head, drawn(query.schema, rows_of(table))), refresh=True)
            if goes_on:
                time.sleep(_READ_EVERY if elsewhere else _ASKED_EVERY)


def _is_elsewhere(entry: Stream | DerivedStream) -> bool:
    return isinstance(entry, Table) and entry.connector is not None
