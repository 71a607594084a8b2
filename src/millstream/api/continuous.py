"""A query that can be run, started and explained: the base of registered queries and views."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.api.admission import Admission
from millstream.api.catalog_entry import CatalogEntry
from millstream.api.workspace import Workspace
from millstream.logical.catalog import Connector, RegisteredQuery
from millstream.logical.instants import chronon
from millstream.logical.plan import Plan
from millstream.logical.text import plan_json, plan_text
from millstream.model.elements import Row
from millstream.model.errors import (
    MillstreamWarning,
    QueryError,
    RowErrorWarning,
    brief_row,
    listed,
    told_of_row,
    warn_caller,
)
from millstream.model.modes import Emit, QueryState

if TYPE_CHECKING:
    from millstream.connectors.contracts import Sink
    from millstream.optimizer.cost import Estimates
    from millstream.optimizer.planned import PlannedQuery
    from millstream.physical.operator import PhysicalPlan
    from millstream.physical.signature import Signatures
    from millstream.runtime.delivery import AnswerForm
    from millstream.runtime.running import Running
    from millstream.runtime.whole_answers import RandomDraws


class ContinuousQuery(CatalogEntry):
    """A bound query of a session, and the plan that executes it."""

    def __init__(
        self,
        workspace: Workspace,
        entry: RegisteredQuery,
        emit: Emit,
        sink: Connector | None = None,
        shed: float | None = None,
    ) -> None:
        super().__init__(entry)
        self._workspace = workspace
        #: Where INSERT INTO writes.
        self.sink = sink
        self.emit = emit
        #: The share of a stream's rows that may be dropped under overload.
        self.shed = float(workspace.settings.shed) if shed is None else shed
        #: The last result of `start`.
        self.running: Running | None = None
        #: Rows that could not be evaluated in the last run, each with its message.
        self.errors: list[tuple[Row, str]] = []
        self._planned: PlannedQuery | None = None
        self._drawn: RandomDraws | None = None
        self._told_errors = 0  # how many were in the last warning
        self._refused: list[tuple[Row, str]] = []  # rows of the answer that the sink refused

    def _check_there(self) -> None:
        if self._entry.dropped:
            raise QueryError(f'query "{self.name}" was dropped')

    def _note_state(self, state: QueryState) -> None:
        self._entry.state = state

    @property
    def schema(self) -> pa.Schema:
        """The columns of the answer, without valid_from and valid_to."""
        return pa.schema([(field.name, field.type) for field in self.plan.schema])

    # --- its plan --------------------------------------------------------------------------------

    @property
    def planned(self) -> PlannedQuery:
        """Its plan, as shown by `explain` and executed by `run` and `start`. It is made once, and
        again when a table is no longer small, unless the query runs."""
        if self._planned is None or not self._is_running:
            self._planned = self._workspace.plan(self.plan, self.emit, self._planned)
        return self._planned

    @property
    def _is_running(self) -> bool:
        return self.running is not None and self.running.state is QueryState.RUNNING

    @property
    def rewrites(self) -> list[tuple[str, Plan]]:
        """The rewrites of the optimizer, by rules or by cost, each with the resulting plan."""
        return list(self.planned.rewrites)

    @property
    def optimized_plan(self) -> Plan:
        """The plan that is executed, with the same answer and errors as `plan`."""
        return self.planned.optimized

    @property
    def physical_plan(self) -> PhysicalPlan:
        """The operators that run."""
        return self.planned.physical

    def estimates(self) -> Estimates:
        """The estimated output, state and time of its operators, from the declarations of its
        streams, or from a sample of rows in memory; includes the rows that will be dropped."""
        return self._started_as.estimates

    @property
    def _admission(self) -> Admission:
        return Admission(self.name, self.planned, self.shed, self._workspace)

    @property
    def _started_as(self) -> PlannedQuery:
        return self._admission.foreseen() if self.shed else self.planned

    def explain(
        self,
        format: str = "text",
        costs: bool = False,
        *,
        physical: bool = False,
        verbose: bool = False,
    ) -> str:
        """The plan as text, or as JSON with `format="json"`.

        With `physical` also the operators that run when it is started: in text below a blank line,
        for the Spark engine in fragments, in JSON as `{"logical": …, "physical": …}`. With `costs`
        also their estimated output, state and time, in JSON as `"costs"`. With `verbose` the text
        shows the plan after each rule of the optimizer that changed it.
        """
        check_format(format)
        if format == "text":
            told = [plan_text(self.plan)]
            if verbose:
                told += [f"after {rule}\n{plan_text(plan)}" for rule, plan in self.rewrites]
            told += [self._workspace.engine.explained(self._started_as)] if physical else []
            return "\n\n".join(told + ([self._costs_text()] if costs else []))
        logical = plan_json(self.plan)
        more = {"physical": self._physical_json()} if physical else {}
        more |= {"costs": self._costs_json()} if costs else {}
        return json.dumps(
            {"logical": logical} | more if more else logical, indent=2, ensure_ascii=False
        )

    def _physical_json(self) -> dict[str, object]:
        from millstream.physical.text import physical_json

        return physical_json(self._started_as.physical, self._signatures, self.plan.domain)

    @property
    def _signatures(self) -> Signatures:
        from millstream.physical.signature import Signatures

        catalog = self._workspace.catalog
        return Signatures(catalog.functions, catalog.aggregates)

    def _costs_text(self) -> str:
        from millstream.optimizer.cost.text import costs_text

        return "\n".join([costs_text(self.estimates()), *self._admission.lines()])

    def _costs_json(self) -> dict[str, object]:
        from millstream.optimizer.cost.text import costs_json

        return costs_json(self.estimates(), self._signatures)

    # --- its whole answer ------------------------------------------------------------------------

    def run(self) -> pa.Table:
        """The whole answer over bounded input.

        EMIT FINAL returns `valid_from` and `valid_to` with each row; EMIT CHANGES returns the rows
        added (`change` > 0) and removed (`change` < 0) with the instant `at` which they are. INSERT
        INTO also writes the answer to its sink as one batch.
        """
        self._check_there()
        return self._answer() if self.sink is None else self._deliver(self._opened_sink)

    def to_arrow(self) -> pa.Table:
        """The whole answer, as from `run`."""
        return self.run()

    @property
    def _form(self) -> AnswerForm:
        from millstream.runtime.delivery import AnswerForm

        return AnswerForm(self.plan.schema, self.plan.domain, self.emit)

    @property
    def _arrow_schema(self) -> pa.Schema:
        return self._form.arrow_schema

    def _opened_sink(self) -> Sink:
        """The sink of INSERT INTO, opened."""
        from millstream.api.starting import sink_context

        context = sink_context(self._workspace, self.name, self.emit, self._arrow_schema)
        context = replace(context, refuse=self._refuse)
        return self._workspace.connectors.open_sink(self.sink, context)

    def _refuse(self, row: Row, message: str) -> None:
        self._refused.append((row, message))

    def _deliver(self, open_sink: Callable[[], Sink]) -> pa.Table:
        """Deliver the whole answer to a sink as one batch."""
        from millstream.runtime.delivery import deliver_all

        answer = deliver_all(self.name, self._form, open_sink, self._answer)
        refused, self._refused = self._refused, []
        if refused:
            self._note_errors([*self.errors, *refused])
        return answer

    def _answer(self) -> pa.Table:
        self._warn_if_time_never_begins()
        answered = self._workspace.engine.run(self.planned, self._chance)
        self._note_errors(answered.errors)
        return answered.table

    def snapshot(
        self,
        at: int | str | datetime.datetime | datetime.date,
        timeout: float | None = None,
    ) -> pa.Table:
        """The answer at one instant, with duplicates. While the query runs, this is the running
        query's answer, once it is final; `timeout` is in seconds."""
        self._check_there()
        if self.running is not None and self.running.answers_snapshots:
            return self.running.snapshot(at, timeout)
        self._warn_if_time_never_begins()
        instant = chronon(at, self.plan.domain)
        answered = self._workspace.engine.snapshot(self.planned, self._chance, instant)
        self._note_errors(answered.errors)
        return answered.table

    @property
    def _chance(self) -> RandomDraws:
        """The random draws of its nondeterministic functions."""
        from millstream.runtime.whole_answers import RandomDraws

        if self._drawn is None:
            self._drawn = RandomDraws()
        return self._drawn

    def _warn_if_time_never_begins(self) -> None:
        """A query over tables only begins with their first timed change."""
        tables = self._workspace.origins.without_times(self.plan)
        if tables:
            warn_caller(
                "the answer is empty: it begins with the first change that has a time, and no "
                f"change of {'table' if len(tables) == 1 else 'tables'} {listed(tables)} does",
                MillstreamWarning,
                "leave EMIT out to get the current rows, give changes a time with EFFECTIVE "
                "AT, or start the query",
            )

    def _note_errors(self, errors: Iterable[tuple[Row, str]]) -> None:
        """Handle rows that could not be evaluated: they end the query, or cause a warning."""
        self.errors = [(row, told_of_row(message)) for row, message in errors]
        if self.errors and self._workspace.settings.on_error == "stop":
            row, message = self.errors[0]
            raise QueryError(f'query "{self.name}" failed on row {brief_row(row)}: {message}')
        if self.errors:
            self._warn_of_errors(*self.errors[0])

    def _warn_of_errors(self, row: Row, message: str) -> None:
        """Warn once, even if the query runs again, unless there are more rows."""
        from millstream.runtime.outputs import unusable

        if len(self.errors) > self._told_errors:
            self._told_errors = len(self.errors)
            told = unusable(self.name, len(self.errors), f"{message} in row {brief_row(row)}")
            warn_caller(told, RowErrorWarning, "query.errors has all of them")

    # --- running ---------------------------------------------------------------------------------

    def start(
        self,
        sink: object = None,
        name: str | None = None,
        checkpoint: str | None = None,
        trigger: str | None = None,
        late: object = None,
        errors: object = None,
        *,
        snapshots: bool = False,
    ) -> Running:
        """Start the query; it runs until its inputs end or it is stopped.

        `sink` is a name, `ms.sink(name, …)`, or a function `f(table, batch)` that is called, in
        order, with the rows of each batch and its `id` and `frontier`; without one the results are
        kept for `results()`, unless INSERT INTO names one. `trigger`: None processes rows as soon
        as they arrive, a duration such as "500 milliseconds" at most that often, "available_now"
        reads bounded streams to their end. `late` and `errors` are functions or lists that receive
        tables of late rows and `ErrorRow`s. `snapshots` keeps what `snapshot` needs if there is a
        sink.
        """
        from millstream.api.starting import Start, launch
        from millstream.runtime.running import Running

        self._check_there()
        if self.sink is not None and sink is not None:
            raise QueryError(
                f'query "{self.name}" has a sink already: INSERT INTO {self.sink.name}',
                help="start it without a sink, or start the SELECT alone",
            )
        if self._is_running:
            raise QueryError(f'query "{self.name}" is running already')
        given = self.sink if sink is None else sink
        asked = Start(given, checkpoint, trigger, late, errors, snapshots)
        prepared = launch(self, self._workspace, asked)
        if name is not None:
            self._rename(name)
            prepared = replace(prepared, name=self.name)
        self.running = Running(prepared)
        return self.running

    def _rename(self, name: str) -> None:
        self._entry.name = name


def check_format(format: str) -> None:
    """The formats of `explain`."""
    if format not in ("text", "json"):
        raise QueryError(f'format "{format}" does not exist', help='use "text" or "json"')
