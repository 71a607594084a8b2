"""Evaluation of an expression on one row, directly by the definition of each function.

The reference uses it. The vectorized versions in the engines are tested against it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa

from millstream.logical import functions
from millstream.logical.expressions import (
    AggregateCall,
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    OuterColumn,
    walk,
)
from millstream.logical.functions import EvaluationError, Signature
from millstream.logical.plan import Schema
from millstream.model.elements import Row
from millstream.model.fingerprint import fingerprint
from millstream.model.types import sql_name
from millstream.model.values import out_of_years, to_arrow, to_plain

Evaluator: TypeAlias = Callable[[Row], object]


@dataclass(frozen=True)
class UserFunction:
    """A user-defined scalar function: takes Arrow columns and returns one Arrow column."""

    name: str
    function: Callable[..., pa.Array]
    returns: pa.DataType

    @property
    def digest(self) -> str:
        """It changes whenever the code, or anything that the code uses, may behave differently."""
        return fingerprint(_values(self))

    def call(self, arguments: tuple[pa.DataType, ...], values: tuple[object, ...]) -> object:
        columns = [to_arrow([value], type) for value, type in zip(values, arguments, strict=True)]
        try:
            result = self.function(*columns)
        except Exception as error:  # whatever the user's code raises is the row's error
            raise EvaluationError(f'function "{self.name}" failed: {error}') from error
        plain = _returned(result, self.returns, f'function "{self.name}"')
        if len(plain) != 1:
            raise EvaluationError(f'function "{self.name}" returned {len(plain)} values for 1 row')
        return plain[0]


@dataclass(frozen=True)
class UserAggregate:
    """K §11.5.7: `init(value…)` creates a partial aggregate, `merge` combines two, `eval` returns
    the value. The optional `remove(aggregate, aggregate)` undoes a merge. `dump` converts a partial
    aggregate to plain values for a checkpoint, and `load` converts them back. `accumulator(call)`
    creates a `physical.accumulators.Accumulator` that computes the same values over arrays."""

    name: str
    init: Callable[..., object]
    merge: Callable[[object, object], object]
    eval: Callable[[object], object]
    returns: pa.DataType
    remove: Callable[[object, object], object] | None = None
    dump: Callable[[object], object] | None = None
    load: Callable[[object], object] | None = None
    accumulator: Callable[[AggregateCall], Any] | None = None

    @property
    def digest(self) -> str:
        """It changes whenever the code, or anything that the code uses, may behave differently."""
        return fingerprint(_values(self))

    def evaluate(self, rows: list[Row]) -> object:
        """The value over the rows of a group; NULL over none. Rows with a NULL are skipped."""
        try:
            partial_aggregate: object = None
            present = [row for row in rows if None not in row]
            for index, row in enumerate(present):
                one = self.init(*row)
                partial_aggregate = one if index == 0 else self.merge(partial_aggregate, one)
            value = self.eval(partial_aggregate) if present else None
        except Exception as error:  # whatever the user's code raises is the group's error
            raise EvaluationError(f'aggregate "{self.name}" failed: {error}') from error
        return _returned([value], self.returns, f'aggregate "{self.name}"')[0]


def _values(user: UserFunction | UserAggregate) -> dict[str, object]:
    """What the user gave; other parts do not count, so that there may be new ones."""
    given = {field.name: getattr(user, field.name) for field in fields(user)}
    return {name: value for name, value in given.items() if value is not None}


def _returned(result: Any, returns: pa.DataType, what: str) -> list[Any]:
    """The result of the user's code, converted to its declared type."""
    try:
        array = result if isinstance(result, pa.Array | pa.ChunkedArray) else pa.array(result)
        array = array.cast(returns)
        if out_of_years(pa.concat_arrays([pa.nulls(0, returns), *_chunks(array)])):
            raise ValueError("not within the years 1 to 9999")
        return to_plain(array, returns)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        given = result[0] if isinstance(result, list) and len(result) == 1 else result
        raise EvaluationError(
            f"{what} returned {given!r}, which is not {sql_name(returns)}"
        ) from None


def _chunks(array: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return array.chunks if isinstance(array, pa.ChunkedArray) else [array]


def is_deterministic(expression: Expression) -> bool:
    """Whether the value depends only on the row. This is assumed of user-defined functions."""
    for part in walk(expression):
        function = functions.lookup(part.function) if isinstance(part, Call) else None
        if function is not None and not function.deterministic:
            return False
    return True


Functions: TypeAlias = Mapping[str, UserFunction]


def evaluator(expression: Expression, schema: Schema, user: Functions) -> Evaluator:
    """A function from a row of `schema` to the value of `expression`."""
    match expression:
        case Literal(value=value):
            return lambda row: value
        case Column(key=key):
            index = [field.key for field in schema].index(key)
            return lambda row: row[index]
        case Cast(operand=operand, type=target, attempt=attempt):
            inner = evaluator(operand, schema, user)
            return partial(_cast, inner, operand.type, target, attempt)
        case Call(function=name, arguments=arguments, type=result):
            inner_all = tuple(evaluator(argument, schema, user) for argument in arguments)
            signature = Signature(tuple(a.type for a in arguments), result)
            if name in user:
                return partial(_call_user, user[name], signature, inner_all)
            function = functions.lookup(name)
            assert function is not None, f"the binder knows {name}"
            return partial(_call, function, signature, inner_all)
        case AggregateCall() | OuterColumn():
            raise AssertionError(f"{expression} has no value on a row")


def _cast(
    inner: Evaluator, source: pa.DataType, target: pa.DataType, attempt: bool, row: Row
) -> object:
    convert = functions.try_cast if attempt else functions.cast
    return convert(inner(row), source, target)


def _call(
    function: functions.Function, signature: Signature, inner: tuple[Evaluator, ...], row: Row
) -> object:
    if function.lazy:
        return function.evaluate(signature, *(partial(evaluate, row) for evaluate in inner))
    values = _evaluated(inner, function.evaluation_order(signature), row)
    if function.strict and None in values:
        return None
    return function.evaluate(signature, *values)


def _evaluated(inner: tuple[Evaluator, ...], order: Sequence[int], row: Row) -> list[object]:
    """The arguments in order, up to the first NULL; without an order, all."""
    if not order:
        return [evaluate(row) for evaluate in inner]
    values: list[object] = [None] * len(inner)
    for place in order:
        values[place] = inner[place](row)
        if values[place] is None:
            break
    return values


def _call_user(
    function: UserFunction, signature: Signature, inner: tuple[Evaluator, ...], row: Row
) -> object:
    return function.call(signature.arguments, tuple(evaluate(row) for evaluate in inner))
