"""Queries over bounded input on Spark, by our tasks or by Spark alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.fragments.cutting import fragments_of
from millstream.fragments.outcome import Outcome
from millstream.fragments.reading import Frame, Reading
from millstream.fragments.work import Work
from millstream.logical.plan import Plan, sources_of
from millstream.model.time import INFINITY
from millstream.physical.batch import Batch
from millstream.physical.operator import PhysicalPlan
from millstream.spark import bounded
from millstream.spark.leaves import SparkRows
from millstream.spark.native_query import NativeQuery, native_query
from millstream.spark.sources import leaf_of

if TYPE_CHECKING:
    from millstream.api.session import Session


@dataclass(frozen=True)
class SparkRun:
    """A plan of a session, with the seed of its random draws."""

    session: Session
    plan: Plan
    seed: int

    def outcome(self, physical: PhysicalPlan, until: int = INFINITY) -> Outcome:
        """What the operators give, over what starts by an instant."""
        known, found = self.session._origins, self._rows()
        frames = [Frame(Reading(known.stream(n), until=until), rows) for n, rows in found.items()]
        records = known.records(name for name in sources_of(self.plan) if name not in found)
        inputs = {name: rows.until(until) for name, rows in records.items()}
        frontier = min(until, INFINITY - 1) + 1
        work = self._work(physical)
        return bounded.answer(self.session.spark, work, inputs, frames, frontier)

    def _rows(self) -> Mapping[str, SparkRows]:
        """Of the streams that Spark reads."""
        known = self.session._origins
        found = {name: known.spark_rows(name, self.plan) for name in sources_of(self.plan)}
        return {name: rows for name, rows in found.items() if rows is not None}

    def _work(self, physical: PhysicalPlan) -> Work:
        """With a shard for each task."""
        catalog, places = self.session.catalog, self.session.spark.sparkContext.defaultParallelism
        fragments = fragments_of(physical)
        return Work(fragments, places, places, catalog.functions, catalog.aggregates, self.seed)

    def native(self) -> NativeQuery | None:
        """The query for Spark alone, if it has no state and Spark reads all its streams. For EMIT
        FINAL."""
        read = self.session._origins.read_by_spark(self.plan)
        names = {field.name.lower() for field in self.plan.schema}
        if [*read] != sources_of(self.plan) or len(names) < len(self.plan.schema):
            return None
        return native_query(self.plan, read)

    def native_answer(self, query: NativeQuery) -> Batch:
        frames = {name: rows.frame for name, rows in self._rows().items()}
        return bounded.native_answer(self.session.spark, query, frames)

    def native_lines(self) -> list[str]:
        """For `explain`: what Spark does by itself. A query that is started shows late rows, and
        rows that fail one by one, so of that only the leaves."""
        read = self.session._origins.read_by_spark(self.plan)
        leaves = [leaf_of(self.plan, s) for s in read.values() if s.connector is not None]
        whole = ["native: the whole query, when it is run"] if self.native() is not None else []
        return whole + [leaf.text() for leaf in leaves if leaf is not None]
