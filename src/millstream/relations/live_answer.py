"""The answer of a running query as a table that others read, now or in the past.

The query delivers its changes, batch by batch, in its own thread. Readers in other threads see
complete batches only: the lock is held while a batch is applied or the rows are gathered, never
while the operators work or files are written.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TypeVar

import pyarrow as pa

from millstream.connectors.contracts import GivenBatch
from millstream.logical.instants import chronon
from millstream.logical.plan import Schema
from millstream.model.arrays import single
from millstream.model.errors import QueryError
from millstream.model.instants import Instant, shown
from millstream.model.time import INFINITY, TimeDomain
from millstream.physical.batch import NEVER, Batch, Ints
from millstream.relations.answer_table import AnswerTable
from millstream.relations.history import History, instants, rows_at
from millstream.relations.view_files import ViewFiles
from millstream.runtime.answers import final_table, snapshot_table

T = TypeVar("T")


class LiveAnswer:
    """`retain` is how far before the frontier the history reaches; without it there is only the
    current answer."""

    def __init__(
        self,
        name: str,
        schema: Schema,
        domain: TimeDomain,
        retain: int | None,
    ) -> None:
        self.name = name
        self.schema = schema
        self.domain = domain
        self.retain = retain
        self.lock = threading.RLock()
        self._moved = threading.Condition(self.lock)
        self._files: ViewFiles | None = None
        self._clear()

    def _clear(self) -> None:
        self.frontier = NEVER
        self.batch = -1  # the last one applied
        self._rows = AnswerTable([field.type for field in self.schema])
        self._history = History()
        self._reached = NEVER  # one past the latest instant seen
        self._held: Batch | None = None  # cached result of `holding`

    # --- what the query gives --------------------------------------------------------------------

    def give(self, table: pa.Table, batch: GivenBatch) -> None:
        """Apply the changes of a batch, unless they are known."""
        if batch.id <= self.batch:
            return
        frontier = self._chronon(batch.frontier)
        if self._files is not None and (table.num_rows or self._outdates(frontier)):
            self._files.log(table, batch.id, frontier)
        self._take(table, batch.id, frontier)
        if self._files is not None and self._files.logged > max(len(self._rows), _SMALL):
            self._settle(self._files)

    def _outdates(self, frontier: int) -> bool:
        """Whether the oldest piece expires, which must be recorded before it is dropped."""
        oldest = self._history.pieces[:1]
        return any(piece.until <= frontier - (self.retain or 0) for piece in oldest)

    def _take(self, table: pa.Table, batch: int, frontier: int) -> None:
        changes, swept = _changes(table), self._rows.swept()
        with self._moved:
            self._rows = swept
            ended = self._rows.apply(changes)
            self.batch, self.frontier = batch, frontier
            last = int(changes.start.max(initial=NEVER)) + 1 if len(changes) else NEVER
            self._reached = max(self._reached, last if frontier == INFINITY else frontier)
            if self.retain is not None:
                self._history.add(final_table(self.schema, self.domain, ended), frontier)
                self._forget()
            if len(changes):
                self._held = None
            self._moved.notify_all()

    def _forget(self) -> None:
        """Drop rows that ended before the retained history."""
        gone = self._history.forget(self.horizon)
        if self._files is not None:
            self._files.drop(gone)

    def close(self) -> None:
        """The query has ended; its last answer stays."""
        with self._moved:
            self._moved.notify_all()

    # --- files -----------------------------------------------------------------------------------

    def _settle(self, files: ViewFiles) -> None:
        """Write the current rows and the history in place of the log. Runs in the thread that
        changes the answer, so that no other needs to wait."""
        held = final_table(self.schema, self.domain, self._rows.holding())
        recent = [piece.read() for piece in self._history.recent()]
        ended = pa.concat_tables([held.slice(0, 0), *recent])
        notes = {"frontier": self.frontier, "reached": self._reached}
        piece = files.settle(held, ended, self.batch, self.frontier, notes)
        with self.lock:
            if piece is not None:
                self._history.store(piece)

    def begin(self, files: ViewFiles | None) -> None:
        """Resume from these files and write them from now on; or start empty."""
        with self.lock:
            self._clear()
            self._files = files
            if files is not None:
                self._load(files)

    def _load(self, files: ViewFiles) -> None:
        settled = files.load()
        if settled is not None:
            self._rows.apply(_changes(settled.rows))
            self._history.pieces, self._history.stored = settled.ended, len(settled.ended)
            self.batch = settled.batch
            self.frontier, self._reached = settled.notes["frontier"], settled.notes["reached"]
        for table, number, frontier in files.logs():
            self._take(table, number, frontier)

    # --- what others read ------------------------------------------------------------------------

    def holding(self) -> Batch:
        """The rows at the frontier, each with its start and multiplicity."""
        with self.lock:
            if self._held is None:
                self._held = self._rows.holding()
            return self._held

    def table(self) -> pa.Table:
        """The rows at the frontier."""
        return snapshot_table(self.schema, self.holding())

    def as_of(self, at: int) -> pa.Table:
        """The rows at an instant within the retained history."""
        rows = reading(lambda: self.then(at))
        return snapshot_table(self.schema, _batch(rows, [0] * rows.num_rows))

    def history(self) -> pa.Table:
        """All retained rows; current ones have no end."""
        return reading(self.always)

    def then(self, at: int) -> Callable[[], pa.Table]:
        """A function that reads the rows at an instant, in any order. It needs no lock;
        FileNotFoundError if they are no longer retained by then."""
        with self.lock:
            self._check(at)
            held = self.holding()
            late = [piece for piece in self._history.pieces if piece.until > at]

        def read() -> pa.Table:
            standing = final_table(self.schema, self.domain, held)
            return pa.concat_tables(rows_at([*(piece.read() for piece in late), standing], at))

        return read

    def always(self) -> Callable[[], pa.Table]:
        """A function that reads all retained rows, in the same way."""
        if self.retain is None:
            raise QueryError(
                f'"{self.name}" has no history: it retains only its current answer',
                help="create it with RETAIN d",
            )
        with self.lock:
            horizon, held, pieces = self.horizon, self.holding(), list(self._history.pieces)

        def read() -> pa.Table:
            standing = final_table(self.schema, self.domain, held)
            ended = pa.concat_tables([standing.slice(0, 0), *(piece.read() for piece in pieces)])
            ended = ended.filter(pa.array(instants(ended["valid_to"]) > horizon))
            return pa.concat_tables([ended, standing]).combine_chunks()

        return read

    @property
    def horizon(self) -> int:
        """The first instant that can be queried."""
        return self._reached - (self.retain or 1)

    def _check(self, at: int) -> None:
        if self.frontier == NEVER:
            raise QueryError(f'nothing is known of "{self.name}" yet', help="ask again later")
        if not self.horizon <= at < self.frontier:
            first, last = (shown(i, self.domain) for i in (self.horizon, self.frontier - 1))
            known = f"from {first} on" if self.frontier == INFINITY else f"from {first} to {last}"
            more = "" if at >= self.frontier else "; RETAIN d keeps more"
            raise QueryError(
                f'"{self.name}" is known {known}, not at {shown(at, self.domain)}',
                help=f"ask for an instant within that{more}",
            )

    def wait(self, at: int, timeout: float | None, is_over: threading.Event) -> bool:
        """Wait until an instant is final, or the query has ended; returns whether it is final."""
        with self._moved:
            self._moved.wait_for(lambda: self.frontier > at or is_over.is_set(), timeout)
            return self.frontier > at

    def _chronon(self, frontier: Instant | None) -> int:
        if frontier is None:
            return NEVER
        instant = chronon(frontier, self.domain)
        return INFINITY if frontier == shown(INFINITY, self.domain) else instant


def reading(take: Callable[[], Callable[[], T]]) -> T:
    """Read what `take` returns; retry if part of it expired meanwhile."""
    for _ in range(_ATTEMPTS):
        read = take()
        with suppress(FileNotFoundError):
            return read()
    raise QueryError(
        "the requested rows no longer exist",
        help="files of the view were removed: check its folder",
    )


_ATTEMPTS = 10  # to read files that may expire meanwhile
_SMALL = 4096  # rows of a log that are not worth a separate file


def _changes(table: pa.Table) -> Batch:
    """The changes in a table of changes, or of rows added at their valid_from."""
    if "change" in table.column_names:
        at, change = instants(table["at"]), instants(table["change"])
        return _batch(table.drop_columns(["at", "change"]), at, change)
    return _batch(table.drop_columns(["valid_from", "valid_to"]), instants(table["valid_from"]))


def _batch(table: pa.Table, start: Iterable[int], weight: Ints | None = None) -> Batch:
    ends = [INFINITY] * table.num_rows
    return Batch.of([single(column) for column in table.columns], start, ends, weight)
