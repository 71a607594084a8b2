"""A scalar function: a name, its types, and its meaning on plain values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from millstream.logical.functions.facts import NOTHING, FunctionFacts
from millstream.model.types import NULL, STRING, common_type, implicitly_castable, sql_name


class SignatureError(ValueError):
    """The number or the types of the arguments do not fit the function."""


class NoCommonTypeError(SignatureError):
    """Values that need a common type have none."""


class EvaluationError(ValueError):
    """A value for which the function is not defined: overflow, division by zero, a bad cast."""


@dataclass(frozen=True)
class Signature:
    """The types the arguments are cast to, and the type of the result."""

    arguments: tuple[pa.DataType, ...]
    result: pa.DataType


Types = tuple[pa.DataType, ...]
Resolve = Callable[[Types], Signature]
Order = Callable[[Signature], Sequence[int]]


def from_left(signature: Signature) -> Sequence[int]:
    return range(len(signature.arguments))


def from_right(signature: Signature) -> Sequence[int]:
    return range(len(signature.arguments) - 1, -1, -1)


def all_of_them(signature: Signature) -> Sequence[int]:
    """No order: all arguments are evaluated, whatever is NULL."""
    return ()


@dataclass(frozen=True)
class Function:
    """A scalar function.

    `evaluate(signature, *values)` returns the plain result for plain values that are already cast
    to `signature.arguments`. `narrowed(signature, *constants)` is the type of the result if it
    also depends on constants; an argument that is not constant is passed as `...`.

    `order` is the order in which the arguments are evaluated. Evaluation stops at the first NULL:
    the arguments after it count as NULL and cannot fail. Strict functions evaluate from left to
    right by default, others evaluate all arguments.
    """

    name: str
    signature: Resolve
    evaluate: Callable[..., Any]
    strict: bool = True  # a NULL argument makes the result NULL; evaluate never sees None
    lazy: bool = False  # evaluate gets zero-argument callables instead of values
    deterministic: bool = True
    narrowed: Callable[..., pa.DataType] | None = None
    order: Order | None = None
    facts: FunctionFacts = NOTHING

    def evaluation_order(self, signature: Signature) -> Sequence[int]:
        """The order of the arguments up to the first NULL; none if all are evaluated."""
        order = self.order or (from_left if self.strict else all_of_them)
        return order(signature)


def function(
    name: str,
    result: pa.DataType,
    parameters: Sequence[pa.DataType],
    meaning: Callable[..., Any],
    *,
    optional: int = 0,
    strict: bool = True,
    deterministic: bool = True,
    order: Order | None = None,
    facts: FunctionFacts = NOTHING,
) -> Function:
    """A function of fixed types whose result depends only on the values."""
    return Function(
        name,
        fixed(name, result, parameters, optional),
        lambda signature, *values: meaning(*values),
        strict=strict,
        deterministic=deterministic,
        order=order,
        facts=facts,
    )


def fixed(
    name: str, result: pa.DataType, parameters: Sequence[pa.DataType], optional: int = 0
) -> Resolve:
    """Takes exactly these parameters; the last `optional` ones may be omitted."""

    def resolve(types: Types) -> Signature:
        check_count(name, types, len(parameters) - optional, len(parameters))
        for number, (type, wanted) in enumerate(zip(types, parameters, strict=False), 1):
            check_argument(name, number, type, wanted)
        return Signature(tuple(parameters[: len(types)]), result)

    return resolve


def check_count(name: str, types: Types, least: int, most: int | None = None) -> None:
    """Raises unless there are at least `least` and at most `most` arguments."""
    if least <= len(types) and (most is None or len(types) <= most):
        return
    if most is None:
        wanted = f"at least {least}"
    else:
        wanted = str(least) if least == most else f"{least} to {most}"
    plural = "" if wanted.endswith(" 1") or wanted == "1" else "s"
    raise SignatureError(f'"{name}" takes {wanted} argument{plural}, not {len(types)}')


def check_argument(name: str, number: int, type: pa.DataType, wanted: pa.DataType) -> None:
    """Raises unless argument `number` can be passed where `wanted` is needed."""
    if not implicitly_castable(type, wanted):
        raise argument_error(name, number, type, sql_name(wanted))


def argument_error(name: str, number: int, type: pa.DataType, wanted: str) -> SignatureError:
    given = sql_name(type)
    return SignatureError(f"argument {number} of {shown(name)} must be {wanted}, not {given}")


def shown(name: str) -> str:
    """A function in a message: its name, or its keyword."""
    return "CASE" if name == "case" else f'"{name}"'


def operand_error(name: str, types: Types) -> SignatureError:
    """The operator is not defined for these operands."""
    listed = " and ".join(sql_name(type) for type in types)
    return SignatureError(f'"{name}" is not defined for {listed}')


def common_of(
    name: str, types: Sequence[pa.DataType], *, strings_give_way: bool = True
) -> pa.DataType:
    """The common type of all, or a SignatureError."""
    result = types[0]
    for type in types[1:]:
        wider = common_type(result, type)
        mixed = (result == STRING) != (type == STRING) and NULL not in (result, type)
        if wider is None or (mixed and not strings_give_way):
            raise NoCommonTypeError(
                f"{shown(name)} needs values of one type, not {sql_name(result)} and "
                f"{sql_name(type)}"
            )
        result = wider
    return result
