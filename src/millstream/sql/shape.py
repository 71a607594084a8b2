"""The clause structure of a query, checked token by token: mistakes in the order and completeness
of clauses, which sqlglot accepts or reports far from their position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from sqlglot.tokens import TokenType

from millstream.model.errors import ParseError, Span
from millstream.sql import other_dialects
from millstream.sql.column_types import read_type
from millstream.sql.tokens import Cursor, Token

_ORDER = ("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT")
_SET_OPERATIONS = ("UNION", "EXCEPT", "INTERSECT", "MINUS")
_TWO_WORDS = {"GROUP": "GROUP BY", "ORDER": "ORDER BY"}
_MOST_OPERATIONS = 150  # in a row: each is a level of the plan
_BEFORE_ITEMS = ("SELECT", "DISTINCT", "ALL", ",")
_CASTS = ("CAST", "TRY_CAST", "SAFE_CAST")
_WINDOW_WORDS = ("RANGE", "ROWS", "PARTITION", "NOW", "UNBOUNDED")


@dataclass
class FromItem:
    """The position of a reference in FROM, and the word before it: FROM, JOIN or a comma."""

    after: str
    start: int
    end: int = -1


@dataclass
class _Frame:
    """The state inside one pair of brackets."""

    clause: str = ""  # the word of _ORDER that we are in; empty outside a SELECT
    call: str = ""  # the word before the bracket
    operations: int = 0  # UNION, EXCEPT and INTERSECT so far
    on: bool = False  # in the condition of a join
    # The joins that have no ON or USING yet: (kind such as LEFT JOIN, or empty; its position).
    joins: list[tuple[str, Span]] = field(default_factory=list)
    reference: FromItem | None = None  # the reference that we are in


class QueryShape:
    """Follows the tokens of a query; `step` must be called for each, except lifted clauses."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.frames = [_Frame()]
        self.references: list[FromItem] = []

    @property
    def in_from(self) -> bool:
        """Whether the cursor is in a reference or its clauses."""
        return self.frames[-1].clause == "FROM" and not self.frames[-1].on

    def step(self, index: int) -> None:
        word = self.tokens[index].word
        frame = self.frames[-1]
        if self._is_only_a_name(index):
            return
        if word == "(":
            self.frames.append(_Frame("FROM" if self.in_from else "", self._word(index - 1)))
        elif word == ")":
            self._leave_from(index, frame)
            if len(self.frames) > 1:
                self.frames.pop()
        elif word == "SELECT":
            self.frames[-1] = _Frame("SELECT", frame.call, frame.operations)
            if self._nothing_follows(index):
                self._fail("expected a column or an expression after SELECT", index + 1)
        elif word in _SET_OPERATIONS and self._word(index - 1) != "*":
            if frame.clause == "FROM" and self._word(index - 1) in ("NATURAL", "ASOF"):
                self._fail("expected JOIN", index)
            self._leave_from(index, frame)
            self.frames[-1] = _Frame("", frame.call, frame.operations + 1)
            if frame.operations == _MOST_OPERATIONS:
                raise ParseError(
                    f"more than {_MOST_OPERATIONS} set operations in a row",
                    self.tokens[index].span,
                    "make derived streams of parts of it: CREATE STREAM … AS SELECT … UNION ALL …",
                )
        elif frame.clause and self._is_clause(index):
            self._enter_clause(index, frame)
        elif word == "JOIN" and frame.clause == "FROM":
            self._join(index, frame)
        elif word in ("ON", "USING") and frame.clause == "FROM":
            if word == "USING":
                self._check_using(index + 1)
            frame.on = True
            frame.joins = frame.joins[:-1]
        elif word == ",":
            self._comma(index, frame)
        elif word == "AS":
            self._as(index, frame)
        elif word in ("ASC", "DESC") and self._word(index + 1) in ("ASC", "DESC"):
            self._fail(f"expected one of ASC and DESC after {word}", index + 1)
        elif word in ("ROW", "ROWS", "ONLY") and frame.clause == "LIMIT":
            raise ParseError(
                f'unexpected "{self.tokens[index].text}"',
                self.tokens[index].span,
                "write LIMIT n, or FETCH FIRST n ROWS ONLY",
            )
        elif word == "@":
            raise ParseError(
                'unexpected "@"', self.tokens[index].span, "a parameter is written :name"
            )
        elif word == "EMIT" and self._word(index + 1) in ("FINAL", "CHANGES", "EVERY"):
            raise ParseError(
                "EMIT must come at the end of the statement",
                self.tokens[index].span.to(self.tokens[index + 1].span),
            )
        elif word == "WINDOW" and not self.in_from:
            self._misplaced_window(index)
        if word in ("FROM", "JOIN", ",") and self.in_from:
            self._expect_reference(index)
            self._enter_reference(index)

    def end(self) -> None:
        self._leave_from(len(self.tokens), self.frames[-1])

    def _enter_reference(self, index: int) -> None:
        frame = self.frames[-1]
        self._close_reference(index, frame)
        frame.reference = FromItem(self.tokens[index].word, self.tokens[index + 1].span.start)
        self.references.append(frame.reference)

    def _close_reference(self, index: int, frame: _Frame) -> None:
        if frame.reference is not None:
            frame.reference.end = self.tokens[index - 1].span.end
            frame.reference = None

    def _leave_from(self, index: int, frame: _Frame) -> None:
        self._end_of_joins(frame)
        self._close_reference(index, frame)

    # --- checks ----------------------------------------------------------------------------------

    def _enter_clause(self, index: int, frame: _Frame) -> None:
        word = self.tokens[index].word
        self._leave_from(index, frame)
        if _ORDER.index(word) < _ORDER.index(frame.clause):
            raise ParseError(
                f"{_name(word)} must come before {_name(frame.clause)}", self._span(index)
            )
        if word == frame.clause:
            raise ParseError(f"{_name(word)} is given twice", self._span(index))
        frame.clause, frame.on = word, False
        last = index + 1 if word in _TWO_WORDS else index
        if word == "GROUP" and self._word(last + 1) in ("DISTINCT", "ALL"):
            self._check_group_by(last + 1)
        if word != "FROM" and self._nothing_follows(last):
            what = "a number" if word == "LIMIT" else "a column or an expression"
            self._fail(f"expected {what} after {_name(word)}", last + 1)

    def _join(self, index: int, frame: _Frame) -> None:
        frame.on = False
        words: list[str] = []
        while self._word(index - 1) in (
            "LEFT",
            "RIGHT",
            "FULL",
            "OUTER",
            "SEMI",
            "ANTI",
            "NATURAL",
        ):
            index -= 1
            words.insert(0, self._word(index))
        if "NATURAL" not in words:
            kind = " ".join([*words, "JOIN"]) if words else ""
            frame.joins = [*frame.joins, (kind, self.tokens[index].span)]

    def _end_of_joins(self, frame: _Frame) -> None:
        for kind, span in frame.joins:
            if kind:
                raise ParseError(f"{kind} needs ON or USING", span)
        frame.joins = []

    def _comma(self, index: int, frame: _Frame) -> None:
        in_list_of_streams = frame.clause == "FROM"
        if in_list_of_streams:
            self._end_of_joins(frame)
            frame.on = False
        if not frame.clause and self._word(index + 1) not in (",", ")"):
            return
        if self._nothing_follows(index):
            what = "a stream" if in_list_of_streams else "a column or an expression"
            self._fail(f'expected {what} after ","', index + 1)

    def _check_using(self, index: int) -> None:
        """`(name, …)`, unqualified names: sqlglot would drop anything else."""
        if self._word(index) != "(":
            self._fail('expected "(" after USING', index)
        if self._word(index + 1) == ")":
            self._fail("expected a column after USING", index + 1)
        while self._word(index) != ")":
            column, following = index + 1, index + 2
            if column >= len(self.tokens) or not self.tokens[column].is_name:
                self._fail("expected a column after USING", column)
            if self._word(following) == ".":
                span = self.tokens[column].span.to(self.tokens[following].span)
                raise ParseError("USING takes unqualified columns", span)
            if self._word(following) not in (",", ")"):
                self._fail('expected "," or ")" after the column', following)
            index = following

    def _check_group_by(self, index: int) -> None:
        """The binder refuses GROUP BY ALL without more."""
        word = self.tokens[index].word
        if word == "DISTINCT" or not self._nothing_follows(index):
            raise ParseError(
                f"GROUP BY {word} is not supported",
                self.tokens[index].span,
                f"leave {word} out: groups are distinct",
            )

    def _as(self, index: int, frame: _Frame) -> None:
        if frame.call in _CASTS and not frame.clause:
            self._check_type(index)
        elif self._word(index - 1) == "WITH" or self._word(index + 1) == "SELECT":
            self._fail("expected a name and a query", index)
        elif frame.clause == "SELECT" and self._word(index - 1) in (
            "SELECT",
            "DISTINCT",
            "ALL",
            ",",
        ):
            self._fail("expected a column or an expression", index)
        elif self._word(index + 1) in (",", ")") or (frame.clause and self._word(index + 1) == ""):
            self._check_alias(index)

    def _check_type(self, index: int) -> None:
        """AS in CAST must be followed by a type and nothing else."""
        cursor = Cursor(self.tokens, self.tokens[-1].span.end)
        cursor.position = index + 1
        read_type(cursor)
        if cursor.current is not None and cursor.current.word not in (")", "FORMAT"):
            cursor.fail('")"', "after the type")

    def _check_alias(self, index: int) -> None:
        """AS needs a name; quoted names and strings have no word, and are fine."""
        following = self.tokens[index + 1] if index + 1 < len(self.tokens) else None
        if following is None or following.word:
            self._fail("expected a name after AS", index + 1)

    def _expect_reference(self, index: int) -> None:
        if self._nothing_follows(index):
            self._fail("expected the name of a stream", index + 1)
        following = self.tokens[index + 1]
        if following.word == ".":
            self._fail("expected the name of a stream", index + 1)
        if following.kind is TokenType.STRING:
            raise ParseError(
                "expected the name of a stream, found a string",
                following.span,
                f"names are quoted with backticks: `{following.text}`",
            )

    def _misplaced_window(self, index: int) -> None:
        if self._word(index + 1) == "(" and self._word(index + 2) in _WINDOW_WORDS:
            raise ParseError(
                "WINDOW must follow a stream in FROM",
                self.tokens[index].span,
                "write FROM stream WINDOW(…) before the other clauses",
            )
        if self._word(index + 1) == "(" and self._word(index - 1) != "INTO":
            raise ParseError(
                "WINDOW is not a function", self.tokens[index].span, other_dialects.TUMBLING
            )

    def _nothing_follows(self, index: int) -> bool:
        """Whether the end, a closing bracket or another clause follows this token."""
        if index + 1 >= len(self.tokens):
            return True
        word = self._word(index + 1)
        return word in (")", ",") or word in _SET_OPERATIONS or self._is_clause(index + 1)

    def _is_only_a_name(self, index: int) -> bool:
        """Whether a word can only be a name here: after a point, or after AS."""
        return self.tokens[index].is_name and self._word(index - 1) in (".", "AS")

    def _is_clause(self, index: int) -> bool:
        """Whether the token begins a clause, and is not part of DISTINCT FROM, WITHIN GROUP …"""
        if index > 0 and self._is_only_a_name(index):
            return False
        word, before = self._word(index), self._word(index - 1)
        if word in _TWO_WORDS:
            return self._word(index + 1) == "BY"
        if word == "FROM":
            return before != "DISTINCT" or self._word(index - 2) not in ("IS", "NOT")
        return word in ("WHERE", "HAVING", "LIMIT")

    def _fail(self, expected: str, index: int) -> NoReturn:
        if index < len(self.tokens):
            found = self.tokens[index]
            raise ParseError(f'{expected}, found "{found.text}"', found.span)
        end = self.tokens[-1].span.end
        raise ParseError(f"{expected}, found the end of the statement", Span(end, end + 1))

    def _word(self, index: int) -> str:
        return self.tokens[index].word if 0 <= index < len(self.tokens) else ""

    def _span(self, index: int) -> Span:
        span = self.tokens[index].span
        two = self.tokens[index].word in _TWO_WORDS
        return span.to(self.tokens[index + 1].span) if two else span


def _name(word: str) -> str:
    return _TWO_WORDS.get(word, word)
