"""INTERVAL literals: `INTERVAL '5' MINUTE`, `INTERVAL 5 MINUTES`, `INTERVAL '1 hour 30 minutes'`.

sqlglot searches the text of an INTERVAL for a number and a unit and drops the rest. Texts that
contain units are therefore parsed here, and sqlglot sees them as plain strings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp
from sqlglot.tokens import TokenType

from millstream.logical.expressions import Literal
from millstream.model import types
from millstream.model.errors import BindError, ParseError, Span
from millstream.model.time import MICROSECONDS, unit_named
from millstream.sql.scope import span_of
from millstream.sql.tokens import Token

_NUMBER = r"[+-]?\s*(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_PART = re.compile(rf"\s*({_NUMBER})\s*([A-Za-z]+)\s*")
_PLAIN = re.compile(rf"\s*{_NUMBER}\s*")

_ONE_UNIT = "write INTERVAL '5' MINUTE or INTERVAL '1 hour 30 minutes'"
_NO_MONTHS = "intervals of months and years have no fixed length and are not supported"


@dataclass(frozen=True)
class IntervalText:
    """An INTERVAL whose text contains its units: the positions of word and text, and the parts."""

    word: Span
    text: str
    parts: tuple[tuple[str, str], ...]  # number and unit

    @property
    def node(self) -> exp.Interval:
        if len(self.parts) > 1:
            return exp.Interval(this=exp.Literal.string(self.text))
        ((number, unit),) = self.parts
        return exp.Interval(this=exp.Literal.string(number), unit=exp.Var(this=unit.upper()))


def interval_texts(tokens: Sequence[Token]) -> dict[int, IntervalText]:
    """The INTERVALs of a statement whose texts contain units, by the position of the text."""
    found: dict[int, IntervalText] = {}
    for index, token in enumerate(tokens[:-1]):
        if token.word != "INTERVAL" or tokens[index + 1].kind is not TokenType.STRING:
            continue
        given = tokens[index + 1]
        if _PLAIN.fullmatch(given.text):
            _check_chain(tokens, index + 2)
            continue
        following = tokens[index + 2] if index + 2 < len(tokens) else None
        if following is not None and _is_span(tokens, index + 2):
            raise ParseError(
                f"INTERVAL … {following.word} TO is not supported",
                following.span.to(tokens[index + 3].span),
                "write INTERVAL '1 hour 30 minutes'",
            )
        if following is not None and (
            following.kind is TokenType.STRING or _is_unit(following) or following.word == "TO"
        ):
            if not _PART.match(given.text):
                raise ParseError(f'"{given.text}" is not a number', given.span, _ONE_UNIT)
            raise ParseError(
                "an INTERVAL has its units either in the text or after it",
                given.span.to(following.span),
                _ONE_UNIT,
            )
        found[given.span.start] = IntervalText(token.span, given.text, _parts(given))
    return found


def _parts(given: Token) -> tuple[tuple[str, str], ...]:
    parts = []
    end = 0
    for match in _PART.finditer(given.text):
        if match.start() != end:
            break
        parts.append((match[1].replace(" ", "").removeprefix("+"), match[2]))
        end = match.end()
    if not parts or end != len(given.text):
        raise ParseError(f'"{given.text}" is not an INTERVAL', given.span, _ONE_UNIT)
    return tuple(parts)


def _check_chain(tokens: Sequence[Token], index: int) -> None:
    """In `'1' DAY '2' HOUR`, each text must be a number: sqlglot would search it for one."""
    while index + 1 < len(tokens) and _is_unit(tokens[index]):
        index += 2 if tokens[index + 1].word == "+" else 1
        if index >= len(tokens) or tokens[index].kind not in (TokenType.STRING, TokenType.NUMBER):
            return
        if tokens[index].kind is TokenType.STRING and not _PLAIN.fullmatch(tokens[index].text):
            raise ParseError(
                f'"{tokens[index].text}" is not a number', tokens[index].span, _ONE_UNIT
            )
        index += 1


def _is_span(tokens: Sequence[Token], index: int) -> bool:
    """`HOUR TO …`"""
    return index + 1 < len(tokens) and _is_unit(tokens[index]) and tokens[index + 1].word == "TO"


def _is_unit(token: Token) -> bool:
    return unit_named(token.word) is not None or token.word in ("MONTH", "MONTHS", "YEAR", "YEARS")


def replace_texts(tree: exp.Expression, texts: dict[int, IntervalText]) -> exp.Expression:
    """`tree` with INTERVALs in place of their texts, which sqlglot has parsed as strings."""
    if not texts:
        return tree
    left = dict(texts)
    for literal in list(tree.find_all(exp.Literal)):
        given = left.pop(literal.meta.get("start", -1), None)
        if given is not None:
            node = given.node
            node.this.meta.update(literal.meta)
            node.meta.update(literal.meta, start=given.word.start)
            literal.replace(node)
    for given in left.values():
        raise ParseError('unexpected "INTERVAL"', given.word)
    return tree


def units_of(node: exp.Interval) -> set[str | None]:
    """The units that an INTERVAL is written in."""
    unit = node.args.get("unit")
    names = [unit.name] if unit is not None else [m[2] for m in _PART.finditer(node.name)]
    return {unit_named(name) for name in names}


def bind_interval(node: exp.Interval) -> Literal:
    """The INTERVAL as a number of microseconds."""
    span = span_of(node)
    unit, amount = node.args.get("unit"), node.this
    if isinstance(unit, exp.IntervalSpan):
        raise BindError(
            f"INTERVAL … {unit.sql(dialect='spark')} is not supported",
            span,
            "write INTERVAL '1 hour 30 minutes'",
        )
    if unit is None and isinstance(amount, exp.Literal) and amount.is_string:
        parts = [(match[1], match[2]) for match in _PART.finditer(amount.this)]
    elif isinstance(amount, exp.Literal | exp.Neg) and isinstance(unit, exp.Var):
        sign = "-" if isinstance(amount, exp.Neg) else ""
        parts = [(sign + str(amount.name if not sign else amount.this.name), unit.name)]
    else:
        parts = []
    if not parts:
        raise BindError("an INTERVAL is a number and a unit", span, _ONE_UNIT)
    total = sum((_microseconds(number, name, span) for number, name in parts), Fraction(0))
    if total.denominator != 1:
        raise BindError("an INTERVAL is a whole number of microseconds", span)
    if not -(2**63) <= total < 2**63:
        raise BindError("the INTERVAL is out of range", span)
    return Literal(int(total), types.INTERVAL)


def _microseconds(number: str, unit: str, span: Span | None) -> Fraction:
    word = unit_named(unit)
    if word is None:
        raise BindError(f'"{unit}" is not a unit of an INTERVAL here', span, _NO_MONTHS)
    try:
        exact = Decimal("".join(number.split()))
    except ArithmeticError:
        raise BindError(f'"{number}" is not a number', span) from None
    if not exact.is_finite() or not -30 < exact.adjusted() < 30:
        raise BindError("the INTERVAL is out of range", span)
    return Fraction(exact) * MICROSECONDS[word]
