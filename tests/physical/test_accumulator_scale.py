"""Accumulators over many rows, heavy weights, and for a long time."""

from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from millstream.logical.expressions import AggregateCall, Column
from millstream.model.types import BIGINT, BOOLEAN, DOUBLE, INT, INTERVAL, STRING, decimal_type
from millstream.physical.accumulators import Accumulator, accumulator
from physical.accumulator_cases import call_of


def feed(
    subject: Accumulator, column: pa.Array, delta: list[int], group: list[int] | None = None
) -> list[object]:
    """Every event is a segment; gives the values after them."""
    words = subject.encode([column], [], None, len(column))
    groups = np.array(group or [0] * len(delta), np.int64)
    order = np.argsort(groups, kind="stable")
    sorted_words = [word[order] for word in words]
    bounds = np.arange(len(delta) + 1)
    answer = subject.step(groups[order], sorted_words, np.array(delta, np.int64)[order], bounds)
    assert answer.failed is None
    values = answer.values.to_pylist()
    placed = dict(zip(order.tolist(), values, strict=True))
    return [placed[i] for i in range(len(delta))]


def fresh(call: AggregateCall, *, fifo: bool = False, capacity: int = 4) -> Accumulator:
    subject = accumulator(call, {}, fifo=fifo)
    subject.grow(capacity)
    return subject


# --- many rows --------------------------------------------------------------------------------


@pytest.mark.parametrize("spread", [10, 300, 5_000, 10**12])
@pytest.mark.parametrize("name", ["min", "max"])
def test_extremes_of_large_groups(name: str, spread: int) -> None:
    """Groups grow to thousands of values and shrink to nothing, in any order."""
    draw = random.Random(spread)
    subject, empty = fresh(call_of(name, BIGINT)), fresh(call_of(name, BIGINT)).nbytes
    held: list[Counter[int]] = [Counter() for _ in range(3)]
    for round in range(12):
        leaving = 0.2 if round < 6 else 0.8
        group, value, delta, wanted = [], [], [], []
        for _ in range(1500):
            g = min(draw.randrange(6), 2)
            if held[g] and draw.random() < leaving:
                v, d = draw.choice(list(held[g])), -1
            else:
                v, d = draw.randrange(spread), 1
            held[g][v] += d
            held[g] = held[g] if held[g][v] else +held[g]
            group.append(g)
            value.append(v)
            delta.append(d)
            wanted.append((min if name == "min" else max)(held[g], default=None))
        assert feed(subject, pa.array(value), delta, group) == wanted
        state = subject.save()
        subject = accumulator(call_of(name, BIGINT), {}, fifo=False)
        subject.restore(state)
    rest = [(g, v, n) for g in range(3) for v, n in held[g].items()]
    feed(subject, pa.array([v for _, v, _ in rest]), [-n for *_, n in rest], [g for g, *_ in rest])
    feed(subject, pa.array([1, 1]), [1, -1])
    assert subject.nbytes <= 4 * empty


@pytest.mark.parametrize("rising", [True, False])
@pytest.mark.parametrize("name", ["min", "max"])
def test_queues_of_sorted_values(name: str, rising: bool) -> None:
    """The longest and the shortest queues."""
    subject = fresh(call_of(name, INT), fifo=True)
    count, window = 5_000, 2_000
    values = list(range(count)) if rising else list(range(count, 0, -1))
    wanted = []
    for i in range(count):
        seen = values[max(0, i - window + 1) : i + 1]
        wanted.append(max(seen[0], seen[-1]) if name == "max" else min(seen[0], seen[-1]))
    events = [(values[i], 1, i) for i in range(count)]
    leaving = [(values[i], -1, i + window) for i in range(count)]
    merged = sorted(events + leaving, key=lambda event: (event[2], event[1]))
    given = feed(subject, pa.array([v for v, *_ in merged], INT), [d for _, d, _ in merged])
    after = [value for value, (_, d, _) in zip(given, merged, strict=True) if d > 0]
    assert after == wanted
    assert given[-1] is None


