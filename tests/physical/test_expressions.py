"""Compiled expressions: directed cases, laziness, the user's functions, and the promises of the
interface."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from expression_agreement import assert_agree, evaluated

from millstream.logical.evaluate import UserFunction
from millstream.logical.expressions import Call, Cast, Expression, Literal
from millstream.logical.functions import lookup, names
from millstream.model.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FIRST_DATE,
    FIRST_TIMESTAMP,
    INT,
    INTERVAL,
    LAST_DATE,
    LAST_TIMESTAMP,
    NULL,
    REAL,
    STRING,
    TIMESTAMP,
    decimal_type,
)
from millstream.model.values import NAN, to_plain
from millstream.physical.expressions import compile_expression
from physical.expression_samples import INF, SAMPLES, call, schema_of

SCHEMA = schema_of(BOOLEAN, INT, INT, DOUBLE, STRING)
B, N, M, D, S = (field.column for field in SCHEMA)
ROWS = list(
    itertools.product(
        [True, False, None],
        [0, 1, -3, 2**31 - 1, None],
        [0, 2, None],
        [0.0, 1.5, NAN, None],
        ["", "12", "x", None],
    )
)


def of(name: str, *arguments: Expression) -> Call:
    expression = call(name, *arguments)
    assert expression is not None
    return expression


def lit(value: Any) -> Literal:
    by_class = {bool: BOOLEAN, int: INT, float: DOUBLE, str: STRING, type(None): NULL}
    return Literal(value, by_class[type(value)])


# Fails for some rows: division by zero, overflow, a bad cast.
QUOTIENT = of(">", of("/", N, M), lit(1))
NEXT = of(">", of("+", N, lit(1)), lit(1))
NUMBER = of(">", Cast(S, INT), lit(1))


@pytest.mark.parametrize("name", ["and", "or"])
def test_connectives_look_no_further_than_needed(name: str) -> None:
    for left, right in itertools.product(
        [B, QUOTIENT, NEXT, NUMBER, lit(True), lit(None)], repeat=2
    ):
        assert_agree(of(name, left, right), SCHEMA, ROWS)
    assert_agree(of(name, B, QUOTIENT, NUMBER), SCHEMA, ROWS)
    assert_agree(of(name, NEXT, B, NUMBER), SCHEMA, ROWS)
    assert_agree(of(name, B, lit(False), NUMBER), SCHEMA, ROWS)


BRANCHES: list[tuple[Expression, ...]] = [
    (B, N, M),
    (B, N),
    (B, of("+", N, lit(1)), of("-", lit(-3), N)),
    (B, of("div", N, M), Cast(S, BIGINT)),
    (QUOTIENT, N, NEXT, M, lit(7)),
    (NUMBER, of("+", N, lit(1)), B, of("%", N, M)),
    (NEXT, S, B, lit("none")),
    (lit(True), N, QUOTIENT, M),
    (lit(None), N, QUOTIENT, M, lit(1)),
    (B, lit(None), NUMBER, D, lit(2.5)),
]


@pytest.mark.parametrize("branches", BRANCHES, ids=range(len(BRANCHES)))
def test_case_evaluates_what_it_chooses(branches: tuple[Expression, ...]) -> None:
    assert_agree(of("case", *branches), SCHEMA, ROWS)
    if len(branches) == 3:
        assert_agree(of("if", *branches), SCHEMA, ROWS)


def test_coalesce_and_nvl2() -> None:
    quotient, following = of("div", N, M), of("+", N, lit(1))
    for arguments in itertools.permutations([N, quotient, following, lit(None)], 3):
        assert_agree(of("coalesce", *arguments), SCHEMA, ROWS)
        assert_agree(of("nvl2", *arguments), SCHEMA, ROWS)
    assert_agree(of("coalesce", lit(5), quotient), SCHEMA, ROWS)
    assert_agree(of("coalesce", N), SCHEMA, ROWS)


# --- functions of three arguments -------------------------------------------------------------

TEXTS = ["", "abc", "abcabc", "a%c_\\", "ß€x", "a.b.c", "a\nb", None]
OF_THREE: dict[str, tuple[list[Any], list[Any], list[Any]]] = {
    "substring": (TEXTS, [0, 1, 2, -1, -3, -9, 9, None], [0, 1, 2, -1, 9, 2**31 - 1, None]),
    "replace": (TEXTS, ["b", "", "bc", "€", None], ["", "zz", "\\0", None]),
    "translate": (TEXTS, ["abc", "aa", "", None], ["x", "", "xyz", None]),
    "split_part": (TEXTS, [".", "", "b", "bc", None], [0, 1, 2, -1, -3, 5, None]),
    "position": (["b", "", "€", "c", None], TEXTS, [1, 0, 3, -1, 9, None]),
    "lpad": (TEXTS, [0, -1, 2, 5, None], ["x", "xy", "", "€", None]),
    "rpad": (TEXTS, [0, -1, 2, 5, None], ["x", "xy", "", "€", None]),
    "like": (TEXTS, ["a%", "%c", "%b%", "a_c%", "a\\%c\\_%", "abc", "", "%", "a%c", "ß_x", "a\\b"],
             ["\\", "/", "%", "ab", None]),
    "concat": (TEXTS, ["x", "", None], TEXTS),
    "concat_ws": ([",", "", "€€", None], TEXTS, ["y", "", None]),
    "greatest": ([1.0, NAN, -0.0, None], [0.0, INF, None], [2.0, -INF, None]),
    "least": ([1.0, NAN, -0.0, None], [0.0, INF, None], [2.0, -INF, None]),
    "in": ([1.0, NAN, -0.0, None], [0.0, NAN, None], [2.0, -0.0, None]),
    "array": ([1, 2, None], [3, None], [4, None]),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_THREE)
def test_functions_of_three_arguments(name: str) -> None:
    samples = OF_THREE[name]
    given = [lit(next(v for v in values if v is not None)).type for values in samples]
    schema = schema_of(*given)
    columns = [field.column for field in schema]
    rows = list(itertools.product(*samples))
    assert_agree(of(name, *columns), schema, rows)
    few = rows[:: max(1, len(rows) // 40)]
    for constant in itertools.product(
        *(values if i else [...] for i, values in enumerate(samples))
    ):
        literals = [Literal(v, t) for v, t in zip(constant[1:], given[1:], strict=True)]
        assert_agree(of(name, columns[0], *literals), schema, few)
    for value in samples[0]:
        literal = Literal(value, given[0])
        assert_agree(of(name, literal, *columns[1:]), schema, few)
        for last in samples[2]:
            some = of(name, literal, columns[1], Literal(last, given[2]))
            assert_agree(some, schema, few)


PATTERNS = [
    *(
        "a",
        "^a",
        "b$",
        "^abc$",
        "a.c",
        "a|€",
        "^(a|b)c?",
        "[a-c]+",
        "[^a-c]",
        "a\\.b",
        "^$",
        "",
        "(",
    ),
    *(
        "a++",
        "a*?",
        "c$|b",
        "\\$",
        "\\\\$",
        "\\d",
        "(?i)A",
        "a{2}",
        "b$\n",
        "\\%",
        "*a",
        "[z-a]",
        "x|",
    ),
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_regular_expressions(pattern: str) -> None:
    schema = schema_of(STRING, STRING)
    text, column = (field.column for field in schema)
    texts = [*TEXTS, "b\n", "ab\n\n", "$", "a\\", "x$y", "٣", "A"]
    rows = [(value, pattern) for value in texts]
    assert_agree(of("rlike", text, lit(pattern)), schema, rows)
    assert_agree(of("rlike", text, column), schema, rows)


def test_repeat() -> None:
    schema = schema_of(STRING, INT)
    rows = list(itertools.product(TEXTS, [0, 1, 3, -2, None]))
    text, count = (field.column for field in schema)
    assert_agree(of("repeat", text, count), schema, rows)
    assert_agree(of("repeat", text, lit(-1)), schema, rows)
    assert_agree(of("repeat", lit("ab"), count), schema, rows)


@pytest.mark.parametrize("digits", [*range(-20, 21, 4), -1, 1, 2, 3, 5, -400, 400])
@pytest.mark.parametrize(
    "type", [INT, BIGINT, REAL, DOUBLE, decimal_type(10, 2), decimal_type(20, 10)], ids=str
)
def test_round(type: pa.DataType, digits: int) -> None:
    schema = schema_of(type, INT)
    value, count = (field.column for field in schema)
    halves = [2.675, 1.005, -1.005, 0.5, 1.5, -2.5, 1e14 + 0.5, 99999999999999.94, 0.285, 1e22]
    samples = {
        DOUBLE: [*SAMPLES[DOUBLE], *halves, *(h / 1000 for h in halves)],
        decimal_type(20, 10): [Decimal("1.2345678905"), Decimal("-9999999999.9999999999"), None],
    }
    rows = [(v, digits) for v in samples.get(type, SAMPLES.get(type, []))]
    assert_agree(of("round", value, lit(digits)), schema, rows)
    assert_agree(of("round", value, count), schema, rows)
    assert_agree(of("round", value), schema, rows)


def test_structs_and_their_fields() -> None:
    pair = pa.struct([("a", INT), ("b", pa.struct([("c", STRING)]))])
    schema = schema_of(pair, pair)
    one, other = (field.column for field in schema)
    values = [(1, ("x",)), (None, None), (2, (None,)), None]
    rows = list(itertools.product(values, repeat=2))
    inner = of(".B", one)
    for expression in (
        of(".a", one),
        of(".c", inner),
        of("=", one, other),
        of("<", one, other),
        of("in", one, other, Literal((1, ("x",)), pair)),
        of("if", of("is null", of(".a", one)), other, one),
        of("coalesce", one, other, Literal((5, None), pair)),
        of("greatest", one, other),
        Cast(one, STRING),
    ):
        assert_agree(expression, schema, rows)


# --- the user's functions ---------------------------------------------------------------------


class Recorded:
    """A function that notes with how many rows it was called."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.calls: list[int] = []
        self.rows: list[Any] = []

    def __call__(self, *columns: pa.Array) -> Any:
        self.calls.append(len(columns[0]))
        self.rows.extend(columns[0].to_pylist())
        return self.function(*columns)


