"""The plain values of each type, their order, and their conversion to and from Arrow.

Rows consist of plain values, and expressions are evaluated on them:

    BOOLEAN bool        DECIMAL decimal.Decimal with exactly the scale of the type
    INT, BIGINT int     STRING str                  BINARY bytes
    REAL, DOUBLE float  DATE int: days since 1970-01-01
    ARRAY tuple         TIMESTAMP int: microseconds since 1970-01-01, UTC
    STRUCT tuple        INTERVAL int: microseconds

NULL is None. A REAL is always a float32 value. There is one NaN object, `NAN`, so that rows that
contain it are equal and hash alike.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from typing import Any, TypeGuard

import pyarrow as pa
import pyarrow.compute as pc

from millstream.model.types import (
    BIGINT,
    DATE,
    INT,
    INTERVAL,
    TIMESTAMP,
    is_any_list,
    is_array,
    is_decimal,
    is_floating,
    is_struct,
    sql_name,
    stored_range,
)

NAN = math.nan


def is_nan(value: object) -> TypeGuard[float]:
    return isinstance(value, float) and value != value


def canonical(value: object) -> object:
    """The same value with every NaN in it replaced by the one NaN."""
    if isinstance(value, tuple):
        return tuple(canonical(part) for part in value)
    return NAN if is_nan(value) else value


def round_real(value: float) -> float:
    """The float32 nearest to a float; an infinity beyond its range."""
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return NAN if rounded != rounded else rounded


def order_key(value: object) -> Any:
    """A key that orders the values of one type as SQL does: NULL first, NaN after all numbers.

    Two values are equal in SQL (within an array or a struct: also two NULLs) exactly if their
    keys are equal.
    """
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (1, (1, 0.0) if value != value else (0, value))
    if isinstance(value, tuple):
        return (1, tuple(order_key(part) for part in value))
    return (1, value)


def to_plain(array: pa.Array | pa.ChunkedArray, type: pa.DataType) -> list[Any]:
    """The values of Arrow data as plain values of one of our types.

    Raises ValueError if a value does not fit, such as a timestamp of nanoseconds.
    """
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in to_plain(chunk, type)]
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if is_array(type) and is_any_list(array.type):
        return _lists_to_plain(array, type)
    if is_struct(type) and is_struct(array.type):
        return _structs_to_plain(array, type)
    values: list[Any] = _cast_array(array, type).to_pylist()
    return [NAN if v != v else v for v in values] if is_floating(type) else values


def to_type(array: pa.Array, type: pa.DataType) -> pa.Array:
    """Arrow data as an array of one of our types; ValueError if a value does not fit."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.type == type:
        return array
    if is_array(type) and is_any_list(array.type):
        if not is_array(array.type):
            array = array.cast(pa.list_(array.type.value_type))
        elements = to_type(array.values, type.value_type)
        offsets = array.offsets
        if array.null_count:  # the offset identifies a NULL
            offsets = pc.if_else(pa.array([*array.is_valid().to_pylist(), True]), offsets, None)
        return pa.ListArray.from_arrays(offsets, elements, type=type)
    if is_struct(type) and is_struct(array.type):
        fields = [to_type(a, f.type) for a, f in zip(array.flatten(), type, strict=True)]
        return pa.StructArray.from_arrays(fields, fields=list(type), mask=array.is_null())
    return _cast_to(array, type)


def _cast_to(array: pa.Array, type: pa.DataType) -> pa.Array:
    if is_decimal(type) and _is_text(array.type):
        return _exact_decimals(array, type)
    try:
        return array.cast(type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        reason = str(error).split("\n")[0]
        message = f"cannot read {array.type} data as {sql_name(type)}: {reason}"
        raise ValueError(message) from error


def _is_text(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type))


# Arrow parses strings as decimals without checking exponents and overflow: it crashes on
# "1e-999999999", and "2147483648" becomes an arbitrary DECIMAL(38, 38).
_DECIMAL = r"^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,6})?$"
_LEAST_EXPONENT = -76  # the largest for which Arrow has a power of ten


def _exact_decimals(texts: pa.Array, type: pa.DataType) -> pa.Array:
    """Raises ValueError if a string is not a number of the type, or has too many digits."""
    scale = type.scale
    plain = rf"^[-+]?[0-9]{{1,{type.precision - scale}}}(\.[0-9]{{1,{scale}}})?$"
    if type.precision > scale > 0 and pc.all(pc.match_substring_regex(texts, plain)).as_py():
        return texts.cast(type)
    is_number = pc.fill_null(pc.match_substring_regex(texts, _DECIMAL), True)
    values = [
        None if text is None else Decimal(text) for text in texts.filter(is_number).to_pylist()
    ]
    if len(values) < len(texts) or not all(_fits(value, type) for value in values):
        raise ValueError(f"cannot read {texts.type} data as {sql_name(type)}: a value does not fit")
    one = Decimal(1).scaleb(-scale)
    with localcontext(prec=type.precision + 1):
        return pa.array([None if v is None else v.quantize(one) for v in values], type)