def test_counts_of_many_different_values() -> None:
    draw = random.Random(1)
    subject = fresh(call_of("count", DOUBLE, distinct=True))
    held: Counter[float] = Counter()
    values, delta, wanted = [], [], []
    for _ in range(6_000):
        value = draw.randrange(2_000) / 7
        come = not held[value] or draw.random() < 0.5
        held[value] += 1 if come else -1
        values.append(value)
        delta.append(1 if come else -1)
        wanted.append(sum(n > 0 for n in held.values()) if len(values) % 500 == 0 else None)
    given = feed(subject, pa.array(values), delta)
    assert [value for value, w in zip(given, wanted, strict=True) if w is not None] == [
        w for w in wanted if w is not None
    ]


# --- heavy weights ----------------------------------------------------------------------------

WEIGHTS = [1, 2**10, 2**10 + 1, 2**20, 2**31 - 1, 2**31, 2**40, 2**45 + 12345]
DOUBLES = [1.5, -1e300, 3e-310, 1e300, 0.1, -7.25, 1.7976931348623157e308]


def moments(held: Counter[float]) -> tuple[int, Fraction, Fraction]:
    """How many values, their sum, and the sum of their squares."""
    pairs = [(Fraction(value), n) for value, n in held.items()]
    squares = sum((value**2 * n for value, n in pairs), Fraction(0))
    return held.total(), sum((value * n for value, n in pairs), Fraction(0)), squares


def nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


@pytest.mark.parametrize("seed", range(6))
def test_doubles_that_hold_often(seed: int) -> None:
    draw = random.Random(seed)
    sums, means = fresh(call_of("sum", DOUBLE)), fresh(call_of("avg", DOUBLE))
    variances = fresh(call_of("var_pop", DOUBLE))
    held: Counter[float] = Counter()
    for _ in range(40):
        value, weight = draw.choice(DOUBLES), draw.choice(WEIGHTS)
        if held[value] >= weight and draw.random() < 0.5:
            weight = -weight
        held[value] += weight
        column = pa.array([value])
        count, total, squares = moments(+held)
        (given,) = feed(sums, column, [weight])
        assert given == (nearest(total) if count else None)
        (given,) = feed(means, column, [weight])
        wanted = nearest(total) / count if count else None
        if wanted is not None and math.isinf(wanted):
            wanted = nearest(total / count)
        assert given == wanted
        (given,) = feed(variances, column, [weight])
        if count:
            exact = nearest((squares - total**2 / count) / count)
            assert given == pytest.approx(exact, rel=1e-15)
            assert given == exact or count >= 2**32


@pytest.mark.parametrize("seed", range(4))
def test_integers_that_hold_often(seed: int) -> None:
    """Sums go far beyond 64 bits, and come back."""
    draw = random.Random(seed)
    subject = fresh(call_of("sum", decimal_type(18, 0)))
    wide = fresh(call_of("avg", decimal_type(38, 0)))
    held: Counter[int] = Counter()
    for _ in range(40):
        value = draw.choice([10**17, -(10**18) + 1, 1, -1, 123456789])
        weight = draw.choice([1, 3, 2**20, 2**31])
        if held[value] >= weight and draw.random() < 0.5:
            weight = -weight
        held[value] += weight
        total = sum(v * n for v, n in held.items())
        (given,) = feed(subject, pa.array([value], decimal_type(18, 0)), [weight])
        assert given == (total if held.total() else None)
        (given,) = feed(wide, pa.array([value], decimal_type(38, 0)), [weight])
        if held.total():
            assert abs(Fraction(given) - Fraction(total, held.total())) <= Fraction(1, 20_000)


def test_a_decimal_sum_comes_back_from_beyond() -> None:
    largest = decimal_type(38, 0)
    subject = fresh(call_of("sum", largest))
    most = 10**38 - 1
    column = pa.array([most, most, most, -most], largest)
    words = subject.encode([column], [], None, 4)
    delta = np.array([1, 1, -1, 1])
    answer = subject.step(np.zeros(4, np.int64), words, delta, np.arange(5))
    assert answer.values.to_pylist() == [most, None, most, 0]
    assert answer.messages == {1: f"{2 * most} does not fit DECIMAL(38, 0)"}


