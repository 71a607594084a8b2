"""Expressions as Spark SQL: Spark and the local engine give the same values, bit by bit."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from native_cases import NATIVE, OTHERS, ROWS, SCHEMA, VALUES, hard_table
from pyspark.sql import DataFrame

import millstream as ms
from millstream.logical.expressions import Call, Cast, Expression, Literal, walk
from millstream.logical.functions import SignatureError, lookup
from millstream.logical.plan import Map
from millstream.model.types import can_cast, decimal_type
from millstream.model.values import to_plain, to_type
from millstream.physical.expressions import compile_expression
from millstream.spark.native import spark_sql
from millstream.spark.native_calls import CALLS
from millstream.spark.schemas import typed
from millstream.spark.starting import for_batches, local_spark

pytestmark = pytest.mark.xdist_group("spark")

NAMES = {field.key: field.name for field in SCHEMA}
TABLE = hard_table()
COLUMNS = [column.combine_chunks() for column in TABLE.drop(["ts"])]
AT_ONCE = 200  # expressions in one SELECT: each costs compilation


@cache
def frame() -> DataFrame:
    return typed(for_batches(local_spark()).createDataFrame(TABLE))


@cache
def session() -> ms.Session:
    session = ms.Session(engine="local")
    session.stream("S", TABLE, time="ts")
    session.function("twice", lambda column: pc.multiply(column, 2), returns="INT")
    return session


def bound(texts: Sequence[str]) -> list[Expression]:
    columns = ", ".join(f"{text} AS x{number}" for number, text in enumerate(texts))
    plan = session().sql(f"SELECT {columns} FROM S").plan
    assert isinstance(plan, Map)
    return [output.expression for output in plan.outputs]


def assert_agree(expressions: Sequence[Expression]) -> None:
    """Each has a text for Spark, which gives there what the local engine gives here."""
    texts = [spark_sql(expression, NAMES) for expression in expressions]
    assert None not in texts, expressions[texts.index(None)]
    for first in range(0, len(texts), AT_ONCE):
        part = slice(first, first + AT_ONCE)
        table = frame().selectExpr(*(f"{t} AS x{n}" for n, t in enumerate(texts[part]))).toArrow()
        for text, expression, column in zip(texts[part], expressions[part], table, strict=True):
            got = to_type(column.combine_chunks(), expression.type)
            assert_same(str(text), got, here(expression))


def here(expression: Expression) -> pa.Array:
    vector = compile_expression(expression, SCHEMA, {}).evaluate(COLUMNS, ROWS)
    assert vector.failed is None, f"{expression} can fail"
    return vector.values


def assert_same(text: str, got: pa.Array, expected: pa.Array) -> None:
    if bits(got).equals(bits(expected)):
        return
    pairs = enumerate(zip(told(got), told(expected), strict=True))
    different = [(row, pair) for row, pair in pairs if pair[0] != pair[1]]
    raise AssertionError(f"{text}: row, (Spark, here) are {different[:3]}")


def bits(array: pa.Array) -> pa.Array:
    """Values that are equal if they are the same, also -0.0 and NaN."""
    if pa.types.is_floating(array.type):
        one = pc.if_else(pc.is_nan(array), pa.scalar(float("nan"), array.type), array)
        return one.view(pa.int64() if array.type == pa.float64() else pa.int32())
    return pa.array(told(array)) if pa.types.is_nested(array.type) else array


def told(array: pa.Array) -> list[str]:
    return [repr(value) for value in to_plain(array, array.type)]


def test_texts() -> None:
    assert_agree(bound(NATIVE))


def test_every_function_is_in_the_table() -> None:
    parts = [part for expression in bound(NATIVE) for part in walk(expression)]
    called = {part.function for part in parts if isinstance(part, Call)}
    assert set(CALLS) <= called
    assert ".a" in called


@pytest.mark.parametrize("text", OTHERS)
def test_what_spark_is_not_asked_for(text: str) -> None:
    (expression,) = bound([text])
    assert spark_sql(expression, NAMES) is None


# --- random expressions -----------------------------------------------------------------------


def called(name: str, *arguments: Expression) -> Expression | None:
    """The call that a binder makes, or None if the function does not take such arguments."""
    function = lookup(name)
    assert function is not None
    try:
        signature = function.signature(tuple(a.type for a in arguments))
    except SignatureError:
        return None
    pairs = zip(arguments, signature.arguments, strict=True)
    cast = tuple(a if a.type == wanted else Cast(a, wanted) for a, wanted in pairs)
    return Call(function.name, cast, signature.result)


def drawn(random: random.Random, depth: int) -> Expression:
    """An expression over the columns: by trying until a function takes the arguments."""
    kind = random.random()
    if depth == 0 or kind < 0.1:
        return random.choice(SCHEMA).column
    if kind < 0.2:
        type, values = random.choice(list(VALUES.values()))
        return Literal(random.choice(values), type)
    if kind < 0.3:
        operand = drawn(random, depth - 1)
        targets = [type for type, _ in VALUES.values()] + [decimal_type(22, 3), decimal_type(38, 1)]
        allowed = [target for target in targets if can_cast(operand.type, target)]
        return Cast(operand, random.choice(allowed), random.random() < 0.2)
    while True:
        name = random.choice(list(CALLS))
        arguments = [drawn(random, depth - 1) for _ in range(random.choice([1, 2, 2, 3]))]
        found = called(name, *arguments)
        if found is not None:
            return found


def native_ones(seed: int, count: int) -> Iterator[Expression]:
    generator = random.Random(seed)
    while count:
        expression = drawn(generator, generator.choice([2, 3, 4]))
        deep = not isinstance(expression, Literal) and len(list(walk(expression))) > 3
        if deep and spark_sql(expression, NAMES) is not None:
            count -= 1
            yield expression


def test_random_expressions() -> None:
    assert_agree(list(native_ones(20, 300)))
