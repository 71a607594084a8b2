"""`SOURCE format(…)` for what Spark can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.logical.catalog import Connector, Stream
from millstream.logical.plan import Plan
from millstream.model.errors import QueryError, did_you_mean
from millstream.spark.job import reason
from millstream.spark.native_leaves import NativeLeaf, native_leaf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# Files whose schema is what the stream declares. Texts (CSV, JSON) are read by connectors of
# our own: Spark makes NULL of what it cannot read, and takes the columns of CSV by their place.
_FILES = ("parquet", "orc", "avro")

PREFERRED = (*_FILES, "rate")  # which Spark reads although the local engine can as well
_OURS = ("follow", "poll")  # options that say how to read, not what


def follows(connector: Connector) -> bool:
    """Whether the source goes on for ever; files do when they are followed."""
    return connector.name.text.lower() not in _FILES or bool(_options(connector).get("follow"))


def poll_interval(connector: Connector) -> str | None:
    """How often a source is looked at, if that is declared."""
    interval = _options(connector).get("poll")
    return None if interval is None else str(interval)


def stream_frame(spark: SparkSession, stream: Stream) -> DataFrame:
    """What a declared stream gives, batch after batch."""
    _check_files(spark, stream)
    return _loaded(spark.readStream, stream)


def whole_frame(spark: SparkSession, stream: Stream) -> DataFrame:
    """All that a declared stream has."""
    connector = stream.connector
    assert connector is not None
    if connector.name.text.lower() not in _FILES:
        raise QueryError(
            f'stream "{stream.name}" has no end', help="start the query: query.start(sink)"
        )
    _check_files(spark, stream)
    return _loaded(spark.read, stream)


def leaf_of(plan: Plan, stream: Stream) -> NativeLeaf | None:
    """What a plan needs of a stream of files, if that is less than all."""
    assert stream.connector is not None
    if stream.connector.name.text.lower() not in _FILES or not stream.time:
        return None
    leaf = native_leaf(plan, stream)
    return None if leaf.is_all else leaf


def _loaded(reader: Any, stream: Stream) -> DataFrame:
    connector = stream.connector
    assert connector is not None
    if stream.unit is not None:
        raise QueryError(
            f'stream "{stream.name}": connector "{connector.name.text}" gives TIMESTAMPs, which '
            "have their own unit",
            help=f'leave UNIT out, or declare "{stream.time[0]}" as BIGINT if it is a number there',
        )
    for name, value in connector.options:
        if name not in _OURS:
            reader = reader.option(_option(name), value)
    if connector.name.text.lower() in _FILES:
        reader = reader.schema(_schema(stream))
    frame = _read(reader, stream)
    return frame.select(*_columns(frame, stream))


def _read(reader: Any, stream: Stream) -> DataFrame:
    connector = stream.connector
    assert connector is not None
    format = connector.name.text
    try:
        frame: DataFrame = reader.format(format.lower()).load(*map(str, connector.values))
    except Exception as error:  # Spark has many kinds
        told = reason(error)
        if "DATA_SOURCE_NOT_FOUND" in str(error):
            told = f'connector "{format}" does not exist, and Spark has no such format'
        raise QueryError(f'stream "{stream.name}" cannot be read: {told}') from error
    return frame


def _check_files(spark: SparkSession, stream: Stream) -> None:
    """Spark gives NULL for a column that files lack: look into one, if there is any."""
    assert stream.connector is not None
    if stream.connector.name.text.lower() not in _FILES:
        return
    reader: Any = spark.read
    for name, value in stream.connector.options:
        if name not in _OURS:
            reader = reader.option(_option(name), value)
    try:
        frame = _read(reader, stream)
    except QueryError as error:
        if "UNABLE_TO_INFER_SCHEMA" in str(error.__cause__) and follows(stream.connector):
            return  # no file yet
        raise
    _columns(frame, stream)


def _options(connector: Connector) -> dict[str, Any]:
    return dict(connector.options)


def _option(name: str) -> str:
    """Spark's own names are taken as they are, or with _ between their words."""
    return name if "." in name else name.replace("_", "")


def _schema(stream: Stream) -> StructType:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(pa.schema([(field.name, field.type) for field in stream.columns]))


def _columns(frame: DataFrame, stream: Stream) -> list[Any]:
    """The stream's columns and no others."""
    known = {name.lower(): name for name in frame.columns}
    for field in stream.columns:
        if field.name.lower() not in known:
            raise QueryError(
                f'stream "{stream.name}" cannot be read: its source has no column "{field.name}"',
                help=did_you_mean(field.name, frame.columns)
                or f"it has {', '.join(frame.columns)}",
            )
    return [frame[known[field.name.lower()]].alias(field.name) for field in stream.columns]
