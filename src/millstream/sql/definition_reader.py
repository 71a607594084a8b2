"""The parts of definitions: connectors and their options, time, statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

from sqlglot.tokens import TokenType

from millstream.logical.catalog import Connector, Option
from millstream.model.durations import UNITS
from millstream.model.errors import ParseError
from millstream.model.masking import note_options
from millstream.model.names import Name
from millstream.model.time import unit_named
from millstream.sql.clauses import ClauseReader, parameter_value
from millstream.sql.column_definitions import read_column
from millstream.sql.statements import (
    ColumnDefinition,
    Ordering,
    QueryStatement,
    Statement,
    Statistic,
    Validity,
)
from millstream.sql.tokens import Cursor

_OF_STREAMS, _OF_COLUMNS = ("RATE", "SIZE"), ("DISTINCT", "MIN", "MAX")  # statistics


class DefinitionReader:
    """A recursive-descent parser; `query` reads the rest of the statement as a query."""

    def __init__(
        self,
        text: str,
        cursor: Cursor,
        parameters: Mapping[str, object],
        query: Callable[[], QueryStatement],
    ) -> None:
        self.text = text
        self.cursor = cursor
        self.parameters = parameters
        self.query = query
        self.clauses = ClauseReader(cursor, parameters)

    def ended(self, statement: Statement) -> Statement:
        if self.cursor.current is not None:
            self.cursor.fail("the end of the statement")
        return statement

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
        """A string; 'it\'\'s' contains one quote, and 'a' 'b' is 'ab'."""
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
