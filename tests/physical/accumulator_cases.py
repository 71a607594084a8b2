"""Random events for accumulators, and what the definition says about them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st

from effort import examples
from millstream.logical.aggregates import lookup
from millstream.logical.evaluate import UserAggregate
from millstream.logical.expressions import AggregateCall, Column, Literal
from millstream.logical.functions import EvaluationError, Signature
from millstream.model.elements import Row, row_key
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
    is_array,
    is_decimal,
)
from millstream.model.values import NAN, round_real, to_arrow, to_plain
from millstream.physical.accumulators import Accumulator, accumulator

EXAMPLES = settings(max_examples=examples(12))

GROUPS = 4
LARGEST = 1.7976931348623157e308

Item = tuple[Row, Row] | None  # order and arguments of a row; None where the filter drops it


@dataclass(frozen=True)
class Event:
    group: int
    item: Item
    delta: int


@dataclass
class Script:
    """Segments of events in order of time, cut into steps."""

    segments: list[list[Event]] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)  # segments at which a step begins
    upheavals: list[str] = field(default_factory=list)  # what is done before each step


# --- values -----------------------------------------------------------------------------------

_PLAIN = st.sampled_from([0.0, -0.0, 0.1, -0.1, 1e17, -1e17, 1.0, 3.0, 1 / 3, 2.0**52 + 1])
_ODD = st.sampled_from([NAN, math.inf, -math.inf])
_TINY = st.sampled_from([5e-324, -5e-324, 2.2250738585072014e-308, 1e-300])
_HUGE = st.sampled_from([LARGEST, -LARGEST, LARGEST / 2])
_DOUBLES = _PLAIN | _TINY | _HUGE | _ODD
_BIG = st.sampled_from([2**63 - 1, -(2**63), 2**62, -1, 0, 1, 2**32])


def values(type: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a type, with ties, and NULL."""
    return st.one_of(st.none(), _present(type))


