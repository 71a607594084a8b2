"""sqlglot's error messages, reworded and with the right position."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot.errors import ParseError as SqlglotParseError

from millstream.model.errors import ParseError, Span, did_you_mean
from millstream.sql.tokens import Token


def syntax_error(error: SqlglotParseError, text: str, tokens: Sequence[Token]) -> ParseError:
    """sqlglot's first error, reworded. sqlglot reports line and column of the token's end."""
    if not error.errors:
        return ParseError("the statement cannot be parsed")
    first = error.errors[0]
    description = str(first.get("description") or "")
    end = _offset_of_line(text, int(first.get("line") or 1)) + int(first.get("col") or 0)
    at = next((i for i, token in enumerate(tokens) if token.span.end >= end), len(tokens) - 1)
    span, found = tokens[at].span, f'"{tokens[at].text}"'
    if description.startswith("The number of provided arguments"):
        given, most = re.findall(r"\((\d+)\)", description)
        noun = "argument" if most == "1" else "arguments"
        return ParseError(f"{_called(tokens, at)} takes {most} {noun}, not {given}", span)
    if description == "Expected TYPE after CAST":
        return ParseError(f"{found} is not a type", span)
    last = at == len(tokens) - 1
    if description.startswith("Required") and tokens[at].word == ")":
        return ParseError(f"arguments are missing in {_called(tokens, at)}", span)
    if description.startswith("Required") and last:
        after = f"expected an expression after {found}"
        return ParseError(f"{after}, found the end of the statement", _behind(span))
    if description.startswith("Required"):
        before = tokens[at - 1].text if at else ""
        return ParseError(f'expected an expression after "{before}", found {found}', span)
    if description.startswith("Expect") and "<" not in description:
        expected = description.split(" ", 1)[1].rstrip(".")
        expected = expected if expected[:1].isalpha() else f'"{expected}"'
        if last:
            return ParseError(f"expected {expected}, found the end of the statement", _behind(span))
        return ParseError(f"expected {expected}, found {found}", span)
    before = tokens[at - 1].text if at else ""
    keyword = did_you_mean(before, _KEYWORDS) if before.upper() not in _KEYWORDS else None
    help = f'{keyword.removesuffix("?")} for "{before}"?' if keyword else None
    return ParseError(f"unexpected {found}", span, help)


_KEYWORDS = frozenset(
    ["FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "WINDOW", "JOIN", "UNION", "EXCEPT",
     "INTERSECT", "EMIT", "GRANULARITY", "BETWEEN"]
)  # fmt: skip


def _behind(span: Span) -> Span:
    return Span(span.end, span.end + 1)


def _called(tokens: Sequence[Token], closing: int) -> str:
    """The function whose bracket closes at a token, in quotes."""
    depth = 0
    for index in range(closing, 0, -1):
        depth += {")": 1, "(": -1}.get(tokens[index].word, 0)
        if depth == 0:
            return f'"{tokens[index - 1].text}"'
    return "the function"


def _offset_of_line(text: str, line: int) -> int:
    offset = 0
    for _ in range(line - 1):
        next_line = text.find("\n", offset)
        if next_line < 0:
            break
        offset = next_line + 1
    return offset
