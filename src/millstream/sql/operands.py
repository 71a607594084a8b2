"""Operands of different types, where the result also depends on literals and on the operator, as in
Spark."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from sqlglot import exp

from millstream.logical.expressions import Cast, Expression, Literal
from millstream.logical.functions.casts import EXACT
from millstream.model import types

_PARAMETERS = (exp.Placeholder, exp.Parameter)


def is_number(node: exp.Expression) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string


def is_suffixed_number(node: exp.Expression) -> bool:
    """Whether it is a number such as 7L. sqlglot parses it as a CAST of a number whose position
    includes the suffix, but whose text does not."""
    if not isinstance(node, exp.Cast) or not is_number(node.this):
        return False
    place = node.this.meta
    return "start" in place and place["end"] + 1 - place["start"] > len(node.this.this)


def with_own_digits(node: exp.Expression, bound: Expression) -> Expression:
    """An integer literal, with or without a suffix, as a decimal with that number of digits."""
    while isinstance(node, exp.Paren):
        node = node.this
    number = node.this if isinstance(node, exp.Neg) else node
    literal = bound.operand if isinstance(bound, Cast) and is_suffixed_number(number) else bound
    if not isinstance(literal, Literal) or not types.is_integral(bound.type):
        return bound
    if not (is_number(number) or is_suffixed_number(number) or isinstance(number, _PARAMETERS)):
        return bound
    assert isinstance(literal.value, int)
    return Cast(literal, types.decimal_type(len(str(abs(literal.value))), 0))


def with_strings_cast(name: str, arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """A string operand with an integer is cast to an integer, even if both are divided as doubles;
    with a date it is cast to a date, even if both are subtracted as timestamps."""
    given = [argument.type for argument in arguments]
    if name == "/" and any(map(types.is_integral, given)):
        wanted = types.BIGINT
    elif name == "-" and types.DATE in given:
        wanted = types.DATE
    else:
        return arguments
    return tuple(Cast(a, wanted) if a.type == types.STRING else a for a in arguments)


# How a number on the right of the operator is rounded if an integer is on the left.
ROUNDED = {"<": ROUND_CEILING, ">=": ROUND_CEILING, ">": ROUND_FLOOR, "<=": ROUND_FLOOR}
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def compared_as_integers(name: str, a: Expression, b: Expression) -> tuple[Expression, ...]:
    """The operands of `<`, `<=`, `>` or `>=`. If one is an integer and the other a decimal literal
    with so many digits that no decimal type holds both, the literal is rounded up or down to an
    integer, which does not change the result."""
    if types.is_integral(b.type):
        return compared_as_integers(_TURNED[name], b, a)[::-1] if _is_decimal(a) else (a, b)
    if not types.is_integral(a.type) or not _is_decimal(b):
        return a, b
    assert isinstance(b, Literal)
    assert isinstance(b.value, Decimal)
    digits = types.as_decimal(a.type).precision + b.type.scale
    whole = int(b.value.to_integral_value(ROUNDED[name], context=EXACT))
    if digits <= types.MAX_PRECISION or not -(2**63) <= whole < 2**63:
        return a, b
    if -(2**31) <= whole < 2**31:  # printed, a BIGINT literal with so few digits would be an INT
        return a, Cast(Literal(whole, types.INT), types.BIGINT)
    return a, Literal(whole, types.BIGINT)


def _is_decimal(expression: Expression) -> bool:
    return isinstance(expression, Literal) and types.is_decimal(expression.type)
