"""Accumulators for aggregates of the user's."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.logical.evaluate import UserAggregate
from millstream.logical.expressions import AggregateCall, Column
from millstream.model.codec import packed, unpacked
from millstream.model.errors import QueryError
from millstream.model.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING
from millstream.physical.accumulators import accumulator
from physical.accumulator_cases import EXAMPLES, check, scripts


def _product(value: int, other: int) -> int:
    if value == 3:
        raise ValueError("three is unlucky")
    return value * other


def _fold(a: list[int], b: list[int]) -> list[int]:
    return [*a, *b]


def _unfold(a: list[int], b: list[int]) -> list[int]:
    rest = list(a)
    for value in b:
        rest.remove(value)
    return rest


TOTAL = UserAggregate("total", int, operator.add, int, BIGINT, operator.sub)
UNLUCKY = UserAggregate("unlucky", _product, operator.add, int, BIGINT, operator.sub)
WRONG = UserAggregate("wrong", int, operator.add, str, BIGINT, operator.sub)
STUCK = UserAggregate("stuck", int, operator.add, int, BIGINT, lambda a, b: 1 // 0)
JOINED = UserAggregate(
    "joined", lambda v: [v], _fold, lambda vs: "".join(map(str, sorted(vs))), STRING, _unfold
)
HIDDEN = UserAggregate(
    "hidden", lambda v: lambda: v, lambda a, b: lambda: a() + b(), lambda a: a(), BIGINT,
    lambda a, b: lambda: a() - b(),
)  # fmt: skip
FORWARD = UserAggregate("forward", str, lambda a, b: f"{a}{b}", str, STRING)
NOTHING = UserAggregate("nothing", lambda: 1, operator.add, int, BIGINT, operator.sub)

ALL = [TOTAL, UNLUCKY, WRONG, STUCK, JOINED, HIDDEN, FORWARD, NOTHING]


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("aggregate", ALL, ids=lambda aggregate: aggregate.name)
@EXAMPLES
@given(data=st.data())
def test_what_the_definition_says(
    aggregate: UserAggregate, distinct: bool, data: st.DataObject
) -> None:
    counts = {"unlucky": 2, "nothing": 0}
    arguments = tuple(Column(f"a{k}", INT) for k in range(counts.get(aggregate.name, 1)))
    filter = Column("f", BOOLEAN)
    call = AggregateCall(aggregate.name, arguments, aggregate.returns, distinct, filter)
    check(call, data.draw(scripts(call, fifo=False)), user={aggregate.name: aggregate})


def test_a_row_that_comes_costs_one_call() -> None:
    calls: list[Any] = []

    def merge(a: int, b: int) -> int:
        calls.append((a, b))
        return a + b

    user = UserAggregate("total", int, merge, int, BIGINT, operator.sub)
    subject = accumulator(
        AggregateCall("total", (Column("a", BIGINT),), BIGINT), {"total": user}, fifo=False
    )
    words = subject.encode([pa.array(range(100))], [], None, 100)
    group, delta = np.zeros(100, np.int64), np.ones(100, np.int64)
    answer = subject.step(group, words, delta, np.arange(101))
    assert answer.values[-1].as_py() == 4950
    assert len(calls) == 99


# --- partial aggregates in a checkpoint -----------------------------------------------------------


def saved_and_restored(user: UserAggregate) -> tuple[list[Any], list[Any]]:
    """The sums after 0.1 + 0.2 - 0.1, kept in memory and through a checkpoint."""
    call = AggregateCall("total", (Column("x", DOUBLE),), DOUBLE)

    def add(made: Any, values: list[float], delta: int) -> list[Any]:
        words = made.encode([pa.array(values)], [], None, len(values))
        count = len(values)
        zeros, deltas = np.zeros(count, np.int64), np.full(count, delta)
        answer = made.step(zeros, words, deltas, np.array([0, count]))
        found: list[Any] = answer.values.to_pylist()
        return found

    kept = accumulator(call, {"total": user}, fifo=False)
    add(kept, [0.1, 0.2], 1)
    add(kept, [0.1], -1)
    anew = accumulator(call, {"total": user}, fifo=False)
    anew.restore(unpacked(packed(kept.save())))
    return add(kept, [1e-17], 1), add(anew, [1e-17], 1)


SUM = UserAggregate("total", float, operator.add, float, DOUBLE, operator.sub)


class Box:
    def __init__(self, total: float) -> None:
        self.total = float(total)


BOX = UserAggregate(
    "total", Box, lambda a, b: Box(a.total + b.total), lambda a: a.total, DOUBLE,
    lambda a, b: Box(a.total - b.total),
)  # fmt: skip


def test_partial_aggregates_that_are_plain_values() -> None:
    kept, anew = saved_and_restored(SUM)
    assert kept == anew == [0.20000000000000004]


@pytest.mark.parametrize("user", [BOX, replace(SUM, init=np.float64)], ids=["object", "NumPy"])
def test_other_partial_aggregates_are_computed_from_the_rows(user: UserAggregate) -> None:
    kept, anew = saved_and_restored(user)
    assert kept == [0.20000000000000004]
    assert anew == [0.2]


def test_partial_aggregates_are_dumped_and_loaded() -> None:
    told: list[object] = []

    def load(data: Any) -> object:
        told.append(data)
        return Box(data["total"])

    user = replace(BOX, dump=lambda box: {"total": box.total}, load=load)
    kept, anew = saved_and_restored(user)
    assert kept == anew == [0.20000000000000004]
    assert told == [{"total": 0.20000000000000004}]


def test_what_dump_may_not_give() -> None:
    with pytest.raises(QueryError) as raised:
        saved_and_restored(replace(SUM, dump=lambda total: {total}, load=lambda told: told))
    assert str(raised.value) == (
        'error: aggregate "total": "dump" failed: a record cannot contain a value of type set\n'
        "help: dump must return plain values: numbers, strings, bytes, NumPy and Arrow arrays, and "
        "lists, tuples and dicts of these"
    )


def test_a_load_that_fails() -> None:
    with pytest.raises(
        QueryError, match='aggregate "total": "load" failed: float division by zero'
    ):
        saved_and_restored(replace(SUM, dump=lambda total: total, load=lambda told: told / 0))
