"""Functions of arrays and structs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from millstream.logical.functions.facts import LENGTH, MAYBE_NULL, NEVER_NULL, PLAIN, FunctionFacts
from millstream.logical.functions.function import (
    EvaluationError,
    Function,
    Signature,
    SignatureError,
    Types,
    argument_error,
    check_argument,
    check_count,
    common_of,
    operand_error,
)
from millstream.model import types
from millstream.model.types import BOOLEAN, INT, NULL, STRING, is_array, is_struct
from millstream.model.values import order_key


def _array_signature(given: Types) -> Signature:
    element = common_of("array", given) if given else NULL
    return Signature((element,) * len(given), pa.list_(element))


def _array(signature: Signature, *elements: Any) -> tuple[Any, ...]:
    return elements


def _check_array(name: str, type: pa.DataType) -> None:
    if not is_array(type):
        raise argument_error(name, 1, type, "an array")


def _size_signature(given: Types) -> Signature:
    check_count("size", given, 1, 1)
    type = pa.list_(NULL) if given[0] == NULL else given[0]
    _check_array("size", type)
    return Signature((type,), INT)


def _size(signature: Signature, array: tuple[Any, ...]) -> int:
    return len(array)


def _access_signature(name: str, given: Types) -> Signature:
    check_count(name, given, 2, 2)
    _check_array(name, given[0])
    if not types.is_integral(given[1]) and given[1] != NULL:
        raise argument_error(name, 2, given[1], "an integer")
    return Signature((given[0], INT), given[0].value_type)


def _element(signature: Signature, array: tuple[Any, ...], index: int) -> Any:
    """Counted from 0."""
    if 0 <= index < len(array):
        return array[index]
    raise EvaluationError(f"index {index} is outside an array of {len(array)} elements")


def _element_at(signature: Signature, array: tuple[Any, ...], position: int) -> Any:
    """Counted from 1, or from the end by a negative position."""
    if 1 <= abs(position) <= len(array):
        return array[position - 1 if position > 0 else position]
    raise EvaluationError(f"position {position} is outside an array of {len(array)} elements")


def _try_element_at(signature: Signature, array: tuple[Any, ...], position: int) -> Any:
    """Like `element_at`, but NULL outside the array; position 0 is always outside."""
    outside = abs(position) > len(array)
    return None if outside else _element_at(signature, array, position)


def _array_contains_signature(given: Types) -> Signature:
    check_count("array_contains", given, 2, 2)
    _check_array("array_contains", given[0])
    element = common_of("array_contains", [given[0].value_type, given[1]], strings_give_way=False)
    return Signature((pa.list_(element), element), BOOLEAN)


def _array_contains(signature: Signature, array: tuple[Any, ...], value: Any) -> bool | None:
    key = order_key(value)
    if any(element is not None and order_key(element) == key for element in array):
        return True
    return None if None in array else False


def _reverse_signature(given: Types) -> Signature:
    check_count("reverse", given, 1, 1)
    if is_array(given[0]):
        return Signature(given, given[0])
    check_argument("reverse", 1, given[0], STRING)
    return Signature((STRING,), STRING)


def _reverse(signature: Signature, value: Any) -> Any:
    return value[::-1]


def field_access(field: str) -> Function:
    """The function `.field` of one struct."""
    name = f".{field}"

    def position(type: pa.DataType) -> int:
        matches = [i for i, f in enumerate(type) if f.name.lower() == field.lower()]
        if len(matches) != 1:
            fault = "has no field" if not matches else "has more than one field"
            raise SignatureError(f'{types.sql_name(type)} {fault} "{field}"')
        return matches[0]

    def resolve(given: Types) -> Signature:
        check_count(name, given, 1, 1)
        if not is_struct(given[0]):
            raise operand_error(name, given)
        return Signature(given, given[0][position(given[0])].type)

    def evaluate(signature: Signature, value: tuple[Any, ...]) -> Any:
        return value[position(signature.arguments[0])]

    return Function(name, resolve, evaluate, facts=MAYBE_NULL)


def _access(name: str, evaluate: Callable[..., Any]) -> Function:
    facts = FunctionFacts(steady=True)
    return Function(name, lambda given: _access_signature(name, given), evaluate, facts=facts)


FUNCTIONS = [
    Function("array", _array_signature, _array, strict=False, facts=NEVER_NULL),
    Function("size", _size_signature, _size, facts=LENGTH),
    _access("element", _element),
    _access("element_at", _element_at),
    _access("try_element_at", _try_element_at),
    Function("array_contains", _array_contains_signature, _array_contains, facts=MAYBE_NULL),
    Function("reverse", _reverse_signature, _reverse, facts=PLAIN),
]
