"""Columns in CREATE STREAM and CREATE TABLE: `name type [NOT NULL] [COMMENT 'text']`.

Other systems allow more after a type. That is refused with a remedy, rather than ignored.
"""

from __future__ import annotations

from sqlglot.tokens import TokenType

from millstream.model.errors import ParseError
from millstream.model.names import Name
from millstream.sql.column_types import read_type
from millstream.sql.reserved import check_declared
from millstream.sql.statements import ColumnDefinition
from millstream.sql.tokens import Cursor

_COMPUTED = "compute it in a query: CREATE STREAM … AS SELECT *, a + 1 AS b FROM …"
_KEY = "write PRIMARY KEY (column, …) in CREATE TABLE, or UNIQUE (column, …) in CREATE STREAM"
_WATERMARK = "write ORDERED BY column DELAY 5 SECONDS after the columns and SOURCE"

# First words after a type, and what to do instead.
_AFTER_TYPE = {
    "AS": ("a computed column", _COMPUTED),
    "GENERATED": ("a computed column", _COMPUTED),
    "DEFAULT": ("DEFAULT", "pass the value in INSERT, or use COALESCE in the query"),
    "CHECK": ("CHECK", "filter in the query with WHERE"),
    "CONSTRAINT": ("a named constraint", _KEY),
    "UNIQUE": ("UNIQUE after a column", _KEY),
    "PRIMARY": ("PRIMARY KEY", _KEY),
    "REFERENCES": ("REFERENCES", "join the two in a query; references are not checked"),
    "COLLATE": ("COLLATE", "strings are compared by their bytes; use LOWER(…) or UPPER(…)"),
    "AUTO_INCREMENT": ("AUTO_INCREMENT", "give the numbers yourself"),
    "IDENTITY": ("IDENTITY", "give the numbers yourself"),
    "METADATA": ("METADATA", "declare the columns that the rows have"),
    "ENCODE": ("ENCODE", "leave it out"),
    "UNSIGNED": ("UNSIGNED", "write BIGINT, or DECIMAL(20, 0) for 64 bits"),
    "KEY": ("KEY after a column", _KEY),
}

# First words of declarations that are not columns, and what to do instead.
_DECLARATIONS = {
    ("WATERMARK", "FOR"): ("WATERMARK", _WATERMARK),
    ("CHECK", "("): ("CHECK", "filter in the query with WHERE"),
    ("FOREIGN", "KEY"): ("FOREIGN KEY", "join the two in a query; references are not checked"),
    ("UNIQUE", "("): ("UNIQUE", _KEY),
    ("PRIMARY", "KEY"): ("PRIMARY KEY", _KEY),
    ("PERIOD", "FOR"): ("PERIOD", "write VALID FROM a TO b after the columns"),
}
_CONSTRAINTS = ("CHECK", "PRIMARY", "FOREIGN", "UNIQUE")


def read_column(cursor: Cursor, keys: list[Name] | None = None) -> ColumnDefinition:
    """A column. In a table, PRIMARY KEY after it adds its name to `keys`."""
    _refuse_declarations(cursor)
    name = check_declared(cursor.name("the name of a column"), "column")
    following = cursor.current
    if following is not None and following.word == "AS":
        _refuse(cursor)
    if following is None or not following.is_name:
        cursor.fail(f'the type of column "{name.text}"')
    start = cursor.span
    type_ = read_type(cursor)
    if cursor.tokens[cursor.position - 1].word == ")" and following.word in _STRINGS:
        raise ParseError(
            f"the length of {following.word} would not be checked",
            start.to(cursor.tokens[cursor.position - 1].span),
            "write STRING",
        )
    unscaled = following.word in _DECIMALS and "," not in (
        token.text for token in cursor.tokens[: cursor.position] if token.span.start >= start.start
    )
    nullable: bool | None = None
    comment: str | None = None
    while cursor.current is not None and cursor.current.word not in (",", ")"):
        if nullable is None and cursor.accept("NOT", "NULL"):
            nullable = False
        elif nullable is None and cursor.accept("NULL"):
            nullable = True
        elif comment is None and _at_comment(cursor):
            cursor.advance()
            comment = cursor.advance().text
        elif keys is not None and cursor.at("PRIMARY", "KEY"):
            add_key(cursor, keys, [name])
        else:
            _refuse(cursor)
    return ColumnDefinition(name, type_, nullable is not False, comment, unscaled)


def add_key(cursor: Cursor, keys: list[Name], named: list[Name] | None = None) -> None:
    """`PRIMARY KEY`, of the columns `named`, or `PRIMARY KEY (column, …)`."""
    span = cursor.span
    cursor.position += 2
    if named is None:
        cursor.expect("(", "after PRIMARY KEY")
        named = cursor.list_of(lambda: cursor.name("a column"))
        cursor.expect(")", "to close PRIMARY KEY")
    if keys:
        raise ParseError("a table has one PRIMARY KEY", span, "write PRIMARY KEY (a, b) for both")
    if cursor.at("NOT", "ENFORCED") or cursor.at("ENFORCED"):
        raise ParseError(
            "a PRIMARY KEY is always enforced", cursor.span, "leave [NOT] ENFORCED out"
        )
    keys += named


_DECIMALS = ("DECIMAL", "NUMERIC", "DEC")
_STRINGS = ("VARCHAR", "CHAR", "CHARACTER", "NVARCHAR", "NCHAR", "BINARY", "VARBINARY", "BPCHAR")


def _at_comment(cursor: Cursor) -> bool:
    following = cursor.peek()
    return cursor.at("COMMENT") and following is not None and following.kind is TokenType.STRING


def _refuse(cursor: Cursor) -> None:
    token = cursor.current
    assert token is not None
    if token.word in _AFTER_TYPE:
        what, help = _AFTER_TYPE[token.word]
        raise ParseError(f"{what} is not supported", token.span, help)
    cursor.fail('"," or ")"', "after the column", "a type may be followed by NOT NULL and COMMENT")


def _refuse_declarations(cursor: Cursor) -> None:
    for words, (what, help) in _DECLARATIONS.items():
        if cursor.at(*words):
            raise ParseError(f"{what} is not supported here", cursor.span, help)
    kind = cursor.peek(2)
    if cursor.at("CONSTRAINT") and kind is not None and kind.word in _CONSTRAINTS:
        raise ParseError(
            "a named constraint is not supported", cursor.span, "leave CONSTRAINT name out"
        )