def user(function: Any, returns: pa.DataType = INT) -> dict[str, UserFunction]:
    return {"f": UserFunction("f", function, returns)}


def _refusing(column: pa.Array) -> Any:
    if pc.any(pc.equal(column, 3)).as_py():
        raise RuntimeError("not 3")
    return pc.add(column, 1)


NUMBERS = [(value,) for value in [1, 3, None, 5, 3, 7, 2, 9, 3, 11]]
ONE = schema_of(INT)
F = Call("f", (ONE[0].column,), INT)


@pytest.mark.parametrize(
    "function",
    [
        lambda column: pc.add(column, 1),
        lambda column: pa.chunked_array([pc.add(column, 1)]),
        lambda column: [None if v is None else v * 2 for v in column.to_pylist()],
        lambda column: np.arange(len(column)) * 0,
        lambda column: column.cast(pa.int64()),
        lambda column: column.dictionary_encode(),
        _refusing,
        lambda column: pa.array([1]),
        lambda column: pa.array([], pa.int32()),
        lambda column: column.cast(pa.string()),
        lambda column: ["x" if v == 3 else v for v in column.to_pylist()],
        lambda column: [2**40 if v == 3 else v for v in column.to_pylist()],
        lambda column: None,
        lambda column: 5,
    ],
)
def test_users_functions(function: Any) -> None:
    assert_agree(F, ONE, NUMBERS, user(function))
    assert_agree(of("+", F, lit(1)), ONE, NUMBERS, user(function))


