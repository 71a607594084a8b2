"""The answer now, kept from EMIT CHANGES and drawn in place."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.cli.mailbox import Mailbox
from millstream.display import is_number, rows_of, text_of
from millstream.logical.expressions import Column
from millstream.logical.plan import Plan, TopN

if TYPE_CHECKING:
    from rich.table import Table

    from millstream.query import Query

_SHOWN_ROWS = 20


class CurrentTable:
    """The rows that hold at the frontier, each as often as it does.

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
    def of(query: Query) -> CurrentTable:
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
        """As the query orders them; where it does not, by their columns from left to right."""
        ordered = sorted(self._counts, key=lambda row: [*map(_sort_key, row)])
        for index, descending in reversed(self._order):
            ordered.sort(key=lambda row: _sort_key(row[index]), reverse=descending)
        return [row for row in ordered for _ in range(self._counts[row])]


def _order(plan: Plan) -> list[tuple[int, bool]]:
    """The places of the columns that ORDER BY names, each with whether it descends."""
    if not isinstance(plan, TopN):
        return []
    places = {(field.qualifier, field.name): n for n, field in enumerate(plan.schema)}
    return [
        (places[key.expression.key], key.descending)
        for key in plan.order
        if isinstance(key.expression, Column)
    ]


def _sort_key(value: Any) -> Any:
    """NULLs first; numbers by themselves, all else as text."""
    is_number = isinstance(value, int | float | Decimal)
    return (value is not None, value if is_number else text_of(value))


def _hashable(value: Any) -> Any:
    return text_of(value) if isinstance(value, list | dict) else value


def drawn(schema: pa.Schema, rows: list[tuple[Any, ...]], most: int = _SHOWN_ROWS) -> Table:
    """The first rows, and how many more there are."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    more = f"… and {len(rows) - most:,} more" if len(rows) > most else None
    table = Table(caption=more, caption_justify="left", box=SIMPLE_HEAD)
    for field in schema:
        table.add_column(Text(field.name), justify="right" if is_number(field.type) else "left")
    for row in rows[:most]:
        table.add_row(*(Text(cell_text(value)) for value in row))
    return table


def cell_text(value: Any) -> str:
    """Numbers for the eye: doubles with two places."""
    return f"{value:,.2f}" if isinstance(value, float) else text_of(value)


def watch(query: Query) -> None:
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
