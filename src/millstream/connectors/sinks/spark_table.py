"""A Spark table: a folder with one Parquet file per batch, registered as a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.connectors.contracts import GivenBatch, Noop, Sink, SinkContext
from millstream.connectors.sinks.folder import Folder, local_path, write_parquet
from millstream.connectors.sinks.plain import zoned
from millstream.connectors.sinks.spark_format import told
from millstream.model.errors import QueryError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def table(context: SinkContext, name: str, path: str | None = None) -> Sink:
    if context.spark is None:
        raise QueryError(
            'sink "table" is a Spark table and needs the Spark engine',
            help='use Session(engine="spark"), or the sink "parquet"',
        )
    with told(f'table "{name}" of Spark cannot be made'):
        return SparkTableSink(context, context.spark, name, path)


class SparkTableSink(Noop):
    """An external table: dropping it leaves the files. A repeated batch replaces its file, so the
    table has each batch once."""

    def __init__(
        self, context: SinkContext, spark: SparkSession, name: str, path: str | None
    ) -> None:
        self._spark = spark
        self._name = name
        place = local_path(path or f"{spark.conf.get('spark.sql.warehouse.dir')}/{name}").absolute()
        exists = spark.catalog.tableExists(name)
        if exists:
            _check_place(spark, name, place)
        self._folder = Folder(context, str(place), "parquet", write_parquet)
        try:
            if not exists:
                schema = spark.createDataFrame(zoned(context.schema.empty_table())).schema
                spark.catalog.createTable(name, str(place), "parquet", schema)
        except BaseException:
            self._folder.close()
            raise

    def give(self, table: pa.Table, batch: GivenBatch) -> None:
        if table.num_rows:
            self._folder.give(zoned(table), batch)
            self._spark.catalog.refreshTable(self._name)

    def close(self) -> None:
        self._folder.close()


def _check_place(spark: SparkSession, name: str, place: Path) -> None:
    told = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    found = next((row.data_type for row in told if row.col_name == "Location"), None)
    if found is None or local_path(found) != place:
        raise QueryError(
            f'table "{name}" exists and was not created by this sink',
            help="use another name, or give the folder of its files with path=",
        )
