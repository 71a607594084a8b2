"""The declared columns of a table among those that it has elsewhere, and values that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from millstream.connectors.tables.table_source import DeclaredTable
from millstream.errors import DataError, one_of
from millstream.logical.plan import Field
from millstream.types import sql_name


@dataclass(frozen=True)
class Origin:
    """A declared table, and what messages call the one that it is read from."""

    table: DeclaredTable
    name: str

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(f.name, f.type) for f in self.table.columns])

    def error(self, message: str, help: str | None = None) -> DataError:
        return DataError(f'table "{self.table.name}": {message}', None, help)

    def names(self, there: Sequence[str]) -> list[str]:
        """What the declared columns are called there: the same, or the only one but for case."""
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
            f'column "{field.name}" of {self.name} is {found}, and not all of that is '
            f"{sql_name(field.type)}",
            "declare the type that the column has, or read a view that casts it",
        )

    def wrong_value(self, field: Field, value: object) -> DataError:
        return self.error(
            f'{value!r} in column "{field.name}" of {self.name} is not {sql_name(field.type)}'
        )

    def converted(
        self, field: Field, found: pa.Array, convert: Callable[[pa.Array], pa.Array]
    ) -> pa.Array:
        """A column in its declared type; DataError with the first value that is not of it."""
        try:
            return convert(found)
        except (ValueError, pa.ArrowException):
            raise self.wrong_value(field, _first_misfit(found, convert)) from None

    def check_not_null(self, rows: pa.Table) -> None:
        for field, column in zip(self.table.columns, rows.columns, strict=True):
            if column.null_count and not field.nullable:
                raise self.error(f'column "{field.name}" of {self.name} has NULL: it is NOT NULL')


def _first_misfit(found: pa.Array, convert: Callable[[pa.Array], pa.Array]) -> object:
    """The first value that cannot be converted: it is not in the half that can."""
    while len(found) > 1:
        half = found.slice(0, len(found) // 2)
        try:
            convert(half)
        except (ValueError, pa.ArrowException):
            found = half
        else:
            found = found.slice(len(half))
    return found[0].as_py()
