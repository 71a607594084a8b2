"""Netting keeps the bag of elements and leaves no negative element that its batch explains."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from millstream.model.elements import Element, normal_form
from millstream.model.time import INFINITY
from millstream.physical.batch import Batch
from millstream.physical.events.netting import netted

Signed = tuple[float | None, int, int, int]  # value, start, how long, weight


def batch_of(elements: list[Signed]) -> Batch:
    values, starts, lengths, weights = zip(*elements, strict=True) if elements else ([],) * 4
    ends = [INFINITY if length == 9 else 100 + length for length in lengths]
    return Batch.of([pa.array(values, pa.float64())], starts, ends, weights, frontier=50)


def elements_of(batch: Batch) -> list[Element]:
    values = batch.columns[0].to_pylist()
    times = zip(batch.start.tolist(), batch.end.tolist(), batch.weight.tolist(), strict=True)
    return [Element((v,), *t) for v, t in zip(values, times, strict=True)]


signed_elements = st.lists(
    st.tuples(
        st.sampled_from([None, 0.0, -0.0, 1.5, float("nan")]),
        st.integers(0, 12),
        st.sampled_from([1, 2, 9]),
        st.sampled_from([-3, -1, -1, 1, 1, 2]),
    ),
    max_size=30,
)


def alike(value: float | None) -> str:
    """Equal for values that are equal in SQL."""
    return str(value if value is None else value + 0.0)


@given(signed_elements)
@settings(max_examples=examples(300))
def test_the_bag_of_elements_stays(elements: list[Signed]) -> None:
    def bag(batch: Batch) -> list[Element]:
        rows = [Element((alike(e.row[0]),), e.start, e.end, e.weight) for e in elements_of(batch)]
        return normal_form(rows)

    batch = batch_of(elements)
    net = netted(batch)
    assert bag(net) == bag(batch)
    assert len(net) <= len(batch)
    assert net.frontier == 50
    assert (net.start < net.end).all()
    assert (net.weight != 0).all()


@given(signed_elements)
@settings(max_examples=examples(300))
def test_what_comes_before_it_goes_is_one_element(elements: list[Signed]) -> None:
    """A negative element is left only where more go than have come by then."""
    net = elements_of(netted(batch_of(elements)))
    for gone in (e for e in net if e.weight < 0):
        value = alike(gone.row[0])
        came = [e for e in net if alike(e.row[0]) == value and e.end == gone.end and e.weight > 0]
        assert all(e.start > gone.start for e in came)


def test_of_a_million_rows_that_come_and_go_only_the_last_are_open() -> None:
    count, window = 1_000_000, 10
    comes, goes = np.arange(count), np.arange(count - window)
    rows = np.concatenate([comes, goes])
    start = np.concatenate([comes, goes + window])
    weight = np.repeat([1, -1], [count, count - window])
    net = netted(Batch.of([pa.array(rows)], start, np.full(len(rows), INFINITY), weight))
    assert len(net) == count
    lengths = Counter((net.end - net.start).tolist())
    assert lengths[window] == count - window
    assert (net.weight == 1).all()
