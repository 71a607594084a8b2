"""What is in a window at an instant: the leaves of a judged query."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from millstream.model.durations import Duration
from millstream.sql import clauses as syntax
from oracle.judged_streams import JudgedStream

if TYPE_CHECKING:
    from oracle.judge import Judge, JudgedQuery

Moment = Callable[[int], int]  # from the instant asked for to the one at which a part is evaluated

ARRIVAL = "__arrival"  # the hidden place of a row in its stream's order
_LEAF = re.compile(r"__leaf_(\d+)__")
_MICROSECONDS = {
    "MICROSECOND": 1, "MILLISECOND": 10**3, "SECOND": 10**6, "MINUTE": 60 * 10**6,
    "HOUR": 3600 * 10**6, "DAY": 86400 * 10**6,
}  # fmt: skip


def floored(moment: Moment, granule: int) -> Moment:
    return lambda t: moment(t) // granule * granule


class Leaf(Protocol):
    def table(self, t: int) -> str:
        """The name of a table with the rows that the reference has at t."""
        ...


@dataclass(frozen=True)
class Template:
    """SQL text with leaves left open, each with the moment at which it is asked."""

    text: str
    leaves: Sequence[tuple[Leaf, Moment]]

    def sql(self, t: int) -> str:
        def filled(match: re.Match[str]) -> str:
            leaf, moment = self.leaves[int(match[1])]
            return leaf.table(moment(t))

        return _LEAF.sub(filled, self.text)


@dataclass(frozen=True)
class StreamLeaf:
    """A source stream, or a window over one whose rows live one instant."""

    judge: Judge
    stream: JudgedStream
    window: syntax.Window | None
    arrival: bool

    def table(self, t: int) -> str:
        columns = ", ".join(f'"{c}"' for c in self.stream.columns)
        columns += f", {ARRIVAL}" if self.arrival else ""
        window = self.window
        if window is not None and window.frame == "ROWS":
            arrived = f'(SELECT *, 0 AS __instant FROM "{self.stream.name}" WHERE {self._until(t)})'
            return self.judge.table(count_window_sql(arrived, columns, window, f"{ARRIVAL}"))
        numbers = self._places(t)
        chosen = ", ".join(map(str, numbers)) or "-1"
        return self.judge.table(
            f'SELECT {columns} FROM "{self.stream.name}" WHERE {ARRIVAL} IN ({chosen})'
        )

    def _until(self, t: int) -> str:
        return f"{ARRIVAL} <= {sum(start <= t for start in self.stream.starts)}"

    def _places(self, t: int) -> list[int]:
        """The places of the rows that are valid now, or that a time window holds."""
        numbered = list(enumerate(self.stream.intervals, 1))
        if self.window is None:
            return [n for n, (start, end) in numbered if start <= t and (end is None or t < end)]
        size, slide = time_window(self.window)
        until = (t + 1) // slide * slide
        return [
            n
            for n, (start, _) in numbered
            if start < until and (size is None or until - size <= start)
        ]


@dataclass(frozen=True)
class QueryWindowLeaf:
    """A window over a query: its answers at the instants, or granules, of the window, added up."""

    judged: JudgedQuery
    query: Template
    window: syntax.Window
    granule: int
    arrival: bool

    def table(self, t: int) -> str:
        judge = self.judged.judge
        names = [name for name, _ in judge.columns(self.query.sql(t)) if name != ARRIVAL]
        columns = ", ".join(f'"{name}"' for name in names)
        if self.arrival:
            columns += f", {ARRIVAL}"
        if self.window.frame == "ROWS":
            return self._count_window(t, names, columns)
        instants = self._instants_of_time_window(t)
        tables = self._tables(instants)
        parts = [f"SELECT {columns} FROM {table}" for _, table in tables]
        return judge.table(" UNION ALL ".join(parts) or self._nothing(t, columns))

    def _nothing(self, t: int, columns: str) -> str:
        return f"SELECT {columns} FROM ({self.query.sql(t)}) WHERE FALSE"

    def _instants_of_time_window(self, t: int) -> range:
        """17.1, in granules; no instant before time begins."""
        g = self.granule
        size, slide = time_window(self.window, g)
        end = (t // g + 1) // (slide // g) * (slide // g)
        first = -(-self.judged.beginning // g)
        if size is not None:
            first = max(first, end - size // g)
        return range(first * g, end * g, g)

    def _tables(self, instants: range) -> list[tuple[int, str]]:
        """The instants at which the query has rows, each with a table of them."""
        judge = self.judged.judge
        wanted: Iterable[int] = instants
        if len(instants) > 2000:  # too fine a clock to try every instant: those that have rows
            wanted = [u for u in self.judged.occupied() if u in instants]
        found = []
        for u in wanted:
            table = judge.table(self.query.sql(u))
            if judge.rows(f"SELECT COUNT(*) FROM {table}")[0][0]:
                found.append((u, table))
        return found

    def _count_window(self, t: int, names: list[str], columns: str) -> str:
        judge = self.judged.judge
        first = -(-self.judged.beginning // self.granule) * self.granule
        tables = self._tables(range(first, t + 1, self.granule))
        parts = [f"SELECT *, {u} AS __instant FROM {table}" for u, table in tables]
        arrived = " UNION ALL ".join(parts)
        if not arrived:
            return judge.table(self._nothing(t, columns))
        carried = ARRIVAL in [name for name, _ in judge.columns(self.query.sql(t))]
        keys = [ARRIVAL] if carried else [f'"{name}"' for name in names]
        order = ", ".join(f"{key} ASC NULLS FIRST" for key in keys)
        return judge.table(count_window_sql(f"({arrived})", columns, self.window, order))


def count_window_sql(arrived: str, columns: str, window: syntax.Window, order: str) -> str:
    """17.2 for every partition of what has arrived."""
    keys = ", ".join(f'"{name.text}"' for name in window.partition)
    over = f"PARTITION BY {keys} " if keys else ""
    slide = window.slide.rows if isinstance(window.slide, syntax.RowCount) else 1
    size = f"- {window.size.rows}" if isinstance(window.size, syntax.RowCount) else "- __number"
    return (
        f"SELECT {columns} FROM (SELECT *, "
        f"ROW_NUMBER() OVER ({over}ORDER BY __instant, {order}) AS __place, "
        f"COUNT(*) OVER ({over}) AS __number FROM {arrived}) "
        f"WHERE __place <= __number // {slide} * {slide} "
        f"AND __place > __number // {slide} * {slide} {size}"
    )


def time_window(window: syntax.Window | None, granule: int = 1) -> tuple[int | None, int]:
    """Size (None for UNBOUNDED) and slide in chronons."""
    assert window is not None
    slide = duration(window.slide) if isinstance(window.slide, Duration) else granule
    match window.size:
        case Duration():
            return duration(window.size), slide
        case syntax.Now():
            return granule, slide
        case syntax.Unbounded():
            return None, slide
    raise AssertionError(window)


def duration(given: Duration) -> int:
    length = given.amount * (1 if given.unit is None else _MICROSECONDS[given.unit])
    assert length.denominator == 1
    return int(length)
