"""What changes at each instant, against a count of every row at every instant."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.model.time import INFINITY
from millstream.physical.batch import NEVER, Batch
from millstream.physical.canonical_values import canonical
from millstream.physical.events.net_changes import NetChanges

TYPES = [pa.int64(), pa.string()]
Element = tuple[int, int, str, int]  # start, end, value, weight


@st.composite
def elements(draw: st.DrawFn, ordered: bool) -> list[Element]:
    length = st.integers(1, 6) if not ordered else st.just(4)
    starts = sorted(draw(st.lists(st.integers(0, 20), max_size=30)))
    found = []
    for start in starts:
        end = INFINITY if not ordered and draw(st.booleans()) else start + draw(length)
        value, weight = draw(st.sampled_from("ab")), draw(st.sampled_from([1, 1, 2, -1]))
        found.append((start, end, value, weight))
    return found


def batch_of(part: list[Element], frontier: int) -> Batch:
    starts, ends, values, weights = zip(*part, strict=True) if part else ((), (), (), ())
    numbers = [ord(value) for value in values]
    columns = [pa.array(numbers, TYPES[0]), pa.array(values, TYPES[1])]
    return Batch.of(columns, starts, ends, weights, frontier)


def expected(found: list[Element]) -> dict[tuple[int, str], int]:
    changes: Counter[tuple[int, str]] = Counter()
    for start, end, value, weight in found:
        changes[start, value] += weight
        if end < INFINITY:
            changes[end, value] -= weight
    return {key: net for key, net in changes.items() if net}


@pytest.mark.parametrize("ordered", [True, False], ids=["in order", "in any order"])
@settings(max_examples=200)
@given(data=st.data())
def test_changes_add_up_for_any_cut_into_batches(ordered: bool, data: st.DataObject) -> None:
    found = data.draw(elements(ordered))
    net = NetChanges(TYPES, ordered)
    told: list[tuple[int, str, int]] = []
    first = 0
    while first < len(found) or not told:
        stop = first + data.draw(st.integers(1, 8))
        frontier = found[stop][0] if stop < len(found) else INFINITY
        rows, times, changes = net.due(batch_of(found[first:stop], frontier))
        numbers, values = (column.to_pylist() for column in rows)
        assert numbers == [ord(value) for value in values]
        assert all(time < frontier for time in times)
        told += zip(times.tolist(), values, changes.tolist(), strict=True)
        if data.draw(st.booleans()):
            saved, net = net.save(), NetChanges(TYPES, ordered)
            net.restore(saved)
        first = stop
        if frontier == INFINITY:
            break
    by_row = {(time, value): change for time, value, change in told}
    assert len(by_row) == len(told)
    assert by_row == expected(found)
    order = [(time, change > 0) for time, _, change in told]
    assert order == sorted(order)  # at each instant, what goes before what comes


def test_what_happened_before_the_floor_happens_there() -> None:
    net = NetChanges(TYPES, ordered=False)
    net.add(batch_of([(1, 3, "a", 1), (2, INFINITY, "a", 1), (2, 9, "b", 1)], NEVER))
    rows, times, changes = net.due(batch_of([], 7), floor=5)
    told = zip(rows[1].to_pylist(), times.tolist(), changes.tolist(), strict=True)
    assert sorted(told) == [("a", 5, 1), ("b", 5, 1)]


@pytest.mark.parametrize("ordered", [True, False], ids=["in order", "in any order"])
def test_only_the_future_is_kept(ordered: bool) -> None:
    net = NetChanges(TYPES, ordered)
    sizes = []
    for first in range(0, 20_000, 100):
        times = np.arange(first, first + 100).tolist()
        found = [(time, time + 500, f"{time:08d}", 1) for time in times]
        numbers = pa.array(times), pa.array([value for _, _, value, _ in found])
        ends = [end for _, end, _, _ in found]
        rows, _, changes = net.due(Batch.of(numbers, times, ends, frontier=first + 100))
        assert len(rows[0]) == len(changes) == (100 if first < 500 else 200)
        sizes.append((len(net), net.nbytes))
    assert {count for count, _ in sizes[10:]} == {1000}  # rows and their ends
    assert max(size for _, size in sizes[100:]) <= max(size for _, size in sizes[20:100])


@pytest.mark.parametrize("ordered", [True, False], ids=["in order", "in any order"])
def test_after_a_burst_little_is_kept(ordered: bool) -> None:
    net = NetChanges(TYPES, ordered)
    burst = [(time, time + 500, "abc"[n % 3], 1) for time in range(1_000) for n in range(50)]
    steady = [(time, time + 500, "z", 1) for time in range(1_000, 61_000)]
    found = burst + steady
    told: Counter[tuple[int, str]] = Counter()
    sizes = []
    for first in range(0, len(found), 1_000):
        part = found[first : first + 1_000]
        frontier = INFINITY if first + 1_000 >= len(found) else part[-1][0] + 1
        rows, times, changes = net.due(batch_of(part, frontier))
        for time, value, change in zip(times, rows[1].to_pylist(), changes, strict=True):
            told[int(time), value] += int(change)
        sizes.append(net.nbytes)
    assert sizes[-2] < max(sizes) / 4
    assert told == expected(found)


@pytest.mark.parametrize("ordered", [True, False], ids=["in order", "in any order"])
@pytest.mark.parametrize("type", [pa.float64(), pa.float32()], ids=str)
@pytest.mark.parametrize("ends", [True, False], ids=["intervals", "signed"])
def test_what_goes_has_the_bits_of_what_came(ordered: bool, type: pa.DataType, ends: bool) -> None:
    wide = type == pa.float64()
    other = np.array(0xFFF8000000000001 if wide else 0xFFC00001, np.uint64 if wide else np.uint32)
    nan = other.view(np.float64 if wide else np.float32)
    values = pa.array(np.array([0.0, np.nan, -0.0, nan], type.to_pandas_dtype()))
    start = [0, 5, 10, 15]
    weight = [1] * 4
    if not ends:  # the same, as signed elements
        values = pa.concat_arrays([values, values])
        start, weight = [*start, 10, 15, 20, 25], [1, 1, 1, 1, -1, -1, -1, -1]
    end = [time + 10 for time in start] if ends else [INFINITY] * len(start)
    net = NetChanges([type], ordered)
    rows, times, changes = net.due(Batch.of([values], start, end, weight, INFINITY))
    assert times.tolist() == [0, 5, 20, 25]
    assert changes.tolist() == [1, 1, -1, -1]
    bits = rows[0].to_numpy().view(other.dtype).tolist()
    assert bits[:2] == bits[2:]


def test_zeros_within_other_values_have_one_form() -> None:
    type = pa.list_(pa.struct([("x", pa.float64()), ("y", pa.string())]))
    zero, other = {"x": -0.0, "y": "a"}, {"x": None, "y": None}
    values = pa.array([[zero], None, [], [None, other], [other, zero]], type)
    for first in range(6):
        part = values.slice(first)
        formed = canonical(part)
        assert formed.to_pylist() == part.to_pylist()
        assert "-0.0" not in str(formed.to_pylist())
