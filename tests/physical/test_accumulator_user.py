"""Accumulators for aggregates of the user's."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.logical.evaluate import UserAggregate
from millstream.logical.expressions import AggregateCall, Column
from millstream.model.types import BIGINT, BOOLEAN, INT, STRING
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
