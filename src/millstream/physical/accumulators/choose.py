"""The accumulator that suits an aggregate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from millstream import types
from millstream.logical.evaluate import UserAggregate
from millstream.logical.expressions import AggregateCall
from millstream.physical.accumulators.accumulator import Accumulator
from millstream.physical.accumulators.counts import Count, CountRows, Decision
from millstream.physical.accumulators.distinct import Distinct
from millstream.physical.accumulators.doubles import DoubleSum
from millstream.physical.accumulators.extremes import Extreme
from millstream.physical.accumulators.general import Chosen, General, is_chosen
from millstream.physical.accumulators.moments import Moment
from millstream.physical.accumulators.sums import ExactSum
from millstream.physical.accumulators.user import Incremental, Recomputed
from millstream.physical.accumulators.words import Layout, has_word, may_be_absent
from millstream.types import DOUBLE

_MOMENTS = ("var_samp", "var_pop", "stddev_samp", "stddev_pop")
_OVER_WORDS = ("count", "count_if", "sum", "avg", *_MOMENTS)
_SAME_IF_DISTINCT = ("min", "max", "min_by", "max_by", "bool_and", "bool_or", "first")


def accumulator(
    call: AggregateCall, user: Mapping[str, UserAggregate], *, fifo: bool
) -> Accumulator:
    """An accumulator for an aggregate; `fifo` if the rows of every group are known to go in the
    order in which they came."""
    if call.function in user:
        aggregate = user[call.function]
        return (Recomputed if aggregate.remove is None else Incremental)(call, aggregate)
    if call.distinct and call.function not in _SAME_IF_DISTINCT:
        return _distinct(call)
    return _over_all(call, fifo)


def _over_all(call: AggregateCall, fifo: bool) -> Accumulator:
    """An aggregate without DISTINCT, or that is the same with it."""
    match call.function:
        case "count":
            return Count(False) if may_be_absent(call) else CountRows()
        case "count_if":
            return Count(True)
        case "bool_and" | "bool_or":
            return Decision(call.function == "bool_or")
        case "sum" | "avg":
            average = call.function == "avg"
            return DoubleSum(average) if call.type == DOUBLE else ExactSum(call)
        case "var_samp" | "var_pop" | "stddev_samp" | "stddev_pop":
            return Moment(call.function)
        case "min" | "max" if has_word(call.type):
            return Extreme(call, fifo=fifo)
    return Chosen(call) if is_chosen(call) else General(call)


def _distinct(call: AggregateCall) -> Accumulator:
    """The same aggregate behind a set, if it takes one word."""
    argument = call.arguments[0].type if len(call.arguments) == 1 else types.NULL
    if not has_word(argument) or call.function not in _OVER_WORDS:
        return General(call)
    inner = (
        CountRows() if call.function == "count" else _over_all(replace(call, distinct=False), False)
    )
    return Distinct(inner, Layout(argument, may_be_absent(call)))
