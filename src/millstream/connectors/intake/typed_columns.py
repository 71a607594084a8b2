"""Converts a column of input data to the type that its stream declares.

A value that does not fit the type makes its row bad; a column of an unrelated type is an error.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.connectors.intake.moments import (
    from_numbers,
    from_text,
    is_numeric_arrow,
    is_temporal,
    misfit,
    mixes,
    remedy,
)
from millstream.logical.catalog import Stream
from millstream.logical.functions import to_string
from millstream.logical.plan import Field
from millstream.model import types
from millstream.model.arrays import concat
from millstream.model.errors import DataError, brief
from millstream.model.long_texts import fitted, ordinary_type
from millstream.model.records import BadRow
from millstream.model.values import out_of_years, to_plain, to_type


def note(bad: dict[int, BadRow], index: int, message: str, help: str | None = None) -> None:
    """Record a bad row; only the first problem of a row is kept."""
    bad.setdefault(index + 1, BadRow(index + 1, message, help))


def check_type(stream: Stream, field: Field, found: pa.DataType) -> None:
    """DataError if a column of the stream does not accept data of an Arrow type."""
    typed_column(stream, field, pa.chunked_array([], found), {})


def typed_column(
    stream: Stream, field: Field, column: pa.ChunkedArray, bad: dict[int, BadRow]
) -> pa.Array:
    """The column in its declared type; a long text column may be large_string."""
    typed = _typed(stream, field, column, bad)
    for index in out_of_years(typed):  # they could not be displayed
        told = f'a value in column "{field.name}"'
        if types.is_atomic(field.type):
            (value,) = to_plain(typed.slice(index, 1), field.type)
            told = f'{to_string(value, field.type)} in column "{field.name}"'
        note(bad, index, f"{told} is not within the years 1 to 9999")
    return typed


def _typed(
    stream: Stream, field: Field, column: pa.ChunkedArray, bad: dict[int, BadRow]
) -> pa.Array:
    array = concat(list(map(_plain, column.chunks)) or [_plain(pa.array([], column.type))])
    if _has_text(array.type):
        array = _valid_texts(stream, field, array, bad)
    if ordinary_type(array.type) == field.type:
        return array
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        array = _whole_microseconds(field, array, bad)
    if field.type == types.TIMESTAMP:
        found = _moments(stream, field, array, bad)
        if found is not None:
            return found
    if mixes(array.type, field.type):
        raise _refused(stream, field, array)
    try:
        return to_type(array, field.type)
    except (ValueError, pa.ArrowException) as error:
        if not _misfits(field, array, bad):
            raise DataError(
                f'{stream.kind} "{stream.name}", column "{field.name}" is not '
                f"{types.sql_name(field.type)}: {error}"
            ) from None
    fits = [number + 1 not in bad for number in range(len(array))]
    return to_type(pc.if_else(pa.array(fits), array, pa.scalar(None, array.type)), field.type)


# --- texts ----------------------------------------------------------------------------------------


def _plain(array: pa.Array) -> pa.Array:
    """Decode dictionaries and view types; texts become string, or large_string where needed."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if _is(array.type, "string_view"):
        array = array.cast(pa.large_string())
    elif _is(array.type, "binary_view"):
        array = array.cast(pa.large_binary())
    large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    return fitted(array) if large else array


def _is(type: pa.DataType, kind: str) -> bool:
    """The oldest supported pyarrow has no view types."""
    test = getattr(pa.types, f"is_{kind}", None)
    return test is not None and bool(test(type))


def _has_text(type: pa.DataType) -> bool:
    if types.is_any_list(type):
        return _has_text(type.value_type)
    if types.is_struct(type):
        return any(_has_text(field.type) for field in type)
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type))


