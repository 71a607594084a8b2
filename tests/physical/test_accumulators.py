"""Every accumulator gives what the definition of its aggregate says, after every segment.

The usual run draws the same examples each time. MILLSTREAM_EXAMPLES=300 draws so many new ones.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.logical import aggregates
from millstream.logical.expressions import AggregateCall, Column, Literal
from millstream.logical.functions import SignatureError
from millstream.model.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    REAL,
    STRING,
    TIMESTAMP,
    decimal_type,
)
from millstream.model.values import NAN
from millstream.physical.accumulators import accumulator
from physical.accumulator_cases import EXAMPLES, call_of, check, scripts

MONEY = decimal_type(10, 2)
LONG = decimal_type(38, 4)
ORDERED = [BOOLEAN, INT, BIGINT, REAL, DOUBLE, DATE, TIMESTAMP, INTERVAL, MONEY]
OTHER = [STRING, BINARY, LONG, pa.list_(INT)]


def at_share(share: float, *, distinct: bool = False) -> AggregateCall:
    """QUANTILE with a share that is written in the query."""
    call = call_of("quantile", DOUBLE, DOUBLE, distinct=distinct)
    return replace(call, arguments=(call.arguments[0], Literal(share, DOUBLE)))


CALLS = [
    call_of("count"),
    call_of("count", filtered=True),
    call_of("count", INT),
    call_of("count", STRING, DOUBLE, filtered=True),
    call_of("count_if", BOOLEAN),
    call_of("bool_and", BOOLEAN),
    call_of("bool_or", BOOLEAN, filtered=True),
    *(call_of("sum", type) for type in (BIGINT, INTERVAL, MONEY, LONG, DOUBLE)),
    *(call_of("avg", type) for type in (INTERVAL, MONEY, LONG, DOUBLE)),
    *(call_of(name, type) for type in ORDERED + OTHER for name in ("min", "max")),
    call_of("max", BIGINT, filtered=True),
    call_of("min_by", STRING, INT),
    call_of("max_by", DOUBLE, DOUBLE),
    call_of("median", DOUBLE),
    call_of("array_agg", STRING, filtered=True, order=(INT, STRING)),
    call_of("array_agg", DOUBLE, distinct=True, order=(INT,)),
    call_of("first", INT, order=(BIGINT,)),
    call_of("last", STRING, filtered=True, order=(DOUBLE,)),
    call_of("last", INT, distinct=True, order=(INT,)),
    call_of("quantile", DOUBLE, DOUBLE),
    *(at_share(share) for share in (0.0, 0.3, 1.0, 1.5)),
    at_share(0.75, distinct=True),
    *(call_of(name, DOUBLE) for name in ("var_samp", "var_pop", "stddev_samp", "stddev_pop")),
    *(call_of("count", type, distinct=True) for type in (*ORDERED, *OTHER)),
    call_of("count", STRING, INT, distinct=True),
    call_of("count_if", BOOLEAN, distinct=True, filtered=True),
    call_of("sum", BIGINT, distinct=True, filtered=True),
    call_of("sum", DOUBLE, distinct=True),
    call_of("sum", LONG, distinct=True),
    call_of("avg", MONEY, distinct=True),
    call_of("max", STRING, distinct=True),
    call_of("var_samp", DOUBLE, distinct=True),
    call_of("median", DOUBLE, distinct=True),
]


def label(call: AggregateCall) -> str:
    parts = [call.function, *(str(argument.type) for argument in call.arguments)]
    parts += ["distinct"] * call.distinct + ["filter"] * (call.filter is not None)
    return "-".join(parts)


@pytest.mark.parametrize("call", CALLS, ids=label)
@EXAMPLES
@given(data=st.data())
def test_any_order(call: AggregateCall, data: st.DataObject) -> None:
    check(call, data.draw(scripts(call, fifo=False)))


FIFO = [call for call in CALLS if call.function in ("min", "max", "sum", "count")]


@pytest.mark.parametrize("call", FIFO, ids=label)
@EXAMPLES
@given(data=st.data())
def test_rows_that_go_as_they_came(call: AggregateCall, data: st.DataObject) -> None:
    check(call, data.draw(scripts(call, fifo=True)), fifo=True)


LASTING = [call for call in CALLS if call.function in ("min", "max", "min_by", "max_by", "first")]
LASTING += [call for call in CALLS if call.function == "last"]


@pytest.mark.parametrize("call", LASTING, ids=label)
@EXAMPLES
@given(data=st.data())
def test_rows_that_never_go(call: AggregateCall, data: st.DataObject) -> None:
    check(call, data.draw(scripts(call, lasting=True)), lasting=True)


# --- zeros and NaNs -------------------------------------------------------------------------------

ZEROS = [[-0.0], [0.0], [-0.0, -0.0], [-0.0, 0.0], [0.0, -0.0, 1.0, -1.0], [-5e-324]]
NANS = [[NAN], [-NAN, 1.0], [float("inf"), float("-inf")]]


@pytest.mark.parametrize("name", aggregates.names())
@pytest.mark.parametrize("distinct", [False, True])
def test_equal_doubles_of_one_form_have_equal_bits(name: str, distinct: bool) -> None:
    call = AggregateCall(name, (Column("x", DOUBLE),), DOUBLE, distinct=distinct)
    try:
        function = aggregates.lookup(name)
        if function is None or function.signature((DOUBLE,)).result != DOUBLE:
            return
    except SignatureError:
        return
    found = accumulator(call, {}, fifo=False)
    assert found.one_form == (name in ("min", "max") or (name == "sum" and not distinct))
    for values in ZEROS + NANS if found.one_form else []:
        state = accumulator(call, {}, fifo=False)
        state.grow(1)
        count = len(values)
        words = state.encode([pa.array(values, DOUBLE)], [], None, count)
        ones, bounds = np.ones(count, np.int64), np.array([0, count])
        (result,) = state.step(np.zeros(count, np.int64), words, ones, bounds).values.to_pylist()
        (bits,) = np.array([result]).view(np.int64)
        assert bits == np.array([NAN if result != result else result + 0.0]).view(np.int64)[0]
