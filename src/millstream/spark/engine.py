"""The Spark engine: bounded queries, by Millstream's tasks or plain Spark, and started queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

from millstream.checkpoint.identity import identity
from millstream.fragments.cutting import fragments_of
from millstream.fragments.opening import Opener
from millstream.fragments.outcome import Outcome
from millstream.fragments.reading import Reading, RemoteRows
from millstream.fragments.remote_query import RemoteQuery
from millstream.fragments.text import fragments_text
from millstream.logical.catalog import Catalog, Stream
from millstream.logical.plan import Plan, sources_of
from millstream.model.modes import Emit, EngineName
from millstream.model.records import Records
from millstream.model.time import INFINITY
from millstream.optimizer.planned import PlannedQuery
from millstream.physical.operator import PhysicalPlan
from millstream.physical.signature import Signatures
from millstream.runtime.executor import OpenExecutor
from millstream.runtime.whole_answers import RandomDraws, RunAnswer, answer_table, snapshot_of
from millstream.spark import bounded
from millstream.spark.executor import OnSpark
from millstream.spark.leaves import SparkRows
from millstream.spark.native_query import NativeQuery, native_query
from millstream.spark.sources import leaf_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Sources(Protocol):
    """Access to the rows of streams."""

    def stream(self, name: str) -> Stream: ...

    def records(self, names: Iterable[str]) -> Mapping[str, Records]:
        """All rows of bounded streams that this process reads."""

    def spark_rows(self, name: str, plan: Plan) -> SparkRows | None:
        """All rows of a stream if Spark reads it for the plan, else None."""

    def read_by_spark(self, plan: Plan) -> Mapping[str, Stream]:
        """The sources of a plan that Spark reads."""


class SparkEngine:
    name = EngineName.SPARK

    def __init__(
        self, catalog: Catalog, sources: Sources, spark: Callable[[], SparkSession]
    ) -> None:
        self._catalog = catalog
        self._sources = sources
        self._spark = spark

    def run(self, query: PlannedQuery, chance: RandomDraws) -> RunAnswer:
        plan = query.optimized
        native = self._native(plan) if query.emit is Emit.FINAL else None
        if native is not None:
            frames = {name: rows.frame for name, rows in self._rows(plan).items()}
            batch = bounded.native_answer(self._spark(), native, frames)
            return RunAnswer(answer_table(query.bound, query.emit, [batch], -INFINITY), [])
        outcome = self._outcome(plan, query.physical, chance)
        batches, beginning = [outcome.answer()], outcome.present.beginning
        table = answer_table(query.bound, query.emit, batches, beginning)
        return RunAnswer(table, list(outcome.errors))

    def snapshot(self, query: PlannedQuery, chance: RandomDraws, instant: int) -> RunAnswer:
        outcome = self._outcome(query.optimized, query.elements, chance, instant)
        batch, beginning = outcome.answer(), outcome.present.beginning
        table = snapshot_of(query.bound, batch, beginning, instant)
        return RunAnswer(table, list(outcome.errors))

    def _outcome(
        self, plan: Plan, physical: PhysicalPlan, chance: RandomDraws, until: int = INFINITY
    ) -> Outcome:
        """The operators' output over the rows that start by an instant."""
        known, found = self._sources, self._rows(plan)
        frames = [
            RemoteRows(Reading(known.stream(n), until=until), rows) for n, rows in found.items()
        ]
        records = known.records(name for name in sources_of(plan) if name not in found)
        inputs = {name: rows.until(until) for name, rows in records.items()}
        frontier = min(until, INFINITY - 1) + 1
        work = self._work(physical, chance.seed)
        return bounded.answer(self._spark(), work, inputs, frames, frontier)

    def _rows(self, plan: Plan) -> Mapping[str, SparkRows]:
        """The rows of the streams that Spark reads."""
        found = {name: self._sources.spark_rows(name, plan) for name in sources_of(plan)}
        return {name: rows for name, rows in found.items() if rows is not None}

    def _work(self, physical: PhysicalPlan, seed: int) -> RemoteQuery:
        """With one shard per task."""
        places = self._spark().sparkContext.defaultParallelism
        functions, aggregates = self._catalog.functions, self._catalog.aggregates
        fragments = fragments_of(physical, Signatures(functions, aggregates))
        return RemoteQuery(fragments, places, places, functions, aggregates, seed)

    def _native(self, plan: Plan) -> NativeQuery | None:
        """The query for plain Spark, if it has no state and Spark reads all its streams. For EMIT
        FINAL."""
        read = self._sources.read_by_spark(plan)
        names = {field.name.lower() for field in plan.schema}
        if [*read] != sources_of(plan) or len(names) < len(plan.schema):
            return None
        return native_query(plan, read)

    def opener(
        self, query: PlannedQuery, chance: RandomDraws, checkpoint: str | None, discards: bool
    ) -> OpenExecutor:
        spark, catalog = self._spark(), self._catalog
        own = identity(query.identified, query.emit, catalog.functions, catalog.aggregates)
        places = spark.sparkContext.defaultParallelism
        runner = partial(OnSpark.opened, spark)
        return Opener(own, chance.seed, checkpoint, places, runner, discards)

    def explained(self, query: PlannedQuery) -> str:
        """A started query reports late rows and each row that fails, so Spark runs only its leaves
        natively."""
        plan = query.optimized
        signatures = Signatures(self._catalog.functions, self._catalog.aggregates)
        text = fragments_text(fragments_of(query.physical, signatures), plan.domain)
        read = self._sources.read_by_spark(plan)
        leaves = [leaf_of(plan, s) for s in read.values() if s.connector is not None]
        whole = ["native: the whole query, when it is run"] if self._native(plan) else []
        return "\n".join([text, *whole, *(leaf.text() for leaf in leaves if leaf is not None)])
