"""Frames for streams: those that people bring, and `SOURCE format(…)` for what Spark can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from millstream.catalog import Connector, Stream
from millstream.errors import QueryError, did_you_mean
from millstream.fragments.reading import UNREADABLE
from millstream.spark.job import reason

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# Formats of files: the schema is what the stream declares, and the reader ends unless it follows.
FILES = ("parquet", "orc", "csv", "json", "avro")
PREFERRED = (*FILES, "rate", "socket")  # which it reads although the local engine can as well
_TEXTS = ("csv", "json")  # in which a row may be unreadable
_OPTIONS = {"null": "nullvalue", "delimiter": "sep"}  # our names for Spark's options

Reader = TypeVar("Reader")


def follows(connector: Connector) -> bool:
    """Whether the source goes on for ever; files do when they are followed."""
    return connector.name.text.lower() not in FILES or bool(dict(connector.options).get("follow"))


def stream_frame(spark: SparkSession, stream: Stream) -> DataFrame:
    """What a declared stream gives, batch after batch."""
    return _loaded(spark.readStream, stream)


def whole_frame(spark: SparkSession, stream: Stream) -> DataFrame:
    """All that a declared stream has."""
    connector = stream.connector
    assert connector is not None
    if follows(connector):
        raise QueryError(
            f'stream "{stream.name}" has no end', help="start the query: query.start(sink)"
        )
    return _loaded(spark.read, stream)


def _loaded(reader: Any, stream: Stream) -> DataFrame:
    connector = stream.connector
    assert connector is not None
    format = connector.name.text.lower()
    for name, value in connector.options:
        if name != "follow":
            reader = reader.option(_option(name), value)
    if format in FILES:
        reader = reader.schema(_schema(stream, format))
    if format in _TEXTS:
        reader = reader.option("columnnameofcorruptrecord", UNREADABLE)
    try:
        frame: DataFrame = reader.format(format).load(*map(str, connector.values))
    except Exception as error:  # Spark has many kinds
        told = _told(error, format)
        raise QueryError(f'stream "{stream.name}" cannot be read: {told}') from error
    return frame.select(*_columns(frame, stream))


def _option(name: str) -> str:
    """Spark's own names are taken as they are; they do not tell cases apart."""
    return _OPTIONS.get(name, name if "." in name else name.replace("_", ""))


def _schema(stream: Stream, format: str) -> StructType:
    from pyspark.sql.pandas.types import from_arrow_schema

    fields = [pa.field(field.name, field.type) for field in stream.columns]
    if format in _TEXTS:
        fields.append(pa.field(UNREADABLE, pa.string()))
    return from_arrow_schema(pa.schema(fields))


def _columns(frame: DataFrame, stream: Stream) -> list[Any]:
    """The stream's columns and no others."""
    known = {name.lower(): name for name in frame.columns}
    wanted = [field.name for field in stream.columns]
    for name in wanted:
        if name.lower() not in known:
            raise QueryError(
                f'stream "{stream.name}" cannot be read: its source has no column "{name}"',
                help=did_you_mean(name, frame.columns) or f"it has {', '.join(frame.columns)}",
            )
    extra = [UNREADABLE] if UNREADABLE in known else []
    return [frame[known[name.lower()]].alias(name) for name in wanted] + [frame[n] for n in extra]


def _told(error: Exception, format: str) -> str:
    if "DATA_SOURCE_NOT_FOUND" in str(error):
        return f'connector "{format}" does not exist, and Spark has no such format'
    return reason(error)
