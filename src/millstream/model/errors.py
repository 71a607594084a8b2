"""Errors and warnings as values, and the one place where they become text.

A `Diagnostic` says what is wrong, where, and what to do. It carries offsets, not text: the caller
that has the text of the statement attaches it with `located`, so the parser and the binder never
pass the text around.

>>> print(render(Diagnostic('column "pricee" does not exist', Span(7, 13), 'did you mean "price"?'),
...              "SELECT pricee FROM Bid", "auction.sql"))
error: column "pricee" does not exist
  --> auction.sql:1:8
1 | SELECT pricee FROM Bid
  |        ^^^^^^
help: did you mean "price"?
"""

from __future__ import annotations

import difflib
import sys
import unicodedata
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from millstream.model.masking import masked

_SHOWN = 80  # characters of a value in a message
_LONGEST = 1_000  # characters of a message about a row


@dataclass(frozen=True)
class Span:
    """The characters `start` up to, not including, `end` of a text."""

    start: int
    end: int

    def to(self, other: Span | None) -> Span:
        """The smallest span that covers both."""
        if other is None:
            return self
        return Span(min(self.start, other.start), max(self.end, other.end))


@dataclass(frozen=True)
class Diagnostic:
    message: str
    span: Span | None = None
    help: str | None = None
    severity: str = "error"


class MillstreamWarning(UserWarning):
    """A warning about a query, such as state that grows without bound."""


class RowErrorWarning(MillstreamWarning):
    """Rows could not be read or evaluated, so they are in no answer."""


class OverloadWarning(MillstreamWarning):
    """A query falls behind its streams, or is allowed to shed rows but cannot."""


class MillstreamError(Exception):
    """A mistake in the user's input; `str()` is the whole message with its position."""

    def __init__(self, message: str, span: Span | None = None, help: str | None = None) -> None:
        message = masked(message)
        super().__init__(message)
        self.diagnostic = Diagnostic(message, span, None if help is None else masked(help))
        self.text: str | None = None
        self.file: str | None = None

    def __str__(self) -> str:
        return render(self.diagnostic, self.text, self.file)


class ParseError(MillstreamError):
    """The text is not a statement of the language."""


class BindError(MillstreamError):
    """The statement is well formed but invalid: a name, a type or a rule does not fit."""


class UnknownNameError(BindError):
    """The qualifier `name` of a column names no visible reference."""

    def __init__(self, name: str, span: Span | None, help: str | None) -> None:
        super().__init__(f'"{name}" is not a stream or alias in FROM', span, help)
        self.name = name


class CatalogError(MillstreamError):
    """The catalog refuses: the name is taken, unknown, or still in use."""


class DataError(MillstreamError):
    """The data passed to a stream does not fit its declaration."""


class QueryError(MillstreamError):
    """A query failed while it ran."""


@contextmanager
def located(text: str, file: str | None = None) -> Iterator[None]:
    """Attach `text` to the errors that leave this block without one."""
    try:
        yield
    except MillstreamError as error:
        if error.text is None:
            error.text, error.file = text, file
        raise


def render(diagnostic: Diagnostic, text: str | None = None, file: str | None = None) -> str:
    lines = [f"{diagnostic.severity}: {diagnostic.message}"]
    if diagnostic.span is not None and text is not None:
        lines += _excerpt(diagnostic.span, text, file or "<sql>")
    if diagnostic.help is not None:
        lines.append(f"help: {diagnostic.help}")
    return "\n".join(lines)


def warn_caller(message: str, category: type[MillstreamWarning], help: str | None = None) -> None:
    """Warn at the line of the program that called into this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    text = render(Diagnostic(message, help=help, severity="warning"))
    warnings.warn(text, category, stacklevel=level)


_PACKAGE = f"{__name__.partition('.')[0]}."


def _excerpt(span: Span, text: str, file: str) -> list[str]:
    """The line of the text where `span` begins, with the part of the span on that line
    underlined."""
    start = min(span.start, len(text))
    number = text.count("\n", 0, start) + 1
    line_start = text.rfind("\n", 0, start) + 1
    line = text[line_start:].split("\n", 1)[0].rstrip("\r")
    column = start - line_start
    width = max(1, min(span.end - start, len(line) - column))
    margin = " " * len(str(number))
    # Tabs stay tabs and wide characters count twice, so that the carets are aligned.
    indent = "".join("\t" if c == "\t" else " " * _columns(c) for c in line[:column])
    carets = "^" * max(1, sum(map(_columns, line[column : column + width])))
    return [
        f"{margin} --> {file}:{number}:{column + 1}",
        f"{number} | {line}",
        f"{margin} | {indent}{carets}",
    ]


def _columns(character: str) -> int:
    """The width of a character on a terminal, in columns."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def brief(value: object) -> str:
    """A value for a message, truncated if it is long."""
    if isinstance(value, str | bytes) and len(value) > _SHOWN:
        return f"{value[:_SHOWN]!r}…"
    text = repr(value)
    return text if len(text) <= 2 * _SHOWN else f"{text[:_SHOWN]}…"


def brief_row(row: Iterable[object]) -> str:
    """A row for a message, with its long values truncated.

    >>> brief_row((1, "a" * 100))[:12], brief_row((None,))
    ("(1, 'aaaaaaa", '(None,)')
    """
    values = [brief(value) for value in row]
    return f"({values[0]},)" if len(values) == 1 else f"({', '.join(values)})"


def told_of_row(message: str) -> str:
    """What is wrong with a row, without secrets; shortened if it quotes long values."""
    text = masked(message)
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST // 2]}…{text[-_LONGEST // 2 :]}"


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """Help for a misspelt name; None if no candidate is similar."""
    by_folded = {candidate.casefold(): candidate for candidate in candidates}
    near = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.7)
    return f'did you mean "{by_folded[near[0]]}"?' if near else None


def one_of(
    name: str, candidates: Iterable[str], what: str, plural: str | None = None
) -> str | None:
    """Help for an unknown name: the most similar one, or all if there are only a few."""
    candidates = list(candidates)
    near = did_you_mean(name, candidates)
    if near is None and 0 < len(candidates) <= 8:
        verb = f"{what} is" if len(candidates) == 1 else f"{plural or what + 's'} are"
        return f"the {verb} {listed(candidates)}"
    return near


def listed(names: Iterable[str]) -> str:
    """Names as a list in a sentence: "a", "b" and "c"."""
    quoted = [f'"{name}"' for name in names]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + " and " + quoted[-1]
