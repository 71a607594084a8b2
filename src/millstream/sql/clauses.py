"""The clauses that SQL does not have: windows, granularities and EMIT, read and printed.

WINDOW(RANGE d | [RANGE] UNBOUNDED | [RANGE] NOW [SLIDE d])
WINDOW([PARTITION BY c, …] ROWS n | ROWS UNBOUNDED [SLIDE m])
WINDOW(RANGE MIN d, MAX d), WINDOW(ROWS MIN n, MAX m)
GRANULARITY(d), GRANULARITY(COARSEST d, FINEST d)
s [RANGE d SLIDE e], s [ROWS n], s [NOW], …              -- CQL's spelling of WINDOW(…)
SHED [AT MOST p PERCENT]
EMIT FINAL | EMIT CHANGES
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sqlglot.tokens import TokenType

from millstream.model.durations import UNITS, Duration, exact_number, parse_duration
from millstream.model.errors import ParseError, Span
from millstream.model.names import Name, QualifiedName
from millstream.model.time import unit_named
from millstream.sql.tokens import Cursor

_PARTITIONED_BY = (
    "a window is partitioned by columns; compute one in a subquery: "
    "FROM (SELECT *, k % 2 AS p FROM stream) WINDOW(PARTITION BY p ROWS n)"
)

# Words that may follow a bare number where a unit could stand.
_AFTER_A_DURATION = ("SLIDE", "UNIT", "DELAY", "IDLE", "VALID", "WITH", "RETAIN", "IN")


@dataclass(frozen=True)
class RowCount:
    """A number of rows."""

    rows: int
    span: Span | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return str(self.rows)


@dataclass(frozen=True)
class Unbounded:
    span: Span | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return "UNBOUNDED"


@dataclass(frozen=True)
class Now:
    def __str__(self) -> str:
        return "NOW"


@dataclass(frozen=True)
class Window:
    """One window specification; `minimum` is the bound MIN, where one is written."""

    frame: str  # RANGE or ROWS
    size: Duration | RowCount | Unbounded | Now
    slide: Duration | RowCount | None = None
    partition: tuple[Name, ...] = ()
    minimum: Duration | RowCount | None = None
    span: Span | None = field(default=None, compare=False)

    def __str__(self) -> str:
        by = f"PARTITION BY {', '.join(map(str, self.partition))} " if self.partition else ""
        size = str(self.size) if self.minimum is None else f"MIN {self.minimum}, MAX {self.size}"
        slide = f" SLIDE {self.slide}" if self.slide is not None else ""
        return f"WINDOW({by}{self.frame} {size}{slide})"


@dataclass(frozen=True)
class GranularityClause:
    """The granule; `coarsest` is the bound COARSEST, where one is written."""

    finest: Duration
    coarsest: Duration | None = None
    span: Span | None = field(default=None, compare=False)

    def __str__(self) -> str:
        if self.coarsest is None:
            return f"GRANULARITY({self.finest})"
        return f"GRANULARITY(COARSEST {self.coarsest}, FINEST {self.finest})"


@dataclass(frozen=True)
class AsOf:
    """`AS OF t`: a number of raw time units, or the text of a TIMESTAMP."""

    instant: int | str
    span: Span | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"AS OF {_instant_text(self.instant)}"


@dataclass(frozen=True)
class EffectiveAt:
    """`EFFECTIVE AT t`: when a change of a table takes effect."""

    instant: int | str
    span: Span | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"EFFECTIVE AT {_instant_text(self.instant)}"


def _instant_text(instant: int | str) -> str:
    return str(instant) if isinstance(instant, int) else f"TIMESTAMP '{instant}'"


@dataclass(frozen=True)
class Clauses:
    """The stream clauses of one reference in FROM."""

    window: Window | None = None
    granularity: GranularityClause | None = None
    as_of: AsOf | None = None

    def __str__(self) -> str:
        each = (self.as_of, self.window, self.granularity)
        return " ".join(str(c) for c in each if c is not None)


@dataclass(frozen=True)
class Shed:
    """Under overload, up to this percentage of the rows of each stream may be dropped."""

    most: Fraction = Fraction(100)

    def __str__(self) -> str:
        return "SHED" if self.most == 100 else f"SHED AT MOST {Duration(self.most, None)} PERCENT"


def starts_window(cursor: Cursor) -> bool:
    return cursor.at("WINDOW", "(")


def starts_granularity(cursor: Cursor) -> bool:
    return cursor.at("GRANULARITY", "(")


def starts_cql_window(cursor: Cursor) -> bool:
    return cursor.at("[")


def starts_as_of(cursor: Cursor) -> bool:
    return cursor.at("AS", "OF")


class ClauseReader:
    """A recursive-descent parser over a cursor that it shares with the caller."""

    def __init__(self, cursor: Cursor, parameters: Mapping[str, object]) -> None:
        self.cursor = cursor
        self.parameters = parameters

    def window(self) -> Window:
        start = self.cursor.span
        self.cursor.advance()
        self.cursor.expect("(")
        return self._specification(start, ")")

    def cql_window(self) -> Window:
        start = self.cursor.span
        self.cursor.advance()
        return self._specification(start, "]")

    def _specification(self, start: Span, closing: str) -> Window:
        cursor = self.cursor
        partition: tuple[Name, ...] = ()
        if cursor.accept("PARTITION"):
            cursor.expect("BY")
            partition = tuple(cursor.list_of(lambda: self._partition_column()))
            if not any(map(cursor.at, ("ROWS", "RANGE", "NOW", "UNBOUNDED"))):
                is_expression = cursor.current is not None and not cursor.at(")")
                cursor.fail(
                    "ROWS or RANGE",
                    "after the columns of PARTITION BY",
                    _PARTITIONED_BY if is_expression else "write WINDOW(PARTITION BY c ROWS 10)",
                )
        minimum: Duration | RowCount | None = None
        size: Duration | RowCount | Unbounded | Now
        if cursor.accept("ROWS"):
            frame = "ROWS"
            if cursor.at("MIN"):
                minimum, size = self._row_bounds()
            else:
                size = self._unbounded() or self.count("a number of rows or UNBOUNDED")
        elif cursor.accept("RANGE") or cursor.at("NOW") or cursor.at("UNBOUNDED"):
            frame = "RANGE"
            if cursor.accept("NOW"):
                size = Now()
            elif cursor.at("MIN"):
                minimum, size = self._bounds("MIN", "MAX")
            else:
                size = self._unbounded() or self.duration("a duration, NOW or UNBOUNDED")
        else:
            cursor.fail(
                "RANGE, ROWS, NOW, UNBOUNDED or PARTITION BY",
                "in the window",
                "write WINDOW(RANGE 10 MINUTES), or WINDOW(RANGE 10 MINUTES SLIDE 10 MINUTES)",
            )
        slide: Duration | RowCount | None = None
        if cursor.accept("SLIDE"):
            slide = self.count("a number of rows") if frame == "ROWS" else self.duration()
        end = cursor.expect(closing, "to close the window")
        return Window(frame, size, slide, partition, minimum, start.to(end.span))

    def _partition_column(self) -> Name:
        """A column, which may be qualified with its stream."""
        name = self.cursor.name("a column")
        if not self.cursor.accept("."):
            return name
        column = self.cursor.name("a column")
        return QualifiedName(column.text, column.quoted, column.span, name)

    def _unbounded(self) -> Unbounded | None:
        span = self.cursor.span
        return Unbounded(span) if self.cursor.accept("UNBOUNDED") else None

    def _bounds(self, first: str, second: str) -> tuple[Duration, Duration]:
        self.cursor.expect(first)
        one = self.duration()
        self.cursor.expect(",", f"and {second} after {first}")
        self.cursor.expect(second)
        return one, self.duration()

    def _row_bounds(self) -> tuple[RowCount, RowCount]:
        self.cursor.expect("MIN")
        minimum = self.count("a number of rows")
        self.cursor.expect(",", "and MAX after MIN")
        self.cursor.expect("MAX")
        return minimum, self.count("a number of rows")

    def granularity(self) -> GranularityClause:
        start = self.cursor.span
        self.cursor.advance()
        self.cursor.expect("(")
        coarsest = None
        if self.cursor.at("COARSEST"):
            coarsest, finest = self._bounds("COARSEST", "FINEST")
        else:
            finest = self.duration()
        end = self.cursor.expect(")", "to close the granularity")
        return GranularityClause(finest, coarsest, start.to(end.span))

    def as_of(self) -> AsOf:
        start = self.cursor.advance().span
        self.cursor.expect("OF")
        instant = self.instant()
        return AsOf(instant, start.to(self.cursor.tokens[self.cursor.position - 1].span))

    def shed(self) -> Shed:
        cursor = self.cursor
        cursor.advance()
        if not cursor.accept("AT"):
            return Shed()
        cursor.expect("MOST")
        span = cursor.span
        most = self._number("a number")
        if not 0 < most <= 100:
            raise ParseError("the percentage to drop must be more than 0 and at most 100", span)
        cursor.expect("PERCENT")
        return Shed(most)

    def instant(self) -> int | str:
        """A number of raw time units, or the text of a TIMESTAMP."""
        cursor, expected = self.cursor, "an instant: TIMESTAMP '…' or a number"
        if cursor.at(":"):
            value, described, span = self._parameter()
            if isinstance(value, datetime.datetime | datetime.date):
                return value.isoformat(" ") if isinstance(value, datetime.datetime) else str(value)
            if isinstance(value, int | str) and not isinstance(value, bool):
                return value
            raise ParseError(f"{described} is not an instant: {value!r}", span)
        named = cursor.accept("TIMESTAMP") or cursor.accept("DATE")
        if cursor.current is not None and cursor.current.kind is TokenType.STRING:
            return cursor.advance().text
        span = cursor.span
        amount = self._number("the text of an instant" if named else expected)
        if named or amount.denominator != 1:
            raise ParseError("an instant is a whole number, or TIMESTAMP '…'", span)
        return int(amount)

    def duration(self, expected: str = "a duration") -> Duration:
        cursor = self.cursor
        start = cursor.span
        cursor.accept("INTERVAL")
        if cursor.at(":"):
            return self._parameter_duration()
        if cursor.current is not None and cursor.current.kind is TokenType.STRING:
            token = cursor.advance()
            duration = parse_duration(token.text, token.span)
            if duration.unit is not None:
                return duration
            amount = duration.amount
        else:
            amount = self._number(expected)
        unit = self._unit()
        end = cursor.tokens[cursor.position - 1].span
        return Duration(amount, unit, start.to(end))

    def count(self, expected: str) -> RowCount:
        span = self.cursor.span
        if self.cursor.at(":"):
            value, described, span = self._parameter()
            if not isinstance(value, int) or isinstance(value, bool):
                raise ParseError(f"{described} must be a whole number, not {value!r}", span)
            return self._positive(RowCount(value, span))
        amount = self._number(expected)
        end = self.cursor.tokens[self.cursor.position - 1].span
        if amount.denominator != 1:
            raise ParseError("a number of rows must be a whole number", span.to(end))
        if (token := self.cursor.current) is not None and unit_named(token.word):
            raise ParseError(
                "ROWS counts rows and takes no unit of time",
                token.span,
                "write RANGE for a window of time",
            )
        return self._positive(RowCount(int(amount), span.to(end)))

    @staticmethod
    def _positive(count: RowCount) -> RowCount:
        if count.rows <= 0:
            raise ParseError("a number of rows must be 1 or more", count.span)
        if count.rows >= 2**63:
            raise ParseError("the number of rows is too large", count.span)
        return count

    def _number(self, expected: str) -> Fraction:
        sign = "-" if self.cursor.accept("-") else ""
        point = "0." if self.cursor.accept(".") else ""
        token = self.cursor.current
        if token is None or token.kind is not TokenType.NUMBER:
            self.cursor.fail(expected)
        self.cursor.advance()
        return exact_number(sign + point + token.text, token.span)

    def _unit(self) -> str | None:
        token = self.cursor.current
        if token is None or not token.is_name or token.word in _AFTER_A_DURATION:
            return None
        unit = unit_named(token.word)
        if unit is None:
            raise ParseError(f'"{token.text}" is not a unit of time', token.span, f"write {UNITS}")
        self.cursor.advance()
        return unit

    def _parameter(self) -> tuple[object, str, Span]:
        start = self.cursor.advance().span
        name = self.cursor.name("the name of a parameter")
        span = start.to(name.span)
        return parameter_value(name.text, self.parameters, span), f'parameter ":{name.text}"', span

    def _parameter_duration(self) -> Duration:
        value, described, span = self._parameter()
        if isinstance(value, datetime.timedelta):
            microseconds = value // datetime.timedelta(microseconds=1)
            return Duration(Fraction(microseconds), "MICROSECOND", span)
        if isinstance(value, int) and not isinstance(value, bool):
            return Duration(Fraction(value), self._unit(), span)
        if isinstance(value, str):
            try:
                duration = parse_duration(value, span)
                return duration if duration.unit else replace(duration, unit=self._unit())
            except ParseError as error:
                help = error.diagnostic.help
                raise ParseError(f'{described} is not a duration: "{value}"', span, help) from None
        raise ParseError(f"{described} is not a duration: {value!r}", span)


def parameter_value(name: str, parameters: Mapping[str, object], span: Span | None) -> object:
    if name not in parameters:
        raise ParseError(
            f'parameter ":{name}" has no value', span, f"pass it by name: sql(text, {name}=…)"
        )
    return parameters[name]
