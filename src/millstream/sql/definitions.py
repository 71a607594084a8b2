"""Statements that are not queries: CREATE STREAM and TABLE, INSERT INTO, DROP, STOP, SHOW."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

from sqlglot.tokens import TokenType

from millstream.logical.catalog import Connector, Option
from millstream.model.durations import UNITS
from millstream.model.errors import ParseError, did_you_mean
from millstream.model.masking import note_options
from millstream.model.names import Name
from millstream.model.time import unit_named
from millstream.sql import elsewhere
from millstream.sql.clauses import ClauseReader, parameter_value
from millstream.sql.column_definitions import read_column
from millstream.sql.reserved import check_declared
from millstream.sql.statements import (
    ColumnDefinition,
    CreateStream,
    Drop,
    InsertInto,
    Ordering,
    Query,
    Show,
    Statement,
    Statistic,
    Stop,
    Validity,
)
from millstream.sql.table_definitions import read_table
from millstream.sql.tokens import Cursor
from millstream.sql.view_definitions import read_derived, read_retention, read_view

_EXPECTED = "a query, CREATE, INSERT INTO, UPDATE, DELETE, MERGE, DROP, STOP or SHOW"
_SHOWN = ("STREAMS", "TABLES", "VIEWS", "QUERIES")
_DROPPED = ("STREAM", "TABLE", "VIEW", "QUERY")
_OF_STREAMS, _OF_COLUMNS = ("RATE", "SIZE"), ("DISTINCT", "MIN", "MAX")  # statistics
_FIRST_WORDS = (
    "SELECT", "WITH", "CREATE", "INSERT", "UPDATE", "DELETE", "MERGE", "DROP", "STOP", "SHOW"
)  # fmt: skip


class DefinitionReader:
    """The descent; `query` reads the rest of the statement as a query."""

    def __init__(
        self,
        text: str,
        cursor: Cursor,
        parameters: Mapping[str, object],
        query: Callable[[], Query],
    ) -> None:
        self.text = text
        self.cursor = cursor
        self.parameters = parameters
        self.query = query
        self.clauses = ClauseReader(cursor, parameters)

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
        known = elsewhere.STATEMENTS.get(first.word) if first is not None else None
        help = did_you_mean(first.text, _FIRST_WORDS) if first is not None else None
        return cursor.fail(_EXPECTED, help=known or help)

    def _show(self) -> Statement:
        if not any(map(self.cursor.at, _SHOWN)):
            self.cursor.fail(f"{', '.join(_SHOWN[:-1])} or {_SHOWN[-1]}")
        token = self.cursor.advance()
        return self.ended(Show(token.word, token.span))

    def ended(self, statement: Statement) -> Statement:
        if self.cursor.current is not None:
            self.cursor.fail("the end of the statement")
        return statement

    def _drop(self) -> Statement:
        if self.cursor.at("MATERIALIZED", "VIEW"):
            self.cursor.advance()
        if any(map(self.cursor.at, _DROPPED)):
            kind = self.cursor.advance().word
            elsewhere.refuse_existence(self.cursor)
            return self.ended(Drop(kind, self.cursor.name(f"the name of a {kind.lower()}")))
        return self.cursor.fail(f"{', '.join(_DROPPED[:-1])} or {_DROPPED[-1]}")

    def _create(self) -> Statement:
        cursor = self.cursor
        if cursor.accept("TABLE"):
            elsewhere.refuse_existence(cursor)
            return read_table(self)
        if cursor.accept("MATERIALIZED", "VIEW"):
            elsewhere.refuse_existence(cursor)
            return read_view(self)
        if not cursor.accept("STREAM"):
            word = cursor.current.word if cursor.current is not None else ""
            cursor.fail(
                "STREAM, TABLE or MATERIALIZED VIEW after CREATE", help=elsewhere.CREATED.get(word)
            )
        elsewhere.refuse_existence(cursor)
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
        elsewhere.refuse_options(cursor)
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

    def declaration(self, columns: list[ColumnDefinition], unique: list[tuple[Name, ...]]) -> None:
        """A column, or UNIQUE (column, …)."""
        following = self.cursor.peek()
        if self.cursor.at("UNIQUE") and following is not None and following.word == "(":
            self.cursor.advance()
            self.cursor.advance()
            unique.append(tuple(self.cursor.list_of(lambda: self.cursor.name("a column"))))
            self.cursor.expect(")", "to close UNIQUE")
        else:
            columns.append(read_column(self.cursor))

    def connector(self) -> Connector:
        cursor = self.cursor
        name = cursor.name("a connector")
        if not name.quoted and name.text.upper() in ("SELECT", "TABLE", "STREAM"):
            cursor.position -= 1
            cursor.fail("a connector such as console()")
        cursor.expect("(", f'after the connector "{name.text}"')
        values: list[Option] = []
        options: list[tuple[str, Option]] = []
        if not cursor.accept(")"):
            cursor.list_of(lambda: self._argument(values, options))
            cursor.expect(")", "to close the options")
        note_options([*(("", value) for value in values), *options])
        return Connector(name, tuple(values), tuple(options))

    def _argument(self, values: list[Option], options: list[tuple[str, Option]]) -> None:
        following = self.cursor.peek()
        if following is not None and following.word == "=>":
            name = self.cursor.name("an option")
            self.cursor.advance()
            if any(key.lower() == name.text.lower() for key, _ in options):
                raise ParseError(f'option "{name.text}" is given twice', name.span)
            options.append((name.text, self.literal()))
        else:
            if options:
                self.cursor.fail("option => value", "after options by name")
            values.append(self.literal())

    def literal(self) -> Option:
        cursor = self.cursor
        token = cursor.current
        if token is None:
            cursor.fail("a value")
        if cursor.accept(":"):
            name = cursor.name("the name of a parameter")
            value = parameter_value(name.text, self.parameters, name.span)
            if value is None or isinstance(value, str | int | float | bool):
                return value
            raise ParseError(f"an option takes no {type(value).__name__}", name.span)
        if token.kind is TokenType.STRING:
            return self._string()
        if token.word in ("TRUE", "FALSE", "NULL"):
            return {"TRUE": True, "FALSE": False, "NULL": None}[cursor.advance().word]
        return self._plain_number("a value: a string, a number, TRUE, FALSE or NULL")

    def _string(self) -> str:
        """A string; in 'it\'\'s' the doubled quote is one, and 'a' 'b' is 'ab'."""
        token = self.cursor.advance()
        text = token.text
        while (following := self.cursor.current) is not None:
            if following.kind is not TokenType.STRING:
                break
            text += ("'" if following.span.start == token.span.end else "") + following.text
            token = self.cursor.advance()
        return text

    def _plain_number(self, expected: str) -> int | float:
        negative = self.cursor.accept("-")
        token = self.cursor.current
        if token is None or token.kind is not TokenType.NUMBER:
            self.cursor.fail(expected)
        self.cursor.advance()
        try:
            value = Decimal(token.text)
        except ArithmeticError:
            raise ParseError(f'"{token.text}" is not a number', token.span) from None
        if not -300 < value.adjusted() < 300:
            raise ParseError("the number is out of range", token.span)
        number = int(value) if token.text.isdecimal() else float(value)
        return -number if negative else number

    def ordering(self) -> Ordering:
        cursor = self.cursor
        cursor.expect("BY")
        column = cursor.name("the column that orders the stream")
        unit = self._unit()
        delay = idle = None
        if cursor.accept("DELAY"):
            delay = self.clauses.duration()
        if cursor.accept("IDLE"):
            cursor.expect("AFTER")
            idle = self.clauses.duration()
        return Ordering(column, unit, delay, idle)

    def validity(self) -> Validity:
        cursor = self.cursor
        cursor.expect("VALID")
        cursor.expect("FROM")
        start = cursor.name("the column where validity starts")
        cursor.expect("TO")
        end = cursor.name("the column where validity ends")
        return Validity(start, end, self._unit())

    def _unit(self) -> str | None:
        if not self.cursor.accept("UNIT"):
            return None
        token = self.cursor.current
        unit = unit_named(token.word) if token is not None else None
        if unit is None:
            self.cursor.fail(UNITS)
        self.cursor.advance()
        return unit

    def statistics(self) -> tuple[Statistic, ...]:
        self.cursor.expect("(")
        statistics: list[Statistic] = []
        self.cursor.list_of(lambda: statistics.append(self._statistic(statistics)))
        self.cursor.expect(")", "to close the statistics")
        return tuple(statistics)

    def _statistic(self, known: list[Statistic]) -> Statistic:
        cursor = self.cursor
        start = cursor.span
        column = None
        word = cursor.current.word if cursor.current is not None else ""
        if word not in (*_OF_STREAMS, *_OF_COLUMNS):
            cursor.fail(
                "rate = …, size = …, distinct(column) = …, min(column) = … or max(column) = …"
            )
        kind = cursor.advance().word.lower()
        if word in _OF_COLUMNS:
            cursor.expect("(")
            column = cursor.name("a column")
            cursor.expect(")")
        if any(_same_subject(kind, column, other) for other in known):
            end = cursor.tokens[cursor.position - 1].span
            raise ParseError(f"{kind} is given twice", start.to(end))
        cursor.expect("=")
        span = cursor.span
        value = float(self._plain_number("a number"))
        if value <= 0 and kind not in ("min", "max"):
            end = cursor.tokens[cursor.position - 1].span
            raise ParseError(f"{kind} must be positive", span.to(end))
        return Statistic(kind, column, value)


def _same_subject(kind: str, column: Name | None, other: Statistic) -> bool:
    if column is None or other.column is None:
        return kind == other.kind and column is other.column
    return kind == other.kind and column.text.lower() == other.column.text.lower()
