"""Recognizing INSERT, UPDATE, DELETE and MERGE on tables, and EFFECTIVE AT.

INSERT INTO t [(c, …)] VALUES (…), … | query
UPDATE t SET c = …, … [WHERE …]
DELETE FROM t [WHERE …]
MERGE INTO t USING s ON … WHEN [NOT] MATCHED [AND …] THEN UPDATE SET … | DELETE | INSERT …
… EFFECTIVE AT t

The rest is plain SQL. `INSERT INTO connector(option => value) query` is not such a statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot.tokens import TokenType

from millstream.model.errors import ParseError
from millstream.sql.clauses import ClauseReader, EffectiveAt
from millstream.sql.tokens import Cursor, Token

_NO_TABLES = ("SELECT", "TABLE", "STREAM")
_REFUSED_LATER = ("RETURNING", "LIMIT", "ORDER", "OUTPUT")
_AFTER_TARGET = ("SET", "WHERE", "USING", *_REFUSED_LATER)
_VALUES = ("TRUE", "FALSE", "NULL", ":", "-", ")")


def starts_change(cursor: Cursor) -> bool:
    """Whether a statement that changes a table begins here."""
    if cursor.at("INSERT", "INTO"):
        return _names_table(cursor)
    return cursor.at("UPDATE") or cursor.at("DELETE") or cursor.at("MERGE")


def _names_table(cursor: Cursor) -> bool:
    """After INSERT INTO: `t VALUES`, `t query` or `t (column`. The brackets of a connector contain
    values or options."""
    name, bracket, first, second = (cursor.peek(ahead) for ahead in (2, 3, 4, 5))
    if name is None or not name.is_name or name.word in _NO_TABLES:
        return False
    if bracket is None or bracket.word != "(":
        return True
    if first is None or first.word in _VALUES:
        return False
    is_value = first.kind in (TokenType.STRING, TokenType.NUMBER)
    return not is_value and (second is None or second.word != "=>")


def take_effective(
    tokens: Sequence[Token], parameters: Mapping[str, object]
) -> tuple[Sequence[Token], EffectiveAt | None]:
    """Split EFFECTIVE AT t off the end of a statement: the word is reserved there."""
    place = next((i for i, token in enumerate(tokens) if token.word == "EFFECTIVE"), None)
    if place is None:
        return tokens, None
    cursor = Cursor(tokens[place:], tokens[-1].span.end)
    start = cursor.advance().span
    cursor.expect("AT", "after EFFECTIVE")
    instant = ClauseReader(cursor, parameters).instant()
    if cursor.current is not None:
        raise ParseError(
            "EFFECTIVE AT must come at the end of the statement",
            start,
            f"quote the word where it is a name: `{tokens[place].text}`",
        )
    return tokens[:place], EffectiveAt(instant, start.to(tokens[-1].span))


def check_change(cursor: Cursor) -> None:
    """Refuse what sqlglot would drop: words beside the names of columns, after VALUES and before
    SET, and repeated clauses."""
    tokens = cursor.tokens
    if cursor.accept("INSERT", "INTO"):
        cursor.name("the name of a table")
        _column_names(cursor)
        if cursor.accept("VALUES"):
            _rows(cursor)
        elif not any(map(cursor.at, ("SELECT", "WITH", "("))):
            cursor.fail("VALUES or a query")
    elif cursor.accept("UPDATE"):
        _target(cursor)
        cursor.expect("SET", "after the name of the table")
        _once(tokens[cursor.position :], ("SET", "WHERE"), cursor)
    elif cursor.accept("DELETE"):
        cursor.expect("FROM", "after DELETE")
        _target(cursor)
        if cursor.current is not None and cursor.current.word in _REFUSED_LATER:
            return
        if cursor.current is not None:
            cursor.expect("WHERE", "or the end of the statement")
        _once(tokens[cursor.position :], ("WHERE",), cursor, 1)
    else:
        cursor.expect("MERGE")
        cursor.expect("INTO", "after MERGE")
        _target(cursor)
        cursor.expect("USING", "after the name of the table")
        _merged(cursor)


def _merged(cursor: Cursor) -> None:
    """After USING: conditions belong in ON and WHEN, and INSERT has columns and values."""
    if not cursor.at("("):
        cursor.name("a table or a query")
    depth = 0
    while cursor.current is not None:
        word = cursor.advance().word
        depth += {"(": 1, ")": -1}.get(word, 0)
        if word == "INSERT" and depth == 0:
            if not any(map(cursor.at, ("(", "*", "VALUES"))):
                cursor.fail('"(", "*" or VALUES', "after INSERT")
            _column_names(cursor)
        elif word == "WHERE" and depth == 0:
            cursor.position -= 1
            cursor.fail("WHEN", help="write the condition after WHEN MATCHED AND")


def _target(cursor: Cursor) -> None:
    """`table [[AS] alias]`"""
    cursor.name("the name of a table")
    following = cursor.current
    if cursor.accept("AS") or (following is not None and following.word not in _AFTER_TARGET):
        cursor.name("an alias")


def _column_names(cursor: Cursor) -> None:
    """An optional `(column, …)`."""
    following = cursor.peek()
    if not cursor.at("(") or (following is not None and following.word in ("SELECT", "WITH", "(")):
        return
    cursor.advance()
    cursor.list_of(lambda: cursor.name("a column"))
    cursor.expect(")", "after the columns")


def _rows(cursor: Cursor) -> None:
    """`(…), (…)`, and nothing after it."""
    cursor.list_of(lambda: _row(cursor))
    if cursor.current is not None:
        cursor.fail("the end of the statement", "after the rows")


def _row(cursor: Cursor) -> None:
    if not cursor.at("("):
        cursor.fail('"("', "before a row of VALUES")
    depth = 0
    while cursor.current is not None:
        depth += {"(": 1, ")": -1}.get(cursor.advance().word, 0)
        if depth == 0:
            return


def _once(tokens: Sequence[Token], words: Sequence[str], cursor: Cursor, given: int = 0) -> None:
    """Check that each word appears at most once outside brackets; `given` were read before."""
    depth, seen = 0, [words[0]] * (not given)
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token.word, 0)
        if depth == 0 and token.word in words:
            if token.word in seen:
                raise ParseError(f"{token.word} is given twice", token.span)
            seen.append(token.word)
