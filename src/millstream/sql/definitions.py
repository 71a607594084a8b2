"""Statements that are not queries: CREATE STREAM and TABLE, INSERT INTO, DROP, STOP, SHOW."""

from __future__ import annotations

from millstream.model.errors import ParseError, did_you_mean
from millstream.model.names import Name
from millstream.sql import other_dialects
from millstream.sql.definition_reader import DefinitionReader
from millstream.sql.reserved import check_declared
from millstream.sql.statements import (
    ColumnDefinition,
    CreateStream,
    Drop,
    InsertInto,
    Show,
    Statement,
    Stop,
)
from millstream.sql.table_definitions import read_table
from millstream.sql.view_definitions import read_derived, read_retention, read_view

_EXPECTED = "a query, CREATE, INSERT INTO, UPDATE, DELETE, MERGE, DROP, STOP or SHOW"
_SHOWN = ("STREAMS", "TABLES", "VIEWS", "QUERIES")
_DROPPED = ("STREAM", "TABLE", "VIEW", "QUERY")
_FIRST_WORDS = (
    "SELECT", "WITH", "CREATE", "INSERT", "UPDATE", "DELETE", "MERGE", "DROP", "STOP", "SHOW"
)  # fmt: skip


class StatementReader(DefinitionReader):
    """The statements that are not queries."""

    def statement(self) -> Statement:
        cursor = self.cursor
        if cursor.accept("CREATE"):
            return self._create()
        if cursor.accept("INSERT"):
            cursor.expect("INTO")
            if cursor.at("TABLE"):
                cursor.fail("the name of a table or a sink", help="leave TABLE out")
            return InsertInto(self.connector(), self.query())
        if cursor.accept("DROP"):
            return self._drop()
        if cursor.accept("STOP"):
            cursor.expect("QUERY")
            return self.ended(Stop(cursor.name("the name of a query")))
        if cursor.accept("SHOW"):
            return self._show()
        first = cursor.current
        known = other_dialects.STATEMENTS.get(first.word) if first is not None else None
        help = did_you_mean(first.text, _FIRST_WORDS) if first is not None else None
        return cursor.fail(_EXPECTED, help=known or help)

    def _show(self) -> Statement:
        if not any(map(self.cursor.at, _SHOWN)):
            self.cursor.fail(f"{', '.join(_SHOWN[:-1])} or {_SHOWN[-1]}")
        token = self.cursor.advance()
        return self.ended(Show(token.word, token.span))

    def _drop(self) -> Statement:
        if self.cursor.at("MATERIALIZED", "VIEW"):
            self.cursor.advance()
        if any(map(self.cursor.at, _DROPPED)):
            kind = self.cursor.advance().word
            other_dialects.refuse_existence(self.cursor)
            return self.ended(Drop(kind, self.cursor.name(f"the name of a {kind.lower()}")))
        return self.cursor.fail(f"{', '.join(_DROPPED[:-1])} or {_DROPPED[-1]}")

    def _create(self) -> Statement:
        cursor = self.cursor
        if cursor.accept("TABLE"):
            other_dialects.refuse_existence(cursor)
            return read_table(self)
        if cursor.accept("MATERIALIZED", "VIEW"):
            other_dialects.refuse_existence(cursor)
            return read_view(self)
        if not cursor.accept("STREAM"):
            word = cursor.current.word if cursor.current is not None else ""
            cursor.fail(
                "STREAM, TABLE or MATERIALIZED VIEW after CREATE",
                help=other_dialects.CREATED.get(word),
            )
        other_dialects.refuse_existence(cursor)
        name = check_declared(cursor.name("the name of the stream"), "stream")
        if cursor.accept("AS"):
            return read_derived(self, name)
        cursor.expect("(", "or AS after the name of the stream")
        columns: list[ColumnDefinition] = []
        unique: list[tuple[Name, ...]] = []
        cursor.list_of(lambda: self.declaration(columns, unique))
        if not columns:
            cursor.fail("the name of a column")
        cursor.expect(")", "to close the columns")
        other_dialects.refuse_options(cursor)
        cursor.expect("SOURCE", "after the columns")
        source = self.connector()
        ordering = self.ordering() if cursor.accept("ORDERED") else None
        validity = None
        if cursor.at("VALID"):
            if ordering is not None:
                raise ParseError(
                    "a stream has ORDERED BY or VALID FROM, not both",
                    cursor.span,
                    "VALID FROM a TO b orders the stream by a",
                )
            validity = self.validity()
        statistics = self.statistics() if cursor.accept("WITH") else ()
        rest = statistics, tuple(unique), read_retention(self)
        return self.ended(CreateStream(name, tuple(columns), source, ordering, validity, *rest))