def test_a_users_function_gets_whole_columns() -> None:
    function = Recorded(lambda column: pc.add(column, 1))
    compiled = compile_expression(F, ONE, user(function))
    evaluated(compiled, ONE, NUMBERS)
    assert function.calls == [10]


def test_a_users_function_is_narrowed_by_halves() -> None:
    function = Recorded(_refusing)
    compiled = compile_expression(F, ONE, user(function))
    rows = [(value,) for value in [*range(100, 600), 3, *range(100, 600)]]
    assert evaluated(compiled, ONE, rows)[500] == ("failed", 'function "f" failed: not 3')
    assert len(function.calls) < 25


def test_a_users_function_is_called_for_the_rows_that_need_it() -> None:
    schema = schema_of(INT, INT)
    a, b = (field.column for field in schema)
    rows = [(n, n % 4) for n in range(20)]
    for expression, wanted in [
        (of("and", of("=", b, lit(1)), of(">", Call("f", (a,), INT), lit(5))), 1),
        (of("or", of("<>", b, lit(1)), of(">", Call("f", (a,), INT), lit(5))), 1),
        (of("if", of("=", b, lit(1)), Call("f", (a,), INT), a), 1),
        (of("coalesce", of("nullif", a, of("+", of("*", of("div", a, lit(4)), lit(4)), lit(1))),
            Cast(Call("f", (a,), INT), BIGINT)), 1),
    ]:  # fmt: skip
        function = Recorded(lambda column: column)
        compiled = compile_expression(expression, schema, user(function))
        evaluated(compiled, schema, rows)
        assert function.rows == [a for a, b in rows if b == wanted]


