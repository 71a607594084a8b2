"""Formulas agree with the reference, with NULLs and without, and give up where they must."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from expression_agreement import assert_agree, evaluated, machine_code_for
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.logical.expressions import Cast, Expression, Literal
from millstream.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FIRST_DATE,
    FIRST_TIMESTAMP,
    INT,
    INTERVAL,
    LAST_DATE,
    LAST_TIMESTAMP,
    REAL,
    TIMESTAMP,
)
from millstream.model.values import NAN, canonical, round_real, to_arrow
from millstream.physical.expressions import Together, compile_expression
from millstream.physical.expressions.loops import LANES, Gives
from millstream.physical.expressions.nodes import Direct
from millstream.physical.expressions.programs import A_BATCH, Program, Selection, _loop
from physical.expression_samples import INF, call, schema_of
from physical.formula_programs import long, of

SCHEMA = schema_of(
    *(BOOLEAN, INT, INT, BIGINT, BIGINT, REAL, DOUBLE, DOUBLE, DATE, TIMESTAMP, INTERVAL),
)
_, _, _, K, L, _, V, W, _, T, P = (field.column for field in SCHEMA)

_VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    INT: st.integers(-9, 9) | st.sampled_from([2**31 - 1, -(2**31), 46_341, 2**30]),
    BIGINT: st.integers(-9, 9)
    | st.sampled_from([2**63 - 1, -(2**63), 2**62, 3_037_000_500, 2**31]),
    REAL: st.floats(width=32).map(round_real),
    DOUBLE: st.floats().map(canonical) | st.sampled_from([0.0, -0.0, NAN, INF, 1e308, 0.5]),
    DATE: st.integers(-9, 9) | st.sampled_from([FIRST_DATE, LAST_DATE]),
    TIMESTAMP: st.integers(-9, 9) | st.sampled_from([FIRST_TIMESTAMP, LAST_TIMESTAMP]),
    INTERVAL: st.integers(-9, 9) | st.sampled_from([2**63 - 1, -(2**63), 10**17]),
}
_WITH_NULLS = {type: st.none() | values for type, values in _VALUES.items()}
ROWS = st.one_of(
    st.lists(st.tuples(*(values[field.type] for field in SCHEMA)), max_size=2 * LANES + 3)
    for values in (_VALUES, _WITH_NULLS)
)
NAMES = ["+", "-", "*", "/", "%", "negate", "abs", "=", "<>", "<", "<=", ">", ">=", "and", "or"]
NAMES += ["is null", "coalesce", "in"]


@st.composite
def formulas(draw: st.DrawFn, depth: int = 3) -> Expression:
    """What has a formula, for the most part."""
    kind = draw(st.integers(0, 6))
    if depth == 0 or kind == 0:
        return draw(st.sampled_from(SCHEMA)).column
    if kind == 1:
        type = draw(st.sampled_from([INT, BIGINT, DOUBLE, INTERVAL]))
        return Literal(draw(_VALUES[type]), type)
    operands = [draw(formulas(depth - 1)) for _ in range(2)]
    if kind == 2 and operands[0].type in (INT, BIGINT, REAL):
        return Cast(operands[0], DOUBLE)
    if kind == 3:
        return call("case", draw(formulas(depth - 1)), *operands) or operands[0]
    name = draw(st.sampled_from([*NAMES, "not"]))
    return call(name, *operands) or call(name, operands[0]) or operands[0]


@given(formulas(), ROWS)
@settings(max_examples=400)
def test_random_formulas(expression: Expression, rows: list[tuple[Any, ...]]) -> None:
    assert_agree(expression, SCHEMA, rows)


def program(expression: Expression, *values: list[Any]) -> list[Any] | None:
    """What the formula of an expression over BIGINT columns gives by itself."""
    schema = schema_of(*[BIGINT] * len(values))
    root = compile_expression(expression, schema, {})._root
    assert isinstance(root, Direct)
    columns = [pa.array(column, BIGINT) for column in values]
    found = Program([root.formula]).values(columns, len(columns[0]))
    return None if found is None else found[0].to_pylist()


X, Y = (field.column for field in schema_of(BIGINT, BIGINT))


@pytest.mark.parametrize(
    ("expression", "columns", "expected"),
    [
        (of("+", of("*", X, long(2)), long(1)), [[3, -4]], [7, -7]),
        (of("*", X, Y), [[2**31], [2**31]], [2**62]),
        (of("%", X, long(10)), [[-(2**63), 2**63 - 1, -7]], [-8, 7, -7]),
        (of("and", of(">", X, long(0)), of("=", Y, long(5))), [[1, 1, 0], [5, 4, 5]], [1, 0, 0]),
        (of("=", of("+", of("%", X, long(4)), long(1)), Y), [[2**63 - 1], [4]], [1]),
        (of("+", X, Y), [[1, None, 3], [None, None, 4]], [None, None, 7]),
        (
            of("or", of(">", X, long(0)), of("=", Y, long(5))),
            [[1, None, None], [None, 5, 4]],
            [1, 1, None],
        ),
        (
            of("and", of(">", X, long(0)), of("=", Y, long(5))),
            [[0, None, None], [None, 4, 5]],
            [0, 0, None],
        ),
        (of("is null", of("+", X, Y)), [[1, None, 3], [None, None, 4]], [1, 1, 0]),
        (of("coalesce", X, of("+", Y, long(1))), [[1, None, None], [None, None, 4]], [1, None, 5]),
        (of("in", X, long(1), long(3)), [[1, None, 2, 3]], [1, None, 0, 1]),
        (
            of("case", of(">", X, long(0)), Y, long(7)),
            [[1, None, 1, 0], [5, 5, None, 5]],
            [5, 7, None, 7],
        ),
    ],
)
def test_what_a_formula_computes(
    expression: Expression, columns: list[list[int]], expected: list[int]
) -> None:
    assert program(expression, *columns) == expected


@pytest.mark.parametrize(
    ("expression", "columns"),
    [
        (of("+", X, long(1)), [[1, None, 2**63 - 1]]),
        (of("+", X, long(1)), [[]]),
        (of("+", X, long(1)), [[1, 2**63 - 1]]),
        (of("*", X, Y), [[2**62], [2]]),
        (of("negate", X), [[-(2**63)]]),
    ],
)
def test_where_a_formula_gives_up(expression: Expression, columns: list[list[Any]]) -> None:
    assert program(expression, *columns) is None


FLAG, SMALL, DAY = SCHEMA[0].column, SCHEMA[1].column, SCHEMA[8].column
LARGEST = Literal(2**31 - 1, INT)
TOO_LARGE = [
    of("-", K, long(-(2**63))),
    of("+", of("case", FLAG, LARGEST, Literal(1, INT)), Literal(1, INT)),
    of("negate", of("case", FLAG, Literal(-(2**31), INT), Literal(1, INT))),
    of("abs", of("case", of(">", V, W), Literal(-(2**31), INT), Literal(1, INT))),
    of("+", of("case", FLAG, long(2**63 - 1), long(1)), long(1)),
    of("*", *[of("case", FLAG, Literal(50_000, INT), Literal(1, INT))] * 2),
    of("*", of("coalesce", SMALL, Literal(60_000, INT)), Literal(60_000, INT)),
    of("+", of("coalesce", K, long(2**63 - 1)), long(1)),
    of("+", of("case", of("is null", SMALL), LARGEST, SMALL), Literal(1, INT)),
    of("+", of("coalesce", T, Literal(LAST_TIMESTAMP, TIMESTAMP)), P),
    of("+", of("coalesce", T, Literal(LAST_TIMESTAMP, TIMESTAMP)), Literal(1, INTERVAL)),
    of("-", of("coalesce", DAY, Literal(FIRST_DATE, DATE)), Literal(1, INT)),
]


@pytest.mark.parametrize("expression", TOO_LARGE)
def test_constants_that_are_too_large_for_some_rows(expression: Expression) -> None:
    """No column is beyond any limit: a constant takes the place of what it has, or has not."""
    row = (True, 1, 1, 1, 1, 0.5, 0.5, 0.25, 1, 1, 1)
    rows = [row, (False, *row[1:]), (None,) * len(row), (True, *[None] * 10)]
    assert_agree(expression, SCHEMA, rows * 3)


@pytest.mark.parametrize(
    "expression",
    [of("/", V, W), of("%", K, L), of("%", K, long(0)), of("*", P, V), *TOO_LARGE[:8]],
)
def test_what_has_no_formula(expression: Expression) -> None:
    assert compile_expression(expression, SCHEMA, {})._root.formula is None


@pytest.mark.parametrize("name", ["and", "or", "in", "coalesce", "case"])
@pytest.mark.parametrize("count", [2, 15, 40, 1500])
def test_many_operands(name: str, count: int) -> None:
    match name:
        case "and" | "or":
            operands = [of("<>" if name == "and" else "=", K, long(n)) for n in range(count)]
        case "case":
            pairs = [(of("=", K, long(n)), long(3 * n)) for n in range(count)]
            operands = [*(part for pair in pairs for part in pair), L]
        case "coalesce":
            operands = [K] * count + [L]
        case _:
            operands = [K, *(long(n) for n in range(count))]
    row = (True, 1, 1, 1, 1, 0.5, 0.5, 0.25, 1, 1, 1)
    rows = [(*row[:3], k, *row[4:]) for k in (*range(0, 45, 5), -1, None)]
    assert_agree(of(name, *operands), SCHEMA, rows)


def test_many_expressions_are_several_programs() -> None:
    schema = schema_of(*[BIGINT] * 20)
    columns = [field.column for field in schema]
    expressions = [of("+", columns[n % 20], columns[(n + n // 20) % 20]) for n in range(1100)]
    each = [compile_expression(expression, schema, {}) for expression in expressions]
    for absent in (0, None):
        arrays = [pa.array([n, absent, 5] * 7, BIGINT) for n in range(20)]
        together = Together(each).evaluate(arrays, 21)
        assert len(together) == len(each)
        for n in range(0, 1100, 91):
            a, b = n % 20, (n + n // 20) % 20
            expected = [a + b, None if absent is None else 0, 10] * 7
            assert together[each[n]].to_pylist() == expected


@pytest.mark.parametrize(
    ("at", "shift", "fails"),
    [
        (LAST_TIMESTAMP, 0, False),
        (LAST_TIMESTAMP, 1, True),
        (LAST_TIMESTAMP + 1, -1, False),
        (FIRST_TIMESTAMP, 0, False),
        (FIRST_TIMESTAMP, -1, True),
        (2**63 - 1, 1, True),
        (None, 2**63 - 1, False),
    ],
)
def test_timestamps_that_cannot_be_shown(at: int | None, shift: int, fails: bool) -> None:
    schema = schema_of(TIMESTAMP, INTERVAL)
    later = of("+", *(field.column for field in schema))
    earlier = of("-", schema[0].column, Literal(-shift, INTERVAL))
    for expression in (later, earlier):
        compiled = compile_expression(expression, schema, {})
        (found,) = evaluated(compiled, schema, [(at, shift)])
        assert isinstance(found, tuple) is fails
        assert_agree(expression, schema, [(at, shift), (5, 7)])


@pytest.mark.parametrize("divisor", [1, 2, 3, 10, 997, 2**31 - 1, 2**49 + 1, 2**63 - 1])
def test_remainders_by_a_constant(divisor: int) -> None:
    random = np.random.default_rng(divisor)
    for most in (10, 2**31, 2**50 - 1, 2**63 - 1):
        multiples = random.integers(0, most // divisor + 1, 50, endpoint=False) * divisor
        values = [*random.integers(0, most, 100), *multiples, *np.maximum(multiples - 1, 0), most]
        for signs in ([1], [-1, 1]):
            numbers = [int(value) * sign for value in values for sign in signs]
            expected = [abs(n) % divisor * (1 if n >= 0 else -1) for n in numbers]
            assert program(of("%", X, long(divisor)), numbers) == expected


@given(st.integers(1, 2**50), st.integers(0, 2**50), st.sampled_from([1, -1]))
def test_remainders_next_to_multiples(divisor: int, number: int, sign: int) -> None:
    last = (2**50 - 1) // divisor
    multiples = [divisor * min(quotient, last) for quotient in (number // divisor, number, last)]
    sizes = [abs(multiple + more) for multiple in multiples for more in (-1, 0, 1, divisor - 1)]
    found = program(of("%", X, long(divisor)), [sign * size for size in sizes])
    assert found == [sign * (size % divisor) for size in sizes]


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("nulls", [0.0, 0.3])
def test_rows_that_are_selected(share: float, nulls: float) -> None:
    random = np.random.default_rng(5)
    schema = schema_of(BIGINT)
    root = compile_expression(of("<", schema[0].column, long(7)), schema, {})._root
    assert isinstance(root, Direct)
    selection = Selection(root.formula)
    for length in [*range(1, 3 * LANES), 1000]:
        holds, valid = random.random(length) < share, random.random(length) >= nulls
        column = pa.array(np.where(holds, 6, 7), mask=~valid)
        assert selection.rows([column], length).tolist() == np.flatnonzero(holds & valid).tolist()


def test_parts_that_occur_twice_are_computed_once() -> None:
    square = of("*", V, V)
    root = compile_expression(of("+", square, square), SCHEMA, {})._root
    assert isinstance(root, Direct)
    loop, _ = _loop([root.formula], Gives.VALUES)
    assert len(loop.steps) == 2


def test_code_is_made_when_there_were_rows_enough() -> None:
    schema = schema_of(BIGINT)
    root = compile_expression(of("+", schema[0].column, long(1)), schema, {})._root
    assert isinstance(root, Direct)
    with machine_code_for(3 * A_BATCH):
        made = Program([root.formula])
        found = [made.values([pa.array([7, None])], 2) for _ in range(4)]
    assert found[:2] == [None, None]
    assert [values and values[0].to_pylist() for values in found[2:]] == [[8, None]] * 2


def test_floating_overflow_is_quiet() -> None:
    schema = schema_of(DOUBLE)
    compiled = compile_expression(of("*", *[schema[0].column] * 2), schema, {})
    with np.errstate(all="raise"):
        assert evaluated(compiled, schema, [(1e200,), (2.0,)]) == [INF, 4.0]


def test_rows_of_several_vectors() -> None:
    random = np.random.default_rng(7)
    numbers = random.integers(-1000, 1000, (100 * LANES + 7, 4)).tolist()
    rows = [(a > 0, a, b, c, d, a / 8, b / 7, d / 9, a, b, c) for a, b, c, d in numbers]
    for position, field in enumerate(SCHEMA):
        other = SCHEMA[position - 1 if position in (2, 4, 7) else position].column
        for name in NAMES:
            expression = call(name, field.column, other) or call(name, other)
            if expression is not None:
                assert_agree(expression, SCHEMA, rows)


def test_the_last_of_many_rows_is_too_large() -> None:
    fits = [1] * (100 * LANES)
    assert program(of("+", X, long(1)), fits) == [2] * len(fits)
    assert program(of("+", X, long(1)), [*fits, 2**63 - 1]) is None


def test_expressions_evaluated_together() -> None:
    schema = schema_of(BOOLEAN, INT, REAL, DATE, BIGINT)
    flag, i, r, day, k = (field.column for field in schema)
    expressions = [
        of("not", flag),
        of("*", i, i),
        of("+", r, r),
        of("-", day, Literal(3, INT)),
        of("<", i, Literal(4, INT)),
        of("+", k, long(1)),
        Cast(i, BIGINT),
    ]
    each = [compile_expression(expression, schema, {}) for expression in expressions]
    rows = [(n % 3 == 0, n, n / 4, n, n * 10**9) for n in range(60 * LANES + 1)]
    columns = [
        to_arrow(list(c), f.type) for c, f in zip(zip(*rows, strict=True), schema, strict=True)
    ]
    together = Together(each).evaluate(columns, len(rows))
    assert list(together) == each
    for compiled in each:
        assert together[compiled].equals(compiled.evaluate(columns, len(rows)).values)
    columns[4] = to_arrow([2**63 - 1] * len(rows), BIGINT)
    assert Together(each).evaluate(columns, len(rows)) == {}
