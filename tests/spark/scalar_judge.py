"""Spark as the judge of scalar expressions: the same SQL there and here, value by value.

Spark stops a query at the first row that fails. So each expression is asked for twice: once inside
`try_to_binary`, which catches whatever its argument raises, to know which rows fail; and once for
the rows that do not. What Spark computes is not rearranged by its optimizer, which may drop a part
that fails, and not compiled, which would take most of the time.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType
from scalar_differences import excluded, is_meant_failure, is_meant_refusal, is_rough
from scalar_grammar import Tree

import millstream as ms
from millstream.logical.evaluate import evaluator
from millstream.logical.expressions import Column, Expression, walk
from millstream.logical.functions import EvaluationError
from millstream.logical.plan import Field, Map, Schema
from millstream.model.errors import MillstreamError
from millstream.model.values import to_arrow, to_plain, to_type
from millstream.physical.expressions import compile_expression
from millstream.spark.schemas import spark_type, typed
from millstream.spark.starting import for_batches, local_spark
from scalar_values import COLUMNS, TYPES

SCHEMA: Schema = tuple(Field(name, TYPES[kind], "S") for name, kind in COLUMNS.items())
FAILED = "failed"

_RULES = [
    *("BooleanSimplification", "ConstantFolding", "NullPropagation", "SimplifyConditionals"),
    *("OptimizeIn", "SimplifyBinaryComparison", "LikeSimplification", "PushFoldableIntoBranches"),
    *("SimplifyCasts", "UnwrapCastInBinaryComparison", "ReplaceNullWithFalseInPredicate"),
    *("RemoveDispensableExpressions", "SimplifyCaseConversionExpressions", "FoldablePropagation"),
    *("ReorderAssociativeOperator", "NullDownPropagation", "SimplifyExtractValueOps"),
    *("CombineConcats", "PruneFilters", "OptimizeUpdateFields", "SimplifyDateTimeConversions"),
    *("ConstantPropagation", "EvalInlineTables"),
]
_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.alwaysInlineCommonExpr": "true",
    "spark.sql.optimizer.excludedRules": ",".join(
        f"org.apache.spark.sql.catalyst.optimizer.{rule}" for rule in _RULES
    ),
}


@cache
def spark() -> SparkSession:
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    session = for_batches(local_spark())
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    session.sparkContext.setLogLevel("OFF")
    return session


# --- here -------------------------------------------------------------------------------------


@cache
def session() -> ms.Session:
    session = ms.Session(engine="local")
    empty = {field.name: to_arrow([], field.type) for field in SCHEMA}
    session.stream("S", pa.table({"ts": to_arrow([], pa.int64()), **empty}), time="ts")
    return session


def bound(text: str) -> Expression | str:
    """The expression that the binder makes of a text, or why it refuses it."""
    try:
        plan = session().sql(f"SELECT {text} AS x FROM S").plan
    except MillstreamError as error:
        return str(error)
    assert isinstance(plan, Map)
    return plan.outputs[0].expression


@dataclass(frozen=True)
class Rows:
    """Rows of `SCHEMA`, for every engine."""

    plain: list[tuple[Any, ...]]
    arrays: list[pa.Array]
    frame: DataFrame

    @staticmethod
    def of(plain: list[tuple[Any, ...]]) -> Rows:
        columns = zip(*plain, strict=True)
        arrays = [to_arrow(list(c), f.type) for c, f in zip(columns, SCHEMA, strict=True)]
        table = pa.table(arrays, names=[field.name for field in SCHEMA])
        return Rows(plain, arrays, typed(spark().createDataFrame(table).coalesce(1)))


def by_reference(expression: Expression, rows: Rows) -> list[Any]:
    evaluate = evaluator(expression, SCHEMA, {})
    results: list[Any] = []
    for row in rows.plain:
        try:
            results.append(evaluate(row))
        except EvaluationError as error:
            results.append((FAILED, str(error)))
    return results


def locally(expression: Expression, rows: Rows) -> list[Any]:
    compiled = compile_expression(expression, SCHEMA, {})
    vector = compiled.evaluate(rows.arrays, len(rows.plain))
    assert vector.values.type == expression.type
    plain = to_plain(vector.values, expression.type)
    if vector.failed is None:
        return plain
    return [
        (FAILED, compiled.message(row)) if bad else value
        for value, bad, row in zip(plain, vector.failed, rows.plain, strict=True)
    ]


# --- there ------------------------------------------------------------------------------------


def types_there(texts: Sequence[str], rows: Rows) -> list[DataType | str]:
    """The type of each expression in Spark, or why it refuses it."""
    if not texts:
        return []
    try:
        frame = rows.frame.selectExpr(*(f"{text} AS x{n}" for n, text in enumerate(texts)))
        return [field.dataType for field in frame.schema]
    except PySparkException as error:
        if len(texts) == 1:
            return [str(error).split("\n")[0]]
        half = len(texts) // 2
        return types_there(texts[:half], rows) + types_there(texts[half:], rows)


def by_spark(
    texts: Sequence[str], types: Sequence[pa.DataType], rows: Rows
) -> list[list[Any] | None]:
    """The values of each expression, all of which Spark understands; None for one with a constant
    that fails before any row is seen."""
    columns = []
    for number, text in enumerate(texts):
        kept = f"try_to_binary(CAST(hash({text}) AS STRING), 'utf-8') IS NOT NULL"
        columns += [f"{kept} AS k{number}", f"CASE WHEN {kept} THEN {text} END AS v{number}"]
    try:
        table = rows.frame.selectExpr(*columns).toArrow()
    except Exception:
        if len(texts) == 1:
            return [None]
        half = len(texts) // 2
        first = by_spark(texts[:half], types[:half], rows)
        return first + by_spark(texts[half:], types[half:], rows)
    results: list[list[Any] | None] = []
    for number, type in enumerate(types):
        kept = table.column(2 * number).to_pylist()
        values = to_plain(to_type(table.column(2 * number + 1).combine_chunks(), type), type)
        results.append([v if k else (FAILED, "") for v, k in zip(values, kept, strict=True)])
    return results


# --- the comparison ---------------------------------------------------------------------------

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:E-?\d+)?")


def exactly(value: Any) -> Any:
    """A key that tells -0.0 from 0.0 and 1 from True; NaN is itself."""
    if isinstance(value, tuple):
        return FAILED if value[:1] == (FAILED,) else tuple(exactly(part) for part in value)
    if isinstance(value, float):
        return ("float", "nan") if value != value else ("float", value, math.copysign(1, value))
    if isinstance(value, Decimal):
        return ("Decimal", *value.as_tuple()) if value else ("Decimal", value.as_tuple().exponent)
    return (type(value).__name__, value)


def roughly(a: Any, b: Any) -> bool:
    """Doubles, or texts with doubles in them, that differ in their last digits at most."""
    if isinstance(a, tuple) and isinstance(b, tuple) and (FAILED,) not in (a[:1], b[:1]):
        return len(a) == len(b) and all(map(roughly, a, b))
    if isinstance(a, str) and isinstance(b, str):
        numbers = [[float(n) for n in _NUMBER.findall(text)] for text in (a, b)]
        same_text = _NUMBER.sub("", a) == _NUMBER.sub("", b)
        return same_text and len(numbers[0]) == len(numbers[1]) and all(map(roughly, *numbers))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-6) or exactly(a) == exactly(b)
    if isinstance(a, Decimal) and isinstance(b, Decimal):
        return math.isclose(a, b, rel_tol=1e-14)
    return bool(exactly(a) == exactly(b))


@dataclass(frozen=True)
class Difference:
    """An expression of which two engines think differently."""

    text: str
    what: str

    def __str__(self) -> str:
        return f"{self.text}\n    {self.what}"


@dataclass
class Verdict:
    """What came of some expressions."""

    differences: list[Difference]
    compared: int = 0
    refused: int = 0  # by the binder here
    excluded: int = 0


def judge(texts: Sequence[str], rows: Rows) -> Verdict:
    """Whether the local engine, the reference and Spark agree on each expression and each row."""
    verdict = Verdict([])
    bounds: list[tuple[str, Expression]] = []
    asked: list[tuple[str, Expression]] = []
    for text in texts:
        expression = bound(text)
        if isinstance(expression, str):
            verdict.refused += 1
            continue
        if excluded(expression) is not None:
            verdict.excluded += 1
            continue
        bounds.append((text, expression))
    for (text, expression), there in zip(
        bounds, types_there([text for text, _ in bounds], rows), strict=True
    ):
        if isinstance(there, str):
            if is_meant_refusal(there):
                verdict.excluded += 1
            else:
                verdict.differences.append(Difference(text, f"Spark refuses it: {there}"))
            continue
        here = spark_type(expression.type)
        if _plain_type(there) != _plain_type(here):
            what = f"has type {there.simpleString()} in Spark, here {here.simpleString()}"
            verdict.differences.append(Difference(text, what))
            continue
        asked.append((text, expression))
    verdict.compared = len(asked)
    for first in range(0, len(asked), AT_ONCE):
        part = asked[first : first + AT_ONCE]
        results = by_spark([t for t, _ in part], [e.type for _, e in part], rows)
        for (text, expression), values in zip(part, results, strict=True):
            what = None if values is None else _different(expression, rows, values)
            if what is not None:
                verdict.differences.append(Difference(text, what))
    return verdict


AT_ONCE = 150


def _plain_type(type: DataType) -> str:
    """All intervals of days to seconds are one type here."""
    return re.sub(r"interval \w+( to \w+)?", "interval", type.simpleString())


def _different(expression: Expression, rows: Rows, by_spark: list[Any]) -> str | None:
    """The first row on which two do not agree."""
    rough = is_rough(expression)
    try:
        reference, local = by_reference(expression, rows), locally(expression, rows)
    except Exception as error:
        return f"raises {error!r}"
    for row, meant, here, there in zip(rows.plain, reference, local, by_spark, strict=True):
        if exactly(meant) != exactly(here):
            return f"{_shown(expression, row)} is {here!r} locally, in the reference {meant!r}"
        if exactly(meant) == exactly(there) or (rough and roughly(meant, there)):
            continue
        if exactly(meant) == FAILED and is_meant_failure(meant[1]):
            continue
        return f"{_shown(expression, row)} is {there!r} in Spark, here {meant!r}"
    return None


def _shown(expression: Expression, row: tuple[Any, ...]) -> str:
    used = {part.name for part in walk(expression) if isinstance(part, Column)}
    values = [f"{f.name}={v!r}" for f, v in zip(SCHEMA, row, strict=True) if f.name in used]
    return f"({', '.join(values)})"


def shrunk(tree: Tree, rows: Rows) -> Difference:
    """The simplest expression that shows a difference, found by leaving parts out."""
    (found,) = judge([tree.text], rows).differences
    while True:
        smaller = list(tree.smaller())[:60]
        verdict = judge([t.text for t in smaller], rows)
        if not verdict.differences:
            return found
        found = verdict.differences[0]
        for difference in verdict.differences:
            if len(difference.text) < len(found.text):
                found = difference
        if len(found.text) >= len(tree.text):
            return found
        tree = next(t for t in smaller if t.text == found.text)