def test_a_part_that_occurs_twice_is_evaluated_once() -> None:
    function = Recorded(_refusing)
    between = of("and", of(">=", F, lit(1)), of("<=", F, lit(8)))
    compiled = compile_expression(between, ONE, user(function))
    evaluated(compiled, ONE, [(1,), (5,), (9,)])
    assert function.calls == [3]
    chosen = of("case", of(">", F, lit(4)), F, of("is null", F), lit(0), F)
    evaluated(compile_expression(chosen, ONE, user(function)), ONE, [(1,), (5,), (None,)])
    assert function.calls == [3, 3]
    assert_agree(chosen, ONE, NUMBERS, user(_refusing))
    assert_agree(between, ONE, NUMBERS, user(_refusing))
    zero, negative = (of("+", D, of("*", lit(z), D)) for z in (0.0, -0.0))
    assert_agree(of("if", B, zero, negative), SCHEMA, ROWS)


def test_a_users_function_does_not_see_rows_whose_arguments_failed() -> None:
    schema = schema_of(INT, INT)
    a, b = (field.column for field in schema)
    expression = Call("f", (of("div", a, b),), INT)
    function = Recorded(lambda column: column)
    rows = [(6, 2), (6, 0), (8, 2), (None, 2)]
    assert_agree(expression, schema, rows, user(function))
    assert None in function.rows
    assert_agree(Call("f", (lit(1),), INT), schema, rows, user(lambda column: pc.add(column, 1)))
    assert_agree(Call("f", (), INT), schema, rows, user(lambda: pa.array([7])))


# --- the promises of the interface ------------------------------------------------------------


def test_a_column_is_given_as_it_is() -> None:
    compiled = compile_expression(M, SCHEMA, {})
    column = pa.array([1, 2, None], INT)
    vector = compiled.evaluate([None, None, column, None, None], 3)
    assert vector.values is column
    assert vector.failed is None
    assert compiled.inputs == (2,)


def test_inputs_are_the_columns_that_can_matter() -> None:
    assert compile_expression(of("+", N, M), SCHEMA, {}).inputs == (1, 2)
    assert compile_expression(of("and", lit(False), B), SCHEMA, {}).inputs == ()
    assert compile_expression(of("+", lit(1), lit(2)), SCHEMA, {}).inputs == ()


@pytest.mark.parametrize("type", SAMPLES, ids=str)
def test_literals(type: pa.DataType) -> None:
    for value in SAMPLES[type]:
        assert_agree(Literal(value, type), SCHEMA, ROWS[:3])


