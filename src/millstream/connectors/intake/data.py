"""Converts in-memory data of any kind to an Arrow table."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from millstream.connectors.intake.moments import (
    NO_UNITS,
    TimeUnits,
    is_number,
    is_temporal,
    misfit,
    with_texts_read,
)
from millstream.logical.plan import Field, Schema
from millstream.model import types
from millstream.model.errors import BindError, DataError, brief
from millstream.model.names import Name, check_name
from millstream.model.values import check_decimals

# Errors that a value of the wrong type may raise.
_MISFITS = (pa.ArrowException, TypeError, ValueError, OverflowError)


def table_of(
    data: object, schema: Schema | None, stream: str, units: TimeUnits = NO_UNITS
) -> pa.Table:
    """An Arrow table from Arrow, pandas or Polars data, or from an iterable of rows or batches.
    `units` gives the unit of numbers in TIMESTAMP columns."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    module = type(data).__module__.split(".")[0]
    kind = type(data).__name__
    if module in ("pandas", "polars") and kind in ("DataFrame", "LazyFrame"):
        return _table_of_frame(data, stream)
    if (
        not isinstance(data, Iterable)
        or isinstance(data, str | bytes | Mapping)
        or kind == "Series"
    ):
        raise DataError(
            f'stream "{stream}" cannot be made of {type(data).__name__}',
            help="pass an Arrow table, a pandas or Polars frame, or an iterable of rows",
        )
    return _table_of_rows(list(data), schema, stream, units)


def _table_of_frame(frame: Any, stream: str) -> pa.Table:
    try:
        if type(frame).__module__.startswith("pandas"):
            return pa.Table.from_pandas(frame, preserve_index=False)
        return (frame.collect() if hasattr(frame, "collect") else frame).to_arrow()
    except (pa.ArrowException, UnicodeError) as error:
        raise DataError(f'stream "{stream}" cannot be read: {error}') from None


def _table_of_rows(
    rows: list[Any], schema: Schema | None, stream: str, units: TimeUnits
) -> pa.Table:
    if rows and all(isinstance(row, pa.RecordBatch | pa.Table) for row in rows):
        tables = [r if isinstance(r, pa.Table) else pa.Table.from_batches([r]) for r in rows]
        if any(table.schema != tables[0].schema for table in tables):
            raise DataError(f'the batches of stream "{stream}" have different columns')
        return pa.concat_tables(tables)
    if any(isinstance(row, Mapping) for row in rows):
        names, rows = _rows_of_mappings(rows, schema, stream)
    elif schema is not None:
        names = [field.name for field in schema]
    else:
        raise DataError(
            f'stream "{stream}" is made of rows without names',
            help='pass dictionaries, or schema={"column": "TYPE", …}',
        )
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Sequence) or isinstance(row, str) or len(row) != len(names):
            noun = "value" if len(names) == 1 else "values"
            raise DataError(
                f'stream "{stream}", row {number}: expected {len(names)} {noun}, found {brief(row)}'
            )
    columns = []
    for index, name in enumerate(names):
        wanted = schema[index].type if schema else None
        values = [row[index] for row in rows]
        try:
            columns.append(_array(values, wanted, units.get(name)))
        except _MISFITS:
            raise _bad_value(stream, name, wanted, values, units) from None
    return pa.table(columns, names=names)


def _rows_of_mappings(
    rows: list[Any], schema: Schema | None, stream: str
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The column names and the rows as tuples; a missing key is NULL."""
    keys: dict[str, None] = {}
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise DataError(
                f'stream "{stream}", row {number}: expected a mapping, found {brief(row)}'
            )
        if not all(isinstance(key, str) for key in row):
            raise DataError(
                f'stream "{stream}", row {number}: the keys must be names: {brief(row)}'
            )
        keys.update(dict.fromkeys(row))
    if schema is None:
        return list(keys), [tuple(row.get(key) for key in keys) for row in rows]
    found = [column_in_data(list(keys), field.name, stream) for field in schema]
    return [f.name for f in schema], [tuple(row.get(key) for key in found) for row in rows]


def column_in_data(names: list[str], wanted: str, stream: str) -> str:
    """The name in the data of a declared column: an exact match, or the only match ignoring
    case."""
    if wanted in names:
        return wanted
    alike = [name for name in names if name.lower() == wanted.lower()]
    if len(alike) != 1:
        raise DataError(f'stream "{stream}": the data has no column "{wanted}"')
    return alike[0]


def _array(values: list[Any], wanted: pa.DataType | None, unit: int | None) -> pa.Array:
    """An Arrow array; ValueError where part of a value would be lost, or a number would be read as
    a time."""
    if wanted in (types.TIMESTAMP, types.DATE):
        values = with_texts_read(values, wanted, unit)
    if wanted == types.TIMESTAMP:
        return pa.array(values, wanted)
    if wanted is None or not types.is_atomic(wanted) or types.is_decimal(wanted):
        check_decimals(values)
    array = pa.array(values, wanted)
    if wanted is not None:
        for value, kept in zip(values, array.to_pylist(), strict=True):
            if not _is_kept(value, kept, wanted):
                raise ValueError(value)
    return array


def _is_kept(value: Any, kept: Any, type_: pa.DataType) -> bool:
    """Whether Arrow kept a value unchanged: it truncates fractions to integers, drops hours from
    dates and reads numbers as times."""
    if value is None or kept is None:
        return value is kept
    if types.is_integral(type_):
        return bool(value == kept)
    if is_temporal(type_) and is_number(value):
        return False
    if pa.types.is_date(type_):
        return not isinstance(value, datetime.datetime) or value.time() == datetime.time()
    if types.is_array(type_):
        return all(_is_kept(v, k, type_.value_type) for v, k in zip(value, kept, strict=True))
    if types.is_struct(type_) and isinstance(value, Mapping):
        return all(_is_kept(value.get(f.name), kept[f.name], f.type) for f in type_)
    return True


def _bad_value(
    stream: str,
    name: str,
    wanted: pa.DataType | None,
    values: list[Any],
    units: TimeUnits,
) -> DataError:
    """The error for the first row that does not fit."""
    unit = units.get(name)
    for number, value in enumerate(values, 1):
        try:
            _array([value], wanted, unit)
        except _MISFITS:
            where = f'stream "{stream}", row {number}:'
            fault = "has no type" if wanted is None else f"is not {types.sql_name(wanted)}"
            found = None if wanted is None else misfit(value, wanted, name, units)
            if found is not None:
                told = found.diagnostic
                return DataError(f"{where} {told.message}", help=told.help)
            return DataError(f'{where} {brief(value)} in column "{name}" {fault}')
    return DataError(f'stream "{stream}": the values of column "{name}" have different types')


def schema_of(table: pa.Table, stream: str) -> Schema:
    """The columns of a table with Millstream's types."""
    fields: list[Field] = []
    for field in table.schema:
        try:
            fields.append(Field(field.name, types.from_arrow(field.type)))
        except ValueError as error:
            raise DataError(f'stream "{stream}", column "{field.name}": {error}') from None
    return tuple(fields)


def check_columns(columns: Schema, stream: str) -> None:
    """Reject names that SQL cannot use."""
    for number, column in enumerate(columns):
        if any(column.name.lower() == other.name.lower() for other in columns[:number]):
            raise DataError(f'stream "{stream}" has two columns named "{column.name}"')
        try:
            check_name(Name(column.name))
        except BindError as error:
            raise DataError(f'stream "{stream}": {error.diagnostic.message}') from None


def is_spark_frame(data: object) -> bool:
    """Whether data is a Spark DataFrame; does not import Spark."""
    kind = type(data)
    return kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql")
