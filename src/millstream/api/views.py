"""Materialized views: answers kept as tables while their queries run."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from millstream.api.continuous import ContinuousQuery
from millstream.api.workspace import Workspace
from millstream.connectors.contracts import GivenBatch, NamedSink, Sink, SinkContext, UnopenedSink
from millstream.connectors.registry import Connectors
from millstream.logical.catalog import Connector, RegisteredQuery
from millstream.logical.instants import chronon
from millstream.logical.plan import Plan
from millstream.model.arrays import single
from millstream.model.display import table_html
from millstream.model.durations import chronons
from millstream.model.errors import BindError, QueryError
from millstream.model.frames import HasRows
from millstream.model.instants import Instant, shown
from millstream.model.modes import Emit, QueryState
from millstream.model.records import Records
from millstream.physical.batch import NEVER, Batch
from millstream.relations.live_answer import LiveAnswer
from millstream.relations.view_files import ViewFiles
from millstream.sql import statements as syntax
from millstream.sql.binder import given_every

if TYPE_CHECKING:
    from millstream.runtime.running import Running
    from millstream.sql.pulls import Read


class View(HasRows):
    """Returned by CREATE MATERIALIZED VIEW: the answer of a running query as a table.

    It is always the answer at the frontier, the last final instant; readers in any thread see
    complete batches only. When its streams have ended, or it is stopped or fails, it keeps its last
    rows.
    """

    def __init__(
        self,
        query: ContinuousQuery,
        standing: LiveAnswer,
        connectors: Connectors,
        folder: str | None = None,
    ) -> None:
        self.query = query
        self._connectors = connectors
        self._standing = standing
        self._folder = None if folder is None else Path(os.path.abspath(folder))
        self._target: NamedSink | None = None
        self._renewal: ContinuousQuery | None = None  # sends whole answers to the target, if needed
        self._running: list[Running] = []
        self._over = threading.Event()

    @property
    def name(self) -> str:
        return self.query.name

    def __repr__(self) -> str:
        return f"<View {self.name}: {self.state}, at {self.frontier}>"

    def _repr_html_(self) -> str:
        """Its frontier and its rows."""
        told = f"({self.state}): frontier {escape(str(self.frontier))}"
        return f"<p><b>{escape(self.name)}</b> {told}</p>{table_html(self.table())}"

    # --- its life --------------------------------------------------------------------------------

    def start(self, folder: str | None = None) -> None:
        """Start its query. `folder` makes the view persistent, if CREATE names no folder."""
        if self._folder is None and folder is not None:
            self._folder = Path(os.path.abspath(folder))
        self._over.clear()
        keeper = _Keeper(self, None if self._renewal is not None else self._target)
        self._running = [self.query.start(keeper, checkpoint=self._inside("checkpoint"))]
        if self._renewal is not None:
            checkpoint = self._inside("whole answers")
            try:
                self._running.append(self._renewal.start(self._target, checkpoint=checkpoint))
            except BaseException:
                self.stop()
                raise

    def _inside(self, name: str) -> str | None:
        return None if self._folder is None else str(self._folder / name)

    def stop(self, timeout: float | None = None) -> bool:
        """Stop its query; returns whether it has ended. The view keeps its rows."""
        ended = [running.stop(timeout) for running in self._running]
        return all(ended)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until its query ends; returns whether it has. Raises the error if it failed."""
        ended = [running.wait(timeout) for running in self._running]
        return all(ended)

    @property
    def state(self) -> QueryState:
        """As in SHOW VIEWS: registered, running, stopped or failed."""
        if self.exception is not None:
            return QueryState.FAILED
        return self._running[0].state if self._running else QueryState.REGISTERED

    @property
    def exception(self) -> Exception | None:
        """The error that made its query fail."""
        return next((r.exception for r in self._running if r.exception is not None), None)

    @property
    def running(self) -> list[Running]:
        """Its running query, with late rows, errors and metrics; with EMIT EVERY also the one that
        sends whole answers."""
        return list(self._running)

    # --- its rows --------------------------------------------------------------------------------

    @property
    def schema(self) -> pa.Schema:
        return self.query.schema

    @property
    def frontier(self) -> Instant | None:
        """Every instant before it is final; None while not known."""
        frontier = self._standing.frontier
        return None if frontier == NEVER else shown(frontier, self._standing.domain)

    def table(self) -> pa.Table:
        """The rows at the frontier."""
        return self._standing.table()

    def to_arrow(self) -> pa.Table:
        """The rows at the frontier."""
        return self.table()

    def as_of(self, at: object, timeout: float | None = 0) -> pa.Table:
        """The rows at an instant within the retained history. `timeout` is how many seconds to wait
        for an instant that is not final yet; None: no limit."""
        instant = chronon(at, self._standing.domain)
        self._standing.wait(instant, timeout, self._over)
        return self._standing.as_of(instant)

    def history(self) -> pa.Table:
        """All retained rows, with valid_from and valid_to; current ones have no end."""
        return self._standing.history()

    @property
    def retain(self) -> int | None:
        """How many chronons of history before the frontier are retained."""
        return self._standing.retain

    # --- for statements --------------------------------------------------------------------------

    def _given_to(self, target: NamedSink, renewal: ContinuousQuery | None) -> View:
        """Send the changes to a target, or whole answers by another query; returns the view."""
        self._target, self._renewal = target, renewal
        return self

    # --- for pull queries ------------------------------------------------------------------------

    @property
    def lock(self) -> threading.RLock:
        """Nothing changes while it is held."""
        return self._standing.lock

    def read(self, read: Read) -> Callable[[], Records]:
        """A function that returns the current rows for a pull query."""
        if read.history:
            past = self._standing.always()
        elif read.at is not None:
            past = self._standing.then(read.at)
        else:
            held = self._standing.holding()
            return lambda: _records_of(held)
        return lambda: _records_of(batch_of(past()))

    # --- for its query ---------------------------------------------------------------------------

    def _opened(self, context: SinkContext) -> None:
        """Called when the query is about to deliver batches, from the next one of its checkpoint
        on."""
        files = None if self._folder is None else ViewFiles(self._folder / "rows")
        self._standing.begin(files)
        if self._standing.batch > context.next_batch:
            raise QueryError(
                f'the folder "{self._folder}" has batch {self._standing.batch} of view '
                f'"{self.name}", but its checkpoint is at batch {context.next_batch}',
                help="the checkpoint is older than the rows: restore the newer one, or start over "
                "with another folder",
            )


