"""Converts between Spark schemas and Millstream types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.connectors.intake.data import schema_of
from millstream.logical.plan import Schema
from millstream.model.errors import DataError
from millstream.spark.sql_text import quoted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

# Spark's names of the types that have a counterpart here, except arrays and structs.
_KNOWN = {
    "void", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string",
    "binary", "date", "timestamp", "timestamp_ntz",
}  # fmt: skip

_REMEDIES = {
    "map": "convert it to an array of structs with map_entries, or leave the column out",
    "variant": "extract what you need with variant_get, or leave the column out",
    "time": "cast it to STRING, or leave the column out",
    "string": "cast it to STRING, which compares bytes, or leave the column out",
    "interval": "an INTERVAL has days to microseconds: cast it to STRING, or leave the column out",
}


def stream_columns(schema: StructType, stream: str) -> Schema:
    """The columns of a DataFrame as those of a stream."""
    from pyspark.sql.pandas.types import to_arrow_schema

    for field in schema.fields:
        unknown = _unknown(field.dataType)
        if unknown is not None:
            name = unknown.simpleString()
            word = name.replace("<", " ").split(" ")[0]
            raise DataError(
                f'stream "{stream}", column "{field.name}": Spark\'s type "{name}" has no '
                "counterpart here",
                help=_REMEDIES.get(word, "cast it to a plain type, or leave the column out"),
            )
    return schema_of(to_arrow_schema(schema, timezone="UTC").empty_table(), stream)


def _unknown(type: DataType) -> DataType | None:
    """The first part of a type without a counterpart."""
    from pyspark.sql.types import ArrayType, DayTimeIntervalType, DecimalType, StructType

    match type:
        case ArrayType():
            return _unknown(type.elementType)
        case StructType():
            parts = (_unknown(field.dataType) for field in type.fields)
            return next((part for part in parts if part is not None), None)
        case DayTimeIntervalType():
            return None
        case DecimalType():
            return None if type.scale >= 0 else type
        case _:
            return None if type.simpleString() in _KNOWN else type


def spark_type(type: pa.DataType) -> DataType:
    """The Spark type of a Millstream type."""
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(type, prefer_timestamp_ntz=False)


def typed(frame: DataFrame) -> DataFrame:
    """The DataFrame with its columns cast to Spark's counterparts of Millstream types: TINYINT and
    SMALLINT become INT, a timestamp without a zone counts as UTC, which must be the session's time
    zone."""
    columns = stream_columns(frame.schema, "DataFrame")
    wanted = [spark_type(column.type) for column in columns]
    if wanted == [field.dataType for field in frame.schema.fields]:
        return frame
    given = (frame[quoted(column.name)] for column in columns)
    return frame.select(
        [c.cast(w).alias(field.name) for c, w, field in zip(given, wanted, columns, strict=True)]
    )


def moved(frame: DataFrame, spark: SparkSession) -> DataFrame:
    """The DataFrame in another session of the same Spark, whose settings, such as the time zone and
    ANSI mode, apply to it from now on."""
    from pyspark.sql import DataFrame

    jvm = spark.sparkContext._jvm
    assert jvm is not None
    plan = frame._jdf.queryExecution().analyzed()
    rows = jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan)
    return DataFrame(rows, spark)
