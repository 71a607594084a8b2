"""Long runs with ever new keys: what is gone is forgotten, codes and slots are used again, rings
and calendars go round, and nothing of that shows in the answer.

Thousands of rows in small batches, with the state saved and taken over now and then, must give what
one single batch gives.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pyarrow as pa
import pytest

from effort import examples
from millstream.logical.expressions import AggregateCall, Call, Expression
from millstream.logical.plan import (
    Aggregate,
    CountWindow,
    Difference,
    Distinct,
    Dstream,
    Granularity,
    Intersection,
    Istream,
    Join,
    JoinKind,
    MaxUnion,
    Named,
    PartitionedWindow,
    Plan,
    SortKey,
    Source,
    StrictDifference,
    TimeWindow,
    TopN,
    Union,
    rename,
)
from millstream.model import types
from millstream.model.elements import Element
from millstream.model.time import INFINITY
from millstream.optimizer.choice import Approach, Choices, choose
from millstream.physical.state.keys import KeySpace
from runtime.random_plans import PAIR, source
from runtime.schedule_agreement import Feed, Outcome, Running
from runtime.schedules import Arrival

ROWS, BATCH = examples(1_000), 25
BIGINT, BOOLEAN, STRING = types.BIGINT, types.BOOLEAN, types.STRING


def elements_of(stream: str, key: pa.DataType) -> list[Element]:
    """Two or three rows an instant, keys that come for a while and never again."""
    random = Random(stream)
    elements = []
    for number in range(ROWS):
        start = number * 2 // 5
        k = key_of(start + random.choice((0, 0, 1, 7)), key)
        v = random.choice((0, 1, 2, None))
        length = 1 if stream in "SR" else random.choice((1, 3, 12))
        elements.append(Element((k, v), start, start + length, random.choice((1, 1, 2))))
    return elements


def key_of(number: int, key: pa.DataType) -> object:
    if number % 11 == 0:
        return None
    if key == STRING:
        return f"key {number}"
    return number if key == BIGINT else (number % 7, f"part {number}")


# --- plans ----------------------------------------------------------------------------------------


def positive(stream: str, key: pa.DataType) -> Plan:
    return TimeWindow(source(stream, key), 6)


def interval(stream: str, key: pa.DataType) -> Plan:
    return source({"S": "I", "R": "J"}[stream], key)


def signed(stream: str, key: pa.DataType) -> Plan:
    of = source(stream, key)
    return CountWindow(of, 15, tuple(field.column for field in of.schema))


def grouped(stream: str, key: pa.DataType) -> Plan:
    of = source(stream, key)
    count = AggregateCall("count", (), BIGINT)
    keys = tuple(Named(field.column, field.name, stream) for field in of.schema)
    counted = Aggregate(TimeWindow(of, 8), keys[:1], (Named(count, "v", stream),))
    return rename(counted, [(stream, "k"), (stream, "v")])


INPUTS = {"positive": positive, "interval": interval, "signed": signed, "grouped": grouped}


def join(kind: JoinKind, theta: bool) -> Callable[[Plan, Plan], Plan]:
    def joined(left: Plan, right: Plan) -> Plan:
        (lk, lv), (rk, rv) = ([f.column for f in side.schema[:2]] for side in (left, right))
        condition: Expression = Call("=", (lk, rk), BOOLEAN)
        if theta:
            condition = Call("and", (condition, Call("<=", (lv, rv), BOOLEAN)), BOOLEAN)
        return Join(left, right, kind, condition)

    return joined


def set_operation(node: type[Plan]) -> Callable[[Plan, Plan], Plan]:
    return lambda left, right: node(left, rename(right, [f.key for f in left.schema]))  # type: ignore[call-arg]


def aggregate(left: Plan, right: Plan) -> Plan:
    k, v = (field.column for field in left.schema)
    calls = (
        AggregateCall("sum", (v,), BIGINT),
        AggregateCall("max", (v,), BIGINT),
        AggregateCall("count", (v,), BIGINT, distinct=True),
        AggregateCall("last", (v,), BIGINT, order=(k, v)),
        AggregateCall("max", (k,), k.type),
    )
    named = tuple(Named(call, f"c{i}") for i, call in enumerate(calls))
    return Aggregate(left, (Named(k, "k"),), named)


def top(left: Plan, right: Plan) -> Plan:
    k, v = (field.column for field in left.schema)
    return TopN(left, 2, (SortKey(v, True), SortKey(k)), (k,))


def windowed(left: Plan, right: Plan) -> Plan:
    return TimeWindow(Granularity(left, 4), 8, 4, 4)


def last_rows(left: Plan, right: Plan) -> Plan:
    order = tuple(field.column for field in left.schema)
    return CountWindow(left, 9, order, 2, 4)


def last_of_each(left: Plan, right: Plan) -> Plan:
    order = tuple(field.column for field in left.schema)
    return PartitionedWindow(left, order[:1], 2, order, 1, 4)


OPERATORS: dict[str, Callable[[Plan, Plan], Plan]] = {
    **{f"{kind.value} join": join(kind, False) for kind in JoinKind},
    **{f"{kind.value} join with theta": join(kind, True) for kind in JoinKind},
    **{
        node.__name__: set_operation(node)
        for node in (Union, Difference, StrictDifference, Intersection, MaxUnion)
    },
    "distinct": lambda left, right: Distinct(left),
    "aggregate": aggregate,
    "top": top,
    "window": windowed,
    "rows": last_rows,
    "partitions": last_of_each,
    "istream": lambda left, right: Istream(left),
    "dstream": lambda left, right: Dstream(left),
}


# --- runs -----------------------------------------------------------------------------------------


def run(plan: Plan, key: pa.DataType, rows: int, emit: str, approach: Approach) -> Outcome:
    """In batches of so many rows, whichever input is furthest behind first."""
    sources = {node.stream: node for node in plan.walk() if isinstance(node, Source)}
    inputs = {stream: elements_of(stream, key) for stream in sources}
    feeds = {stream: Feed(sources[stream], inputs[stream]) for stream in sources}
    running = Running(choose(plan, emit, Choices(approach=approach)))
    for number, first in enumerate(range(0, ROWS, rows)):
        for stream, elements in sorted(inputs.items()):
            taken = range(first, min(first + rows, ROWS))
            frontier = elements[taken[-1]].start
            running.push(feeds[stream], Arrival(stream, tuple(taken), frontier))
        if number % 13 == 12:
            running.restart(anew=number % 2 == 0)
    for stream in sorted(sources):
        running.push(feeds[stream], Arrival(stream, (), INFINITY))
    return running.finished()


@pytest.fixture(autouse=True)
def short_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget as soon as a few keys are gone, not only when many are."""
    monkeypatch.setattr(KeySpace, "is_stale", property(lambda keys: keys.count > keys._kept + 16))


# All but one pair: a count window moves for ever over the last rows of another one.
PAIRS = [(n, s) for n in OPERATORS for s in INPUTS if (n, s) != ("rows", "signed")]


@pytest.mark.parametrize(("name", "shape"), PAIRS)
def test_nothing_is_forgotten_too_early(name: str, shape: str) -> None:
    random = Random(f"{name} {shape}")
    key = random.choice([STRING, STRING, BIGINT, PAIR])
    emit = random.choice(["FINAL", "CHANGES", "ELEMENTS"])
    approach = random.choice([Approach.HYBRID, Approach.HYBRID, Approach.SIGNED])
    plan = OPERATORS[name](INPUTS[shape]("S", key), INPUTS[shape]("R", key))
    whole = run(plan, key, ROWS, "FINAL", Approach.HYBRID)
    assert run(plan, key, BATCH, emit, approach).answer == whole.answer
