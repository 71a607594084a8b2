"""The panes of the demo: the current answer of a query, and its health."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    import pyarrow as pa

    from millstream.api.query import Query
    from millstream.api.session import Session
    from millstream.cli.live import CurrentTable
    from millstream.connectors.contracts import GivenBatch
    from millstream.runtime.running import Running

_RECENT = 8  # batches over which rates are averaged
_TRIGGER = "300 milliseconds"
_NARROWEST = 36  # the minimum width of a pane, in columns
_LOWEST = 8  # lines of one


class BatchProgress(NamedTuple):
    """The time at the end of a batch, and the rows and the processing time until then."""

    at: float
    rows: int
    seconds: float


class Pane:
    """A query and, once it answers, its current table; the sink changes it, the screen reads it.

    It exists before Arrow and Spark are loaded.
    """

    query: Query
    running: Running
    _current: CurrentTable

    def __init__(self, title: str, text: str) -> None:
        self.title = title
        self.text = text.strip()
        self.has_answered = False
        self._state_bytes = 0
        self._lock = threading.Lock()
        self._marks = deque([BatchProgress(0.0, 0, 0.0)], maxlen=_RECENT + 1)

    def start(self, session: Session) -> None:
        from millstream.cli.live import CurrentTable

        self.query = session.sql(self.text)
        self._current = CurrentTable.of(self.query)
        self._marks[0] = BatchProgress(time.monotonic(), 0, 0.0)
        self.running = self.query.start(self._give, trigger=_TRIGGER)

    def _give(self, table: pa.Table, batch: GivenBatch) -> None:
        running = self.query.running
        with self._lock:
            self._current.apply(table)
            if running is not None:  # not while it is being started
                self._state_bytes = running.state_bytes
                told = running.progress
                self._marks.append(BatchProgress(time.monotonic(), told.rows_in, told.seconds))
                self.has_answered = True

    def rows(self) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._current.rows()

    def health(self) -> tuple[str, str]:
        """Rows per second and frontier; size of the state and time per batch."""
        with self._lock:
            first, last, batches = self._marks[0], self._marks[-1], len(self._marks) - 1
        rate = (last.rows - first.rows) / (last.at - first.at) if batches else 0.0
        batch = (last.seconds - first.seconds) / batches if batches else 0.0
        frontier = getattr(self.running.frontier, "strftime", lambda _: "-")("%H:%M:%S")
        return (
            f"{rate:,.0f} rows/s · frontier {frontier}",
            f"state {self._state_bytes / 1024:,.0f} KiB · batch {batch * 1000:,.0f} ms",
        )


# --- on a screen ----------------------------------------------------------------------------------


def screen_of(panes: Sequence[Pane], head: str, width: int, height: int, turn: int = 0) -> Group:
    """Arrange the panes in a grid; if there is no room for all, they take turns."""
    across = _across(width)
    down = max(min(-(-len(panes) // across), (height - 1) // _LOWEST), 1)
    start = turn % -(-len(panes) // (across * down)) * across * down
    lines = max((height - 1) // down, 4)
    grid = Table.grid(expand=True)
    for _ in range(across):
        grid.add_column(ratio=1)
    drawn = [_panel(pane, width // across, lines) for pane in panes[start : start + across * down]]
    for first in range(0, len(drawn), across):
        grid.add_row(*drawn[first : first + across])
    return Group(Text(head, style="bold", no_wrap=True, overflow="ellipsis"), grid)


def least_height(panes: int, width: int) -> int:
    """The number of lines in which all fit."""
    return 1 + -(-panes // _across(width)) * _LOWEST


def _across(width: int) -> int:
    return 2 if width >= 2 * _NARROWEST else 1


def _panel(pane: Pane, width: int, height: int) -> Panel:
    """The query, until there is an answer."""
    inner = width - 4
    body = (
        _answer(pane, inner, height - 2)
        if pane.has_answered
        else Text(pane.text, style="dim", no_wrap=True, overflow="ellipsis")
    )
    return Panel(body, title=Text(pane.title), title_align="left", height=height)


def _answer(pane: Pane, width: int, height: int) -> Group:
    health = " · ".join(pane.health())
    if len(health) > width:
        health = "\n".join(pane.health())
    told = Text(health, style="dim", no_wrap=True, overflow="ellipsis")
    room = height - 2 - health.count("\n")  # without the health lines and the column names
    rows = pane.rows()
    if not rows:
        return Group(told, Text("no rows now", style="dim italic"))
    shown = rows if len(rows) <= room else rows[: max(room - 1, 1)]
    more = f"… and {len(rows) - len(shown):,} more" if len(shown) < len(rows) else ""
    return Group(told, _table(pane.query.schema, shown), Text(more, style="dim"))


def _table(schema: pa.Schema, rows: list[tuple[Any, ...]]) -> Table:
    from millstream.cli.live import cell_text
    from millstream.model.display import is_number

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for field in schema:
        justify = "right" if is_number(field.type) else "left"
        table.add_column(Text(field.name), justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(Text(cell_text(value)) for value in row))
    return table


# --- in a pipe ------------------------------------------------------------------------------------


def lines_of(panes: Sequence[Pane], head: str) -> list[str]:
    """The panes as plain lines."""
    lines = [f"-- {head}"]
    for pane in panes:
        rows = pane.rows()
        names = pane.query.schema.names
        shown = ["  " + " ".join(map("=".join, _named(names, row))) for row in rows[:3]]
        more = [f"  … and {len(rows) - 3:,} more"] if len(rows) > 3 else []
        lines += [f"{pane.title} ({' · '.join(pane.health())})", *shown, *more]
    return lines


def _named(names: Sequence[str], row: tuple[Any, ...]) -> list[tuple[str, str]]:
    from millstream.cli.live import cell_text

    return [(name, cell_text(value)) for name, value in zip(names, row, strict=True)]
