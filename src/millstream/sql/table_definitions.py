"""CREATE TABLE: columns and key of a relation, the meaning of its changes, its source."""

from __future__ import annotations

from millstream.logical.catalog import ChangeMode
from millstream.model.errors import ParseError
from millstream.model.names import Name
from millstream.sql import other_dialects
from millstream.sql.column_definitions import add_key, read_column
from millstream.sql.definition_reader import DefinitionReader
from millstream.sql.reserved import check_declared
from millstream.sql.statements import ColumnDefinition, CreateLatest, CreateTable, Statement
from millstream.sql.tokens import Cursor


def read_table(reader: DefinitionReader) -> Statement:
    """After CREATE TABLE."""
    cursor = reader.cursor
    name = check_declared(cursor.name("the name of the table"), "table")
    if cursor.accept("AS"):
        return _latest(reader, name)
    cursor.expect("(", "or AS after the name of the table")
    columns: list[ColumnDefinition] = []
    key: list[Name] = []
    cursor.list_of(lambda: _declaration(reader, columns, key))
    if not columns:
        cursor.fail("the name of a column")
    cursor.expect(")", "to close the columns")
    other_dialects.refuse_options(cursor)
    changes = _changes(cursor)
    source = reader.connector() if cursor.accept("SOURCE") else None
    changes = changes or _changes(cursor)
    ordering = reader.ordering() if cursor.accept("ORDERED") else None
    validity = reader.validity() if cursor.at("VALID") else None
    if validity is not None and (ordering is not None or changes is not None):
        raise ParseError(
            "rows with their own validity do not change",
            validity.start.span,
            "leave out either VALID FROM … TO … or the other clauses on time and changes",
        )
    statistics = reader.statistics() if cursor.accept("WITH") else ()
    changes = ChangeMode.OWN if validity is not None else changes or ChangeMode.RETROACTIVE
    return reader.ended(
        CreateTable(
            name, tuple(columns), tuple(key), changes, source, ordering, validity, statistics
        )
    )


def _declaration(
    reader: DefinitionReader, columns: list[ColumnDefinition], key: list[Name]
) -> None:
    """A column with an optional PRIMARY KEY, or PRIMARY KEY (column, …)."""
    if reader.cursor.at("PRIMARY", "KEY"):
        add_key(reader.cursor, key)
    else:
        columns.append(read_column(reader.cursor, key))


def _changes(cursor: Cursor) -> ChangeMode | None:
    for each in (ChangeMode.NONE, ChangeMode.RETROACTIVE, ChangeMode.NON_RETROACTIVE):
        words = each.value.split()
        if cursor.at(*words):
            for _ in words:
                cursor.advance()
            return each
    return None


def _latest(reader: DefinitionReader, name: Name) -> Statement:
    """`LATEST BY key, … FROM stream [DELETE WHERE condition]`"""
    cursor = reader.cursor
    if cursor.at("SELECT") or cursor.at("WITH") or cursor.at("("):
        cursor.fail(
            "LATEST",
            "after AS",
            "write CREATE MATERIALIZED VIEW name AS query, or CREATE TABLE name (column type, …) "
            "and INSERT INTO name query",
        )
    cursor.expect("LATEST", "after AS")
    cursor.expect("BY")
    key = tuple(cursor.list_of(lambda: cursor.name("a column of the key")))
    cursor.expect("FROM")
    stream = cursor.name("the name of a stream")
    deleted = None
    if cursor.accept("DELETE"):
        cursor.expect("WHERE")
        if cursor.current is None:
            cursor.fail("the condition for deleting a row")
        first = last = cursor.advance()
        while cursor.current is not None:
            last = cursor.advance()
        deleted = reader.text[first.span.start : last.span.end]
    return reader.ended(CreateLatest(name, key, stream, deleted))
