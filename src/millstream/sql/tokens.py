"""Tokens of a statement, and a cursor for the small parsers of the stream clauses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NoReturn, TypeVar

import sqlglot
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType

from millstream.model.errors import ParseError, Span
from millstream.model.names import Name

T = TypeVar("T")


@dataclass(frozen=True)
class Token:
    text: str
    kind: TokenType
    span: Span

    @property
    def word(self) -> str:
        """The token as an upper-case keyword; empty for strings, numbers and quoted names."""
        if self.kind in (TokenType.STRING, TokenType.NUMBER, TokenType.IDENTIFIER):
            return ""
        return self.text.upper()

    @property
    def is_name(self) -> bool:
        if self.kind is TokenType.IDENTIFIER:
            return True
        return bool(self.word) and (self.text[0].isalpha() or self.text[0] == "_")


def tokenize(text: str) -> list[Token]:
    try:
        raw = sqlglot.tokenize(text, dialect="spark")
    except SqlglotError:
        raise _token_error(text) from None
    tokens: list[Token] = []
    previous: Span | None = None
    for token in raw:
        span = Span(token.start, token.end + 1)
        # The dialect splits a suffixed number (1L) into three tokens at one place: keep the first.
        if span != previous:
            tokens += _words(Token(token.text, token.token_type, span), text)
        previous = span
    return _unfolded(tokens, text)


# After these words the dialect takes the rest of the statement as one string without quotes.
_COMMANDS = (
    TokenType.SHOW,
    TokenType.COMMAND,
    TokenType.EXECUTE,
    TokenType.FETCH,
    TokenType.RENAME,
)


def _unfolded(tokens: list[Token], text: str) -> list[Token]:
    """The tokens, with such a rest tokenized again."""
    for index, (command, rest) in enumerate(pairwise(tokens)):
        if command.kind not in _COMMANDS or rest.kind is not TokenType.STRING:
            continue
        start = command.span.end
        end = tokens[index + 2].span.start if index + 2 < len(tokens) else len(text)
        if text[start:end].lstrip()[:1] in ("'", '"'):
            continue
        inner = [
            replace(token, span=Span(start + token.span.start, start + token.span.end))
            for token in tokenize(text[start:end])
        ]
        return tokens[: index + 1] + _unfolded(inner + tokens[index + 2 :], text)
    return tokens


def _words(token: Token, text: str) -> Iterator[Token]:
    """The dialect has keywords of several words (PARTITION BY); here each word is a token."""
    if not token.word or not any(character.isspace() for character in token.text):
        yield token
        return
    start = token.span.start
    for match in re.finditer(r"\S+", text[start : token.span.end]):
        yield Token(match[0], token.kind, Span(start + match.start(), start + match.end()))


_MARKS = {"/*": ("comment", "*/"), "'": ("string", "'"), '"': ("string", '"'),
          "`": ("quoted name", "`"), "--": ("", "\n")}  # fmt: skip


def _token_error(text: str) -> ParseError:
    """The tokenizer fails only on an unclosed string, name or comment: find it from the start."""
    position = 0
    while position < len(text):
        mark = next((mark for mark in _MARKS if text.startswith(mark, position)), None)
        if mark is None:
            position += 1
            continue
        what, closing = _MARKS[mark]
        end = _closed_at(text, position + len(mark), closing)
        if end is None and what:
            return ParseError(f"this {what} is not closed", Span(position, position + len(mark)))
        position = len(text) if end is None else end
    return ParseError("the text cannot be read")


def _closed_at(text: str, start: int, closing: str) -> int | None:
    position = start
    while position < len(text):
        if text[position] == "\\" and closing in ("'", '"'):
            position += 2
        elif text.startswith(closing, position):
            return position + len(closing)
        else:
            position += 1
    return None


class Cursor:
    """Reads tokens one after the other; `fail` and `expect` report what was found instead."""

    def __init__(self, tokens: Sequence[Token], end: int) -> None:
        self.tokens = tokens
        self.position = 0
        self._end = end

    @property
    def current(self) -> Token | None:
        return self.peek(0)

    def peek(self, ahead: int = 1) -> Token | None:
        index = self.position + ahead
        return self.tokens[index] if index < len(self.tokens) else None

    @property
    def span(self) -> Span:
        """The position of the current token, or the position after the last one."""
        if self.current is not None:
            return self.current.span
        end = self.tokens[-1].span.end if self.tokens else self._end
        return Span(end, end + 1)

    def at(self, *words: str) -> bool:
        """Whether the next tokens are these words or marks."""
        tokens = [self.peek(offset) for offset in range(len(words))]
        return all(t is not None and t.word == w for t, w in zip(tokens, words, strict=True))

    def accept(self, *words: str) -> bool:
        if self.at(*words):
            self.position += len(words)
            return True
        return False

    def expect(self, word: str, context: str = "") -> Token:
        token = self.current
        if token is None or token.word != word:
            self.fail(f'"{word}"' if not word.isalpha() else word, context)
        self.position += 1
        return token

    def advance(self) -> Token:
        token = self.current
        assert token is not None
        self.position += 1
        return token

    def name(self, what: str) -> Name:
        token = self.current
        if token is None or not token.is_name:
            self.fail(what)
        self.position += 1
        return Name(token.text, token.kind is TokenType.IDENTIFIER, token.span)

    def list_of(self, item: Callable[[], T]) -> list[T]:
        """`item, item, …`"""
        items = [item()]
        while self.accept(","):
            items.append(item())
        return items

    def fail(self, expected: str, context: str = "", help: str | None = None) -> NoReturn:
        found = "the end of the statement" if self.current is None else f'"{self.current.text}"'
        where = f" {context}" if context else ""
        raise ParseError(f"expected {expected}{where}, found {found}", self.span, help)
