"""Chooses the accumulator for an aggregate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from millstream.logical.aggregates import lookup
from millstream.logical.evaluate import UserAggregate
from millstream.logical.expressions import AggregateCall
from millstream.model.types import DOUBLE
from millstream.physical.accumulators.accumulator import Accumulator
from millstream.physical.accumulators.counts import Count, CountRows, Decision
from millstream.physical.accumulators.distinct import DistinctAccumulator, DistinctRowCount
from millstream.physical.accumulators.doubles import DoubleSum
from millstream.physical.accumulators.extremes import Extreme
from millstream.physical.accumulators.general import Chosen, General, is_chosen
from millstream.physical.accumulators.moments import Moment
from millstream.physical.accumulators.quantiles import Quantile, share_of
from millstream.physical.accumulators.sums import ExactSum
from millstream.physical.accumulators.user import Incremental, Recomputed
from millstream.physical.accumulators.words import Layout, has_word, may_be_absent


def accumulator(
    call: AggregateCall, user: Mapping[str, UserAggregate], *, fifo: bool, lasting: bool = False
) -> Accumulator:
    """An accumulator for an aggregate; `fifo` if the rows of every group leave in the order in
    which they came, `lasting` if none ever leaves."""
    if call.function in user:
        return _of_user(call, user[call.function])
    function = lookup(call.function)
    assert function is not None, f"the binder knows {call.function}"
    if call.distinct and not function.ignores_duplicates:
        return _distinct(call) or General(call)
    special = _over_words(call, fifo, lasting)
    if special is not None:
        return special
    return Chosen(call, lasting=lasting) if is_chosen(call) else General(call)


def _of_user(call: AggregateCall, aggregate: UserAggregate) -> Accumulator:
    if aggregate.accumulator is not None and not call.distinct:
        made = aggregate.accumulator(call)
        assert isinstance(made, Accumulator), f'"{aggregate.name}" has no accumulator but {made!r}'
        return made
    return (Recomputed if aggregate.remove is None else Incremental)(call, aggregate)


def _over_words(
    call: AggregateCall, fifo: bool = False, lasting: bool = False
) -> Accumulator | None:
    """An accumulator of words for an aggregate over all rows, if there is one."""
    match call.function:
        case "count":
            return Count(conditional=False) if may_be_absent(call) else CountRows()
        case "count_if":
            return Count(conditional=True)
        case "bool_and" | "bool_or":
            return Decision(decisive=call.function == "bool_or")
        case "sum" | "avg" if call.type == DOUBLE:
            return DoubleSum(average=call.function == "avg")
        case "sum" | "avg":
            return ExactSum(call)
        case "var_samp" | "var_pop" | "stddev_samp" | "stddev_pop":
            return Moment(call.function)
        case "min" | "max" if has_word(call.type):
            return Extreme(call, fifo=fifo, lasting=lasting)
        case "median" | "quantile" if (share := share_of(call)) is not None:
            return Quantile(share)
    return None


def _distinct(call: AggregateCall) -> Accumulator | None:
    """A set in front of the same aggregate over all rows, if that has an accumulator."""
    if call.function == "count" and not (len(call.arguments) == 1 and has_word(_first(call))):
        return DistinctRowCount(call)
    inner = _over_words(replace(call, distinct=False))
    if inner is None or not has_word(_first(call)):
        return None
    if call.function == "count":
        inner = CountRows()
    return DistinctAccumulator(inner, Layout(_first(call), may_be_absent(call)))


def _first(call: AggregateCall) -> pa.DataType:
    return call.arguments[0].type
