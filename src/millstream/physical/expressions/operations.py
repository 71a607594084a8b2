"""What formulas do, as LLVM's instructions: each takes vectors with a lane a row, and gives one.

Truth values are single bits. NaN stands above all numbers and equals itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from llvmlite import ir

Operation: TypeAlias = Callable[..., ir.Value]  # of a builder and its operands

_SMALL = 1 << 50  # quotients of such numbers, as doubles compute them, are wrong by less than 1

add, add_floating = ir.IRBuilder.add, ir.IRBuilder.fadd
subtract, subtract_floating = ir.IRBuilder.sub, ir.IRBuilder.fsub
multiply, multiply_floating = ir.IRBuilder.mul, ir.IRBuilder.fmul
divide_floating, negate_floating = ir.IRBuilder.fdiv, ir.IRBuilder.fneg
both, either, negation = ir.IRBuilder.and_, ir.IRBuilder.or_, ir.IRBuilder.not_


def lanes(type: ir.Type, like: ir.Value) -> ir.VectorType:
    """As many lanes as another vector has."""
    return ir.VectorType(type, like.type.count)


def constant(type: ir.VectorType, value: Any) -> ir.Constant:
    """The same value in all lanes."""
    return ir.Constant(type, [value] * type.count)


def bits(builder: ir.IRBuilder, truths: ir.Value) -> ir.Value:
    """Truth values as one integer, the first of them its lowest bit."""
    packed = builder.bitcast(truths, ir.IntType(truths.type.count))
    return builder.zext(packed, ir.IntType(64))


def negate(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    return builder.sub(constant(x.type, 0), x)


def absolute(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    below = builder.icmp_signed("<", x, constant(x.type, 0))
    return builder.select(below, negate(builder, x), x)


def absolute_floating(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """Without its sign, which is its first bit."""
    width = 32 if isinstance(x.type.element, ir.FloatType) else 64
    words = lanes(ir.IntType(width), x)
    kept = builder.and_(builder.bitcast(x, words), constant(words, (1 << (width - 1)) - 1))
    return builder.bitcast(kept, x.type)


def widen(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    return builder.sext(x, lanes(ir.IntType(64), x))


def widen_floating(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    return builder.fpext(x, lanes(ir.DoubleType(), x))


def to_double(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    return builder.sitofp(x, lanes(ir.DoubleType(), x))


def equal(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    return builder.icmp_signed("==", x, y)


def less(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    return builder.icmp_signed("<", x, y)


def less_equal(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    return builder.icmp_signed("<=", x, y)


def less_truth(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    return builder.icmp_unsigned("<", x, y)


def less_equal_truth(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    return builder.icmp_unsigned("<=", x, y)


def equal_floating(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    neither = builder.and_(_is_nan(builder, x), _is_nan(builder, y))
    return builder.or_(builder.fcmp_ordered("==", x, y), neither)


def less_floating(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    number = builder.fcmp_ordered("ord", x, x)
    return builder.and_(builder.fcmp_unordered("<", x, y), number)


def less_equal_floating(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    return builder.or_(builder.fcmp_ordered("<=", x, y), _is_nan(builder, y))


def _is_nan(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    return builder.fcmp_unordered("uno", x, x)


def outside(builder: ir.IRBuilder, x: ir.Value, limit: ir.Value) -> ir.Value:
    """Where an integer is further from 0 than the limit."""
    below = builder.icmp_signed("<", x, negate(builder, limit))
    return builder.or_(below, builder.icmp_signed(">", x, limit))


def remainder(
    builder: ir.IRBuilder, x: ir.Value, divisor: ir.Value, size: ir.Value, inverse: ir.Value
) -> ir.Value:
    """By a positive constant, with the sign of the dividend. The divisor comes as an integer and as
    a double, and with its inverse."""
    if x.type.element.width == 32:
        return _small_remainder(builder, x, size, inverse)
    large = bits(builder, outside(builder, x, constant(x.type, _SMALL - 1)))
    any_large = builder.icmp_unsigned("!=", large, ir.Constant(large.type, 0))
    with builder.if_else(any_large, likely=False) as (then, otherwise):
        with then:
            divided, from_large = builder.srem(x, divisor), builder.block
        with otherwise:
            multiplied = _small_remainder(builder, x, size, inverse)
            from_small = builder.block
    result = builder.phi(x.type)
    result.add_incoming(divided, from_large)
    result.add_incoming(multiplied, from_small)
    return result


def _small_remainder(
    builder: ir.IRBuilder, x: ir.Value, size: ir.Value, inverse: ir.Value
) -> ir.Value:
    """Small numbers are multiplied by the divisor's inverse, which is several times faster than to
    divide them. The quotient may then be too near to 0 by 1, but not too far from it."""
    value = to_double(builder, x)
    none = constant(value.type, 0.0)
    whole = to_double(builder, builder.fptosi(builder.fmul(value, inverse), x.type))
    rest = builder.fsub(value, builder.fmul(whole, size))
    above = builder.fcmp_ordered(">=", rest, size)
    below = builder.fcmp_ordered("<=", rest, builder.fneg(size))
    rest = builder.fsub(rest, builder.select(above, size, none))
    rest = builder.fadd(rest, builder.select(below, size, none))
    return builder.fptosi(rest, x.type)
