"""The origins of the rows of streams: memory, programs that push, connectors, and Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from millstream.connectors.intake.data import is_spark_frame
from millstream.connectors.intake.rows import all_records
from millstream.connectors.registry import Connectors
from millstream.logical.catalog import Catalog, Stream, Table
from millstream.logical.plan import Lifetime, Plan, beginners, sources_of
from millstream.model.errors import DataError, MillstreamError, QueryError
from millstream.model.names import Name
from millstream.model.records import Records
from millstream.model.time import ANY_TIME, TIMESTAMP_TIME, TimeDomain
from millstream.relations.tables import HeldTable
from millstream.runtime.bounded import BATCH_ROWS
from millstream.runtime.sources import Feed, Reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.optimizer.planned import SourceFacts
    from millstream.optimizer.statistics import Statistics
    from millstream.runtime.inputs import Origin
    from millstream.spark.leaves import SparkRows

Held: TypeAlias = "Records | Feed | Reader | HeldTable | DataFrame"


class Origins:
    """The origins of a session's streams; `spark` is set on the Spark engine."""

    def __init__(
        self,
        catalog: Catalog,
        connectors: Connectors,
        spark: Callable[[], SparkSession] | None = None,
    ) -> None:
        self._catalog = catalog
        self._connectors = connectors
        self._spark = spark
        self._held: dict[str, Held] = {}

    def hold(self, stream: str, held: Held) -> None:
        """Set the rows of a stream, or their producer."""
        self._held[stream] = held

    def drop(self, stream: str) -> None:
        held = self._held.pop(stream, None)
        if isinstance(held, Feed):
            held.close()

    def table(self, name: Name) -> HeldTable:
        held = self._held[self._catalog.stream(name).name]
        assert isinstance(held, HeldTable)
        return held

    def stream(self, name: str) -> Stream:
        stream = self._catalog.stream(Name(name, quoted=True))
        assert isinstance(stream, Stream)
        return stream

    def times_named(self, plan: Plan) -> TimeDomain:
        """The time domain of the timed changes of the tables in a plan."""
        tables = (self._held.get(name) for name in sources_of(plan))
        domains = (table.domain for table in tables if isinstance(table, HeldTable))
        return next((domain for domain in domains if domain != ANY_TIME), TIMESTAMP_TIME)

    def without_times(self, plan: Plan) -> list[str]:
        """The tables of a plan that reads only tables, if none has a timed change."""
        names = [source.stream for source in beginners(plan) if source.relation]
        tables = [held for name in names if isinstance(held := self._held.get(name), HeldTable)]
        undated = bool(tables) and not any(table.has_times for table in tables)
        return sorted({table.table.name for table in tables}) if undated else []

    def check(self, plan: Plan) -> None:
        """Reject a plan if the connector of a source does not exist."""
        for name in sources_of(plan):
            stream = self.stream(name)
            if stream.connector is None or self._held.get(name) is not None:
                continue
            connectors = self._connectors
            known = connectors.has_source(stream.connector.name.text)
            if not known and not self.is_read_by_spark(stream):
                raise connectors.unknown_source(stream)

    # --- all that there is -----------------------------------------------------------------------

    def inputs(self, plan: Plan) -> dict[str, Records]:
        """The rows of every source of a plan."""
        for name in sources_of(plan):
            self._check_times(name, plan)
        return self.records(sources_of(plan))

    def _check_times(self, name: str, plan: Plan) -> None:
        held = self._held.get(name)
        if isinstance(held, HeldTable):
            held.check_domain(plan.domain)

    def records(self, names: Iterable[str]) -> dict[str, Records]:
        """All rows of bounded streams."""
        return {name: self._records(name) for name in names}

    def _records(self, name: str) -> Records:
        stream, held = self.stream(name), self._held.get(name)
        if isinstance(held, Records):
            return held
        if isinstance(held, HeldTable):
            return held.records()
        if isinstance(held, Feed):
            raise QueryError(
                f'stream "{name}" is pushed by a program and has no beginning and no end',
                help="start the query: query.start(sink)",
            )
        reader = held if isinstance(held, Reader) else self._connected(stream, available_now=True)
        try:
            records = all_records(stream, reader.all_items())
        except MillstreamError:
            raise
        except Exception as error:  # any error of the connector becomes the stream's
            raise DataError(f'stream "{name}" cannot be read: {error}') from error
        if held is not None:  # an iterator can be read once
            self._held[name] = records
        return records

    def facts(self, plan: Plan) -> SourceFacts:
        """The facts about the sources of a plan for planning."""
        from millstream.optimizer.planned import SourceFacts

        streams = {name: self.stream(name) for name in sources_of(plan)}
        held = {name: self._held.get(name) for name in streams}
        disordered = frozenset(
            name
            for name, stream in streams.items()
            if stream.delay and not isinstance(held[name], Records)
        )
        small = frozenset(
            name for name, rows in held.items() if isinstance(rows, HeldTable) and rows.is_small
        )
        return SourceFacts(disordered, small, partial(self.statistics, plan))

    def statistics(self, plan: Plan) -> Statistics:
        """The statistics of the sources of a plan: declared, or sampled from rows in memory."""
        from millstream.optimizer.sampling import sampled, sampled_table, span_of
        from millstream.optimizer.statistics import Statistics, declared

        streams = {name: self.stream(name) for name in sources_of(plan)}
        held = {name: self._held.get(name) for name in streams}
        records = {name: rows for name, rows in held.items() if isinstance(rows, Records)}
        tables = {name: table for name, table in held.items() if isinstance(table, HeldTable)}
        for name in [n for n in tables if streams[n].lifetime is Lifetime.INTERVAL]:
            records[name] = tables.pop(name).records()
        known = {name: declared(stream) for name, stream in streams.items()}
        for name, rows in records.items():
            known[name] = known[name].filled(sampled(streams[name], rows, float(BATCH_ROWS)))
        for name, table in tables.items():
            known[name] = known[name].filled(sampled_table(table.rows()))
        in_memory = len(records) + len(tables) == len(streams)
        horizon = span_of(records) if in_memory else None
        return Statistics(known, plan.domain, horizon=horizon)

    def spark_rows(self, name: str, plan: Plan) -> SparkRows | None:
        """All rows of a stream if Spark reads it for the plan, else None."""
        from millstream.spark.leaves import SparkRows
        from millstream.spark.sources import leaf_of, whole_frame

        stream, held = self.stream(name), self._held.get(name)
        if held is None and self.is_read_by_spark(stream):
            assert self._spark is not None
            return SparkRows(whole_frame(self._spark(), stream), leaf_of(plan, stream))
        if not is_spark_frame(held):
            return None
        if held.isStreaming:  # type: ignore[union-attr]
            raise QueryError(
                f'stream "{name}" is a streaming DataFrame and has no end',
                help='start the query, perhaps with trigger="available_now"',
            )
        return SparkRows(held)  # type: ignore[arg-type]

    def read_by_spark(self, plan: Plan) -> dict[str, Stream]:
        """The sources of a plan that Spark reads."""
        streams = {name: self.stream(name) for name in sources_of(plan)}
        return {
            name: stream
            for name, stream in streams.items()
            if is_spark_frame(self._held.get(name)) or self.is_read_by_spark(stream)
        }

    # --- as it comes -----------------------------------------------------------------------------

    def origin(self, name: str, plan: Plan, available_now: bool = False) -> Records | Origin:
        """The origin of the rows for a started query: its own connection per stream, unless the
        rows are in memory or pushed."""
        self._check_times(name, plan)
        stream, held = self.stream(name), self._held.get(name)
        if isinstance(held, Records | Feed | Reader | HeldTable):
            return held
        if held is None and not self.is_read_by_spark(stream):
            return self._connected(stream, available_now)
        from millstream.spark.sources import follows, leaf_of, poll_interval, stream_frame
        from millstream.spark.streams import SparkStream

        if held is not None:
            return SparkStream(held, not held.isStreaming, available_now)
        assert stream.connector is not None
        assert self._spark is not None
        frame, ends = stream_frame(self._spark(), stream), not follows(stream.connector)
        look, leaf = poll_interval(stream.connector), leaf_of(plan, stream)
        return SparkStream(frame, ends, available_now, look, leaf)

    def is_read_by_spark(self, stream: Stream) -> bool:
        """Whether Spark reads a declared stream: on the Spark engine, formats that Spark reads
        better, and all that Millstream does not know."""
        if stream.connector is None or self._spark is None:
            return False
        if isinstance(stream, Table):
            return False
        from millstream.spark.sources import PREFERRED

        name = stream.connector.name.text.lower()
        prefers = name in PREFERRED and stream.unit is None  # Spark reads no numbers as times
        connectors = self._connectors
        return not connectors.is_registered(name) and (prefers or not connectors.has_source(name))

    def _connected(self, stream: Stream, available_now: bool) -> Reader:
        return Reader(stream, self._connectors.row_source(stream, available_now))