def _present(type: pa.DataType) -> st.SearchStrategy[Any]:
    if is_decimal(type):
        most = 10**type.precision - 1
        whole = st.sampled_from([most, -most, most // 3, 0, 1, -5]) | st.integers(-20, 20)
        unit = type.scale
        return whole.map(lambda n: _decimal(n, unit))
    if is_array(type):
        return st.lists(values(type.value_type), max_size=2).map(tuple)
    return {
        BOOLEAN: st.booleans(),
        INT: st.integers(-3, 3) | st.sampled_from([2**31 - 1, -(2**31)]),
        DATE: st.integers(-3, 3),
        BIGINT: st.integers(-3, 3) | _BIG,
        TIMESTAMP: st.integers(-3, 3) | _BIG,
        INTERVAL: st.integers(-3, 3) | _BIG,
        REAL: _DOUBLES.map(round_real) | st.floats(-10, 10, width=32),
        DOUBLE: _DOUBLES | st.floats(-1000, 1000),
        STRING: st.sampled_from(["", "a", "ab", "b", "ß", "z"]),
        BINARY: st.sampled_from([b"", b"\x00", b"a", b"\xff"]),
    }[type]


def _decimal(unscaled: int, scale: int) -> Any:
    type = decimal_type(38, scale)
    limbs = (unscaled % 2**128).to_bytes(16, "little")
    return pa.Array.from_buffers(type, 1, [None, pa.py_buffer(limbs)])[0].as_py()


# --- scripts ----------------------------------------------------------------------------------


@st.composite
def scripts(
    draw: st.DrawFn, call: AggregateCall, *, fifo: bool = False, lasting: bool = False
) -> Script:
    """Rows come and go; where `fifo`, in the same order in every group; where `lasting`, none
    goes."""
    script = Script()
    live: list[list[tuple[Item, int]]] = [[] for _ in range(GROUPS)]
    items = _items(call)
    for _ in range(draw(st.integers(1, 14))):
        group = draw(st.integers(0, GROUPS - 1))
        comings = [
            Event(group, draw(items), draw(st.sampled_from([1, 1, 1, 2, 3])))
            for _ in range(draw(st.integers(0, 3)))
        ]
        goings = []
        most = 0 if lasting else min(3, len(live[group]))
        for _ in range(draw(st.integers(0, most))):
            place = 0 if fifo else draw(st.integers(0, len(live[group]) - 1))
            item, weight = live[group].pop(place)
            goings.append(Event(group, item, -weight))
        live[group] += [(event.item, event.delta) for event in comings]
        events = comings + goings
        if events:
            merged = draw(_interleaved(comings, goings)) if fifo else draw(st.permutations(events))
            script.segments.append(merged)
    count = len(script.segments)
    script.cuts = sorted({0, *draw(st.lists(st.integers(0, count), max_size=4))})
    kinds = st.sampled_from(["nothing", "grow", "remap", "restart", "retain"])
    script.upheavals = [draw(kinds) for _ in script.cuts]
    return script


@st.composite
def _interleaved(draw: st.DrawFn, comings: list[Event], goings: list[Event]) -> list[Event]:
    order = draw(st.permutations([True] * len(comings) + [False] * len(goings)))
    left, right = iter(comings), iter(goings)
    return [next(left) if coming else next(right) for coming in order]


def _items(call: AggregateCall) -> st.SearchStrategy[Item]:
    arguments = st.tuples(
        *(
            st.just(argument.value) if isinstance(argument, Literal) else values(argument.type)
            for argument in call.arguments
        )
    )
    order = st.tuples(*(values(expression.type) for expression in call.order))
    item = st.tuples(order, arguments)
    return st.none() | item if call.filter is not None else item


# --- the definition ---------------------------------------------------------------------------


def expected(call: AggregateCall, items: list[Item], user: Mapping[str, UserAggregate]) -> Any:
    """The value over what is held, or its failure. Where rows tie in the order, which no binder
    lets happen, their arguments decide."""
    present = [item for item in items if item is not None]
    kept = sorted(present, key=lambda item: (row_key(item[0]), row_key(item[1])))
    rows = [arguments for _, arguments in kept]
    if call.distinct:
        rows = list(dict.fromkeys(rows))
    try:
        if call.function in user:
            return user[call.function].evaluate(sorted(rows, key=row_key))
        function = lookup(call.function)
        assert function is not None
        return function.evaluate(Signature(tuple(a.type for a in call.arguments), call.type), rows)
    except EvaluationError as error:
        return error


# --- running ----------------------------------------------------------------------------------


class Run:
    """An accumulator that is driven by a script; groups are renumbered now and then."""

    def __init__(
        self, call: AggregateCall, user: Mapping[str, UserAggregate], fifo: bool, lasting: bool
    ) -> None:
        self.call, self.user, self.fifo, self.lasting = call, user, fifo, lasting
        self.capacity = GROUPS
        self.number = list(range(GROUPS))  # of each group
        self.ahead: list[list[np.ndarray]] = []  # the words of events that still come
        self.accumulator = self._fresh()
        self.accumulator.grow(self.capacity)

    def _fresh(self) -> Accumulator:
        return accumulator(self.call, self.user, fifo=self.fifo, lasting=self.lasting)

    def upheave(self, kind: str, seed: int) -> None:
        match kind:
            case "grow":
                self.capacity *= 2
                self.accumulator.grow(self.capacity)
            case "remap":
                shift = seed % GROUPS
                new = [self.number[(i + shift) % GROUPS] for i in range(GROUPS)]
                self.number = [new.index(number) for number in self.number]
                self.capacity = GROUPS
                self.accumulator.remap(np.array(new), self.capacity)
            case "restart":
                state = self.accumulator.save()
                self.accumulator = self._fresh()
                self.accumulator.restore(state)
            case "retain":
                self.accumulator.retain(self.ahead)

    def encode(self, events: list[Event]) -> list[np.ndarray]:
        """The words of events; all of a script at once, as rows come before they are due."""
        nothing = (None,) * len(self.call.order), (None,) * len(self.call.arguments)
        items = [event.item or nothing for event in events]
        included = None
        if self.call.filter is not None:
            included = np.array([event.item is not None for event in events], np.bool_)
        order = [
            to_arrow([item[0][k] for item in items], expression.type)
            for k, expression in enumerate(self.call.order)
        ]
        arguments = [
            to_arrow([item[1][k] for item in items], expression.type)
            for k, expression in enumerate(self.call.arguments)
        ]
        words = self.accumulator.encode(arguments, order, included, len(events))
        assert len(words) == self.accumulator.width
        assert all(word.dtype == np.int64 and len(word) == len(events) for word in words)
        return words


def check(
    call: AggregateCall,
    script: Script,
    *,
    fifo: bool = False,
    lasting: bool = False,
    user: Mapping[str, UserAggregate] | None = None,
) -> None:
    """Require that an accumulator gives what the definition says, after every segment."""
    user = user or {}
    run = Run(call, user, fifo, lasting)
    events = [event for segment in script.segments for event in segment]
    words = run.encode(events)
    live: list[list[Item]] = [[] for _ in range(GROUPS)]
    ends = [*script.cuts[1:], len(script.segments)]
    before = 0
    for number, (first, last) in enumerate(zip(script.cuts, ends, strict=True)):
        run.ahead = [[word[before:] for word in words]]
        run.upheave(script.upheavals[number], number + len(events))
        taken = script.segments[first:last]
        count = sum(map(len, taken))
        _step(run, taken, [word[before : before + count] for word in words], live)
        before += count


def _step(
    run: Run,
    segments: list[list[Event]],
    words: list[np.ndarray],
    live: list[list[Item]],
) -> None:
    events = [event for segment in segments for event in segment]
    group = np.array([run.number[event.group] for event in events], np.int64)
    order = np.argsort(group, kind="stable")
    by_group = sorted(segments, key=lambda segment: run.number[segment[0].group])
    bounds = np.cumsum([0, *map(len, by_group)])
    delta = np.array([event.delta for event in events], np.int64)
    answer = run.accumulator.step(group[order], [w[order] for w in words], delta[order], bounds)
    assert answer.values.type == run.call.type
    assert len(answer.values) == len(segments)
    assert run.accumulator.nbytes >= 0
    given = to_plain(answer.values, run.call.type)
    for j, segment in enumerate(by_group):
        items = live[segment[0].group]
        for event in sorted(segment, key=lambda event: -event.delta):
            for _ in range(abs(event.delta)):
                (items.append if event.delta > 0 else items.remove)(event.item)
        wanted = expected(run.call, items, run.user)
        failed = answer.failed is not None and bool(answer.failed[j])
        if isinstance(wanted, EvaluationError):
            assert failed, (wanted, given[j])
            assert answer.messages[j] == str(wanted)
            assert given[j] is None
        else:
            assert not failed, answer.messages
            assert identical(given[j], wanted), (given[j], wanted, items)


def identical(a: Any, b: Any) -> bool:
    """Equal to the last bit; there is one zero."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b)
    return type(a) is type(b) and bool(a == b)


def call_of(
    function: str,
    *arguments: pa.DataType,
    distinct: bool = False,
    filtered: bool = False,
    order: tuple[pa.DataType, ...] = (),
) -> AggregateCall:
    """A call of an aggregate on columns that have the types of its signature."""
    definition = lookup(function)
    assert definition is not None
    signature = definition.signature(arguments)
    assert signature.arguments == arguments, "give the types that the binder casts to"
    columns = tuple(Column(f"a{k}", type) for k, type in enumerate(arguments))
    return AggregateCall(
        function,
        columns,
        signature.result,
        distinct,
        Column("f", BOOLEAN) if filtered else None,
        tuple(Column(f"o{k}", type) for k, type in enumerate(order)),
    )