# --- for a long time --------------------------------------------------------------------------


def test_rows_that_are_over_are_dropped() -> None:
    """What the words of coming events and held rows do not refer to is dropped."""
    for call in (call_of("max", STRING), call_of("count", STRING, INT, distinct=True)):
        subject = fresh(call)
        ahead: list[np.ndarray] = []
        for batch in range(30):
            names = pa.array([f"{batch} {i}" for i in range(1000)])
            columns = [names, pa.array(range(1000), INT)][: len(call.arguments)]
            (words,) = subject.encode(columns, [], None, 1000)
            zeros, bounds = np.zeros(1000, np.int64), np.arange(1001)
            subject.step(zeros, [words], np.ones(1000, np.int64), bounds)
            last = subject.step(zeros, [words], np.full(1000, -1), bounds).values[-1].as_py()
            assert not last
            ahead.append(words[:0])
            if subject.crowded:
                subject.retain([ahead])
                assert not subject.crowded
        assert subject.nbytes < 2_000_000


def test_words_stay_true_when_others_are_dropped() -> None:
    subject = fresh(call_of("max", STRING))
    (kept,) = subject.encode([pa.array(["b", "d"])], [], None, 2)
    subject.encode([pa.array(["c", "x", "y"])], [], None, 3)
    subject.retain([[kept]])
    (more,) = subject.encode([pa.array(["e", "d", "a"])], [], None, 3)
    assert more[1] == kept[1]
    words = np.concatenate([kept, more])
    answer = subject.step(np.zeros(5, np.int64), [words], np.ones(5, np.int64), np.arange(6))
    assert answer.values.to_pylist() == ["b", "d", "e", "e", "e"]


@pytest.mark.parametrize(
    "call",
    [
        call_of("count"),
        call_of("sum", BIGINT),
        call_of("sum", DOUBLE),
        call_of("max", INTERVAL),
        call_of("median", DOUBLE),
        call_of("min", STRING),
        call_of("count", BIGINT, distinct=True),
    ],
    ids=lambda call: call.function,
)
@pytest.mark.parametrize("fifo", [True, False])
def test_forgotten_groups_are_empty(call: AggregateCall, fifo: bool) -> None:
    subject = fresh(call, fifo=fifo)
    for _ in range(2):
        columns = [pa.array([["3", "5"], [3, 5]][a.type != STRING], a.type) for a in call.arguments]
        words = subject.encode(columns, [], None, 2)
        answer = subject.step(np.array([1, 2]), words, np.array([1, 1]), np.arange(3))
        first = answer.values.to_pylist()
        subject.forget(np.array([1, 2]))
    other = fresh(call, fifo=fifo)
    words = other.encode(columns, [], None, 2)
    again = other.step(np.array([1, 2]), words, np.array([1, 1]), np.arange(3))
    assert first == again.values.to_pylist()


def test_words_are_few() -> None:
    never = Column("a", BIGINT, nullable=False)
    assert fresh(call_of("count")).width == 0
    assert fresh(AggregateCall("count", (never,), BIGINT)).width == 0
    assert fresh(AggregateCall("sum", (never,), BIGINT)).width == 1
    assert fresh(AggregateCall("max", (never,), BIGINT)).width == 1
    filtered = AggregateCall("max", (never,), BIGINT, filter=Column("f", BOOLEAN))
    assert fresh(filtered).width == 2
    assert fresh(call_of("max", DOUBLE, filtered=True)).width == 1
    assert fresh(call_of("sum", DOUBLE)).width == 1


@pytest.mark.parametrize("call", [call_of("count"), call_of("avg", DOUBLE), call_of("max", STRING)])
def test_no_events(call: AggregateCall) -> None:
    subject = fresh(call)
    nothing = np.empty(0, np.int64)
    columns = [pa.array([], argument.type) for argument in call.arguments]
    words = subject.encode(columns, [], None, 0)
    answer = subject.step(nothing, words, nothing, np.zeros(1, np.int64))
    assert len(answer.values) == 0
    assert answer.values.type == call.type
