"""From SQL type names to types."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from millstream.model.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    MAX_PRECISION,
    REAL,
    STRING,
    TIMESTAMP,
    decimal_type,
)

_FROM_SQL = {
    "BOOLEAN": BOOLEAN,
    "TINYINT": INT,
    "SMALLINT": INT,
    "INT": INT,
    "BIGINT": BIGINT,
    "FLOAT": REAL,
    "DOUBLE": DOUBLE,
    "TEXT": STRING,
    "VARCHAR": STRING,
    "CHAR": STRING,
    "BINARY": BINARY,
    "VARBINARY": BINARY,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMPTZ": TIMESTAMP,
    "TIMESTAMPLTZ": TIMESTAMP,
    "TIMESTAMPNTZ": TIMESTAMP,
    "INTERVAL": INTERVAL,
}

# What INTERVAL may span. A type that ends before the seconds would cut its values.
_TO_SECOND = {
    (), ("SECOND",), ("MINUTE", "SECOND"), ("HOUR", "SECOND"), ("DAY", "SECOND"),
}  # fmt: skip


def from_sql(node: exp.DataType) -> pa.DataType:
    """The type of a SQL type name, parsed by sqlglot's Spark dialect.

    Raises ValueError for unsupported types.
    """
    if isinstance(node.this, exp.Interval):
        return _interval_from_sql(node)
    kind = str(getattr(node.this, "value", node.this))
    if kind in _FROM_SQL:
        _check_numbers(node, kind)
        return _FROM_SQL[kind]
    if kind == "DECIMAL":
        return _decimal_from_sql(node)
    if kind == "ARRAY" and len(node.expressions) == 1:
        return pa.list_(from_sql(node.expressions[0]))
    if kind == "STRUCT" and node.expressions:
        return pa.struct([_field_from_sql(field) for field in node.expressions])
    raise _unsupported(node)


class UnsupportedTypeError(ValueError):
    """A SQL type that is not supported."""


def _unsupported(node: exp.DataType) -> ValueError:
    return UnsupportedTypeError(f'type "{node.sql()}" is not supported')


def _check_numbers(node: exp.DataType, kind: str) -> None:
    """Refuse numbers that have no effect. VARCHAR and CHAR may have a length, which CAST in Spark
    also ignores, and TIMESTAMP(6) has the six digits of every TIMESTAMP."""
    given = [parameter.name for parameter in node.expressions]
    if not given or kind in ("VARCHAR", "CHAR"):
        return
    if kind == "TEXT":
        raise ValueError("type STRING takes no number in brackets")
    if kind.startswith("TIMESTAMP") and given != ["6"]:
        raise ValueError("a TIMESTAMP has microseconds: write TIMESTAMP or TIMESTAMP(6)")
    if not kind.startswith("TIMESTAMP"):
        raise ValueError(f"type {node.this.value} takes no number in brackets")


def _interval_from_sql(node: exp.DataType) -> pa.DataType:
    units = tuple(unit.name.upper() for unit in node.this.find_all(exp.Var))
    if units not in _TO_SECOND:
        raise _unsupported(node)
    return INTERVAL


def _decimal_from_sql(node: exp.DataType) -> pa.DataType:
    digits = [int(parameter.name) for parameter in node.expressions]
    if len(digits) > 2:
        raise ValueError("a DECIMAL takes a precision and a scale")
    precision, scale = (*digits, 0) if len(digits) == 1 else (digits or (10, 0))
    if not 1 <= precision <= MAX_PRECISION:
        raise ValueError(f"a DECIMAL has 1 to {MAX_PRECISION} digits, not {precision}")
    if scale > precision:
        raise ValueError(f"a DECIMAL of {precision} digits cannot have {scale} after the point")
    return decimal_type(precision, scale)


def _field_from_sql(field: exp.Expression) -> pa.Field:
    if not isinstance(field, exp.ColumnDef) or field.args.get("constraints"):
        raise ValueError(f'struct field "{field.sql(dialect="spark")}" needs a name and a type')
    return pa.field(field.name, from_sql(field.args["kind"]))
