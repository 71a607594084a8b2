"""Pull queries: `run` answers once, from the stored rows of views and tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from millstream.api.catalog_entry import CatalogEntry
from millstream.api.continuous import check_format
from millstream.api.query import Query
from millstream.api.readable import Readable
from millstream.api.workspace import Workspace
from millstream.logical.catalog import RegisteredQuery
from millstream.logical.plan import Plan, SortKey
from millstream.logical.text import plan_json, plan_text
from millstream.model.arrays import single
from millstream.model.elements import Row
from millstream.model.errors import Diagnostic, MillstreamError, QueryError
from millstream.model.modes import Emit
from millstream.model.records import Records
from millstream.model.time import INFINITY
from millstream.physical.batch import Ints
from millstream.physical.expressions import Draws
from millstream.physical.operator import Context
from millstream.physical.ordering import order_words
from millstream.physical.signature import Signatures
from millstream.physical.text import physical_json, physical_text
from millstream.relations.live_answer import reading
from millstream.runtime import bounded
from millstream.runtime.answers import snapshot_table
from millstream.sql.binder import bind_query
from millstream.sql.pulls import Pull, Read, bind_pull, place_of
from millstream.sql.relations import with_time
from millstream.sql.statements import Select

if TYPE_CHECKING:
    from millstream.optimizer.planned import PlannedQuery
    from millstream.runtime.running import Running


class PullQuery(CatalogEntry):
    """The result of a SELECT over views and tables only. `run` answers from their stored rows, all
    read at one moment: each view at its own frontier. A pull query is not registered until `start`
    or `named`; `start` runs it continuously, with the queries of the views in their place;
    `refusal` is why that is not possible."""

    def __init__(
        self,
        session: PullSession,
        entry: RegisteredQuery,
        warnings: tuple[Diagnostic, ...],
        pull: Pull,
        refusal: MillstreamError | None,
    ) -> None:
        super().__init__(entry)
        self._session = session
        self.pull = pull
        self._refusal = refusal
        self._continuous = Query(session.workspace, entry, Emit.FINAL, warnings)
        #: Rows that could not be evaluated in the last run, each with its message.
        self.errors: list[tuple[Row, str]] = []

    @property
    def emit(self) -> Emit:
        return Emit.FINAL

    @property
    def sink(self) -> None:
        """None: a pull query has no sink."""

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        return self._continuous.warnings

    @property
    def running(self) -> Running | None:
        """The last result of `start`."""
        return self._continuous.running

    def __repr__(self) -> str:
        return f"<PullQuery {self.name}: {self.text}>"

    def _repr_html_(self) -> str:
        return self._continuous._repr_html_()

    @property
    def schema(self) -> pa.Schema:
        fields = self.pull.plan.schema[: self.pull.width]
        return pa.schema([(field.name, field.type) for field in fields])

    def run(self) -> pa.Table:
        """The rows, in the order of ORDER BY, else by their columns."""
        inputs = read_at_once(self._session, self.pull.reads)
        catalog = self._session.workspace.catalog
        draws = Draws(self._continuous._chance.seed)
        context = Context(catalog.functions, catalog.aggregates, draws=draws)
        table = rows_of(self.planned, context, inputs)
        self._continuous._note_errors(context.errors)
        self.errors = self._continuous.errors
        if self.pull.keys:
            table = table.take(pa.array(sorted_by(self.pull.keys, self.pull.plan, table)))
        return table.slice(0, self.pull.limit).select(range(self.pull.width))

    def to_arrow(self) -> pa.Table:
        """The rows, as from `run`."""
        return self.run()

    @cached_property
    def planned(self) -> PlannedQuery:
        """Its plan over the stored rows, as shown by `explain` and executed by `run`."""
        return self._session.workspace.plan_once(self.pull.plan)

    def start(self, *arguments: Any, **options: Any) -> Running:
        """Start it as a continuous query."""
        self._be_registered()
        return self._continuous.start(*arguments, **options)

    def named(self, name: str) -> PullQuery:
        """Register the query under a name; returns the query itself."""
        self._be_registered()
        self._continuous.named(name)
        return self

    def snapshot(self, *arguments: Any, **options: Any) -> pa.Table:
        """The answer of the continuous query at one instant."""
        return self._continuous.snapshot(*arguments, **options)

    def _be_registered(self) -> None:
        if self._refusal is not None:
            told = self._refusal.diagnostic
            raise QueryError(f"the query cannot run continuously: {told.message}", help=told.help)
        if not self._session.workspace.catalog.has_query(self._entry):
            self._entry.name = self._session.workspace.catalog.new_query_name()
            self._entry.dropped = False
            self._session.workspace.catalog.add_query(self._entry)
            self._session.add_query(self)

    def explain(
        self,
        format: str = "text",
        costs: bool = False,
        *,
        physical: bool = False,
        verbose: bool = False,
    ) -> str:
        """The plan over the stored rows, as for a continuous query; `costs` has no effect."""
        check_format(format)
        query, domain = self.planned, self.pull.plan.domain
        if format == "json":
            told_as = plan_json(query.bound)
            if physical:
                operators = physical_json(query.elements, self._signatures, domain)
                told_as = {"logical": told_as, "physical": operators}
            return json.dumps(told_as, indent=2, ensure_ascii=False)
        told = [plan_text(query.bound)]
        if verbose:
            told += [f"after {rule}\n{plan_text(plan)}" for rule, plan in query.rewrites]
        if physical:
            told.append(physical_text(query.elements, domain, self._signatures))
        return "\n\n".join(told)

    @property
    def _signatures(self) -> Signatures:
        catalog = self._session.workspace.catalog
        return Signatures(catalog.functions, catalog.aggregates)


class PullSession(Protocol):
    """What pull queries need from a session."""

    workspace: Workspace

    def reader(self, read: Read) -> Readable:
        """The holder of the rows that a query reads."""

    def add_query(self, query: PullQuery) -> None:
        """Add a query that is in the catalog already to the session."""


def pull_query(
    session: PullSession, statement: Select, parameters: Mapping[str, object]
) -> PullQuery:
    """The query of a statement that `is_pull`."""
    workspace = session.workspace
    pull = bind_pull(statement.query, workspace.catalog, parameters)
    entry = RegisteredQuery("pull", pull.plan, str(statement), frozenset())
    strict = workspace.settings.strict
    try:
        bound = bind_query(statement.query, workspace.catalog, parameters, strict)
    except MillstreamError as error:
        return PullQuery(session, entry, (), pull, error)
    entry.plan = with_time(bound.plan, workspace.origins.times_named(bound.plan))
    entry.depends_on = bound.depends_on
    return PullQuery(session, entry, bound.warnings, pull, None)


def rows_of(query: PlannedQuery, context: Context, inputs: Mapping[str, Records]) -> pa.Table:
    """The answer over constant relations: its snapshot at any instant."""
    context.beginning = 0  # even if no relation has a row
    batch = bounded.answer(query.elements, context, inputs)
    batch = batch.where((batch.start <= 0) & (batch.end > 0))
    return snapshot_table(query.bound.schema, batch)


def sorted_by(keys: tuple[SortKey, ...], plan: Plan, table: pa.Table) -> Ints:
    """The positions of the rows in the order of the keys."""
    words: list[Ints] = []
    for key in keys:
        column = single(table.column(place_of(key, plan)))
        *nulls, values = order_words(column)
        words += [null if key.nulls_first else -null for null in nulls]
        words.append(~values if key.descending else values)
    return np.lexsort(words[::-1])


def read_at_once(session: PullSession, reads: Mapping[str, Read]) -> dict[str, Records]:
    """The rows of everything read, at one moment. Files are read after the locks are released, so
    that no view waits."""

    def take() -> Callable[[], dict[str, Records]]:
        with _locked(session, reads.values()) as kept:
            taken = {source: kept[read.name].read(read) for source, read in reads.items()}
        return lambda: {source: _constant(rows()) for source, rows in taken.items()}

    return reading(take)


@contextmanager
def at_one_moment(
    session: PullSession, reads: Iterable[Read]
) -> Iterator[Callable[[Read], Records]]:
    """A function that reads the rows, taken while none of them change."""
    with _locked(session, reads) as kept:
        yield lambda read: _constant(kept[read.name].read(read)())


@contextmanager
def _locked(session: PullSession, reads: Iterable[Read]) -> Iterator[Mapping[str, Readable]]:
    """The holders of the rows, locked."""
    kept = {read.name: session.reader(read) for read in reads}
    with ExitStack() as locks:
        for _, each in sorted(kept.items()):
            locks.enter_context(each.lock)
        yield kept


def _constant(rows: Records) -> Records:
    """The rows as those of a constant relation."""
    start, end = np.zeros(len(rows), np.int64), np.full(len(rows), INFINITY)
    return replace(rows, start=start, end=end)
