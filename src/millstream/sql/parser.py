"""From text to statements.

`definitions.py` parses statements that SQL does not have. Stock sqlglot parses queries. Before
that, the stream clauses are lifted out of the text and blanked with spaces, so that positions stay
correct. Then each clause is attached to the reference in FROM that precedes it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError as SqlglotParseError
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType

from millstream.model.durations import Duration
from millstream.model.errors import ParseError, Span
from millstream.model.modes import Emit
from millstream.sql import other_dialects
from millstream.sql.clauses import (
    AsOf,
    ClauseReader,
    Clauses,
    GranularityClause,
    Shed,
    Window,
    starts_as_of,
    starts_cql_window,
    starts_granularity,
    starts_window,
)
from millstream.sql.definitions import StatementReader
from millstream.sql.intervals import interval_texts, replace_texts
from millstream.sql.parser_errors import syntax_error
from millstream.sql.shape import FromItem, QueryShape
from millstream.sql.statements import (
    ChangeTable,
    QueryStatement,
    Select,
    Statement,
    attach_clauses,
    clauses_of,
    mark_comma,
)
from millstream.sql.table_statements import check_change, starts_change, take_effective
from millstream.sql.tokens import Cursor, Token, tokenize
from millstream.sql.written import name_unary_pluses, note_what_was_written, unary_pluses

# sqlglot logs what it cannot parse; we raise instead.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

STREAM_FUNCTIONS = ("ISTREAM", "DSTREAM", "RSTREAM")


def parse(text: str, parameters: Mapping[str, object] | None = None) -> list[Statement]:
    """All statements of `text`; empty ones between semicolons are skipped."""
    statements = []
    _check_unicode("the statement", text)
    for name, value in (parameters or {}).items():
        if isinstance(value, str):
            _check_unicode(f'parameter ":{name}"', value)
    if text.startswith("\ufeff"):  # blank a byte-order mark; positions do not change
        text = " " + text[1:]
    for tokens in _split(tokenize(text)):
        try:
            statements.append(_Statement(text, tokens, parameters or {}).read())
        except RecursionError:
            raise ParseError("the statement is nested too deeply", tokens[0].span) from None
    return statements


def _check_unicode(what: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ParseError(
            f"{what} has an unpaired surrogate at character {error.start + 1}, which is not UTF-8"
        ) from None


def _split(tokens: Sequence[Token]) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.word == ";":
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


class _Statement:
    def __init__(self, text: str, tokens: list[Token], parameters: Mapping[str, object]) -> None:
        self.text = text
        self.parameters = parameters
        self.cursor = Cursor(tokens, len(text))

    def read(self) -> Statement:
        if self.cursor.at("SELECT") or self.cursor.at("WITH") or self.cursor.at("("):
            return Select(self.query())
        if starts_change(self.cursor):
            return self._change()
        reader = StatementReader(self.text, self.cursor, self.parameters, self.query)
        return reader.statement()

    def query(self) -> QueryStatement:
        """The query from the cursor to the end of the statement."""
        tokens = self.cursor.tokens[self.cursor.position :]
        if not tokens or tokens[0].word not in ("SELECT", "WITH", "("):
            self.cursor.fail("a query")
        whole = tokens[0].span.to(tokens[-1].span)
        other_dialects.refuse(tokens)
        tokens, emit, every, emit_span = _take_emit(tokens, self.parameters)
        tokens, shed = _take_shed(tokens, self.parameters)
        return QueryStatement(self._tree(tokens, exp.Query), emit, emit_span, whole, every, shed)

    def _change(self) -> Statement:
        tokens, at = take_effective(self.cursor.tokens, self.parameters)
        check_change(Cursor(tokens, len(self.text)))
        whole = tokens[0].span.to(tokens[-1].span)
        return ChangeTable(QueryStatement(self._tree(tokens, exp.DML), span=whole), at)

    def _tree(self, tokens: Sequence[Token], kind: type[exp.Expression]) -> exp.Expression:
        """sqlglot's tree of the tokens, with the stream clauses attached."""
        lifted = _Lifter(self.text, tokens, self.parameters)
        lifted.run()
        tree = _parse_with_sqlglot(lifted.blanked, self.text, tokens, kind)
        tree = replace_texts(tree, lifted.intervals)
        _attach(tree, lifted.found)
        name_unary_pluses(tree, tokens)
        note_what_was_written(tree, tokens)
        _mark_commas(tree, lifted.shape.references)
        return tree


