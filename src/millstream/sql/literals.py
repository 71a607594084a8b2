"""Python values as literals."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import pyarrow as pa

from millstream.logical import functions
from millstream.logical.expressions import Cast, Expression, Literal
from millstream.model import types
from millstream.model.time import microseconds_of
from millstream.model.values import canonical


def literal_of(value: object) -> Expression:
    """A Python value as an expression; TypeError or OverflowError if no type can hold it."""
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    match value:
        case None:
            return Literal(None, pa.null())
        case bool():
            return Literal(value, types.BOOLEAN)
        case int():
            if -(2**31) <= value < 2**31:
                return Literal(value, types.INT)
            if -(2**63) <= value < 2**63:
                return Literal(value, types.BIGINT)
            raise OverflowError(value)
        case float() if not math.isfinite(value):
            text = functions.to_string(canonical(value), types.DOUBLE)
            return Cast(Literal(text, types.STRING), types.DOUBLE)
        case float():
            return Literal(value, types.DOUBLE)
        case str():
            return Literal(value, types.STRING)
        case bytes():
            return Literal(value, types.BINARY)
        case Decimal():
            if not value.is_finite():
                raise TypeError(value)
            text = format(value, "f")
            _, digits, exponent = Decimal(text).as_tuple()
            scale = max(-int(exponent), 0)
            if max(len(digits), scale) > 38:
                raise TypeError(value)
            exact = pa.decimal128(max(len(digits), scale), scale)
            if scale == 0:  # without a point it would be parsed as an integer
                return Cast(Literal(text, types.STRING), exact)
            return Literal(Decimal(text), exact)
        case datetime.datetime():
            if getattr(value, "nanosecond", 0):  # pandas has them
                raise TypeError(value)
            text = functions.to_string(microseconds_of(value), types.TIMESTAMP)
            return Cast(Literal(text, types.STRING), types.TIMESTAMP)
        case datetime.date():
            return Cast(Literal(value.isoformat(), types.STRING), types.DATE)
        case datetime.timedelta():
            return Literal(value // datetime.timedelta(microseconds=1), types.INTERVAL)
    raise TypeError(value)