def _valid_texts(stream: Stream, field: Field, array: pa.Array, bad: dict[int, BadRow]) -> pa.Array:
    """The column with NULL for invalid UTF-8, which Arrow does not check."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        wrong = _not_utf8(array)
        if not wrong:
            raise DataError(
                f'{stream.kind} "{stream.name}", column "{field.name}" is damaged: {error}'
            ) from None
    else:
        return array
    for index in wrong:
        note(bad, index, f'the text in column "{field.name}" is not UTF-8')
    right = np.ones(len(array), np.bool_)
    right[wrong] = False
    return pc.if_else(pa.array(right), array, pa.scalar(None, array.type))


def _not_utf8(array: pa.Array) -> list[int]:
    """The rows that are, or contain, invalid UTF-8."""
    if types.is_any_list(array.type):
        inner = _not_utf8(array.flatten())
        owners = pc.list_parent_indices(array).take(pa.array(inner, pa.int64()))
        return sorted(set(owners.to_pylist()))
    if types.is_struct(array.type):
        return sorted({row for part in array.flatten() for row in _not_utf8(part)})
    return list(_broken(array, 0)) if _has_text(array.type) else []


def _broken(texts: pa.Array, first: int) -> Iterator[int]:
    """Rows with invalid UTF-8, found by bisection."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid as error:
        if len(texts) == 1 and "UTF8" in str(error):
            yield first
        elif len(texts) > 1:
            half = len(texts) // 2
            yield from _broken(texts.slice(0, half), first)
            yield from _broken(texts.slice(half), first + half)


# --- times ----------------------------------------------------------------------------------------


def _moments(
    stream: Stream, field: Field, array: pa.Array, bad: dict[int, BadRow]
) -> pa.Array | None:
    """Strings, and numbers of a declared unit, as TIMESTAMP; None for other data."""
    unit = stream.units.get(field.name)
    if ordinary_type(array.type) == types.STRING:
        found = from_text(array.cast(types.STRING), types.TIMESTAMP, unit)
    elif is_numeric_arrow(array.type) and unit is not None:
        found = from_numbers(array, unit)
    else:
        return None
    for index in [] if found.failed is None else np.flatnonzero(found.failed).tolist():
        value = array[index].as_py()
        wrong = misfit(value, field.type, field.name, stream.units)
        told = f'{brief(value)} in column "{field.name}" is not TIMESTAMP'
        note(bad, index, told if wrong is None else wrong.diagnostic.message)
    return found.values


def _refused(stream: Stream, field: Field, array: pa.Array) -> DataError:
    """The error for numbers without a unit in a time column, or times in a numeric column."""
    help = None
    if is_temporal(field.type):
        help = remedy(field.type, field.name in stream.units)
    return DataError(
        f'{stream.kind} "{stream.name}", column "{field.name}" is not '
        f"{types.sql_name(field.type)}: the data is {array.type}",
        help=help,
    )


def _whole_microseconds(field: Field, array: pa.Array, bad: dict[int, BadRow]) -> pa.Array:
    nanoseconds = array.cast(pa.int64())
    rest = pc.fill_null(nanoseconds, 0).to_numpy(zero_copy_only=False) % 1000
    for index in np.flatnonzero(rest).tolist():
        note(
            bad,
            index,
            f'the time in column "{field.name}" has nanoseconds that are not whole microseconds',
            "round it to microseconds first",
        )
    return pc.subtract(nanoseconds, pa.array(rest)).cast(array.type)


# --- other values ---------------------------------------------------------------------------------


def _misfits(field: Field, array: pa.Array, bad: dict[int, BadRow]) -> bool:
    """Record the rows whose value does not fit the type, if only some do not."""
    count = len(bad)
    for index in range(len(array)):
        try:
            to_type(array.slice(index, 1), field.type)
        except (ValueError, pa.ArrowException):
            value, wanted = array[index].as_py(), types.sql_name(field.type)
            note(bad, index, f'{brief(value)} in column "{field.name}" is not {wanted}')
    return count < len(bad) < len(array)