class _Keeper(UnopenedSink):
    """The sink of a view: its target, if any, and the view itself."""

    def __init__(self, view: View, also: NamedSink | None) -> None:
        self._view = view
        self._also = also
        self._target: Sink | None = None

    def open(self, context: SinkContext) -> Sink:
        self._view._opened(context)
        if self._also is not None:
            self._target = self._view.query._workspace.connectors.open_sink(self._also, context)
        return self

    def give(self, table: pa.Table, batch: GivenBatch) -> None:
        """To the target first: rows that it refuses are not in the view either."""
        if self._target is not None:
            self._target.give(table, batch)
        self._view._standing.give(table, batch)

    def close(self) -> None:
        try:
            if self._target is not None:
                self._target.close()
        finally:
            self._view._over.set()
            self._view._standing.close()


def batch_of(rows: pa.Table) -> Batch:
    """Rows with weight 1."""
    columns = [single(column) for column in rows.columns]
    start = np.zeros(rows.num_rows, np.int64)
    return Batch.of(columns, start, start + 1)


def _records_of(rows: Batch) -> Records:
    return Records(list(rows.columns), rows.start, rows.end, rows.weight)


# --- from statements ------------------------------------------------------------------------------


def view_of(workspace: Workspace, statement: syntax.CreateView, plan: Plan) -> View:
    """The view of a statement and the plan of its query; not started."""
    query, target = statement.query, statement.target
    if target is None:
        if query.every is not None:
            raise BindError(
                "EMIT EVERY says how often a sink gets the whole answer, and there is no sink",
                query.emit_span,
                "write INTO connector(…), or leave EMIT EVERY out: a view is always up to date",
            )
        return kept(workspace, statement.name.text, plan, str(query), statement.retention)
    if query.every is None:
        sink, renewal = _keeping(workspace.connectors, target), None
    else:
        sink = NamedSink(target.name.text, target.values, dict(target.options))
        whole = given_every(query.every, plan)
        renewal = ContinuousQuery(
            workspace, _entry(statement.name.text, whole, str(query)), Emit.EVERY
        )
    made = kept(workspace, statement.name.text, plan, str(query), statement.retention)
    return made._given_to(sink, renewal)


def kept(
    workspace: Workspace, name: str, plan: Plan, text: str, retention: syntax.Retention | None
) -> View:
    """The answer of a query as a view; not started."""
    query = ContinuousQuery(workspace, _entry(name, plan, text), Emit.CHANGES)
    retain = None
    if retention is not None and retention.duration is not None:
        retain = chronons(retention.duration, plan.domain, "what is retained")
    standing = LiveAnswer(name, plan.schema, plan.domain, retain)
    folder = None if retention is None else retention.folder
    return View(query, standing, workspace.connectors, folder)


def _entry(name: str, plan: Plan, text: str) -> RegisteredQuery:
    return RegisteredQuery(name, plan, text, frozenset())


def _keeping(connectors: Connectors, target: Connector) -> NamedSink:
    """A sink that keeps a table: it applies changes and holds the resulting rows."""
    connectors.check_sink(target.name)
    if not connectors.sink_takes(target.name.text, "keep"):
        raise BindError(
            f'sink "{target.name.text}" cannot keep the rows of a view',
            target.name.span,
            "write EMIT EVERY d to send it the whole answer periodically, or INSERT INTO … EMIT "
            "CHANGES instead of a view",
        )
    return NamedSink(target.name.text, target.values, {**dict(target.options), "keep": True})
