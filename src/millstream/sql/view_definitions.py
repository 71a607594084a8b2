"""CREATE MATERIALIZED VIEW, and the RETAIN clause of views and streams.

CREATE MATERIALIZED VIEW name AS query [INTO connector(…)] [EMIT EVERY d] [RETAIN d] [IN 'folder']
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sqlglot.tokens import TokenType

from millstream.model.errors import ParseError
from millstream.model.modes import Emit
from millstream.model.names import Name
from millstream.sql.definition_reader import DefinitionReader
from millstream.sql.reserved import check_declared
from millstream.sql.statements import (
    CreateDerivedStream,
    CreateView,
    QueryStatement,
    Retention,
    Statement,
)
from millstream.sql.tokens import Cursor

_EMITS = ("FINAL", "CHANGES", "EVERY")


def read_view(reader: DefinitionReader) -> Statement:
    """After CREATE MATERIALIZED VIEW."""
    cursor = reader.cursor
    name = check_declared(cursor.name("the name of the view"), "view")
    cursor.expect("AS", "after the name of the view")
    query = _query(reader, ("INTO", "EMIT", "RETAIN", "IN"))
    target = reader.connector() if cursor.accept("INTO") else None
    if cursor.at("EMIT"):
        query = _emitted(reader, query)
    return reader.ended(CreateView(name, query, target, read_retention(reader)))


def read_derived(reader: DefinitionReader, name: Name) -> Statement:
    """After CREATE STREAM name AS."""
    query = _query(reader, ("RETAIN", "IN"))
    return reader.ended(CreateDerivedStream(name, query, read_retention(reader)))


def read_retention(reader: DefinitionReader) -> Retention | None:
    """`[RETAIN d] [IN 'folder']`"""
    cursor = reader.cursor
    span = cursor.span
    duration = reader.clauses.duration() if cursor.accept("RETAIN") else None
    folder = _folder(reader) if cursor.accept("IN") else None
    if duration is None and folder is None:
        return None
    return Retention(duration, folder, span)


def _folder(reader: DefinitionReader) -> str:
    span = reader.cursor.span
    folder = reader.literal()
    if isinstance(folder, str) and folder:
        return folder
    raise ParseError("IN takes a folder as a string", span, "write IN '/path/of/a/folder'")


def _emitted(reader: DefinitionReader, query: QueryStatement) -> QueryStatement:
    cursor = reader.cursor
    start = cursor.advance().span
    if not cursor.accept("EVERY"):
        raise ParseError(
            "a view has no EMIT FINAL or EMIT CHANGES: it is the answer at the frontier",
            start.to(cursor.span),
            "leave EMIT out, or write EMIT EVERY d to write whole answers INTO a sink",
        )
    every = reader.clauses.duration()
    end = cursor.tokens[cursor.position - 1].span
    return replace(query, emit=Emit.EVERY, every=every, emit_span=start.to(end))


def _query(reader: DefinitionReader, words: Collection[str]) -> QueryStatement:
    """The query at the cursor, up to one of the words that belong to the definition."""
    cursor, tokens = reader.cursor, reader.cursor.tokens
    end = _end_of_query(cursor, words)
    cursor.tokens = tokens[:end]
    query = reader.query()
    cursor.tokens, cursor.position = tokens, end
    return query


def _end_of_query(cursor: Cursor, words: Collection[str]) -> int:
    depth = 0
    for index in range(cursor.position, len(cursor.tokens)):
        word = cursor.tokens[index].word
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(word, 0)
        begins = depth == 0 and word in words and index > cursor.position
        if begins and _begins_rest(cursor, index):
            return index
    return len(cursor.tokens)


def _begins_rest(cursor: Cursor, index: int) -> bool:
    word, following = cursor.tokens[index].word, cursor.peek(index + 1 - cursor.position)
    if following is None:
        return word == "INTO"
    match word:
        case "INTO":
            return True
        case "EMIT":
            return following.word in _EMITS
        case "RETAIN":
            numbers = following.kind in (TokenType.NUMBER, TokenType.STRING)
            return numbers or following.word in (":", "-", ".", "INTERVAL")
        case "IN":
            return following.kind is TokenType.STRING or following.word == ":"
    return False
