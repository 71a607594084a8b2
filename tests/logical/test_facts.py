"""Facts that functions, aggregates and operators declare, against what they do.

What declares nothing, and what nothing knows, gets the answer that permits least.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from effort import examples
from millstream.logical import aggregates, functions
from millstream.logical.analysis import (
    exactly_one_row,
    given_anew,
    granule,
    growing,
    lives_one_instant,
    only_now,
)
from millstream.logical.evaluate import evaluator
from millstream.logical.expression_facts import ExpressionFacts
from millstream.logical.expressions import (
    AggregateCall,
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    nullable,
)
from millstream.logical.failing import aggregate_can_fail, rows_can_fail
from millstream.logical.functions import EvaluationError, Function, SignatureError, registry
from millstream.logical.functions.ranges import range_of_type
from millstream.logical.plan import (
    NODE_TYPES,
    Aggregate,
    CountWindow,
    Distinct,
    Dstream,
    Field,
    Filter,
    Granularity,
    Istream,
    Join,
    Map,
    Named,
    PartitionedWindow,
    Plan,
    Rstream,
    SortKey,
    Source,
    TimeWindow,
    TopN,
    map_expressions,
    own_expressions,
)
from millstream.logical.uniqueness import unique_columns, unique_in_stream
from millstream.model.time import INFINITY, RAW_TIME
from millstream.model.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    NULL,
    STRING,
    TIMESTAMP,
    can_cast,
    decimal_type,
    is_array,
    is_decimal,
    is_struct,
)
from millstream.model.values import order_key
from millstream.optimizer.rules.spread_emptiness import is_empty
from scalar_values import TYPES, decimal_of, value_of

LONG = ("lpad", "rpad", "repeat")  # of as many characters as a number says
KINDS = {type: kind for kind, type in TYPES.items()}


def value(chance: random.Random, type: pa.DataType) -> Any:
    if type == NULL or chance.random() < 0.05:
        return None
    if is_decimal(type):
        return decimal_of(chance, type)
    if is_array(type):
        return tuple(value(chance, type.value_type) for _ in range(chance.randrange(4)))
    if is_struct(type):
        return tuple(value(chance, field.type) for field in type)
    if type == STRING and chance.random() < 0.2:
        return chance.choice(["year", "week", "quarter", "hour", "a%", "[a-z]+", "."])
    return value_of(chance, KINDS[type])


class Calls:
    """Random expressions, and random rows for their columns."""

    def __init__(self, seed: str) -> None:
        self.chance = random.Random(seed)
        self.schema: list[Field] = []

    def column(self, type: pa.DataType) -> Expression:
        self.schema.append(Field(f"c{len(self.schema)}", type, nullable=self.chance.random() < 0.3))
        return self.schema[-1].column

    def operand(self, type: pa.DataType, depth: int) -> Expression:
        if self.chance.random() < 0.25:
            small = type in (INT, BIGINT) and self.chance.random() < 0.7
            return Literal(
                self.chance.randrange(-3, 12) if small else value(self.chance, type), type
            )
        if depth and self.chance.random() < 0.4:
            for _ in range(20):
                made = self.call(self.chance.choice(functions.names()), depth - 1)
                if made is not None and (made.type == type or can_cast(made.type, type)):
                    return made if made.type == type else Cast(made, type)
        if self.chance.random() < 0.2:
            source = self.chance.choice([t for t in TYPES.values() if can_cast(t, type)])
            return Cast(self.column(source), type, attempt=self.chance.random() < 0.3)
        return self.column(type)

    def call(self, name: str, depth: int) -> Expression | None:
        """As the binder makes it; None if the function does not take such arguments."""
        function = functions.lookup(name)
        assert function is not None
        signature = next(self._signatures(function), None)
        if signature is None:
            return None
        try:
            arguments = tuple(
                Literal(self.chance.randrange(-1, 9), INT)
                if name in LONG and type == INT
                else self.operand(type, depth)
                for type in signature.arguments
            )
            result = signature.result
            if function.narrowed is not None:
                result = function.narrowed(
                    signature, *(ExpressionFacts(a).value for a in arguments)
                )
        except SignatureError:
            return None
        return Call(name, arguments, result)

    def _signatures(self, function: Function) -> Iterator[functions.Signature]:
        for _ in range(100):
            count = self.chance.randrange(5)
            wanted = [self.chance.choice([*TYPES.values()]) for _ in range(count)]
            if wanted and self.chance.random() < 0.5:
                wanted = wanted[:1] * count
            with suppress(SignatureError):
                yield function.signature(tuple(wanted))

    def rows(self, count: int) -> Iterator[tuple[Any, ...]]:
        for _ in range(count):
            yield tuple(self._present(field) for field in self.schema)

    def _present(self, field: Field) -> Any:
        made = value(self.chance, field.type)
        while made is None and not field.nullable:
            made = value(self.chance, field.type)
        return made


def with_other_zeros(made: Any) -> Any:
    """An equal value, with 0.0 and -0.0 exchanged."""
    if isinstance(made, tuple):
        return tuple(map(with_other_zeros, made))
    return -made if isinstance(made, float) and made == 0 else made


def told(made: Any) -> Any:
    return None if made is None else order_key(made)


def check(expression: Expression, calls: Calls, count: int) -> None:
    known = ExpressionFacts(expression)
    evaluate = evaluator(expression, tuple(calls.schema), {})
    for row in calls.rows(count):
        try:
            found = evaluate(row)
        except EvaluationError:
            fails = known.can_fail and known.value is ...
            assert fails, (expression, row)
            continue
        assert found is not None or nullable(expression), (expression, row)
        if known.range is not None and found is not None:
            assert known.range.least <= found <= known.range.most, (expression, row, found)  # type: ignore[operator]
        if known.value is not ...:
            assert told(found) == told(known.value), (expression, row, found)
        if not known.tells_equals_apart and not known.can_fail:
            other = evaluate(with_other_zeros(row))
            assert told(other) == told(found), (expression, row, found, other)


DETERMINISTIC = [name for name in functions.names() if functions.lookup(name).deterministic]  # type: ignore[union-attr]


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_a_function_does_what_it_promises(name: str) -> None:
    function = functions.lookup(name)
    assert function is not None
    proven = 0
    for number in range(examples(200)):
        calls = Calls(f"{name} {number}")
        expression = calls.call(name, depth=number % 3)
        if expression is not None:
            check(expression, calls, 12)
            proven += not ExpressionFacts(expression).can_fail
    promises = function.facts.total is not False
    assert bool(proven) or not promises, "no call showed that it never fails"


@pytest.mark.parametrize("target", [*TYPES.values()], ids=str)
def test_a_cast_does_what_is_known_of_it(target: pa.DataType) -> None:
    for number in range(examples(300)):
        calls = Calls(f"{target} {number}")
        operand = calls.operand(calls.chance.choice([*TYPES.values()]), 2)
        if can_cast(operand.type, target):
            check(Cast(operand, target), calls, 12)


def test_field_access_does_what_it_promises() -> None:
    calls = Calls("field")
    pair = calls.column(TYPES["p"])
    for name, type in ((".a", INT), (".b", STRING)):
        check(Call(name, (pair,), type), calls, examples(200))
        assert not ExpressionFacts(Call(name, (pair,), type)).can_fail


# --- facts that were wrong --------------------------------------------------------------------

S, D, L = Column("s", STRING), Column("d", DOUBLE), Column("l", BIGINT)
FIVE = Literal(5, BIGINT)


@pytest.mark.parametrize(
    "expression",
    [
        # Both are cast to their common type, which not every text has a value of.
        Call("nullif", (S, Literal(5, INT)), STRING),
        # An interval divided by a small number is too long.
        Call("/", (Literal(10**15, INTERVAL), Column("v", INTERVAL)), INTERVAL),
        Call("/", (Column("v", INTERVAL), Literal(1e-300, DOUBLE)), INTERVAL),
    ],
    ids=["nullif of different types", "interval by interval", "interval by a small number"],
)
def test_what_can_fail(expression: Expression) -> None:
    assert ExpressionFacts(expression).can_fail


def test_a_power_tells_zeros_apart() -> None:
    expression = Call("power", (D, Literal(-1.0, DOUBLE)), DOUBLE)
    assert not ExpressionFacts(expression).can_fail
    assert ExpressionFacts(expression).tells_equals_apart


@pytest.mark.parametrize(
    ("expression", "fails"),
    [
        (Call("%", (L, FIVE), BIGINT), False),
        (Call("%", (L, L), BIGINT), True),
        (Call("+", (Call("%", (L, FIVE), BIGINT), FIVE), BIGINT), False),
        (Call("+", (L, FIVE), BIGINT), True),
        (Cast(Literal("12", STRING), INT), False),
        (Cast(Literal("x", STRING), INT), True),
        (Call("date_trunc", (Literal("hour", STRING), Column("t", TIMESTAMP)), TIMESTAMP), False),
        (Call("coalesce", (Literal(1, INT), Cast(Literal("x", STRING), INT)), INT), False),
    ],
)  # fmt: skip
def test_what_constants_and_ranges_prove(expression: Expression, fails: bool) -> None:
    assert ExpressionFacts(expression).can_fail is fails


# --- what nothing knows -----------------------------------------------------------------------


def test_a_function_without_facts_may_do_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = Function("silent", lambda types: functions.Signature(types, types[0]), lambda _, x: x)
    monkeypatch.setitem(registry._FUNCTIONS, "silent", silent)
    for name in ("silent", "of_the_users"):
        whole = Literal(1, BIGINT)
        call = Call(name, (replace(L, nullable=False),), BIGINT)
        assert ExpressionFacts(call).can_fail
        assert nullable(call)
        assert ExpressionFacts(call).range == range_of_type(BIGINT)
        assert ExpressionFacts(call).value is ...
        assert ExpressionFacts(Call(name, (D,), DOUBLE)).tells_equals_apart
        assert ExpressionFacts(Call("+", (call, whole), BIGINT)).can_fail
    assert ExpressionFacts(Call("of_the_users", (Literal(1, INT),), INT)).value is ...


def test_an_aggregate_without_facts_may_do_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = aggregates.AggregateFunction("silent", lambda t: functions.Signature(t, t[0]), max)
    monkeypatch.setitem(aggregates._FUNCTIONS, "silent", silent)
    for name in ("silent", "of_the_users"):
        call = AggregateCall(name, (Column("n", INT, "L", False),), INT)
        assert aggregate_can_fail(call)
        assert nullable(call)
        unbounded = TimeWindow(replace(SOURCE, bounded=False), INFINITY)
        plan = Aggregate(unbounded, (), (Named(call, "x"),))
        assert [what for _, what, _ in growing(plan)] == [name.upper()]


# --- aggregates -------------------------------------------------------------------------------


def groups(name: str) -> Iterator[tuple[functions.Signature, list[tuple[Any, ...]]]]:
    function = aggregates.lookup(name)
    assert function is not None
    for number in range(examples(300)):
        chance = random.Random(f"{name} {number}")
        wanted = [chance.choice([*TYPES.values()]) for _ in range(chance.randrange(3))]
        try:
            signature = function.signature(tuple(wanted))
        except SignatureError:
            continue
        rows = chance.randrange(8)
        yield (
            signature,
            [tuple(value(chance, t) for t in signature.arguments) for _ in range(rows)],
        )


@pytest.mark.parametrize("name", aggregates.names())
def test_an_aggregate_does_what_it_promises(name: str) -> None:
    function = aggregates.lookup(name)
    assert function is not None
    for signature, rows in groups(name):
        arguments = [
            ExpressionFacts(Column(f"c{n}", type)) for n, type in enumerate(signature.arguments)
        ]
        try:
            found = function.evaluate(signature, rows)
        except EvaluationError:
            total = function.is_total(signature.result, arguments)
            assert not total, rows
            continue
        assert found is not None or function.empty is None
        assert rows or found == function.empty
        if function.chooses:
            assert found is None or told(found) in [told(row[0]) for row in rows]
        if function.ignores_duplicates:
            chance = random.Random(str(rows))
            again = [row for row in rows for _ in range(chance.randrange(1, 3))] + rows[:2]
            assert told(function.evaluate(signature, again)) == told(found)
            once = list(dict.fromkeys(rows))
            assert told(function.evaluate(signature, once)) == told(found)


def test_aggregates_that_count_duplicates_are_not_marked() -> None:
    """The flag is not only true where it stands; it also stands where it is true."""
    marked = {n for n in aggregates.names() if aggregates.lookup(n).ignores_duplicates}  # type: ignore[union-attr]
    assert marked == {"min", "max", "min_by", "max_by", "bool_and", "bool_or", "first"}


@pytest.mark.parametrize(
    ("share", "fails"), [(0.5, False), (None, False), (1.5, True), (..., True)]
)
def test_a_quantile_fails_beyond_its_range(share: Any, fails: bool) -> None:
    rank: Expression = D if share is ... else Literal(share, DOUBLE)
    assert aggregate_can_fail(AggregateCall("quantile", (D, rank), DOUBLE)) is fails


# --- operators --------------------------------------------------------------------------------

SOURCE = Source("L", "L", (Field("n", INT), Field("x", DOUBLE)), RAW_TIME)
OTHER = replace(SOURCE, stream="R", alias="R")
N, X = (field.column for field in SOURCE.schema)
COUNT = Named(AggregateCall("max", (N,), INT), "m")
POSITIVE = Call(">", (N, Literal(0, INT)), BOOLEAN)


def nodes(left: Plan, right: Plan) -> dict[str, Plan]:
    """A node of each kind."""
    binary = ("Union", "MaxUnion", "Difference", "StrictDifference", "Intersection")
    return {
        "Source": SOURCE,
        "Filter": Filter(left, POSITIVE),
        "Map": Map(left, (Named(N, "n"), Named(X, "x"))),
        "Join": Join(left, right, condition=Call("=", (N, OTHER.schema[0].column), BOOLEAN)),
        **{name: NODE_TYPES[name](left, right) for name in binary},  # type: ignore[call-arg]
        "Distinct": Distinct(left),
        "Aggregate": Aggregate(left, (Named(X, "x"),), (COUNT,)),
        "TopN": TopN(left, 2, (SortKey(N),), (X,)),
        "TimeWindow": TimeWindow(left, 5),
        "CountWindow": CountWindow(left, 5, (N,)),
        "PartitionedWindow": PartitionedWindow(left, (X,), 5, (N,)),
        "Granularity": Granularity(left, 5),
        "Istream": Istream(left),
        "Dstream": Dstream(left),
        "Rstream": Rstream(left),
    }


NODES = nodes(SOURCE, OTHER)

# Of a node of each kind over streams of instants: rows live one instant, only the present is seen,
# what tells rows apart, what an UNBOUNDED window below makes grow, empty if its inputs are.
OPERATORS: dict[str, tuple[bool, bool, bool, str | None, bool]] = {
    "Source": (True, True, False, None, False),
    "Filter": (True, True, False, None, True),
    "Map": (True, True, False, None, True),
    "Join": (True, True, False, "the inner join", True),
    "Union": (True, True, False, None, True),
    "MaxUnion": (True, True, False, "the max-union", True),
    "Difference": (True, True, False, "EXCEPT", True),
    "StrictDifference": (True, True, False, "EXCEPT", True),
    "Intersection": (True, True, False, "INTERSECT", True),
    "Distinct": (True, True, True, "DISTINCT", True),
    "Aggregate": (True, True, True, None, True),
    "TopN": (True, True, False, None, True),
    "TimeWindow": (False, False, False, None, True),
    "CountWindow": (False, False, False, None, True),
    "PartitionedWindow": (False, False, False, None, True),
    "Granularity": (False, False, False, None, True),
    "Istream": (True, True, False, None, True),
    "Dstream": (True, True, False, None, True),
    "Rstream": (True, False, False, None, True),
}


def test_every_kind_of_node_is_asked() -> None:
    assert NODES.keys() == OPERATORS.keys() == NODE_TYPES.keys()


@pytest.mark.parametrize("name", OPERATORS)
def test_every_fact_of_every_node(name: str) -> None:
    instant, now, unique, grows, empty = OPERATORS[name]
    node = NODES[name]
    assert lives_one_instant(node) is instant
    assert only_now(node) is now
    assert bool(unique_columns(node)) is unique
    assert granule(node) == (5 if name == "Granularity" else 1)
    assert given_anew(node) == (1 if name == "Rstream" else None)
    assert not exactly_one_row(node)
    assert unique_in_stream(node) == []
    assert not rows_can_fail(node)
    live = [TimeWindow(replace(s, bounded=False), INFINITY) for s in (SOURCE, OTHER)]
    held = {what for _, what, _ in growing(nodes(live[0], live[1])[name])}
    assert held == ({grows} if grows else set())
    nothing = [Filter(s, Literal(False, BOOLEAN)) for s in (SOURCE, OTHER)]
    assert is_empty(nodes(nothing[0], nothing[1])[name]) is empty


@pytest.mark.parametrize("name", [name for name, node in NODES.items() if own_expressions(node)])
def test_a_node_fails_where_one_of_its_expressions_does(name: str) -> None:
    def failing(part: Expression) -> Expression:
        return Cast(Cast(part, STRING), part.type) if isinstance(part, Column) else part

    assert rows_can_fail(map_expressions(NODES[name], failing))


@dataclass(frozen=True)
class Strange(Plan):
    """An operator that no fact knows."""

    input: Plan


@dataclass(frozen=True)
class StrangeSource(Plan):
    """And one that reads something else."""

    input_names = ()
    schema = SOURCE.schema


@pytest.mark.parametrize("node", [Strange(SOURCE), StrangeSource()], ids=["operator", "source"])
def test_an_operator_that_nothing_knows_may_do_anything(node: Plan) -> None:
    assert rows_can_fail(node)
    assert not lives_one_instant(node)
    assert not only_now(node)
    assert not exactly_one_row(node)
    assert granule(node) == 1
    assert given_anew(node) is None
    assert unique_columns(node) == unique_in_stream(node) == []
    assert not is_empty(node)


def test_a_strange_operator_keeps_what_is_valid_for_ever() -> None:
    live = TimeWindow(replace(SOURCE, bounded=False), INFINITY)
    assert [what for _, what, _ in growing(Strange(live))] == ["the operator Strange"]
    joined = Join(Strange(live), Strange(live))
    assert "the inner join" in {what for _, what, _ in growing(joined)}


@pytest.mark.parametrize(("granularity", "plan"), product([4, 6], [Distinct, Strange]))
def test_a_strange_operator_has_no_granule(granularity: int, plan: type[Plan]) -> None:
    node = plan(Granularity(SOURCE, granularity))  # type: ignore[call-arg]
    assert granule(node) == (1 if plan is Strange else granularity)


def test_constants_of_dates() -> None:
    call = Call("date_add", (Literal(0, DATE), Literal(3, INT)), DATE)
    assert ExpressionFacts(call).value == 3
    assert ExpressionFacts(Cast(Literal(10, INT), decimal_type(1, 0))).value is ...
