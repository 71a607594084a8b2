"""Comparisons, IN, GREATEST and LEAST, NULLIF and the tests for NULL and NaN.

Arrow compares doubles as in IEEE 754; in SQL NaN equals itself and is greater than all numbers.
With `nan` for "is NaN", and `>=` as in IEEE 754,

    a >= b  is  nan(a) OR a >= b        a < b  is its negation
    a =  b  is  a = b OR (nan(a) AND nan(b))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from millstream.logical.functions import EvaluationError, Signature, cast
from millstream.logical.functions.function import common_of
from millstream.model.types import BOOLEAN, is_atomic, is_floating
from millstream.model.values import is_nan
from millstream.physical.expressions.casts import cast_kernel
from millstream.physical.expressions.nodes import Constant, Kernel, Node
from millstream.physical.expressions.vector import (
    Vector,
    either,
    null_scalar,
    null_where,
    present,
)

Comparison: TypeAlias = Callable[[pa.Array, pa.Array], pa.Array]

_ARROW = {
    "=": "equal",
    "<>": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}


def _called(name: str) -> Comparison:
    call = pc.get_function(name).call
    return lambda a, b: call([a, b])


_PLAIN: dict[str, Comparison] = {name: _called(arrow) for name, arrow in _ARROW.items()}


def _not_below(a: pa.Array, b: pa.Array) -> pa.Array:
    return pc.or_(pc.is_nan(a), pc.greater_equal(a, b))


def _equal(a: pa.Array, b: pa.Array) -> pa.Array:
    return pc.or_(pc.equal(a, b), pc.and_(pc.is_nan(a), pc.is_nan(b)))


_FLOATING: dict[str, Comparison] = {
    "=": _equal,
    "<>": lambda a, b: pc.invert(_equal(a, b)),
    ">=": _not_below,
    "<": lambda a, b: pc.invert(_not_below(a, b)),
    "<=": lambda a, b: _not_below(b, a),
    ">": lambda a, b: pc.invert(_not_below(b, a)),
}

# With a number (not NaN) on one side, IEEE 754 is wrong only where NaN must be the larger.
_WITH_NUMBER_RIGHT: dict[str, Comparison] = {
    **_PLAIN,
    ">": lambda a, b: pc.invert(pc.less_equal(a, b)),
    ">=": lambda a, b: pc.invert(pc.less(a, b)),
}
_WITH_NUMBER_LEFT: dict[str, Comparison] = {
    **_PLAIN,
    "<": lambda a, b: pc.invert(pc.greater_equal(a, b)),
    "<=": lambda a, b: pc.invert(pc.greater(a, b)),
}


def comparison(name: str, type: pa.DataType, arguments: Sequence[Node]) -> Comparison | None:
    """The comparison of two values of one type; NULL if one is NULL."""
    if not is_atomic(type):
        return None
    if not is_floating(type):
        return _PLAIN[name]
    left, right = (isinstance(n, Constant) and not is_nan(n.plain) for n in arguments)
    table = _WITH_NUMBER_RIGHT if right else _WITH_NUMBER_LEFT if left else _FLOATING
    return table[name]


def _comparing(name: str) -> Callable[[Signature, Sequence[Node]], Kernel | None]:
    def build(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
        compare = comparison(name, signature.arguments[0], arguments)
        return None if compare is None else lambda a, b: Vector(compare(a, b))

    return build


def _same(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
    """<=>: two NULLs are the same."""
    equal = comparison("=", signature.arguments[0], arguments)
    if equal is None:
        return None

    def kernel(a: pa.Array, b: pa.Array) -> Vector:
        neither = pc.and_(pc.is_null(a), pc.is_null(b))
        return Vector(pc.or_(pc.fill_null(equal(a, b), False), neither))

    return kernel


def _is_null(signature: Signature, arguments: Sequence[Node]) -> Kernel:
    call = pc.get_function("is_null").call
    return lambda values: Vector(call([values]))


def _is_nan(signature: Signature, arguments: Sequence[Node]) -> Kernel:
    return lambda values: Vector(pc.fill_null(pc.is_nan(values), False))


def _not(signature: Signature, arguments: Sequence[Node]) -> Kernel:
    call = pc.get_function("invert").call
    return lambda values: Vector(call([values]))


def _in(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
    """TRUE if an item is equal; else NULL if the value or an item is NULL."""
    value, *items = arguments
    constants = [item for item in items if isinstance(item, Constant)]
    if len(constants) == len(items) > 2 and is_atomic(value.type):
        return _in_set(value.type, constants)
    equals = [comparison("=", value.type, (value, item)) for item in items]
    if None in equals:
        return None

    def kernel(value: pa.Array, *items: pa.Array) -> Vector:
        result = None
        for equal, item in zip(equals, items, strict=True):
            assert equal is not None
            found = equal(value, item)
            result = found if result is None else pc.or_kleene(result, found)
        return Vector(result)

    return kernel


def _in_set(type: pa.DataType, items: Sequence[Constant]) -> Kernel:
    known = [item.scalar for item in items if item.plain is not None]
    value_set = pa.concat_arrays([pa.repeat(scalar, 1) for scalar in known] or [pa.nulls(0, type)])
    if is_floating(type):
        value_set = _positive_zero(value_set)
    with_null = len(known) < len(items)

    def kernel(value: pa.Array, *_: pa.Scalar) -> Vector:
        if is_floating(type):
            value = _positive_zero(value)
        found = pc.is_in(value, value_set=value_set)
        if with_null:
            return Vector(pc.if_else(found, True, null_scalar(found.type)))
        valid = present(value)
        return Vector(found if valid is None else null_where(found, ~valid))

    return kernel


def _positive_zero(values: pa.Array) -> pa.Array:
    """-0.0 becomes 0.0: they are equal but hash differently."""
    return pc.add(values, pa.scalar(0, values.type))


def _extreme(name: str, arrow: str) -> Callable[[Signature, Sequence[Node]], Kernel | None]:
    """GREATEST or LEAST: the first of the extreme values; NULLs are ignored.

    Arrow ignores NaN too, and has no extremes of BOOLEAN.
    """
    call = pc.get_function(arrow).call

    def build(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
        type = signature.result
        if not is_atomic(type):
            return None
        if not is_floating(type) and type != BOOLEAN:
            return lambda *values: Vector(call(list(values)))
        beyond = (_FLOATING if is_floating(type) else _PLAIN)[name]

        def kernel(*values: pa.Array) -> Vector:
            result = values[0]
            for value in values[1:]:
                better = pc.or_kleene(pc.is_null(result), beyond(value, result))
                result = pc.if_else(pc.fill_null(better, False), value, result)
            return Vector(result)

        return kernel

    return build


def _nullif(signature: Signature, arguments: Sequence[Node]) -> Kernel | None:
    """Compared in their common type; the second is not cast where the first is NULL."""
    null = [isinstance(node, Constant) and node.plain is None for node in arguments]
    common = common_of("nullif", signature.arguments)
    if null[0]:
        return lambda a, b: Vector(pa.nulls(len(b), signature.result))
    if null[1]:
        return (lambda a, b: Vector(a)) if common == signature.arguments[0] else None
    casts = [_comparable(node, common) for node in arguments]
    if not is_atomic(common) or None in casts:
        return None
    equal = (_FLOATING if is_floating(common) else _PLAIN)["="]

    def kernel(a: pa.Array, b: pa.Array) -> Vector:
        left, right = (convert(v) for convert, v in zip(casts, (a, b), strict=True) if convert)
        failed = either(left.failed, right.failed)
        if failed is not None:
            valid = present(a)
            failed = failed if valid is None else failed & valid
        same = pc.fill_null(equal(left.values, right.values), False)
        values = pc.if_else(same, null_scalar(signature.result), a)
        return Vector(null_where(values, failed), failed)

    return kernel


def _comparable(node: Node, type: pa.DataType) -> Kernel | None:
    """The cast of an argument to the type of the comparison."""
    if not isinstance(node, Constant):
        return cast_kernel(node.type, type)
    try:
        constant = Vector(Constant(cast(node.plain, node.type, type), type).scalar)
    except EvaluationError:
        return None
    return lambda _: constant


KERNELS: dict[str, Callable[[Signature, Sequence[Node]], Kernel | None]] = {
    **{name: _comparing(name) for name in _ARROW},
    "<=>": _same,
    "is null": _is_null,
    "isnan": _is_nan,
    "not": _not,
    "in": _in,
    "greatest": _extreme(">", "max_element_wise"),
    "least": _extreme("<", "min_element_wise"),
    "nullif": _nullif,
}
