"""Pull queries: `run` answers once, from the rows that views and tables keep."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from millstream.api.query import Query
from millstream.logical.catalog import RegisteredQuery
from millstream.logical.plan import Plan, SortKey
from millstream.logical.text import plan_json, plan_text
from millstream.model.arrays import single
from millstream.model.errors import Diagnostic, MillstreamError, QueryError
from millstream.model.records import Records
from millstream.model.time import INFINITY
from millstream.physical.batch import Ints
from millstream.physical.ordering import order_words
from millstream.relations.standing import reading
from millstream.runtime import bounded
from millstream.runtime.answers import snapshot_table
from millstream.sql.binder import bind_query
from millstream.sql.pulls import Pull, Read, bind_pull, place_of
from millstream.sql.relations import with_time
from millstream.sql.statements import Select

if TYPE_CHECKING:
    from millstream.api.kept_answers import Readable
    from millstream.api.session import Session
    from millstream.physical.operator import Context, PhysicalPlan
    from millstream.runtime.running import Running


class PullQuery(Query):
    """What a SELECT over views and tables alone gives. `run` answers from what they keep, all read
    at one moment: each view as it stands at its own frontier. A question is not registered: only
    `start` does that, and runs the query for ever, with the queries of the views in their place;
    `refusal` is why that cannot be."""

    def __init__(
        self,
        session: Session,
        entry: RegisteredQuery,
        warnings: tuple[Diagnostic, ...],
        pull: Pull,
        refusal: MillstreamError | None,
    ) -> None:
        super().__init__(session, entry, "FINAL", warnings)
        self.pull = pull
        self._refusal = refusal

    def _answer(self) -> pa.Table:
        """The rows, in the order that the query asks for, else by their columns."""
        inputs = read_at_once(self._session, self.pull.reads)
        context = self._context()
        table = rows_of(self.pull.plan, self._kept_plan, context, inputs)
        self._note_errors(context.errors)
        if self.pull.keys:
            table = table.take(pa.array(sorted_by(self.pull.keys, self.pull.plan, table)))
        return table.slice(0, self.pull.limit).select(range(self.pull.width))

    @cached_property
    def _kept_plan(self) -> PhysicalPlan:
        return chosen(self._session, self.pull.plan)

    @property
    def schema(self) -> pa.Schema:
        fields = self.pull.plan.schema[: self.pull.width]
        return pa.schema([(field.name, field.type) for field in fields])

    def start(self, *arguments: object, **options: object) -> Running:
        """Let it run for ever, as any other query."""
        if self._refusal is not None:
            told = self._refusal.diagnostic
            raise QueryError(f"the query can only be asked once: {told.message}", help=told.help)
        self._be_registered()
        return super().start(*arguments, **options)  # type: ignore[arg-type]

    def named(self, name: str) -> Query:
        self._be_registered()
        return super().named(name)

    def _be_registered(self) -> None:
        if self._session.queries.get(self.name) is not self:
            self._entry.name = self._session.catalog.new_query_name()
            self._session._registered(self)

    def _check_registered(self) -> None:
        """It need not be."""

    def explain(
        self,
        format: str = "text",
        costs: bool = False,
        *,
        physical: bool = False,
        verbose: bool = False,
    ) -> str:
        """The plan over what is kept; `costs` and `verbose` have nothing to add."""
        from millstream.physical.text import physical_json, physical_text

        if format == "json":
            told_as = plan_json(self.pull.plan)
            if physical:
                told_as = {"logical": told_as, "physical": physical_json(self._kept_plan)}
            return json.dumps(told_as, indent=2, ensure_ascii=False)
        told = [plan_text(self.pull.plan)]
        if physical:
            told.append(physical_text(self._kept_plan, self.pull.plan.domain))
        return "\n\n".join(told)


def pull_query(session: Session, statement: Select, parameters: Mapping[str, object]) -> PullQuery:
    """The query of a statement that `is_pull`."""
    pull = bind_pull(statement.query, session.catalog, parameters)
    entry = RegisteredQuery("pull", pull.plan, str(statement), frozenset())
    try:
        bound = bind_query(statement.query, session.catalog, parameters, session.strict)
    except MillstreamError as error:
        return PullQuery(session, entry, (), pull, error)
    entry.plan = with_time(bound.plan, session._origins.times_named(bound.plan))
    entry.depends_on = bound.depends_on
    return PullQuery(session, entry, bound.warnings, pull, None)


def chosen(session: Session, plan: Plan) -> PhysicalPlan:
    from millstream.optimizer.choice import choose
    from millstream.optimizer.optimize import optimize

    return choose(optimize(plan) if session.optimize else plan, "ELEMENTS")


def rows_of(
    plan: Plan, chosen: PhysicalPlan, context: Context, inputs: Mapping[str, Records]
) -> pa.Table:
    """The answer over relations that are constant: its snapshot at any instant."""
    context.beginning = 0  # also where no relation has a row
    batch = bounded.answer(chosen, context, inputs)
    batch = batch.where((batch.start <= 0) & (batch.end > 0))
    return snapshot_table(plan.schema, batch)


def sorted_by(keys: tuple[SortKey, ...], plan: Plan, table: pa.Table) -> Ints:
    """The places of the rows in the order of the keys."""
    words: list[Ints] = []
    for key in keys:
        column = single(table.column(place_of(key, plan)))
        *nulls, values = order_words(column)
        words += [null if key.nulls_first else -null for null in nulls]
        words.append(~values if key.descending else values)
    return np.lexsort(words[::-1])


def read_at_once(session: Session, reads: Mapping[str, Read]) -> dict[str, Records]:
    """The rows of all that is read, at one moment. Files are read when all is taken, so that no
    view waits for that."""

    def take() -> Callable[[], dict[str, Records]]:
        with _locked(session, reads.values()) as kept:
            taken = {source: kept[read.name].read(read) for source, read in reads.items()}
        return lambda: {source: _constant(rows()) for source, rows in taken.items()}

    return reading(take)


@contextmanager
def at_one_moment(session: Session, reads: Iterable[Read]) -> Iterator[Callable[[Read], Records]]:
    """Nothing of what is read changes meanwhile: a function that reads it."""
    with _locked(session, reads) as kept:
        yield lambda read: _constant(kept[read.name].read(read)())


@contextmanager
def _locked(session: Session, reads: Iterable[Read]) -> Iterator[Mapping[str, Readable]]:
    """Who has what is read, and does not change."""
    kept = {read.name: session._kept.reader(read) for read in reads}
    with ExitStack() as locks:
        for _, each in sorted(kept.items()):
            locks.enter_context(each.lock)
        yield kept


def _constant(rows: Records) -> Records:
    """The rows as those of a relation that does not change."""
    start, end = np.zeros(len(rows), np.int64), np.full(len(rows), INFINITY)
    return replace(rows, start=start, end=end)