def test_constants_that_fail() -> None:
    failing = of("/", lit(1), lit(0))
    assert_agree(failing, SCHEMA, ROWS[:3])
    assert_agree(of("or", B, of(">", failing, lit(1))), SCHEMA, ROWS)
    assert_agree(of("is null", failing), SCHEMA, ROWS)
    assert_agree(of("+", Cast(failing, INT), lit(None)), SCHEMA, ROWS)
    assert_agree(Cast(failing, INT, attempt=True), SCHEMA, ROWS)
    assert_agree(Cast(S, DATE, attempt=True), SCHEMA, ROWS)


@pytest.mark.parametrize("name", [n for n in names() if not lookup(n).deterministic])  # type: ignore[union-attr]
def test_functions_that_are_drawn_anew_for_each_row(name: str) -> None:
    expression = of(name)
    compiled = compile_expression(expression, SCHEMA, {})
    vector = compiled.evaluate([None] * 5, 50)
    assert vector.values.type == expression.type
    values = to_plain(vector.values, expression.type)
    assert len(values) == 50
    assert None not in values
    if name in ("rand", "uuid"):
        assert len(set(values)) == 50
    assert len(compiled.evaluate([None] * 5, 0).values) == 0


def test_values_that_no_type_holds_fail() -> None:
    schema = schema_of(DATE, INT, BIGINT)
    a, b, c = (field.column for field in schema)
    row = (LAST_DATE, 1, LAST_TIMESTAMP + 1)
    compiled = compile_expression(of("+", a, b), schema, {})
    message = "date overflow in 9999-12-31 + 1"
    assert evaluated(compiled, schema, [row]) == [("failed", message)]
    compiled = compile_expression(of("timestamp_micros", c), schema, {})
    assert evaluated(compiled, schema, [row]) == [("failed", "timestamp overflow")]


def test_arithmetic_of_times() -> None:
    schema = schema_of(DATE, TIMESTAMP, INTERVAL, INT)
    date, time, span, count = (field.column for field in schema)
    dates = [0, -1, FIRST_DATE, LAST_DATE, None]
    times = [0, 10**15, FIRST_TIMESTAMP, LAST_TIMESTAMP, None]
    spans = [0, 1, -1, 86_400_000_000, 2**63 - 1, -(2**63), None]
    rows = list(itertools.product(dates, times, spans, [0, 1, -3, None]))
    for expression in (
        of("+", date, count),
        of("-", date, count),
        of("+", date, span),
        of("+", time, span),
        of("+", span, time),
        of("-", time, span),
        of("-", time, date),
        of("-", date, date),
        of("*", span, count),
        of("/", span, count),
        of("*", span, lit(0.5)),
        of("/", span, lit(0.0)),
        of("*", span, Literal(Decimal("0.1"), decimal_type(1, 1))),
        of("div", span, lit(None)),
        of("div", span, span),
        of("negate", span),
        of("abs", span),
        of("date_sub", date, count),
        of("<", date, time),
        of("-", time, Literal(1, INTERVAL)),
        of("year", date),
        of("weekofyear", date),
        of("hour", time),
        of("extract_second", time),
    ):
        assert_agree(expression, schema, rows)


def test_binary_is_cut_in_bytes() -> None:
    schema = schema_of(BINARY, INT)
    data, count = (field.column for field in schema)
    rows = [(b"\xffabc", 2), (b"", 1), (None, 1), (b"ab", -1)]
    for expression in (
        of("substring", data, count),
        of("substring", data, lit(-2), lit(1)),
        of("length", data),
        of("md5", data),
        of("=", data, Literal(b"ab", BINARY)),
    ):
        assert_agree(expression, schema, rows)


def test_an_index_beyond_int_is_not_cut_to_32_bits() -> None:
    schema = schema_of(pa.list_(INT), BIGINT)
    a, index = (field.column for field in schema)
    compiled = compile_expression(of("element", a, index), schema, {})
    found = evaluated(compiled, schema, [((7, 8), 1), ((7, 8), 2**32 + 1)])
    assert found == [8, ("failed", 'cannot cast "4294967297" to INT')]
