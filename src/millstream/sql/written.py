"""Source details that sqlglot's tree lacks: the positions of parameters and brackets, the number of
arguments of each call, and the unary plus.

sqlglot drops arguments that a function does not take (`log2(a, b)` becomes `log2(a)`). So each call
records how many it was given, and the binder compares that with how many it uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokens import TokenType

from millstream.model.errors import ParseError, Span
from millstream.sql.tokens import Token


@dataclass(frozen=True)
class WrittenCall:
    """A name and the brackets after it."""

    name: Token
    end: int  # of the closing bracket
    arguments: tuple[Span, ...]
    quoted: tuple[bool, ...]  # whether the argument is just a string
    keywords: tuple[Token, ...]  # FROM and FOR between the operands


def written_calls(tokens: Sequence[Token]) -> Iterator[WrittenCall]:
    """Everything that looks like a call, including IN (…) and the like; inner ones first."""
    open_brackets: list[tuple[int, list[int]]] = []  # each with its commas
    for index, token in enumerate(tokens):
        if token.word in ("(", "["):
            open_brackets.append((index, []))
        elif token.word == "," and open_brackets:
            open_brackets[-1][1].append(index)
        elif token.word in (")", "]") and open_brackets:
            opened, commas = open_brackets.pop()
            if token.word == ")" and opened > 0:
                subquery = tokens[opened + 1].word in ("SELECT", "WITH")
                yield _call(tokens, [opened, *(() if subquery else commas), index])


def _call(tokens: Sequence[Token], bounds: list[int]) -> WrittenCall:
    """The call with its brackets and commas at these positions."""
    arguments = [tokens[a + 1 : b] for a, b in pairwise(bounds) if a + 1 < b]
    return WrittenCall(
        tokens[bounds[0] - 1],
        tokens[bounds[-1]].span.end,
        tuple(argument[0].span.to(argument[-1].span) for argument in arguments),
        tuple([token.kind for token in argument] == [TokenType.STRING] for argument in arguments),
        tuple(_keywords(tokens[bounds[0] + 1 : bounds[-1]])),
    )


def _keywords(inside: Sequence[Token]) -> Iterator[Token]:
    depth = 0
    for token in inside:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token.word, 0)
        if depth == 0 and token.word in ("FROM", "FOR"):
            yield token


# Functions with parsers of their own in sqlglot: it does not record their position, and stops at
# the last argument that it knows. It parses NVL and IFNULL as COALESCE.
_MOST_ARGUMENTS = {
    "ANY": 1, "CEIL": 2, "CHAR": 1, "CHR": 1, "DIV": 2, "EXTRACT": 1, "FLOOR": 2, "IF": 3,
    "IFNULL": 2, "INITCAP": 1, "MAX_BY": 2, "MIN_BY": 2, "NVL": 2, "PERCENTILE": 2, "POSITION": 3,
    "SUBSTR": 3, "SUBSTRING": 3, "TRIM": 2, "TS_OR_DS_TO_DATE_STR": 1,
}  # fmt: skip


def note_what_was_written(tree: exp.Expression, tokens: Sequence[Token]) -> None:
    """Add to the tree the positions of parameters, the end of each call, and its written name and
    number of arguments (`arguments`, `quoted` and `called` in `meta`)."""
    calls = {call.name.span.start: call for call in written_calls(tokens)}
    for call in calls.values():
        most = _MOST_ARGUMENTS.get(call.name.word)
        if most is not None and len(call.arguments) > most:
            raise ParseError(
                too_many(call.name.text.lower(), most, len(call.arguments)), call.arguments[most]
            )
        if call.name.word in ("SUBSTR", "SUBSTRING"):
            _check_substring(call)
    parameters = _parameters(tokens)
    for node in tree.walk():
        if isinstance(node, exp.Placeholder | exp.Parameter) and node.name in parameters:
            span = parameters[node.name]
            node.meta.update(start=span.start, end=span.end - 1)
        elif node.meta.get("start") in calls and not isinstance(node, exp.Identifier):
            call = calls[node.meta["start"]]
            node.meta["closed"] = call.end
            node.meta.update(
                called=call.name.text.lower(), arguments=len(call.arguments), quoted=call.quoted
            )


def _check_substring(call: WrittenCall) -> None:
    """sqlglot takes FROM and FOR in any number and order, also after commas."""
    expected = ["FROM", "FOR"] if len(call.arguments) == 1 else []
    for keyword in call.keywords:
        if keyword.word not in expected:
            raise ParseError(
                f'unexpected "{keyword.text}"',
                keyword.span,
                "write SUBSTRING(text, position, length), or FROM position FOR length",
            )
        expected = expected[expected.index(keyword.word) + 1 :]


def _parameters(tokens: Sequence[Token]) -> dict[str, Span]:
    found: dict[str, Span] = {}
    for index, token in enumerate(tokens[:-1]):
        if token.word == ":":
            found[tokens[index + 1].text] = token.span.to(tokens[index + 1].span)
    return found


def too_many(name: str, most: int, given: int) -> str:
    plural = "" if most == 1 else "s"
    return f'"{name}" takes {most} argument{plural}, not {given}'


# --- the unary plus ---------------------------------------------------------------------------

# An operand follows one of these, so a plus there is not an addition.
_BEFORE_OPERAND = frozenset(
    ["(", ",", "[", "+", "-", "*", "/", "%", "=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>",
     "||", "~", "AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "CASE", "SELECT", "DISTINCT", "WHERE",
     "ON", "HAVING", "BY", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "DIV", "SET"]
)  # fmt: skip


def unary_pluses(tokens: Sequence[Token]) -> list[Token]:
    """The plus signs that are not additions. sqlglot would drop them, so they are replaced with a
    `~`: see `name_unary_pluses`."""
    found = []
    before = "("
    for token in tokens:
        if token.word == "+" and before in _BEFORE_OPERAND:
            found.append(token)
        before = token.word
    return found


def name_unary_pluses(tree: exp.Expression, tokens: Sequence[Token]) -> None:
    """Write `+a` as POSITIVE(a), its function in Spark."""
    pluses = {token.span.start for token in unary_pluses(tokens)}
    tildes = {token.span.start for token in tokens if token.word == "~"}
    nodes = list(tree.find_all(exp.BitwiseNot))
    if pluses and tildes:  # in the order of the text
        nodes.sort(key=lambda node: (_first_place(node), node.depth))
    for place, node in zip(sorted(pluses | tildes), nodes, strict=True):
        if place in pluses:
            node.replace(exp.Anonymous(this="POSITIVE", expressions=[node.this]))


def _first_place(node: exp.Expression) -> int:
    return min((part.meta["start"] for part in node.walk() if "start" in part.meta), default=-1)


def is_unary_plus(node: exp.Expression) -> bool:
    named = isinstance(node, exp.Anonymous) and node.name.upper() == "POSITIVE"
    return named and len(node.expressions) == 1
