"""Delivers the output of the last operator to the sink."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from millstream.connectors.contracts import GivenBatch, Noop, Sink
from millstream.logical.plan import Schema
from millstream.model.errors import MillstreamError, QueryError
from millstream.model.instants import Instant, shown
from millstream.model.modes import Emit
from millstream.model.time import INFINITY, TimeDomain
from millstream.physical.batch import NEVER, Batch, State, merged
from millstream.physical.operator import Context
from millstream.runtime import answers
from millstream.runtime.kept_answer import KeptAnswer


@dataclass(frozen=True)
class AnswerForm:
    """How the answer of a query is emitted; `granule`: in full at each one (RSTREAM)."""

    schema: Schema
    domain: TimeDomain
    emit: Emit
    granule: int | None = None

    @property
    def changes(self) -> bool:
        return self.emit is Emit.CHANGES

    def table(self, batch: Batch) -> pa.Table:
        if self.changes:
            return answers.changes_table(self.schema, self.domain, batch)
        if self.emit is Emit.EVERY:
            return answers.instants_table(self.schema, self.domain, batch)
        if self.granule is not None:
            batch = answers.cut(batch, self.granule)
        return answers.final_table(self.schema, self.domain, batch)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema of all its tables."""
        time = self.domain.type
        when = [("valid_from", time), ("valid_to", time)]
        if self.changes:
            when = [("at", time), ("change", pa.int64())]
        elif self.emit is Emit.EVERY:
            when = [("at", time)]
        return pa.schema([*((field.name, field.type) for field in self.schema), *when])


class Delivery:
    """Collects the answers of a round, and delivers them to the sink as one batch."""

    def __init__(
        self, query: str, form: AnswerForm, context: Context, kept: KeptAnswer | None
    ) -> None:
        self.sink: Sink = Noop()
        self.rows = 0
        self.batches = 0
        self.kept = kept
        self.resumed = False  # whether something was delivered before a restart
        self._query = query
        self._form = form
        self._context = context
        self._gathered: list[Batch] = []
        self._early: list[Batch] = []
        self._frontier = NEVER

    def gather(self, batch: Batch) -> None:
        """Take the output of the root. It is gathered now: its columns may refer to state."""
        if not self._context.has_begun:
            early = batch.start < self._context.beginning
            if early.any():
                self._early.append(batch.where(early).gathered())
                batch = batch.where(~early)
        self._take(batch)

    def _take(self, batch: Batch) -> None:
        batch = answers.cropped(batch, self._context.beginning, self._context.in_order)
        if len(batch):
            self._gathered.append(batch.gathered())

    def _settle(self) -> None:
        """Crop answers before the first input, once the beginning of time is known."""
        if self._early and self._context.has_begun:
            early, self._early = self._early, []
            for batch in early:
                self._take(batch)

    def keep(self, horizon: int) -> None:
        """At the end of a round: keep its answers, if answers are kept, and drop those that ended
        before the horizon."""
        self._settle()
        if self.kept is not None:
            for batch in self._gathered:
                self.kept.add(batch)
            self.kept.forget(horizon)

    def give(self, nothing: Batch) -> None:
        """Deliver to the sink if there are rows or the frontier has moved. `nothing` is an empty
        batch with the frontier."""
        gathered, self._gathered = self._gathered, []
        if not gathered and nothing.frontier == self._frontier:
            return
        self._frontier = nothing.frontier
        batch = GivenBatch(self.batches, self.frontier)
        self.batches += 1
        self.rows += sum(map(len, gathered))
        if type(self.sink) is Noop:
            return
        table = self._form.table(merged([*gathered, nothing]))
        with _told(self._query):
            self.sink.give(table, batch)

    def save(self) -> State:
        return {
            "rows": self.rows,
            "batches": self.batches,
            "early": [batch.save() for batch in self._early],
            "frontier": self._frontier,
        }

    def restore(self, state: State) -> None:
        self.rows, self.batches = state["rows"], state["batches"]
        self._early = [Batch.restored(saved) for saved in state["early"]]
        self._frontier = state["frontier"]
        self.resumed = self.rows > 0

    def close(self) -> None:
        with _told(self._query):
            self.sink.close()

    @property
    def frontier(self) -> Instant | None:
        if self._frontier == NEVER:
            return None
        return shown(self._frontier, self._form.domain)


def deliver_all(
    query: str, form: AnswerForm, open_sink: Callable[[], Sink], answer: Callable[[], pa.Table]
) -> pa.Table:
    """Deliver the whole answer of a query as one batch; the sink is opened before it is
    computed."""
    sink = open_sink()
    try:
        table = answer()
        with _told(query):
            sink.give(table, GivenBatch(0, shown(INFINITY, form.domain)))
    finally:
        with _told(query):
            sink.close()
    return table


@contextmanager
def _told(query: str) -> Iterator[None]:
    """An error of a sink ends its query; the message names the query."""
    try:
        yield
    except MillstreamError as error:
        message, help = error.diagnostic.message, error.diagnostic.help
        raise QueryError(f'query "{query}": the sink failed: {message}', help=help) from error
    except Exception as error:
        raise QueryError(f'query "{query}": the sink failed: {error}') from error
