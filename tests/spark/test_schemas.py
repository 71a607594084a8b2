"""The columns of DataFrames in our types, and which have none."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import types as spark_types
from pyspark.sql.types import StructField, StructType

import millstream as ms
from millstream.logical.plan import Field
from millstream.model.types import decimal_type
from millstream.spark.schemas import spark_type, stream_columns

pytestmark = pytest.mark.xdist_group("spark")

KNOWN = [
    (spark_types.BooleanType(), pa.bool_()),
    (spark_types.ByteType(), pa.int32()),
    (spark_types.ShortType(), pa.int32()),
    (spark_types.IntegerType(), pa.int32()),
    (spark_types.LongType(), pa.int64()),
    (spark_types.FloatType(), pa.float32()),
    (spark_types.DoubleType(), pa.float64()),
    (spark_types.DecimalType(38, 10), decimal_type(38, 10)),
    (spark_types.StringType(), pa.string()),
    (spark_types.BinaryType(), pa.binary()),
    (spark_types.DateType(), pa.date32()),
    (spark_types.TimestampType(), pa.timestamp("us")),
    (spark_types.TimestampNTZType(), pa.timestamp("us")),
    (spark_types.DayTimeIntervalType(), pa.duration("us")),
    (spark_types.DayTimeIntervalType(0, 1), pa.duration("us")),
    (spark_types.NullType(), pa.null()),
    (spark_types.ArrayType(spark_types.ShortType()), pa.list_(pa.int32())),
    (
        StructType([StructField("x", spark_types.ArrayType(spark_types.TimestampNTZType()))]),
        pa.struct([("x", pa.list_(pa.timestamp("us")))]),
    ),
]

UNKNOWN = [
    spark_types.MapType(spark_types.StringType(), spark_types.LongType()),
    spark_types.VariantType(),
    spark_types.TimeType(),
    spark_types.YearMonthIntervalType(),
    spark_types.CalendarIntervalType(),
    spark_types.StringType("UTF8_LCASE"),
    spark_types.CharType(3),
]


def test_columns() -> None:
    schema = StructType([StructField(f"c{i}", given) for i, (given, _) in enumerate(KNOWN)])
    expected = tuple(Field(f"c{i}", type) for i, (_, type) in enumerate(KNOWN))
    assert stream_columns(schema, "S") == expected


@pytest.mark.parametrize("given", UNKNOWN, ids=str)
def test_types_that_we_do_not_have(given: spark_types.DataType) -> None:
    for type in (given, spark_types.ArrayType(StructType([StructField("x", given)]))):
        schema = StructType([StructField("a", type)])
        with pytest.raises(ms.DataError) as error:
            stream_columns(schema, "S")
        told = str(error.value)
        assert told.startswith('error: stream "S", column "a": Spark\'s type "')
        assert f'"{given.simpleString()}" has no counterpart here\nhelp: ' in told


def test_message() -> None:
    schema = StructType([StructField("m", UNKNOWN[0])])
    with pytest.raises(ms.DataError) as error:
        stream_columns(schema, "S")
    assert str(error.value).splitlines() == [
        'error: stream "S", column "m": Spark\'s type "map<string,bigint>" has no counterpart here',
        "help: convert it to an array of structs with map_entries, or leave the column out",
    ]


@pytest.mark.parametrize("type", dict.fromkeys(type for _, type in KNOWN), ids=str)
def test_there_and_back(type: pa.DataType) -> None:
    schema = StructType([StructField("a", spark_type(type))])
    assert stream_columns(schema, "S") == (Field("a", type),)
