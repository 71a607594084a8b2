"""INSERT, UPDATE, DELETE and MERGE on tables: which statements these are, and EFFECTIVE AT.

INSERT INTO t [(c, …)] VALUES (…), … | query
UPDATE t SET c = …, … [WHERE …]
DELETE FROM t [WHERE …]
MERGE INTO t USING s ON … WHEN [NOT] MATCHED [AND …] THEN UPDATE SET … | DELETE | INSERT …
… EFFECTIVE AT t

Beside that they are plain SQL. `INSERT INTO connector(option => value) query` is no such statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot.tokens import TokenType

from millstream.errors import ParseError
from millstream.sql.clauses import ClauseReader, EffectiveAt
from millstream.sql.tokens import Cursor, Token

_NO_TABLES = ("SELECT", "TABLE", "STREAM")
_VALUES = ("TRUE", "FALSE", "NULL", ":", "-", ")")


def starts_change(cursor: Cursor) -> bool:
    """Whether a statement that changes a table begins here."""
    if cursor.at("INSERT", "INTO"):
        return _names_table(cursor)
    return cursor.at("UPDATE") or cursor.at("DELETE") or cursor.at("MERGE")


def _names_table(cursor: Cursor) -> bool:
    """After INSERT INTO: `t VALUES`, `t query` or `t (column`, where a connector has brackets with
    values or options in them."""
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
            "EFFECTIVE AT stands at the end of the statement",
            start,
            f"quote the word where it is a name: `{tokens[place].text}`",
        )
    return tokens[:place], EffectiveAt(instant, start.to(tokens[-1].span))
