"""Maps the columns of an answer to those of a PostgreSQL table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.connectors.sinks.plain import texts
from millstream.model import types
from millstream.model.errors import QueryError, listed
from millstream.model.types import LAST_TIMESTAMP

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composed, Identifier

# The type of a new column, and other types in an existing table that can hold all its values.
_TYPES: dict[pa.DataType, tuple[str, ...]] = {
    types.BOOLEAN: ("boolean",),
    types.INT: ("integer", "bigint", "numeric", "double precision"),
    types.BIGINT: ("bigint", "numeric"),
    types.REAL: ("real", "double precision"),
    types.DOUBLE: ("double precision",),
    types.STRING: ("text", "character varying"),
    types.BINARY: ("bytea",),
    types.DATE: ("date",),
    types.TIMESTAMP: ("timestamp with time zone", "timestamp without time zone"),
    types.INTERVAL: ("interval",),
    types.NULL: ("text",),
}
_NESTED = ("jsonb", "json")
_ESCAPED_NUL = r"(^|[^\\])(\\\\)*\\u0000"  # as JSON writes it

# The columns of a table, and whether each may be left out of an INSERT.
_FOUND = """SELECT attname, format_type(atttypid, atttypmod),
    NOT attnotnull OR atthasdef OR attidentity <> ''
FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"""


def types_of(type: pa.DataType) -> tuple[str, ...]:
    """The type of a new column for such values, then other types that accept them."""
    if types.is_decimal(type):
        return f"numeric({type.precision},{type.scale})", "numeric"
    return _NESTED if pa.types.is_nested(type) else _TYPES[type]


def created(target: Identifier, schema: pa.Schema) -> Composed:
    """The statement that creates the table if it does not exist."""
    from psycopg.sql import SQL, Identifier

    columns = [
        SQL("{} {}").format(Identifier(field.name), SQL(types_of(field.type)[0]))
        for field in schema
    ]
    return SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(target, SQL(", ").join(columns))


def check_columns(
    connection: Connection[Any], table: str, target: Identifier, schema: pa.Schema
) -> None:
    rows = connection.execute(_FOUND, [target.as_string(connection)]).fetchall()
    found = {name: type for name, type, _ in rows}
    missing = [name for name in schema.names if name not in found]
    wrong = [
        f'"{field.name}" is {found[field.name]} but must be {types_of(field.type)[0]}'
        for field in schema
        if field.name in found and not _fits(found[field.name], types_of(field.type))
    ]
    unfilled = [name for name, _, filled in rows if not filled and name not in schema.names]
    problems = [*wrong]
    if missing:
        problems.append(f"it has no column {listed(missing)}")
    if unfilled:
        problems.append(f"the query has no {listed(unfilled)}, which must not be NULL")
    if problems:
        raise QueryError(
            f'table "{table}" of PostgreSQL does not fit the query: {"; ".join(problems)}',
            help="change the table or the SELECT, or name a table that does not exist yet",
        )


def _fits(found: str, accepted: Sequence[str]) -> bool:
    """The length or precision of an existing column is up to its owner; for numbers it must equal
    the query's."""
    name = found.partition("(")[0] if found.startswith("character varying(") else found
    return name in accepted


def unfit(table: pa.Table) -> dict[int, str]:
    """Why PostgreSQL cannot store some rows, by row number: its strings cannot have NUL
    characters."""
    found: dict[int, str] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_nested(column.type):
            has_nul = pc.match_substring_regex(texts(column), _ESCAPED_NUL)
        elif column.type == types.STRING:
            has_nul = pc.match_substring(column, "\0")
        else:
            continue
        for row in pc.indices_nonzero(pc.fill_null(has_nul, False)).to_pylist():
            told = f'the text in column "{name}" has a NUL character, which PostgreSQL cannot store'
            found.setdefault(row, told)
    return found


def prepared(table: pa.Table) -> pa.Table:
    """The same values in a form whose text PostgreSQL can read."""
    columns = [
        _prepared(field.name, table.column(index)) for index, field in enumerate(table.schema)
    ]
    return pa.table(columns, names=table.column_names)


def _prepared(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_nested(column.type) or column.type == types.INTERVAL:
        return texts(column)
    if column.type == types.BINARY:
        shown = [None if value is None else f"\\x{value.hex()}" for value in column.to_pylist()]
        return pa.chunked_array([pa.array(shown, pa.string())])
    if name == "valid_to" and column.type == types.TIMESTAMP:
        return _with_infinity(column)
    return column


def _with_infinity(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """An unknown end becomes PostgreSQL's infinity."""
    last = pa.scalar(LAST_TIMESTAMP).cast(types.TIMESTAMP)
    return pc.if_else(pc.equal(column, last), "infinity", column.cast(pa.string()))
