"""Comparisons, the three-valued connectives, and the functions that choose among values.

NaN is equal to itself and greater than all numbers. The connectives and CASE evaluate their
arguments from left to right and only as needed, so `FALSE AND error` is FALSE.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from millstream.logical.functions.casts import cast
from millstream.logical.functions.facts import (
    MAYBE_NULL,
    NEVER_NULL,
    PLAIN,
    Argument,
    FunctionFacts,
)
from millstream.logical.functions.function import (
    Function,
    Resolve,
    Signature,
    Types,
    check_argument,
    check_count,
    common_of,
    from_left,
    function,
)
from millstream.logical.functions.ranges import Range, hull
from millstream.model.types import BOOLEAN
from millstream.model.values import order_key

Thunk = Callable[[], Any]

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _comparison(name: str, compare: Callable[[Any, Any], bool]) -> Function:
    def evaluate(signature: Signature, a: Any, b: Any) -> bool:
        return compare(order_key(a), order_key(b))

    return Function(name, _same_types(name, 2, 2, BOOLEAN), evaluate, facts=PLAIN)


def _same_types(
    name: str, least: int, most: int | None, result: pa.DataType | None = None
) -> Resolve:
    """All arguments are cast to their common type; so is the result, unless its type is given."""

    def resolve(types: Types) -> Signature:
        check_count(name, types, least, most)
        common = common_of(name, types)
        return Signature((common,) * len(types), common if result is None else result)

    return resolve


def _extreme_signature(name: str) -> Resolve:
    """A string is not implicitly cast to a number here, unlike in comparisons."""

    def resolve(types: Types) -> Signature:
        check_count(name, types, 2)
        common = common_of(name, types, strings_give_way=False)
        return Signature((common,) * len(types), common)

    return resolve


def _same(signature: Signature, a: Any, b: Any) -> bool:
    return bool(order_key(a) == order_key(b))


def _is_null_signature(types: Types) -> Signature:
    check_count("is null", types, 1, 1)
    return Signature(types, BOOLEAN)


def _is_null(signature: Signature, value: Any) -> bool:
    return value is None


def _in(signature: Signature, value: Thunk, *items: Thunk) -> bool | None:
    """Items after an equal one are not evaluated; none are if the value is NULL."""
    wanted = value()
    if wanted is None:
        return None
    key, unknown = order_key(wanted), False
    for thunk in items:
        item = thunk()
        if item is not None and order_key(item) == key:
            return True
        unknown = unknown or item is None
    return None if unknown else False


def _connective(name: str, decisive: bool) -> Function:
    """AND, which one FALSE decides, or OR, which one TRUE decides."""

    def evaluate(signature: Signature, *thunks: Thunk) -> bool | None:
        unknown = False
        for thunk in thunks:
            value: bool | None = thunk()
            if value is decisive:
                return decisive
            unknown = unknown or value is None
        return None if unknown else not decisive

    def resolve(types: Types) -> Signature:
        check_count(name, types, 2)
        for number, type in enumerate(types, 1):
            check_argument(name, number, type, BOOLEAN)
        return Signature((BOOLEAN,) * len(types), BOOLEAN)

    return Function(name, resolve, evaluate, strict=False, lazy=True, facts=PLAIN)


# --- choosing ---------------------------------------------------------------------------------


def _case_signature(types: Types) -> Signature:
    """Conditions and values in turn, then the optional value of ELSE."""
    check_count("case", types, 2)
    pairs = len(types) // 2
    conditions = range(0, 2 * pairs, 2)
    for position in conditions:
        check_argument("case", position + 1, types[position], BOOLEAN)
    common = common_of("case", [t for i, t in enumerate(types) if i not in conditions])
    arguments = tuple(BOOLEAN if i in conditions else common for i in range(len(types)))
    return Signature(arguments, common)


def _case(signature: Signature, *thunks: Thunk) -> Any:
    for condition, value in zip(thunks[::2], thunks[1::2], strict=False):
        if condition():
            return value()
    return thunks[-1]() if len(thunks) % 2 else None


def _range_of_case(*ranges: Range | None) -> Range | None:
    values = ranges[1::2]
    return hull(*values, ranges[-1]) if len(ranges) % 2 else hull(*values)


def _if_signature(types: Types) -> Signature:
    check_count("if", types, 3, 3)
    check_argument("if", 1, types[0], BOOLEAN)
    common = common_of("if", types[1:])
    return Signature((BOOLEAN, common, common), common)


def _nvl2_signature(types: Types) -> Signature:
    check_count("nvl2", types, 3, 3)
    common = common_of("nvl2", types[1:])
    return Signature((types[0], common, common), common)


def _nvl2(signature: Signature, value: Thunk, present: Thunk, absent: Thunk) -> Any:
    return absent() if value() is None else present()


def _coalesce(signature: Signature, *thunks: Thunk) -> Any:
    values = (thunk() for thunk in thunks)
    return next((value for value in values if value is not None), None)


def _nullif_signature(types: Types) -> Signature:
    """Compared as their common type, but the result is the original first argument."""
    check_count("nullif", types, 2, 2)
    common_of("nullif", types)
    return Signature(types, types[0])


def _nullif(signature: Signature, a: Any, b: Any) -> Any:
    if a is None:
        return None
    common = common_of("nullif", signature.arguments)
    left, right = (cast(v, t, common) for v, t in zip((a, b), signature.arguments, strict=True))
    return None if right is not None and order_key(left) == order_key(right) else a


def _have_one_type(result: pa.DataType, a: Argument, b: Argument) -> bool:
    """So that none is cast, which could fail."""
    return bool(a.type == b.type)


def _extreme(choose: Callable[..., Any]) -> Callable[..., Any]:
    """NULLs are ignored."""

    def evaluate(signature: Signature, *values: Any) -> Any:
        return choose((v for v in values if v is not None), key=order_key, default=None)

    return evaluate


_CASE = FunctionFacts(total=True, range=_range_of_case, steady=True)
_ONE_OF_ALL = FunctionFacts(total=True, null_if=all, range=hull, steady=True)


def _lazy(
    name: str, signature: Resolve, evaluate: Callable[..., Any], facts: FunctionFacts
) -> Function:
    return Function(name, signature, evaluate, strict=False, lazy=True, facts=facts)


def _eager(
    name: str, signature: Resolve, evaluate: Callable[..., Any], facts: FunctionFacts
) -> Function:
    return Function(name, signature, evaluate, strict=False, facts=facts)


FUNCTIONS = [
    *(_comparison(name, compare) for name, compare in _COMPARISONS.items()),
    _eager("<=>", _same_types("<=>", 2, 2, BOOLEAN), _same, NEVER_NULL),
    _eager("is null", _is_null_signature, _is_null, NEVER_NULL),
    _lazy("in", _same_types("in", 2, None, BOOLEAN), _in, PLAIN),
    _connective("and", decisive=False),
    _connective("or", decisive=True),
    function("not", BOOLEAN, [BOOLEAN], operator.not_, facts=PLAIN),
    _lazy("case", _case_signature, _case, _CASE),
    _lazy("if", _if_signature, _case, _CASE),
    _lazy("nvl2", _nvl2_signature, _nvl2, MAYBE_NULL),
    _lazy("coalesce", _same_types("coalesce", 1, None), _coalesce, _ONE_OF_ALL),
    Function(
        *("nullif", _nullif_signature, _nullif),
        strict=False,
        order=from_left,
        facts=FunctionFacts(total=_have_one_type, steady=True),
    ),
    _eager("greatest", _extreme_signature("greatest"), _extreme(max), _ONE_OF_ALL),
    _eager("least", _extreme_signature("least"), _extreme(min), _ONE_OF_ALL),
]
