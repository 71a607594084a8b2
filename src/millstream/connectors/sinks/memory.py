"""Answers kept in memory: by the query, and on Spark in a temporary view."""

from __future__ import annotations

import pyarrow as pa

from millstream.connectors.contracts import GivenBatch, Noop, Sink, SinkContext
from millstream.connectors.sinks.plain import zoned
from millstream.connectors.sinks.spark_format import told


def memory(context: SinkContext, name: str | None = None) -> Sink:
    if context.spark is None or name is None:
        return Noop()  # `running.results()` has them
    with told(f'temporary view "{name}" cannot be made'):
        return TemporaryView(context, name)


class TemporaryView(Noop):
    """All rows since the start as a temporary view of the user's Spark session."""

    def __init__(self, context: SinkContext, name: str) -> None:
        assert context.spark is not None
        self._spark = context.spark
        self._name = name
        self._tables = [zoned(context.schema.empty_table())]
        self._show()

    def give(self, table: pa.Table, batch: GivenBatch) -> None:
        if table.num_rows:
            self._tables.append(zoned(table))
            self._show()

    def _show(self) -> None:
        self._tables = [pa.concat_tables(self._tables)]
        self._spark.createDataFrame(self._tables[0]).createOrReplaceTempView(self._name)