def _take_emit(
    tokens: Sequence[Token], parameters: Mapping[str, object]
) -> tuple[Sequence[Token], Emit | None, Duration | None, Span | None]:
    """Split `EMIT FINAL`, `EMIT CHANGES` or `EMIT EVERY d` off the end of a query."""
    expected = "expected FINAL, CHANGES or EVERY d after EMIT"
    if tokens[-1].word == "EMIT":
        raise ParseError(expected, tokens[-1].span)
    words = [token.word for token in tokens]
    for place in reversed(range(len(tokens) - 1)):
        if words[place : place + 2] == ["EMIT", "EVERY"]:
            span = tokens[place].span.to(tokens[-1].span)
            cursor = Cursor(tokens[place + 2 :], tokens[-1].span.end)
            every = ClauseReader(cursor, parameters).duration()
            if cursor.current is not None:
                cursor.fail("the end of the statement")
            return tokens[:place], Emit.EVERY, every, span
    if len(tokens) < 2 or tokens[-2].word != "EMIT":
        return tokens, None, None, None
    how, span = tokens[-1], tokens[-2].span.to(tokens[-1].span)
    if how.word not in (Emit.FINAL, Emit.CHANGES):
        raise ParseError(f'{expected}, found "{how.text}"', how.span)
    return tokens[:-2], Emit(how.word), None, span


def _take_shed(
    tokens: Sequence[Token], parameters: Mapping[str, object]
) -> tuple[Sequence[Token], Shed | None]:
    """Split `SHED …` off the end of a query: the word is reserved."""
    place = next((i for i, token in enumerate(tokens) if token.word == "SHED"), None)
    if place is None:
        return tokens, None
    cursor = Cursor(tokens[place:], tokens[-1].span.end)
    shed = ClauseReader(cursor, parameters).shed()
    if cursor.current is not None or not place:
        raise ParseError(
            "SHED must come at the end of the statement, before EMIT",
            tokens[place].span,
            f"quote the word where it is a name: `{tokens[place].text}`",
        )
    return tokens[:place], shed


@dataclass(frozen=True)
class _Found:
    """A clause and the position in the blanked text that identifies its reference."""

    clause: Window | GranularityClause | AsOf
    anchor: int
    invented: bool  # the anchor is an alias that the lifter wrote into the blanked text


