"""Rows that do not enter the answer: late rows, and rows that cannot be read or evaluated. They are
counted and passed to the user's outputs, and the last ones are kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from millstream.logical.catalog import Stream
from millstream.model.elements import Row
from millstream.model.errors import (
    QueryError,
    RowErrorWarning,
    brief_row,
    told_of_row,
    warn_caller,
)
from millstream.model.records import Records
from millstream.physical.operator import Context

KEPT_ROWS = 10_000

Receive: TypeAlias = Callable[[object], None]


@dataclass(frozen=True)
class ErrorRow:
    """A row that is in no answer: a row of a stream that could not be read, or a row that could not
    be evaluated. `number` counts the rows of the stream since the query started, if they are
    counted; otherwise `row` has the values. `help` says what to do, if known."""

    query: str
    message: str
    stream: str | None = None
    number: int | None = None
    row: Row | None = None
    help: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", told_of_row(self.message))

    def __str__(self) -> str:
        if self.stream is None:
            return f'query "{self.query}" failed on row {self._shown}: {self.message}'
        return f'query "{self.query}", stream "{self.stream}", row {self._shown}: {self.message}'

    @property
    def place(self) -> str:
        """Where it was found, for a sentence that names the query."""
        if self.stream is None:
            return f"in row {self._shown}"
        return f'in row {self._shown} of stream "{self.stream}"'

    @property
    def _shown(self) -> str:
        return str(self.number) if self.row is None else brief_row(self.row)


def receiver(output: object, what: str, query: str) -> Receive | None:
    """The function that passes items to an output: a function, or a list to append to."""
    if output is None:
        return None
    given = output if callable(output) else getattr(output, "append", None)
    if not callable(given):
        kind = type(output).__name__
        raise QueryError(f"the output for {what} must be a function or a list, not {kind}")

    def receive(item: object) -> None:
        try:
            given(item)
        except Exception as error:  # any error of the user's function ends the query
            message = f'query "{query}": the output for {what} failed: {error}'
            raise QueryError(message) from error

    return receive


class LateOutput:
    """Late rows, which start before the frontier; the last ones of each stream are kept."""

    def __init__(self, receive: Receive | None) -> None:
        self._receive = receive
        self._kept: dict[str, deque[pa.Table]] = {}
        self._rows: dict[str, int] = {}

    def add(self, stream: Stream, records: Records) -> None:
        names = [column.name for column in stream.columns]
        table = pa.table(records.columns, names=names)
        table = table.replace_schema_metadata({"stream": stream.name})
        kept = self._kept.setdefault(stream.name, deque())
        kept.append(table)
        rows = self._rows.get(stream.name, 0) + len(records)
        while rows - kept[0].num_rows >= KEPT_ROWS:
            rows -= kept.popleft().num_rows
        self._rows[stream.name] = rows
        if self._receive is not None:
            self._receive(table)

    @property
    def kept(self) -> dict[str, pa.Table]:
        return {name: pa.concat_tables(tables) for name, tables in self._kept.items()}


def unusable(query: str, count: int, first: str) -> str:
    """The message for rows that are in no answer; `first` is the problem of the first one."""
    return f'query "{query}" could not use {"1 row" if count == 1 else f"{count:,} rows"}: {first}'


class ErrorOutput:
    """Rows that cannot be read or evaluated. Without an output for them, there is one warning."""

    def __init__(self, query: str, receive: Receive | None) -> None:
        self._query = query
        self._receive = receive
        self.kept: deque[ErrorRow] = deque(maxlen=KEPT_ROWS)
        self.count = 0
        self.warned = 0  # how many there were at the warning
        self._first: ErrorRow | None = None

    def add(
        self,
        message: str,
        *,
        stream: str | None = None,
        number: int | None = None,
        row: Row | None = None,
        help: str | None = None,
    ) -> None:
        error = ErrorRow(self._query, message, stream, number, row, help)
        self.count += 1
        self._first = self._first or error
        self.kept.append(error)
        if self._receive is not None:
            self._receive(error)

    def warn(self) -> None:
        """Warn once, about all rows so far."""
        if self._receive is None and self._first is not None and not self.warned:
            self.warned = self.count
            first = f"{self._first.message} {self._first.place}"
            message = unusable(self._query, self.count, first)
            help = "running.errors has the last ones, and start(errors=…) receives all"
            warn_caller(message, RowErrorWarning, help)


@dataclass
class RunningContext(Context):
    """Errors go to the output immediately. An equal row with an equal message is reported once: it
    may be evaluated again when it is retracted."""

    output: ErrorOutput | None = None
    _told: dict[tuple[Row, str], None] = field(default_factory=dict)

    def report(self, row: Row, message: str) -> None:
        assert self.output is not None
        if (row, message) in self._told:
            return
        if len(self._told) >= KEPT_ROWS:
            del self._told[next(iter(self._told))]
        self._told[row, message] = None
        self.output.add(message, row=row)
