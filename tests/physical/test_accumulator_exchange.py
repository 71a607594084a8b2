"""Accumulators that know what to do when one row comes for one that goes do what a step does."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.logical.expressions import AggregateCall
from millstream.model.types import BIGINT, DOUBLE, INTERVAL, decimal_type
from millstream.physical.accumulators import Answer, accumulator
from millstream.physical.accumulators.accumulator import Accumulator
from physical.accumulator_cases import EXAMPLES, call_of, identical, values

MONEY, LONG = decimal_type(10, 2), decimal_type(38, 4)
CALLS = [
    call_of("count"),
    call_of("count", BIGINT),
    *(call_of("sum", type) for type in (BIGINT, INTERVAL, MONEY, LONG, DOUBLE)),
    *(call_of("avg", type) for type in (INTERVAL, MONEY, LONG, DOUBLE)),
    call_of("max", BIGINT),
]


def slid(call: AggregateCall, rows: pa.Array, window: int, at_once: bool) -> list[Answer]:
    """The answers of a full window that slides over the rest of the rows."""
    made = accumulator(call, {}, fifo=True)
    made.grow(1)
    words = made.encode([rows] * len(call.arguments), [], None, len(rows))
    first = [word[:window] for word in words]
    came, went = [word[window:] for word in words], [word[:-window] for word in words]
    length = len(rows) - window
    nothing = [word[:0] for word in words]
    made.step(np.zeros(window, np.int64), first, np.ones(window, np.int64), np.array([0, window]))
    if at_once:
        return [made.exchange(came, went, length), made.exchange(nothing, nothing, 0)]
    return [Accumulator.exchange(made, came, went, length), made.exchange(nothing, nothing, 0)]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.function}-{call.type}")
@EXAMPLES
@given(st.data())
def test_one_row_for_another(call: AggregateCall, data: st.DataObject) -> None:
    type = call.arguments[0].type if call.arguments else BIGINT
    items = data.draw(st.lists(values(type), min_size=3, max_size=12))
    window = data.draw(st.integers(1, len(items) - 1))
    rows = pa.array(items, type)
    fast, slow = (slid(call, rows, window, at_once) for at_once in (True, False))
    for one, other in zip(fast, slow, strict=True):
        pairs = zip(one.values.to_pylist(), other.values.to_pylist(), strict=True)
        assert all(identical(a, b) for a, b in pairs)
        assert one.messages == other.messages
    after, later = fast
    if later.with_first is not None:
        (last,) = later.with_first.to_pylist()
        assert identical(last, after.values[-1].as_py())