class _Lifter:
    """Finds the stream clauses of a query and writes spaces over them.

    A clause belongs to the reference before it. If the reference ends in a name (of the stream or
    an alias), the position of the name identifies it. If it ends in a bracket, the alias after
    the clause does, or one that the lifter invents.
    """

    def __init__(
        self, text: str, tokens: Sequence[Token], parameters: Mapping[str, object]
    ) -> None:
        self.cursor = Cursor(tokens, len(text))
        self.reader = ClauseReader(self.cursor, parameters)
        # Everything outside the query's tokens is blanked: other statements and comments.
        self.characters = [c if c in "\r\n" else " " for c in text]
        for token in tokens:
            self._write(token.span.start, text[token.span.start : token.span.end])
        self.shape = QueryShape(tokens)
        self.found: list[_Found] = []
        self.intervals = interval_texts(tokens)

    @property
    def blanked(self) -> str:
        return "".join(self.characters)

    def run(self) -> None:
        self._escape_doubled_quotes()
        for plus in unary_pluses(self.cursor.tokens):
            self._write(plus.span.start, "~")
        for interval in self.intervals.values():
            self._blank(interval.word.start, interval.word.end)
        previous: Token | None = None
        while self.cursor.current is not None:
            if self.shape.in_from and previous is not None and self._at_clause():
                self._lift(previous)
                continue
            self.shape.step(self.cursor.position)
            previous = self.cursor.advance()
        self.shape.end()

    def _escape_doubled_quotes(self) -> None:
        """'it''s' is one string, as in Spark 4; the dialect would see two."""
        for one, other in pairwise(self.cursor.tokens):
            both_strings = one.kind is other.kind is TokenType.STRING
            if both_strings and one.span.end == other.span.start:
                self._write(one.span.end - 1, "\\" + self.characters[other.span.start])

    def _at_clause(self) -> bool:
        cursor = self.cursor
        starts = (starts_window, starts_granularity, starts_cql_window, starts_as_of)
        return any(starts_one(cursor) for starts_one in starts)

    def _lift(self, previous: Token) -> None:
        """Lift all clauses at the cursor; they belong to the reference before them."""
        start = self.cursor.span.start
        clauses = []
        while self._at_clause():
            clauses.append(self._clause())
        self._blank(start, self.cursor.tokens[self.cursor.position - 1].span.end)
        invented = False
        following = self.cursor.current
        alias = self._alias_of_column_list(previous)
        if previous.is_name:
            anchor = previous.span.start
        elif alias is not None:
            anchor = alias.span.start
        elif following is not None and self._is_alias(following):
            name = self.cursor.peek() if following.word == "AS" else following
            assert name is not None
            anchor = name.span.start
        else:
            self._write(start, f"__{len(self.found)}")
            anchor, invented = start, True
        self.found += [_Found(clause, anchor, invented) for clause in clauses]

    def _alias_of_column_list(self, closing: Token) -> Token | None:
        """The alias in `stream AS alias (a, b)`, after its closing bracket."""
        tokens = self.cursor.tokens
        index, depth = list(tokens).index(closing), 0
        while index > 1:
            depth += {")": 1, "(": -1}.get(tokens[index].word, 0)
            if depth == 0:
                break
            index -= 1
        alias, before = tokens[index - 1], tokens[index - 2]
        named = before.word in ("AS", ")", "]") or _names_something(before)
        return alias if _names_something(alias) and named else None

    def _clause(self) -> Window | GranularityClause | AsOf:
        if starts_as_of(self.cursor):
            return self.reader.as_of()
        if starts_granularity(self.cursor):
            return self.reader.granularity()
        if starts_window(self.cursor):
            return self.reader.window()
        return self.reader.cql_window()

    def _is_alias(self, token: Token) -> bool:
        if token.word == "AS":
            following = self.cursor.peek()
            return following is not None and following.is_name
        return token.is_name and token.word not in _AFTER_REFERENCE

    def _blank(self, start: int, end: int) -> None:
        for index in range(start, end):
            if self.characters[index] not in "\r\n":
                self.characters[index] = " "

    def _write(self, start: int, text: str) -> None:
        self.characters[start : start + len(text)] = text


def _names_something(token: Token) -> bool:
    return token.is_name and token.word not in ("FROM", "JOIN")


# Words that end FROM, and words that can follow a reference but are not its alias.
_AFTER_FROM = frozenset(
    ["WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "UNION",
     "EXCEPT", "INTERSECT", "MINUS", "QUALIFY", "LATERAL"]
)  # fmt: skip
_AFTER_REFERENCE = _AFTER_FROM | frozenset(
    ["JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "SEMI", "ANTI", "ON", "USING",
     "WINDOW", "GRANULARITY", "EMIT", "TABLESAMPLE", "PIVOT", "UNPIVOT"]
)  # fmt: skip


def _parse_with_sqlglot(
    blanked: str, text: str, tokens: Sequence[Token], kind: type[exp.Expression]
) -> exp.Expression:
    try:
        trees = [tree for tree in sqlglot.parse(blanked, dialect="spark") if tree is not None]
    except SqlglotParseError as error:
        raise syntax_error(error, text, tokens) from None
    except SqlglotError as error:
        raise ParseError(str(error).split("\n")[0].lower()) from None
    except RecursionError:
        raise
    except Exception as error:  # the user must not see a traceback from the library
        raise ParseError(f"the statement cannot be parsed: {error}") from None
    if len(trees) != 1 or not isinstance(trees[0], kind):
        expected = "a query" if kind is exp.Query else "INSERT, UPDATE, DELETE or MERGE"
        raise ParseError(f"expected {expected}", Span(*_extent(blanked)))
    return trees[0].transform(_uniform, copy=False)


