"""The operations of formulas as LLVM instructions, over the values of several rows.

Booleans are single bits. NaN is greater than all numbers and equals itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from llvmlite import ir

_SMALL = 1 << 50  # smaller integers have an exact remainder in doubles
_MIDDLE = float(3 << 51)  # of the doubles that are 1 apart: all from 2**52 to 2**53
_MIDDLE_BITS = 0x4338000000000000


@dataclass(frozen=True)
class Lanes:
    """The values of several rows, one per lane, and which lanes are valid; None: all. The lane of a
    NULL is undefined."""

    values: ir.Value
    valid: ir.Value | None = None


Operation: TypeAlias = Callable[..., Lanes]  # takes a builder and operands


def strict(compute: Callable[..., ir.Value]) -> Operation:
    """An operation on values only: NULL where an operand is NULL."""

    def operation(builder: ir.IRBuilder, *operands: Lanes) -> Lanes:
        values = compute(builder, *(operand.values for operand in operands))
        return Lanes(values, _all_valid(builder, *operands))

    return operation


def _all_valid(builder: ir.IRBuilder, *operands: Lanes) -> ir.Value | None:
    valid = None
    for operand in operands:
        if operand.valid is not None:
            valid = operand.valid if valid is None else builder.and_(valid, operand.valid)
    return valid


def holding(builder: ir.IRBuilder, x: Lanes) -> ir.Value:
    """Where a condition is TRUE: neither FALSE nor NULL."""
    return x.values if x.valid is None else builder.and_(x.values, x.valid)


def bits(builder: ir.IRBuilder, truths: ir.Value) -> ir.Value:
    """Booleans as one integer, the first in the lowest bit."""
    packed = builder.bitcast(truths, ir.IntType(truths.type.count))
    return builder.zext(packed, ir.IntType(64))


def beyond(builder: ir.IRBuilder, x: Lanes, limit: Lanes) -> ir.Value:
    """Where the magnitude of an integer exceeds the limit."""
    outside = _outside(builder, x.values, limit.values)
    return outside if x.valid is None else builder.and_(outside, x.valid)


def _outside(builder: ir.IRBuilder, x: ir.Value, limit: ir.Value) -> ir.Value:
    below = builder.icmp_signed("<", x, _negative(builder, limit))
    return builder.or_(below, builder.icmp_signed(">", x, limit))


def _like(x: ir.Value, type: ir.Type) -> ir.VectorType:
    """A vector type with as many lanes as `x`."""
    return ir.VectorType(type, x.type.count)


def _constant(type: ir.VectorType, value: Any) -> ir.Constant:
    """The same value in all lanes."""
    return ir.Constant(type, [value] * type.count)


# --- arithmetic -------------------------------------------------------------------------------


def _negative(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    return builder.sub(_constant(x.type, 0), x)


add, add_floating = strict(ir.IRBuilder.add), strict(ir.IRBuilder.fadd)
subtract, subtract_floating = strict(ir.IRBuilder.sub), strict(ir.IRBuilder.fsub)
multiply, multiply_floating = strict(ir.IRBuilder.mul), strict(ir.IRBuilder.fmul)
negate, negate_floating = strict(_negative), strict(ir.IRBuilder.fneg)
divide_floating = strict(ir.IRBuilder.fdiv)


@strict
def absolute(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    below = builder.icmp_signed("<", x, _constant(x.type, 0))
    return builder.select(below, _negative(builder, x), x)


@strict
def absolute_floating(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """Clears the sign bit."""
    width = 32 if isinstance(x.type.element, ir.FloatType) else 64
    words = _like(x, ir.IntType(width))
    kept = builder.and_(builder.bitcast(x, words), _constant(words, (1 << (width - 1)) - 1))
    return builder.bitcast(kept, x.type)


@strict
def widen(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    return builder.sext(x, _like(x, ir.IntType(64)))


@strict
def widen_floating(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    return builder.fpext(x, _like(x, ir.DoubleType()))


def _double(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    return builder.sitofp(x, _like(x, ir.DoubleType()))


to_double = strict(_double)


@strict
def remainder(
    builder: ir.IRBuilder, x: ir.Value, divisor: ir.Value, size: ir.Value, inverse: ir.Value
) -> ir.Value:
    """By a positive constant, with the sign of the dividend. The divisor is given as an integer, as
    a double, and as its inverse rounded up."""
    if x.type.element.width == 32:
        return _small_remainder(builder, x, size, inverse)
    large = bits(builder, _outside(builder, x, _constant(x.type, _SMALL - 1)))
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
    """Multiplies small numbers by the divisor's inverse, which is several times faster than
    division. Quotients of multiples are not too small, since the inverse is rounded up; and the
    quotients just below a multiple, short by 1 / divisor, are too large by less than that."""
    wide = x.type.element.width == 64
    value = _small_double(builder, x) if wide else _double(builder, x)
    whole = _truncated(builder, builder.fmul(value, inverse))
    rest = builder.fsub(value, builder.fmul(whole, size))
    return _small_integer(builder, rest, x.type) if wide else builder.fptosi(rest, x.type)


def _small_double(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """Converts small integers to doubles. Few processors convert vectors of them; but doubles
    between 2**52 and 2**53 are 1 apart, as are their bits as integers."""
    type = _like(x, ir.DoubleType())
    bits = builder.add(x, _constant(x.type, _MIDDLE_BITS))
    return builder.fsub(builder.bitcast(bits, type), _constant(type, _MIDDLE))


def _small_integer(builder: ir.IRBuilder, x: ir.Value, type: ir.Type) -> ir.Value:
    bits = builder.bitcast(builder.fadd(x, _constant(x.type, _MIDDLE)), type)
    return builder.sub(bits, _constant(type, _MIDDLE_BITS))


def _truncated(builder: ir.IRBuilder, doubles: ir.Value) -> ir.Value:
    name, module = f"llvm.trunc.v{doubles.type.count}f64", builder.module
    truncate = module.globals.get(name)
    if truncate is None:
        truncate = ir.Function(module, ir.FunctionType(doubles.type, [doubles.type]), name)
    return builder.call(truncate, [doubles])


# --- comparisons ------------------------------------------------------------------------------


def _compared(compare: Callable[..., ir.Value], how: str) -> Operation:
    return strict(lambda builder, x, y: compare(builder, how, x, y))


equal, less, less_equal = (_compared(ir.IRBuilder.icmp_signed, how) for how in ("==", "<", "<="))
less_truth, less_equal_truth = (_compared(ir.IRBuilder.icmp_unsigned, how) for how in ("<", "<="))


@strict
def equal_floating(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    neither = builder.and_(_is_nan(builder, x), _is_nan(builder, y))
    return builder.or_(builder.fcmp_ordered("==", x, y), neither)


@strict
def less_floating(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    number = builder.fcmp_ordered("ord", x, x)
    return builder.and_(builder.fcmp_unordered("<", x, y), number)


@strict
def less_equal_floating(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    return builder.or_(builder.fcmp_ordered("<=", x, y), _is_nan(builder, y))


def _is_nan(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    return builder.fcmp_unordered("uno", x, x)


# --- logic, and operations that accept NULL ---------------------------------------------------

negation = strict(ir.IRBuilder.not_)


def either(builder: ir.IRBuilder, x: Lanes, y: Lanes) -> Lanes:
    """OR: one TRUE decides."""
    holds = builder.or_(holding(builder, x), holding(builder, y))
    valid = _all_valid(builder, x, y)
    return Lanes(holds, None if valid is None else builder.or_(holds, valid))


def both(builder: ir.IRBuilder, x: Lanes, y: Lanes) -> Lanes:
    """AND: one FALSE decides."""
    if x.valid is None and y.valid is None:
        return Lanes(builder.and_(x.values, y.values))
    return negation(builder, either(builder, negation(builder, x), negation(builder, y)))


def is_null(builder: ir.IRBuilder, x: Lanes) -> Lanes:
    if x.valid is None:
        return Lanes(_constant(_like(x.values, ir.IntType(1)), 0))
    return Lanes(builder.not_(x.valid))


def first_valid(builder: ir.IRBuilder, x: Lanes, y: Lanes) -> Lanes:
    """COALESCE."""
    if x.valid is None:
        return x
    values = builder.select(x.valid, x.values, y.values)
    return Lanes(values, None if y.valid is None else builder.or_(x.valid, y.valid))


def choice(builder: ir.IRBuilder, condition: Lanes, x: Lanes, y: Lanes) -> Lanes:
    """CASE: the first value where the condition holds, else the second."""
    holds = holding(builder, condition)
    values = builder.select(holds, x.values, y.values)
    if x.valid is None and y.valid is None:
        return Lanes(values)
    everywhere = _constant(holds.type, 1)
    valid = [everywhere if lanes.valid is None else lanes.valid for lanes in (x, y)]
    return Lanes(values, builder.select(holds, *valid))
