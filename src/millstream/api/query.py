"""A registered query: run it, look at an instant of it, explain it."""

from __future__ import annotations

import datetime
import json
import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.logical import reference_answers
from millstream.logical.analysis import given_anew
from millstream.logical.catalog import Connector, RegisteredQuery
from millstream.logical.instants import chronon
from millstream.logical.plan import Plan
from millstream.logical.reference import Reference
from millstream.logical.text import plan_json, plan_text
from millstream.model.elements import Row, row_key
from millstream.model.errors import (
    Diagnostic,
    MillstreamWarning,
    QueryError,
    RowErrorWarning,
    listed,
    warn_caller,
)
from millstream.model.records import Records
from millstream.model.time import INFINITY

if TYPE_CHECKING:
    from millstream.api.session import Session
    from millstream.connectors.contracts import Sink
    from millstream.fragments.opening import Opener
    from millstream.optimizer.cost import Estimates
    from millstream.optimizer.planning import Planner
    from millstream.physical.batch import Batch
    from millstream.physical.operator import Context, PhysicalPlan
    from millstream.runtime.running import Running
    from millstream.spark.runs import SparkRun


class Query:
    """What `session.sql("SELECT …")` gives."""

    def __init__(
        self,
        session: Session,
        entry: RegisteredQuery,
        emit: str,
        warnings: tuple[Diagnostic, ...],
        sink: Connector | None = None,
        shed: float | None = None,
    ) -> None:
        self._session = session
        self._entry = entry
        #: Where INSERT INTO writes.
        self.sink = sink
        self.emit = emit
        #: The share of a stream's rows that may be dropped where there is too much.
        self.shed = float(session.shed) if shed is None else shed
        self.warnings = warnings
        #: What `start` gave last.
        self.running: Running | None = None
        # What functions that are not deterministic give to a row stays: the reference keeps it,
        # the engines draw it again from the same seed.
        self._draws: dict[tuple[int, tuple[object, ...]], object] = {}
        self._seed = secrets.randbits(64)
        #: Rows that could not be evaluated in the last run, each with its message.
        self.errors: list[tuple[tuple[object, ...], str]] = []
        self._told_errors = 0  # how many were warned of
        self._refused: list[tuple[Row, str]] = []  # of the answer, by its sink

    @property
    def name(self) -> str:
        return self._entry.name

    def named(self, name: str) -> Query:
        """The query itself, under a name of your own instead of the generated one."""
        self._check_registered()
        self._session._rename(self, name)
        return self

    @property
    def state(self) -> str:
        """What SHOW QUERIES tells: registered, running, stopped or failed."""
        return self._entry.state

    @property
    def text(self) -> str:
        """Its statement, as the parser understood it."""
        return self._entry.text

    @property
    def plan(self) -> Plan:
        return self._entry.plan

    @property
    def schema(self) -> pa.Schema:
        """The columns of the answer itself, without those that say when it holds."""
        return pa.schema([(field.name, field.type) for field in self.plan.schema])

    def __repr__(self) -> str:
        return f"<Query {self.name}: {self._entry.text}>"

    def _repr_html_(self) -> str:
        from millstream.model.display import query_html

        return query_html(self)

    def explain(
        self,
        format: str = "text",
        costs: bool = False,
        *,
        physical: bool = False,
        verbose: bool = False,
    ) -> str:
        """The plan as text, or as JSON with `format="json"`.

        With `physical` also the operators that run: in text below a blank line, for the Spark
        engine in fragments, in JSON as `{"logical": …, "physical": …}`. With `costs` also what they
        are estimated to give, to keep and to take, in JSON as `"costs"`. With `verbose` the text
        shows the plan after each rule of the optimizer that changed it.
        """
        if format not in ("text", "json"):
            raise QueryError(f'format "{format}" does not exist', help='use "text" or "json"')
        if format == "text":
            told = [plan_text(self.plan)]
            if verbose:
                told += [f"after {rule}\n{plan_text(plan)}" for rule, plan in self.rewrites]
            told += [self._physical_text()] if physical else []
            return "\n\n".join(told + ([self._costs_text()] if costs else []))
        logical = plan_json(self.plan)
        more = {"physical": self._physical_json()} if physical else {}
        more |= {"costs": self._costs_json()} if costs else {}
        return json.dumps(
            {"logical": logical} | more if more else logical, indent=2, ensure_ascii=False
        )

    def _physical_text(self) -> str:
        if self._session.engine == "spark":
            from millstream.fragments.cutting import fragments_of
            from millstream.fragments.text import fragments_text

            text = fragments_text(fragments_of(self.physical_plan), self.plan.domain)
            return "\n".join([text, *self._spark_run().native_lines()])
        from millstream.physical.text import physical_text

        return physical_text(self.physical_plan, self.plan.domain)

    def _physical_json(self) -> dict[str, object]:
        from millstream.physical.text import physical_json

        return physical_json(self.physical_plan, self.plan.domain)

    def _costs_text(self) -> str:
        from millstream.api.load import what_is_too_much
        from millstream.optimizer.cost.text import costs_text

        return "\n".join([costs_text(self.estimates()), *what_is_too_much(self)])

    def _costs_json(self) -> dict[str, object]:
        from millstream.optimizer.cost.text import costs_json

        return costs_json(self.estimates())

    def estimates(self) -> Estimates:
        """What its operators are estimated to give, to keep and to take, by what is declared of its
        streams, or else by a look at their rows where they are in memory; where rows will be
        dropped, with those drops."""
        from millstream.api.load import estimates_of

        return estimates_of(self)

    def run(self) -> pa.Table:
        """The whole answer over bounded input.

        EMIT FINAL gives `valid_from` and `valid_to` beside each row; EMIT CHANGES gives the rows
        that come (`change` > 0) and go (`change` < 0) with the instant `at` which they do.
        INSERT INTO writes it to its sink as one batch, and gives it too.
        """
        self._check_registered()
        return self._answer() if self.sink is None else self._deliver(self._opened_sink)

    def _opened_sink(self) -> Sink:
        """The sink of INSERT INTO, ready to be written."""
        from millstream.runtime.delivery import AnswerForm
        from millstream.runtime.starting import sink_context

        form = AnswerForm(self.plan.schema, self.plan.domain, self.emit)
        context = sink_context(self._session, self, form.arrow_schema)
        return self._session.connectors.open_sink(self.sink, replace(context, refuse=self._refuse))

    def _refuse(self, row: Row, message: str) -> None:
        self._refused.append((row, message))

    def _deliver(self, open_sink: Callable[[], Sink]) -> pa.Table:
        from millstream.runtime.delivery import AnswerForm, deliver_all

        form = AnswerForm(self.plan.schema, self.plan.domain, self.emit)
        answer = deliver_all(self.name, form, open_sink, self._answer)
        refused, self._refused = self._refused, []
        if refused:
            self._note_errors([*self.errors, *refused])
        return answer

    def _answer(self) -> pa.Table:
        self._warn_if_time_never_begins()
        match self._session.engine:
            case "reference":
                return self._run_reference(self._inputs())
            case "spark":
                return self._run_spark()
        return self._run_local(self._inputs())

    def _warn_if_time_never_begins(self) -> None:
        """A query over tables alone begins with their first change that names its time."""
        tables = self._session._origins.without_times(self.plan)
        if tables:
            warn_caller(
                "the answer is empty: it begins with the first change that names its time, and no "
                f"change of {'table' if len(tables) == 1 else 'tables'} {listed(tables)} does",
                MillstreamWarning,
                "leave EMIT out to get the present rows, name the time of changes with EFFECTIVE "
                "AT, or start the query",
            )

    def _inputs(self) -> dict[str, Records]:
        return self._session._origins.inputs(self.plan)

    def _run_reference(self, inputs: Mapping[str, Records]) -> pa.Table:
        reference = self._reference(inputs)
        elements = reference.result()
        self._note_errors(reference.errors)
        schema, domain, granule = self.plan.schema, self.plan.domain, given_anew(self.plan)
        if self.emit == "CHANGES":
            return reference_answers.changes_table(schema, domain, elements)
        if self.emit == "EVERY" and granule is not None:
            return reference_answers.instants_table(schema, domain, elements, granule)
        return reference_answers.final_table(schema, domain, elements, granule)

    def _run_local(self, inputs: Mapping[str, Records]) -> pa.Table:
        from millstream.runtime import bounded

        context = self._context()
        batches = bounded.answers(self.physical_plan, context, inputs)
        self._note_errors(context.errors)
        return self._answer_table(batches, context.beginning)

    def _run_spark(self) -> pa.Table:
        run = self._spark_run()
        native = run.native() if self.emit == "FINAL" else None
        if native is not None:
            self._note_errors(())
            return self._answer_table([run.native_answer(native)], -INFINITY)
        outcome = run.outcome(self.physical_plan)
        self._note_errors(outcome.errors)
        return self._answer_table([outcome.answer()], outcome.present.beginning)

    def _spark_run(self) -> SparkRun:
        from millstream.spark.runs import SparkRun

        return SparkRun(self._session, self.optimized_plan, self._seed)

    def _answer_table(self, batches: Sequence[Batch], beginning: int) -> pa.Table:
        """The whole answer of a finished run, in normal form and in order."""
        from millstream.physical.batch import merged
        from millstream.physical.ordering import in_order
        from millstream.runtime import answers
        from millstream.runtime.normal_form import added_up, whole_answer

        schema, domain = self.plan.schema, self.plan.domain
        if self.emit == "CHANGES":
            return answers.changes_table(schema, domain, in_order(merged(batches)))
        batches = [answers.cropped(batch, beginning) for batch in batches]
        granule = given_anew(self.plan)
        if granule is None:
            pieces = whole_answer(batches)
        elif self.emit == "EVERY":
            batch = in_order(answers.repeated(added_up(merged(batches)), granule))
            return answers.instants_table(schema, domain, batch)
        else:
            pieces = [answers.cut(added_up(merged(batches)), granule)]
        tables = [answers.final_table(schema, domain, batch) for batch in pieces]
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables)

    @cached_property
    def rewrites(self) -> list[tuple[str, Plan]]:
        """What the optimizer changed, by rules or for its cost, each with what it made of it."""
        return list(self._planner.steps(self.plan)) if self._session.optimize else []

    @cached_property
    def _planner(self) -> Planner:
        from millstream.optimizer.choice import Approach, Choices
        from millstream.optimizer.cost import known_constants
        from millstream.optimizer.planning import Planner, has_choices
        from millstream.optimizer.statistics import Statistics

        choices = Choices(approach=Approach(self._session.approach))
        if not (self._session.optimize and has_choices(self.plan)):
            return Planner(Statistics(), known_constants(), choices)
        known = self._session._origins.statistics(self.plan)
        together = self._session.engine == "local"
        return Planner(known, known_constants(), choices, together, self._session.memory)

    @property
    def optimized_plan(self) -> Plan:
        """The plan that is carried out, which has the answer and the errors of `plan`."""
        return self.rewrites[-1][1] if self.rewrites else self.plan

    @cached_property
    def physical_plan(self) -> PhysicalPlan:
        """The operators that the local engine runs."""
        return self._chosen(self.optimized_plan)

    def _chosen(self, plan: Plan) -> PhysicalPlan:
        return self._planner.operators(plan, self.emit)

    def _context(self) -> Context:
        from millstream.physical.expressions import Draws
        from millstream.physical.operator import Context

        catalog = self._session.catalog
        return Context(catalog.functions, catalog.aggregates, draws=Draws(self._seed))

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
        """Let the query run until its inputs end or it is stopped.

        `sink` is a name, `ms.sink(name, …)`, or a function `f(table, batch)` that is called, in
        order, with the rows of each batch and its `id` and `frontier`; without one the results are
        kept, for `results()`, unless INSERT INTO names one. `trigger`: None takes what has arrived
        as soon as something has, a duration such as "500 milliseconds" at most that often,
        "available_now" reads streams that end to their end. `late` and `errors` are functions, or
        lists, that get tables of rows that came too late and `ErrorRow`s. `snapshots` keeps what
        `snapshot` needs where there is a sink.
        """
        from millstream.api.load import shares_kept
        from millstream.optimizer.shedding.queries import with_drops
        from millstream.runtime.starting import start

        self._check_registered()
        checkpoint = None if checkpoint is None else os.path.abspath(checkpoint)
        shares = {} if self._session.engine == "reference" else shares_kept(self)
        plan = with_drops(self.optimized_plan, shares)
        # A checkpoint goes on with the shares that it has, whatever they would be now.
        own = with_drops(self.plan, dict.fromkeys(shares, 0.5))
        opener = self._opener(own, checkpoint, discards=sink == "noop" and not snapshots)
        self.running = start(
            self._session, self, plan, sink, name, checkpoint, trigger, late, errors, snapshots,
            opener,
        )  # fmt: skip
        return self.running

    def _opener(self, plan: Plan, checkpoint: str | None, discards: bool) -> Opener | None:
        """Who opens the operators, if they do not simply run in the thread of the query."""
        on_spark = self._session.engine == "spark"
        if checkpoint is None and not on_spark:
            return None
        from millstream.checkpoint.identity import identity
        from millstream.fragments.opening import Opener

        catalog = self._session.catalog
        own = identity(plan, self.emit, catalog.functions, catalog.aggregates)
        if not on_spark:
            return Opener(own, self._seed, checkpoint, discards=discards)
        from millstream.spark.executor import OnSpark

        spark = self._session.spark
        places = spark.sparkContext.defaultParallelism
        executor = partial(OnSpark.opened, spark)
        return Opener(own, self._seed, checkpoint, places, executor, discards)

    def snapshot(
        self,
        at: int | str | datetime.datetime | datetime.date,
        timeout: float | None = None,
    ) -> pa.Table:
        """The answer at one instant; a row that holds n times is there n times. While the query
        runs, it is that of the running one, once it is final: `timeout` is in seconds."""
        self._check_registered()
        if self.running is not None and self.running.answers_snapshots:
            return self.running.snapshot(at, timeout)
        self._warn_if_time_never_begins()
        instant = chronon(at, self.plan.domain)
        if self._session.engine == "reference":
            reference = self._reference(self._inputs())
            bag = reference.answer(instant)
            self._note_errors(reference.errors)
            rows = sorted(bag.elements(), key=row_key)
            return reference_answers.rows_table(self.plan.schema, rows)
        return self._snapshot(instant)

    def _snapshot(self, instant: int) -> pa.Table:
        from millstream.optimizer.choice import choose
        from millstream.runtime.answers import snapshot_table

        # Whatever the approach: nothing may wait.
        plan = choose(self.optimized_plan, emit="ELEMENTS")
        if self._session.engine == "spark":
            outcome = self._spark_run().outcome(plan, instant)
            batch, beginning, errors = outcome.answer(), outcome.present.beginning, outcome.errors
        else:
            from millstream.runtime import bounded

            context = self._context()
            until = {name: records.until(instant) for name, records in self._inputs().items()}
            batch = bounded.answer(plan, context, until, instant + 1)
            beginning, errors = context.beginning, context.errors
        self._note_errors(errors)
        holds = (batch.start <= instant) & (instant < batch.end) & (beginning <= instant)
        return snapshot_table(self.plan.schema, batch.where(holds))

    def note_state(self, state: str) -> None:
        self._entry.state = state

    def _check_registered(self) -> None:
        if self._session.queries.get(self.name) is not self:
            raise QueryError(f'query "{self.name}" was dropped')

    def _reference(self, inputs: Mapping[str, Records]) -> Reference:
        return Reference(
            self.plan,
            {name: records.elements() for name, records in inputs.items()},
            self._session.catalog.functions,
            self._session.catalog.aggregates,
            self._draws,
        )

    def _note_errors(self, errors: Iterable[tuple[Row, str]]) -> None:
        self.errors = list(errors)
        if self.errors and self._session.on_error == "stop":
            row, message = self.errors[0]
            raise QueryError(f'query "{self.name}" failed on row {row}: {message}')
        if self.errors:
            self._warn_of_errors(*self.errors[0])

    def _warn_of_errors(self, row: Row, message: str) -> None:
        """Once, however often the query is asked, unless there are more."""
        from millstream.runtime.outputs import unusable

        if len(self.errors) > self._told_errors:
            self._told_errors = len(self.errors)
            told = unusable(self.name, len(self.errors), f"{message} in row {row}")
            warn_caller(told, RowErrorWarning, "query.errors has all of them")
