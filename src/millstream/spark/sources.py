"""`SOURCE format(…)` for formats that Spark reads."""

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

# Files whose schema is the stream's declaration. Millstream's own connectors read CSV and JSON:
# Spark turns unreadable values into NULL, and assigns CSV columns by position.
_FILES = ("parquet", "orc", "avro")

PREFERRED = (*_FILES, "rate")  # Spark reads these, although the local engine could too
_OURS = ("follow", "poll")  # options that say how to read, not what


def follows(connector: Connector) -> bool:
    """Whether the source is endless; files are if they are followed."""
    return connector.name.text.lower() not in _FILES or bool(_options(connector).get("follow"))


def poll_interval(connector: Connector) -> str | None:
    """How often a source is polled, if declared."""
    interval = _options(connector).get("poll")
    return None if interval is None else str(interval)


def stream_frame(spark: SparkSession, stream: Stream) -> DataFrame:
    """A declared stream as a streaming DataFrame."""
    _check_files(spark, stream)
    return _loaded(spark.readStream, stream)


def whole_frame(spark: SparkSession, stream: Stream) -> DataFrame:
    """All rows of a declared stream."""
    connector = stream.connector
    assert connector is not None
    if connector.name.text.lower() not in _FILES:
        raise QueryError(
            f'stream "{stream.name}" has no end', help="start the query: query.start(sink)"
        )
    _check_files(spark, stream)
    return _loaded(spark.read, stream)


def leaf_of(plan: Plan, stream: Stream) -> NativeLeaf | None:
    """What a plan needs of a stream of files, if not everything."""
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
    except Exception as error:  # Spark raises many kinds
        told = reason(error)
        if "DATA_SOURCE_NOT_FOUND" in str(error):
            told = f'connector "{format}" does not exist, and Spark has no such format'
        raise QueryError(f'stream "{stream.name}" cannot be read: {told}') from error
    return frame


def _check_files(spark: SparkSession, stream: Stream) -> None:
    """Spark returns NULL for a column that files lack, so check one file, if there is any."""
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
    """Accepts Spark's camelCase names and their snake_case form."""
    return name if "." in name else name.replace("_", "")


def _schema(stream: Stream) -> StructType:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(pa.schema([(field.name, field.type) for field in stream.columns]))


def _columns(frame: DataFrame, stream: Stream) -> list[Any]:
    """Only the stream's columns."""
    known = {name.lower(): name for name in frame.columns}
    for field in stream.columns:
        if field.name.lower() not in known:
            raise QueryError(
                f'stream "{stream.name}" cannot be read: its source has no column "{field.name}"',
                help=did_you_mean(field.name, frame.columns)
                or f"it has {', '.join(frame.columns)}",
            )
    return [frame[known[field.name.lower()]].alias(field.name) for field in stream.columns]