def _fits(value: Decimal | None, type: pa.DataType) -> bool:
    if not value:  # NULL or zero
        return True
    digits = "".join(map(str, value.as_tuple().digits))
    zeros = len(digits) - len(digits.rstrip("0"))
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)  # the text was a number
    return exponent + zeros >= -type.scale and value.adjusted() < int(type.precision - type.scale)


def check_decimals(value: object) -> None:
    """Raises ValueError for a decimal so small that Arrow crashes on it, also in nested values."""
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        if isinstance(exponent, int) and exponent < _LEAST_EXPONENT:
            raise ValueError(value)
    elif isinstance(value, list | tuple):
        for part in value:
            check_decimals(part)
    elif isinstance(value, Mapping):
        for part in value.values():
            check_decimals(part)


_STORED_AS = {DATE: INT, TIMESTAMP: BIGINT, INTERVAL: BIGINT}  # the integers in Arrow's memory


def _cast_array(array: pa.Array, type: pa.DataType) -> pa.Array:
    if array.type != type:
        array = _cast_to(array, type)
    return array.cast(_STORED_AS[type]) if type in _STORED_AS else array


def _lists_to_plain(array: pa.Array, type: pa.DataType) -> list[Any]:
    if not is_array(array.type):
        array = array.cast(pa.list_(array.type.value_type))
    elements = to_plain(array.flatten(), type.value_type)  # excludes the values of null lists
    result: list[Any] = []
    start = 0
    for length in pc.list_value_length(array).to_pylist():
        result.append(None if length is None else tuple(elements[start : start + length]))
        start += length or 0
    return result


def _structs_to_plain(array: pa.Array, type: pa.DataType) -> list[Any]:
    columns = [to_plain(a, f.type) for a, f in zip(array.flatten(), type, strict=True)]
    rows = zip(*columns, strict=True) if columns else (() for _ in range(len(array)))
    return [row if valid else None for row, valid in zip(rows, _validity(array), strict=True)]


def _validity(array: pa.Array) -> list[bool]:
    valid: list[bool] = array.is_valid().to_pylist()
    return valid


def out_of_years(array: pa.Array) -> list[int]:
    """The positions of values that are or contain a date or timestamp outside the years 1 to
    9999."""
    if is_array(array.type):
        owner = pc.list_parent_indices(array)
        return sorted({owner[place].as_py() for place in out_of_years(array.flatten())})
    if is_struct(array.type):
        return sorted({place for part in array.flatten() for place in out_of_years(part)})
    if array.type not in (DATE, TIMESTAMP) or not len(array):
        return []
    stored = array.view(_STORED_AS[array.type])
    first, last = stored_range(array.type)
    ends = pc.min_max(stored)
    if not ends["min"].is_valid or (ends["min"].as_py() >= first and ends["max"].as_py() <= last):
        return []
    beyond = pc.or_(pc.less(stored, first), pc.greater(stored, last))
    places: list[int] = pc.indices_nonzero(pc.fill_null(beyond, False)).to_pylist()
    return places


def to_arrow(values: Sequence[Any], type: pa.DataType) -> pa.Array:
    """Plain values as an Arrow array of one of our types."""
    if is_array(type):
        return _plain_to_lists(values, type)
    if is_struct(type):
        return _plain_to_structs(values, type)
    if type in _STORED_AS:
        return pa.array(values, _STORED_AS[type]).cast(type)
    return pa.array(values, type)


def _plain_to_lists(values: Sequence[Any], type: pa.DataType) -> pa.Array:
    elements = [element for value in values if value is not None for element in value]
    offsets: list[int | None] = []
    end = 0
    for value in values:
        offsets.append(None if value is None else end)
        end += len(value or ())
    return pa.ListArray.from_arrays(
        pa.array([*offsets, end], pa.int32()), to_arrow(elements, type.value_type), type=type
    )


def _plain_to_structs(values: Sequence[Any], type: pa.DataType) -> pa.Array:
    columns = [
        to_arrow([None if value is None else value[i] for value in values], field.type)
        for i, field in enumerate(type)
    ]
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays(columns, fields=list(type), mask=mask)
