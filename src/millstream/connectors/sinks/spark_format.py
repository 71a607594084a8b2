"""Any format that Spark can write: Delta, Kafka, JDBC and others from its jars."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.connectors.contracts import GivenBatch, Noop, SinkContext
from millstream.connectors.sinks.plain import zoned
from millstream.model.errors import MillstreamError, QueryError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The packages of common formats that Spark does not include.
_PACKAGES = {
    "avro": "org.apache.spark:spark-avro_2.13:{version}",
    "delta": "io.delta:delta-spark_2.13",
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime",
    "kafka": "org.apache.spark:spark-sql-kafka-0-10_2.13:{version}",
}


class SparkFormat(Noop):
    """Spark's writer of the format appends each batch that has rows.

    Delta writes each batch once, by its number. Other formats may receive the last batch twice
    after a crash. Kafka receives each row as JSON, unless the query has a column `value`.
    """

    def __init__(
        self, context: SinkContext, format: str, /, *values: object, **options: object
    ) -> None:
        assert context.spark is not None
        if values:
            raise QueryError(
                f'sink "{format}" takes options by name, not {values[0]!r}',
                help="write option => value, or option=value in Python",
            )
        self._spark = context.spark
        self._format = format.lower()
        self._options = {name: _option(value) for name, value in options.items()}
        self._token = context.token
        _check_format(self._spark, self._format)

    def give(self, table: pa.Table, batch: GivenBatch) -> None:
        if not table.num_rows:
            return
        frame = self._spark.createDataFrame(zoned(table))
        if self._format == "kafka":
            frame = with_value(frame)
        options = self._options
        if self._format == "delta":
            options = {**options, "txnAppId": self._token, "txnVersion": str(batch.id)}
        with told(f'Spark cannot write "{self._format}"'):
            frame.write.format(self._format).options(**options).mode("append").save()


def _option(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def with_value(frame: DataFrame) -> DataFrame:
    """The rows as Kafka accepts them."""
    from pyspark.sql.functions import struct, to_json

    if "value" in frame.columns:
        return frame
    return frame.withColumn("value", to_json(struct(*(frame[name] for name in frame.columns))))


@contextmanager
def told(what: str) -> Iterator[None]:
    """Translate Spark's errors into one line with the reason."""
    try:
        yield
    except MillstreamError:
        raise
    except Exception as error:  # Spark raises many kinds
        lines = [line for line in str(error).splitlines() if line.strip()]
        java = [line[2:] for line in lines if line.startswith(": ")]
        why = (java or lines or [type(error).__name__])[0]
        raise QueryError(f"{what}: {why}") from error


def _check_format(spark: SparkSession, format: str) -> None:
    """Checked at the start, not with the first rows."""
    source = spark._jvm.org.apache.spark.sql.execution.datasources.DataSource  # type: ignore[union-attr]
    try:
        source.lookupDataSourceV2(format, spark._jsparkSession.sessionState().conf())
    except Exception as error:  # Spark raises many kinds
        package = _PACKAGES.get(format, "").format(version=spark.version)
        named = f' "{package}"' if package else " that has it"
        raise QueryError(
            f'sink "{format}" does not exist: Spark has no such format',
            help=f"start Spark with the package{named} in spark.jars.packages, and pass that "
            "session: Session(spark=…)",
        ) from error
