"""The tables of the demo: what a query answers now, and how it fares."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from millstream.cli.live import CurrentTable, cell_text, drawn

if TYPE_CHECKING:
    from rich.console import RenderableType

    from millstream.local.running import Running
    from millstream.local.sinks import GivenBatch
    from millstream.query import Query

_RECENT = 8  # batches over which rates are taken
_TRIGGER = "300 milliseconds"


class Mark(NamedTuple):
    """When a batch was done, the rows that had come by then, and the seconds of work."""

    at: float
    rows: int
    seconds: float


class Pane:
    """A running query with its current table; the sink changes it, the screen reads it."""

    running: Running

    def __init__(self, title: str, query: Query) -> None:
        self.title = title
        self.query = query
        self.has_answered = False
        self._state_bytes = 0
        self._current = CurrentTable.of(query)
        self._lock = threading.Lock()
        self._marks = deque([Mark(time.monotonic(), 0, 0.0)], maxlen=_RECENT + 1)

    @staticmethod
    def started(title: str, query: Query) -> Pane:
        pane = Pane(title, query)
        pane.running = query.start(pane.give, trigger=_TRIGGER)
        return pane

    def give(self, table: pa.Table, batch: GivenBatch) -> None:
        running = self.query.running
        with self._lock:
            self._current.apply(table)
            if running is not None:  # not while it is being started
                self._state_bytes = running.state_bytes
                told = running.progress
                self._marks.append(Mark(time.monotonic(), told.rows_in, told.seconds))
                self.has_answered = True

    def rows(self) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._current.rows()

    def health(self) -> str:
        """Rows in a second, how far it is, what it keeps, how long a batch takes."""
        with self._lock:
            first, last, batches = self._marks[0], self._marks[-1], len(self._marks) - 1
        rate = (last.rows - first.rows) / (last.at - first.at) if batches else 0.0
        batch = (last.seconds - first.seconds) / batches if batches else 0.0
        frontier = getattr(self.running.frontier, "strftime", lambda _: "-")("%H:%M:%S")
        return (
            f"{rate:,.0f} rows/s · frontier {frontier} · state {self._state_bytes / 1024:,.0f} KiB"
            f" · batch {batch * 1000:,.0f} ms"
        )


def screen_of(panes: Sequence[Pane], head: str, height: int) -> RenderableType:
    """Two by two, each with as many rows as there is room for."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    most = max((height - 3) // 2 - 7, 3)
    grid = Table.grid(expand=True)
    grid.add_column(ratio=1)
    grid.add_column(ratio=1)
    cells = []
    for pane in panes:
        table = drawn(pane.query.schema, pane.rows(), most)
        body = Group(Text(pane.health(), style="dim"), table)
        cells.append(Panel(body, title=Text(pane.title), title_align="left", height=most + 7))
    for first in range(0, len(cells), 2):
        grid.add_row(*cells[first : first + 2])
    return Group(Text(head, style="bold"), grid)


def lines_of(panes: Sequence[Pane], head: str) -> list[str]:
    """The same in plain lines."""
    lines = [f"-- {head}"]
    for pane in panes:
        rows = pane.rows()
        names = pane.query.schema.names
        shown = ["  " + " ".join(map("=".join, _named(names, row))) for row in rows[:3]]
        more = [f"  … and {len(rows) - 3:,} more"] if len(rows) > 3 else []
        lines += [f"{pane.title} ({pane.health()})", *shown, *more]
    return lines


def _named(names: Sequence[str], row: tuple[Any, ...]) -> list[tuple[str, str]]:
    return [(name, cell_text(value)) for name, value in zip(names, row, strict=True)]
