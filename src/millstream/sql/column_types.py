"""Type syntax in column declarations, in CAST and in Python calls.

sqlglot knows the names of types, but drops words and numbers that it does not understand. So it is
only passed single names with their numbers.
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType

from millstream.model.errors import ParseError, Span
from millstream.model.names import Name
from millstream.sql.tokens import Cursor, Token, tokenize
from millstream.sql.type_syntax import UnsupportedTypeError, from_sql

KNOWN = "BOOLEAN, INT, BIGINT, REAL, DOUBLE, DECIMAL(p, s), STRING, DATE, TIMESTAMP, …"

# Words that belong to the word before them.
_SECOND_WORDS = {
    "DOUBLE": ("PRECISION",),
    "CHARACTER": ("VARYING",),
    "CHAR": ("VARYING",),
    "LARGE": ("OBJECT",),
}
_ZONES = (
    ("WITH", "TIME", "ZONE"),
    ("WITHOUT", "TIME", "ZONE"),
    ("WITH", "LOCAL", "TIME", "ZONE"),
)

_TIGHT = ("(", ")", ",", "<", ">", ">>", ":")

_REMEDIES = {
    "TIME": "keep a time of day as STRING, or as a number of seconds",
    "INTERVAL": "write INTERVAL, which has days to microseconds",
    "MAP": "use an ARRAY of STRUCTs, or one column per key",
    "JSON": "declare the column STRING, or a STRUCT of the fields you need",
    "UUID": "write STRING",
    "DATETIME": "write TIMESTAMP",
    "SERIAL": "write BIGINT, and give the numbers yourself",
    "BIGSERIAL": "write BIGINT, and give the numbers yourself",
    "ROW": "write STRUCT<name: type, …>",
    "MULTISET": "write ARRAY<type>",
}


def type_of(text: str) -> pa.DataType:
    """The type that a whole string names."""
    cursor = Cursor(tokenize(text), len(text))
    read = read_type(cursor)
    if cursor.current is not None:
        raise ParseError(f'"{text}" is not a type', cursor.span, f"types are {KNOWN}")
    return read


def read_type(cursor: Cursor) -> pa.DataType:
    """The type at the cursor."""
    reader = _TypeReader(cursor)
    read = reader.read()
    if reader.closing:
        cursor.position -= 1
        cursor.fail('one ">"', "to close the type")
    return read


class _TypeReader:
    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.closing = 0  # how many ">" of a ">>" are left

    def read(self) -> pa.DataType:
        cursor = self.cursor
        token = cursor.current
        if token is None or not token.is_name:
            cursor.fail("a type", help=f"types are {KNOWN}")
        if cursor.at("ARRAY", "<"):
            read = self._array()
        elif cursor.at("STRUCT", "<"):
            read = self._struct()
        else:
            read = self._named()
        while cursor.accept("[", "]"):
            read = pa.list_(read)
        return read

    def _array(self) -> pa.DataType:
        self.cursor.position += 2
        element = self.read()
        self._close("ARRAY")
        return pa.list_(element)

    def _struct(self) -> pa.DataType:
        self.cursor.position += 2
        fields = [self._field()]
        while not self.closing and self.cursor.accept(","):
            fields.append(self._field())
        self._close("STRUCT")
        return pa.struct(fields)

    def _field(self) -> pa.Field:
        name: Name = self.cursor.name("the name of a field")
        self.cursor.accept(":")
        return pa.field(name.text, self.read())

    def _close(self, what: str) -> None:
        if self.closing:
            self.closing -= 1
        elif self.cursor.accept(">>"):
            self.closing = 1
        else:
            self.cursor.expect(">", f"to close {what}")

    def _named(self) -> pa.DataType:
        cursor = self.cursor
        first = cursor.advance()
        start = cursor.position - 1
        if cursor.current is not None and cursor.current.word in _SECOND_WORDS.get(first.word, ()):
            cursor.advance()
        if first.word == "INTERVAL":
            self._units()
        if cursor.at("("):
            self._numbers()
        elif cursor.at("<"):
            self._unsupported(self._to_closing(start))
        for zone in _ZONES:
            if first.word.startswith("TIME") and cursor.accept(*zone):
                break
        return self._known(list(cursor.tokens[start : cursor.position]))

    def _to_closing(self, start: int) -> list[Token]:
        depth = 0
        while (token := self.cursor.current) is not None:
            depth += {"<": 1, ">": -1, ">>": -2}.get(token.word, 0)
            self.cursor.advance()
            if depth <= 0:
                break
        return list(self.cursor.tokens[start : self.cursor.position])

    def _units(self) -> None:
        """`DAY TO SECOND` after INTERVAL."""
        cursor = self.cursor
        units = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
        if cursor.current is None or cursor.current.word not in units:
            return
        cursor.advance()
        if cursor.accept("TO"):
            if cursor.current is None or cursor.current.word not in units:
                cursor.fail("a unit of an INTERVAL")
            cursor.advance()

    def _numbers(self) -> None:
        cursor = self.cursor
        cursor.advance()
        while True:
            if cursor.current is None or not cursor.current.text.isdecimal():
                cursor.fail("a whole number", "in the type")
            cursor.advance()
            if not cursor.accept(","):
                break
        cursor.expect(")", "to close the type")

    def _known(self, tokens: list[Token]) -> pa.DataType:
        text, span = _text(tokens)
        if tokens[0].kind is TokenType.IDENTIFIER:
            raise ParseError(f'"{text}" is not a type', span, f"types are {KNOWN}")
        try:
            node = exp.DataType.build(text, dialect="spark")
        except SqlglotError:
            self._unsupported(tokens)
        try:
            return from_sql(node)
        except UnsupportedTypeError:
            self._unsupported(tokens)
        except ValueError as error:
            raise ParseError(str(error), span, f"types are {KNOWN}") from None

    def _unsupported(self, tokens: list[Token]) -> None:
        text, span = _text(tokens)
        remedy = _REMEDIES.get(tokens[0].word)
        known = remedy is not None or text.upper() in exp.DataType.Type.__members__
        message = f'type "{text}" is not supported' if known else f'"{text}" is not a type'
        raise ParseError(message, span, remedy or f"types are {KNOWN}") from None


def _text(tokens: list[Token]) -> tuple[str, Span]:
    text = ""
    for token in tokens:
        tight = token.word in _TIGHT or text.endswith(("(", "<")) or not text
        text += token.text if tight else f" {token.text}"
    return text, tokens[0].span.to(tokens[-1].span)