def _uniform(node: exp.Expression) -> exp.Expression:
    """Normalize spellings: 'a' 'b' is the string 'ab', DATE '…' is a CAST, and FETCH FIRST
    n ROWS ONLY is LIMIT n."""
    if isinstance(node, exp.Fetch):
        options = node.args.get("limit_options") or node
        if not options.args.get("percent") and not options.args.get("with_ties"):
            return exp.Limit(expression=node.args.get("count"))
    if type(node) is exp.Cast:
        cast = exp.TryCast(**node.args)  # as the dialect parses CAST; TRY_CAST has `safe`
        cast.meta.update(node.meta)
        return cast
    # Not CONCAT_WS, whose class inherits from that of CONCAT.
    parts = node.expressions if type(node) is exp.Concat else []
    if parts and all(isinstance(part, exp.Literal) and part.is_string for part in parts):
        literal = exp.Literal.string("".join(part.this for part in parts))
        literal.meta.update(parts[0].meta)
        return literal
    return node


def _extent(blanked: str) -> tuple[int, int]:
    start = len(blanked) - len(blanked.lstrip())
    return start, len(blanked.rstrip())


def _mark_commas(tree: exp.Expression, references: Sequence[FromItem]) -> None:
    """Mark the joins that were written as a comma, which sqlglot parses as CROSS JOIN."""
    for join in tree.find_all(exp.Join):
        placed = [part for part in join.this.walk() if "start" in part.meta]
        first = min(placed, key=lambda part: part.meta["start"], default=None)
        if first is None:
            continue
        # The references around the first name, from the innermost; those of inner queries, each
        # of which has a FROM or JOIN between the name and this join, are not this one.
        start = first.meta["start"]
        around = sorted(
            (r for r in references if r.start <= start < r.end), key=lambda r: r.start, reverse=True
        )
        inner = 0
        while (first := first.parent) is not join:
            inner += isinstance(first, exp.From | exp.Join)
        if inner < len(around) and around[inner].after == ",":
            mark_comma(join)


def _attach(tree: exp.Expression, found: Sequence[_Found]) -> None:
    references = {}
    for identifier in tree.find_all(exp.Identifier):
        reference = _reference_named_by(identifier)
        if reference is not None and "start" in identifier.meta:
            references[identifier.meta["start"]] = reference
    for item in found:
        reference = references.get(item.anchor)
        if reference is None:
            raise ParseError(
                f"{_what(item.clause)} in FROM",
                item.clause.span,
            )
        attach_clauses(reference, _merged(clauses_of(reference), item.clause))
    for item in found:
        if item.invented:
            references[item.anchor].set("alias", None)


def _what(clause: Window | GranularityClause | AsOf) -> str:
    if isinstance(clause, AsOf):
        return "AS OF belongs to a view"
    return "a window or granularity belongs to a stream or a subquery"


def _reference_named_by(identifier: exp.Identifier) -> exp.Expression | None:
    """The reference in FROM whose name or alias `identifier` is."""
    parent = identifier.parent
    if isinstance(parent, exp.TableAlias):
        return parent.parent
    if isinstance(parent, exp.Table) and parent.this is identifier:
        return parent
    # ISTREAM(Bid WINDOW(…)) is a function of a column to sqlglot.
    if isinstance(parent, exp.Column) and isinstance(parent.parent, exp.Anonymous):
        return parent if parent.parent.name.upper() in STREAM_FUNCTIONS else None
    return None


def _merged(clauses: Clauses, clause: Window | GranularityClause | AsOf) -> Clauses:
    if isinstance(clause, AsOf):
        if clauses.as_of is not None:
            raise ParseError("a view is read AS OF one instant", clause.span)
        return replace(clauses, as_of=clause)
    if isinstance(clause, Window):
        if clauses.window is not None:
            raise ParseError(
                "a stream has at most one window here",
                clause.span,
                "use a subquery for a window over a window",
            )
        return replace(clauses, window=clause)
    if clauses.granularity is not None:
        raise ParseError("a stream has at most one granularity here", clause.span)
    return replace(clauses, granularity=clause)
