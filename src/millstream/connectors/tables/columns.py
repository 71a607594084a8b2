"""Matches declared columns with those of an external table, and checks its values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from millstream.connectors.intake.checking import checked_records
from millstream.logical.catalog import Table
from millstream.logical.plan import Field
from millstream.model import types
from millstream.model.errors import DataError, brief, one_of
from millstream.model.types import sql_name

_Values: TypeAlias = "pa.Array | Sequence[Any]"
_Conversion: TypeAlias = "Callable[[Any], pa.Array]"

# Errors that a value of the wrong type may raise.
_MISFITS = (ValueError, TypeError, ArithmeticError, pa.ArrowException)

_WIDENED = {
    types.BIGINT: (types.INT,),
    types.DOUBLE: (types.INT, types.REAL),
    types.TIMESTAMP: (types.DATE,),
}


@dataclass(frozen=True)
class SourceTable:
    """A declared table, and the name of its external table in messages."""

    table: Table
    name: str

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(f.name, f.type) for f in self.table.columns])

    def error(self, message: str, help: str | None = None) -> DataError:
        return DataError(f'table "{self.table.name}": {message}', None, help)

    def names(self, there: Sequence[str]) -> list[str]:
        """The external names of the declared columns: an exact match, or the only match ignoring
        case."""
        names = []
        for field in self.table.columns:
            alike = [name for name in there if name.lower() == field.name.lower()]
            same = [name for name in alike if name == field.name] or alike
            if len(same) > 1:
                raise self.error(f'{self.name} has several columns "{field.name}"')
            if not same:
                help = one_of(field.name, there, "column")
                raise self.error(f'{self.name} has no column "{field.name}"', help)
            names += same
        return names

    def wrong_type(self, field: Field, found: str) -> DataError:
        return self.error(
            f'column "{field.name}" of {self.name} is {found}, and not all its values are '
            f"{sql_name(field.type)}",
            "declare a type that can hold all its values",
        )

    def wrong_value(self, field: Field, value: object) -> DataError:
        return self.error(
            f'{brief(value)} in column "{field.name}" of {self.name} is not {sql_name(field.type)}'
        )

    def converted(self, field: Field, found: _Values, convert: _Conversion) -> pa.Array:
        """A column in its declared type; DataError with the first value that does not fit."""
        try:
            return convert(found)
        except _MISFITS:
            raise self.wrong_value(field, _first_misfit(found, convert)) from None

    def check(self, rows: pa.Table) -> None:
        """Reject rows that violate NOT NULL or have invalid times."""
        _, bad = checked_records(self.table, rows)
        if bad:
            raise self.error(f"{self.name} has a row that does not fit: {bad[0].message}")


def _first_misfit(found: _Values, convert: _Conversion) -> object:
    """The first value that cannot be converted, found by bisection."""
    while len(found) > 1:
        half = len(found) // 2
        try:
            convert(found[:half])
        except _MISFITS:
            found = found[:half]
        else:
            found = found[half:]
    value = found[0]
    return value.as_py() if isinstance(value, pa.Scalar) else value


def holds_arrow(type: pa.DataType, values: pa.DataType) -> bool:
    """Whether a type can hold all values of an Arrow type, except fractions of microseconds."""
    try:
        return holds(type, types.from_arrow(values))
    except ValueError:
        return False


def holds(type: pa.DataType, values: pa.DataType) -> bool:
    """Whether a type can hold all values of another."""
    if type == values:
        return True
    if types.is_decimal(type) and (types.is_decimal(values) or types.is_integral(values)):
        return bool(types.wider_decimal(type, types.as_decimal(values)) == type)
    if types.is_array(type) and types.is_array(values):
        return holds(type.value_type, values.value_type)
    if types.is_struct(type) and types.is_struct(values):
        return [f.name for f in type] == [f.name for f in values] and all(
            holds(ours.type, theirs.type) for ours, theirs in zip(type, values, strict=True)
        )
    return values in _WIDENED.get(type, ())
